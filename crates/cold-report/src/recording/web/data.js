"use strict";
// Unpacks the data block; the inverse of columns.rs and data.rs.

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function unpack(text) {
  const stream = new Blob([fromBase64(text)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  let at = 4 + length;
  for (const side of data.sides) {
    for (const name of ["fills", "touches", "reads", "stalls"]) {
      const table = side.tables[name];
      for (const column of table.columns) {
        const wide = column.name !== "kind" && column.name !== "cause";
        table[column.name] = decode(bytes, at, table.rows, column.coding, wide ? Float64Array : Uint8Array, table);
        at += column.bytes;
      }
    }
  }
  return data;
}

/** Decodes one column; numbers up to 2^53, beyond 28 bits without bit operations. */
function decode(bytes, at, rows, coding, Type, table) {
  const out = new Type(rows), ends = coding === "page" ? [] : null;
  let last = 0;
  for (let row = 0; row < rows; row++) {
    let byte = bytes[at++], value = byte & 127, scale = 128;
    while (byte & 128) {
      byte = bytes[at++];
      value += (byte & 127) * scale;
      scale *= 128;
    }
    value = value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    if (coding === "delta") last = value += last;
    else if (ends) {
      const file = table.file[row];
      value += ends[file] || 0;
      ends[file] = value + table.pages[row];
    }
    out[row] = value;
  }
  return out;
}

/** Adds what the charts need: times in nanoseconds, the latest first for searching, words. */
function prepare(data) {
  data.sides.forEach((side, index) => {
    side.index = index;
    side.words = data.words;
    const quantum = side.quantum;
    for (const name of ["fills", "touches", "reads", "stalls"]) {
      const at = side.tables[name].at;
      for (let i = 0; i < at.length; i++) at[i] *= quantum;
    }
    // Lengths are stored plus 1; not known becomes not a number.
    const lengths = (column) => {
      for (let i = 0; i < column.length; i++) column[i] = column[i] > 0 ? (column[i] - 1) * quantum : NaN;
    };
    const { reads, stalls } = side.tables;
    [reads.wait, reads.service, stalls.wait, stalls.run].forEach(lengths);
    // Marks may lie outside of the recording's own time by a hair.
    let low = 0, high = side.end;
    for (const table of Object.values(side.tables)) {
      if (table.rows > 0) high = Math.max(high, table.at[table.rows - 1]);
    }
    if (side.ready !== null) high = Math.max(high, side.ready);
    side.low = low;
    side.high = high;
    side.symbolAt = (file, page) => {
      side.symbolMaps ||= {};
      const map = (side.symbolMaps[file] ||= new Map((side.symbols[file] || []).map((s) => [s[0], s])));
      const symbol = map.get(page);
      return symbol && (symbol[2] > 0 ? `${symbol[1]} and ${symbol[2]} more` : symbol[1]);
    };
    side.sectionAt = (file, offset, end) => {
      const found = (side.sections[file] || []).filter((s) => s[1] < end && s[1] + s[2] > offset);
      return found.map((s) => s[0]).slice(0, 4).join(", ");
    };
    side.threadWords = (number) => {
      const thread = side.threads[number - 1];
      if (!thread) return "a thread that is not listed";
      const name = thread.name === thread.process || !thread.process ? thread.name : `${thread.process} / ${thread.name}`;
      return thread.pid === thread.tid ? `${name} [${thread.pid}]` : `${name} [${thread.pid}/${thread.tid}]`;
    };
  });
  return data;
}

/** First row of a table whose time is not below `ns`. */
function firstAt(at, ns) {
  let low = 0, high = at.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at[middle] < ns) low = middle + 1;
    else high = middle;
  }
  return low;
}
