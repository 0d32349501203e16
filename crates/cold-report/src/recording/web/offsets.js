"use strict";
// The main picture: offset in the file over time, for one file or all of them stacked.

class OffsetPicture {
  constructor(sides, view, files) {
    Object.assign(this, { sides, view, files, file: null, mode: "pages", hidden: new Set() });
    this.charts = sides.map((side) => this.chart(side));
    this.choose(null);
    this.tools();
    this.legend();
  }

  chart(side) {
    const { fills, touches } = side.tables;
    const chart = new Chart(byId("offset-charts"), this.view, {
      height: this.sides.length > 1 ? 420 : 640, axis: "none", tall: true, low: 0, high: 1, ready: side.ready, end: side.end,
      title: this.sides.length > 1 ? `${"AB"[side.index]}: ${side.name}` : "",
      label: "File offset over time: pages read and needed. The tables below say the same in figures.",
      underlay: (c, pixels) => this.underlay(c, pixels),
      paint: (c, pixels) => this.paint(c, pixels, side),
      decorate: (c, context) => this.decorate(c, context, side),
      describe: (id) => this.describe(side, id),
      describePlace: (c, x, y) => this.place(c, x, y),
      click: (c, x, y) => this.click(c, x, y),
      empty: fills.rows + touches.rows === 0 ? "This recording says of no page that it was read or needed." : "",
    });
    side.waits = unionOf(side);
    return chart;
  }

  choose(file) {
    this.file = file;
    for (const chart of this.charts) {
      chart.options.axis = file ? "bytes" : "none";
      chart.options.unit = file ? "offset" : "";
      const high = file ? file.pages * this.sides[0].page : stackFiles(this.files, this.mode);
      chart.setRange(0, high);
    }
    const what = byId("offset-what");
    if (what) what.textContent = file ? file.path : `all ${plural(this.files.length, "file")}, first used at the bottom`;
  }

  tools() {
    const mode = element("select", { onchange: () => {
      this.mode = mode.value;
      this.choose(this.file);
    } }, ...Object.entries(BAND_HEIGHTS).map(([value, { words }]) => element("option", { value }, words)));
    const all = (zoom) => () => {
      if (zoom === "start") this.view.home();
      else if (zoom) this.view.zoom(zoom, (this.view.from + this.view.to) / 2);
      else this.charts.forEach((chart) => chart.reset());
    };
    byId("offset-tools").append(
      element("b", { id: "offset-what" }, `all ${plural(this.files.length, "file")}, first used at the bottom`),
      element("label", {}, "height of a file: ", mode),
      element("button", { type: "button", onclick: all(0.5) }, "zoom in"),
      element("button", { type: "button", onclick: all(2) }, "zoom out"),
      this.view.hasHome ? element("button", { type: "button", onclick: all("start") }, "start to ready") : "",
      element("button", { type: "button", onclick: all(0) }, "show all"),
    );
  }

  /** What can be switched: kinds of marks that occur. */
  kinds() {
    const words = this.sides[0].words, seen = new Set();
    for (const { tables } of this.sides) {
      tables.touches.kind.forEach((kind) => seen.add(`t${kind}`));
      tables.fills.kind.forEach((kind) => {
        seen.add(`f${kind & 15}`);
        if (!(kind & 16)) seen.add("unused");
        if (!(kind & 32)) seen.add("others");
      });
      if (tables.stalls.rows > 0) seen.add("stalls");
    }
    return [
      ...words.touches.map((name, i) => [`t${i}`, name]),
      ...words.fills.map((name, i) => [`f${i}`, `read: ${name}`]),
      ["unused", "read, not needed (pale)"],
      ["others", "read by others"],
      ["stalls", "waiting for storage"],
    ].filter(([key]) => seen.has(key));
  }

  legend() {
    this.swatches = [];
    byId("offset-legend").append(...this.kinds().map(([key, name]) => {
      const swatch = element("canvas", { width: 22, height: 16 });
      this.swatches.push(() => drawSwatch(swatch, key));
      const button = element("button", { type: "button", onclick: () => {
        if (!this.hidden.delete(key)) this.hidden.add(key);
        button.setAttribute("aria-pressed", String(!this.hidden.has(key)));
        this.charts.forEach((chart) => chart.schedule());
      } }, swatch, name);
      button.setAttribute("aria-pressed", "true");
      return button;
    }));
    this.recolor();
  }

  recolor() {
    this.swatches.forEach((draw) => draw());
  }

  /** Per file number: height of page 0 and of one page, in pixels of the layer. */
  scales(chart, side) {
    const count = side.band.length, zero = new Float64Array(count).fill(NaN), one = new Float64Array(count);
    const to = (value) => (chart.y(value) - MARGIN.top) * chart.scale;
    side.band.forEach((file, number) => {
      if (!file || (this.file && file !== this.file)) return;
      const [low, high] = this.file ? [0, file.pages * side.page] : [file.y, file.y + file.height];
      zero[number] = to(low);
      one[number] = (to(high) - to(low)) / Math.max(1, file.pages);
    });
    return { zero, one };
  }

  underlay(chart, pixels) {
    const scale = chart.scale, to = (value) => (chart.y(value) - MARGIN.top) * scale;
    if (this.file) {
      const side = this.sides.find((s, i) => this.file.numbers[i] >= 0);
      (side.sections[this.file.numbers[side.index]] || []).forEach((section, i) => {
        if (i % 2 === 0) pixels.rect(0, Math.floor(to(section[1] + section[2])), pixels.width, Math.ceil(to(section[1])), pixel(theme.colors.band), 0);
      });
      return;
    }
    for (const file of this.files) {
      if (file.order % 2 === 0) pixels.rect(0, Math.round(to(file.y + file.height)), pixels.width, Math.round(to(file.y)), pixel(theme.colors.band), 0);
    }
  }

  paint(chart, pixels, side) {
    const { fills, touches, stalls } = side.tables, colors = theme.colors, scale = chart.scale;
    const { zero, one } = this.scales(chart, side), perTime = pixels.width / (this.view.to - this.view.from);
    const ends = (table) => [firstAt(table.at, this.view.from - 8 / perTime), firstAt(table.at, this.view.to + 8 / perTime)];
    const range = ends(fills), wide = Math.round((range[1] - range[0] < 3000 ? 6 : 3) * scale);
    const strong = colors.fills.map((color) => [pixel(color), pixel(mix(color, colors.background, 0.35))]);
    const pale = colors.fills.map((color) => [pixel(mix(color, colors.background, 0.5)), pixel(mix(color, colors.background, 0.82))]);
    for (const used of [0, 16]) {
      if (!used && this.hidden.has("unused")) continue;
      for (let i = range[0]; i < range[1]; i++) {
        const kind = fills.kind[i], file = fills.file[i], cause = kind & 15;
        if ((kind & 16) !== used || zero[file] !== zero[file] || this.hidden.has(`f${cause}`)) continue;
        if (!(kind & 32) && this.hidden.has("others")) continue;
        const x = (fills.at[i] - this.view.from) * perTime, low = zero[file] + fills.first[i] * one[file];
        const high = Math.min(low + fills.pages[i] * one[file], low - scale);
        const [dark, light] = (used ? strong : pale)[cause];
        pixels.textured(Math.round(x), Math.floor(high), Math.round(x) + wide, Math.ceil(low), dark, light, cause, 1 + i);
      }
    }
    if (!this.hidden.has("stalls")) this.stalls(pixels, side, stalls, 1 + fills.rows + touches.rows, { zero, one, perTime, scale });
    this.touches(pixels, touches, fills.rows, { zero, one, perTime, range: ends(touches), scale });
  }

  /** Shapes: a diamond for a fault, a cross for a read, a dot for what was only mapped around. */
  touches(pixels, touches, base, { zero, one, perTime, range, scale }) {
    const colors = theme.colors, ink = pixel(colors.needed), upper = pixel(colors.upper);
    // Many are points, so that what lies below can still be seen.
    const count = range[1] - range[0], size = Math.round((count < 600 ? 2 : count < 50000 ? 1 : 0) * scale), thin = Math.max(1, Math.round(scale));
    for (const wanted of [1, 2, 0]) {
      if (this.hidden.has(`t${wanted}`)) continue;
      for (let i = range[0]; i < range[1]; i++) {
        const file = touches.file[i];
        if (touches.kind[i] !== wanted || zero[file] !== zero[file]) continue;
        const x = Math.round((touches.at[i] - this.view.from) * perTime), id = 1 + base + i;
        const low = zero[file] + touches.first[i] * one[file], high = low + touches.pages[i] * one[file];
        const middle = Math.round((low + high) / 2), top = Math.min(Math.floor(high), middle), bottom = Math.max(Math.ceil(low), middle);
        if (wanted === 1) pixels.rect(x, top, x + thin, Math.max(bottom, top + thin), upper, id);
        else if (wanted === 2) {
          pixels.rect(x, Math.min(top, middle - size), x + thin, Math.max(bottom, middle + size + 1), ink, id);
          pixels.rect(x - size, middle, x + size + thin, middle + thin, ink, id);
        } else {
          for (let d = -size; d <= size; d++) {
            const half = size - Math.abs(d);
            pixels.rect(x + d, middle - half, x + d + 1, middle + half + 1, ink, id);
          }
          if (bottom - top > 2 * size) pixels.rect(x, top, x + thin, bottom, ink, id);
        }
      }
    }
  }

  /** A line from the beginning of a wait to its end, with a bar at both. */
  stalls(pixels, side, stalls, base, { zero, one, perTime, scale }) {
    const color = pixel(theme.colors.stall), thick = Math.max(1, Math.round(scale));
    for (let i = 0; i < stalls.rows; i++) {
      const file = stalls.file[i] - 1;
      if (file < 0 || zero[file] !== zero[file]) continue;
      const end = stalls.at[i] + (stalls.wait[i] === stalls.wait[i] ? stalls.wait[i] : side.high);
      if (end < this.view.from || stalls.at[i] > this.view.to) continue;
      const x0 = Math.round((stalls.at[i] - this.view.from) * perTime), x1 = Math.round((end - this.view.from) * perTime);
      const y = Math.round(zero[file] + Math.max(0, stalls.page[i] - 0.5) * one[file]), bar = Math.round(3 * scale);
      pixels.rect(x0, y, Math.max(x1, x0 + thick), y + thick, color, base + i);
      if (x1 - x0 > 3 * bar) {
        pixels.rect(x0, y - bar, x0 + thick, y + bar + thick, color, base + i);
        pixels.rect(x1 - thick, y - bar, x1, y + bar + thick, color, base + i);
      }
    }
  }

  decorate(chart, context, side) {
    // Above the plot: when any task waited, hatched.
    if (side.waits.length > 0 && !this.hidden.has("stalls")) {
      context.fillStyle = hatch(context, theme.colors.stall);
      let last = -1;
      for (const [from, to] of side.waits) {
        const x0 = Math.max(chart.x(from), MARGIN.left, last), x1 = Math.min(chart.x(to), MARGIN.left + chart.width);
        if (x1 > x0) context.fillRect(x0, MARGIN.top - 5, Math.max(x1 - x0, 0.5), 5);
        last = Math.max(last, x1);
      }
      context.textAlign = "left";
      context.fillStyle = theme.colors.muted;
      // Never under the label of "ready".
      const beside = side.ready === null ? Infinity : chart.x(side.ready);
      context.fillText("hatched: any task waits", beside > MARGIN.left + 190 ? MARGIN.left + 2 : Math.max(MARGIN.left, beside) + 60, 12);
    }
    if (this.file) this.sectionLabels(chart, context, side);
    else this.bandLabels(chart, context);
  }

  /** Names of the bands that are high enough; where they are not, of the largest that have room. */
  bandLabels(chart, context) {
    const line = 14, taken = [];
    const seen = this.files.filter((f) => f.y + f.height > chart.y0 && f.y < chart.y1);
    const others = seen.filter((f) => f.others), own = seen.filter((f) => !f.others);
    if (others.length > 0) {
      const y = chart.y((Math.max(others[0].y, chart.y0) + Math.min(others[others.length - 1].y + others[others.length - 1].height, chart.y1)) / 2);
      taken.push(y);
      chart.label(context, y + 4, plural(others.length, "file of others", "files of others"), true);
    }
    for (const file of own.sort((a, b) => b.height - a.height || b.stall - a.stall)) {
      const low = Math.max(file.y, chart.y0), high = Math.min(file.y + file.height, chart.y1), y = chart.y((low + high) / 2);
      if (taken.some((other) => Math.abs(other - y) < line) || y < MARGIN.top + 14 || y > MARGIN.top + chart.height - 2) continue;
      taken.push(y);
      chart.label(context, y + 4, shortName(file.path));
      if (taken.length > chart.height / line) break;
    }
    context.save();
    context.translate(MARGIN.left - 12, MARGIN.top + chart.height / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillStyle = theme.colors.muted;
    context.fillText("files in the order of their first use →", 0, 0);
    context.restore();
  }

  sectionLabels(chart, context, side) {
    const number = this.file.numbers[side.index], taken = [];
    for (const [name, offset, bytes] of [...(side.sections[number] || [])].sort((a, b) => b[2] - a[2])) {
      const low = Math.max(offset, chart.y0), high = Math.min(offset + bytes, chart.y1), y = chart.y((low + high) / 2);
      if (high <= low || taken.some((other) => Math.abs(other - y) < 14) || y < MARGIN.top + 14) continue;
      taken.push(y);
      chart.label(context, y + 4, name);
    }
  }

  place(chart, x, y) {
    if (this.file || x < MARGIN.left || y < MARGIN.top || y > MARGIN.top + chart.height) return null;
    const file = bandAt(this.files, chart.valueAt(y));
    return file && [file.path, ["needed", byteWords(file.needed)], ["read", byteWords(file.read)], ["", "click to see this file alone"]];
  }

  click(chart, x, y) {
    if (this.file || y < MARGIN.top || y > MARGIN.top + chart.height) return;
    const file = bandAt(this.files, chart.valueAt(y));
    if (file && this.list) this.list.pick(file);
  }

  describe(side, id) {
    const { fills, touches, stalls } = side.tables;
    let row = id - 1;
    if (row < fills.rows) {
      const kind = fills.kind[row];
      return [side.words.fills[kind & 15], ...this.where(side, fills.file[row], fills.first[row], fills.pages[row]),
        (kind & 15) < 5 && ["", kind & 16 ? "read and needed" : "read, not needed"], side.ready !== null && fills.at[row] > side.ready && ["", "after ready"], ["by", `${side.threadWords(fills.thread[row])}${kind & 32 ? "" : ", not of the start"}`], ["at", timeWords(fills.at[row])]];
    }
    row -= fills.rows;
    if (row < touches.rows) {
      const wait = stallOf(side, touches, row);
      return [side.words.touches[touches.kind[row]], ...this.where(side, touches.file[row], touches.first[row], touches.pages[row]),
        ["by", side.threadWords(touches.thread[row])], ["at", timeWords(touches.at[row])], wait && ["waited", timeWords(wait)]];
    }
    return describeStall(side, row - touches.rows);
  }

  where(side, file, first, pages) {
    return placeLines(side, file, first, pages);
  }
}

/** File, offset, section and symbol of pages. */
function placeLines(side, file, first, pages) {
  const offset = first * side.page, section = side.sectionAt(file, offset, offset + pages * side.page), symbol = side.symbolAt(file, first);
  return [
    ["file", side.files.path[file]],
    ["offset", `${hex(offset)} (${countWords(offset / 1024)} KiB), ${plural(pages, "page")}`],
    section && ["section", section],
    symbol && ["symbol", symbol],
  ];
}

function describeStall(side, row) {
  const stalls = side.tables.stalls, file = stalls.file[row] - 1, stack = side.analysis.stacks[stalls.stack[row] - 1];
  const wait = stalls.wait[row], run = stalls.run[row];
  return [
    `waited for storage: ${side.words.stalls[stalls.cause[row]]}`,
    ["waited", wait === wait ? timeWords(wait) : "longer than the recording"],
    run > 0 && ["then ready to run for", timeWords(run)],
    ...(file >= 0 && stalls.page[row] > 0 ? placeLines(side, file, stalls.page[row] - 1, 1) : [file >= 0 && ["file", side.files.path[file]]]),
    stalls.path[row] > 0 && ["looking for", side.tables.stalls.paths[stalls.path[row] - 1]],
    ["by", side.threadWords(stalls.thread[row])],
    ["at", timeWords(stalls.at[row])],
    stack && stack.frames.length > 0 && ["in", stack.frames.slice(-3).reverse().join(" ← ")],
  ];
}

/** How long the thread of a touch waited for one of its pages; the stall nearest in time. */
function stallOf(side, touches, row) {
  const { stalls } = side.tables;
  if (!side.stallsAt) {
    side.stallsAt = new Map();
    for (let i = 0; i < stalls.rows; i++) {
      const key = `${stalls.file[i]}/${stalls.page[i]}/${stalls.thread[i]}`;
      if (!side.stallsAt.has(key)) side.stallsAt.set(key, []);
      side.stallsAt.get(key).push(i);
    }
  }
  const pages = Math.min(touches.pages[row], 64);
  for (let page = 0; page < pages; page++) {
    const rows = side.stallsAt.get(`${touches.file[row] + 1}/${touches.first[row] + page + 1}/${touches.thread[row]}`);
    if (rows) return stalls.wait[rows.reduce((a, b) => (Math.abs(stalls.at[b] - touches.at[row]) < Math.abs(stalls.at[a] - touches.at[row]) ? b : a))];
  }
  return 0;
}

/** Times in which at least one task waited. */
function unionOf(side) {
  const { stalls } = side.tables, out = [];
  for (let i = 0; i < stalls.rows; i++) {
    const from = stalls.at[i], to = from + (stalls.wait[i] === stalls.wait[i] ? stalls.wait[i] : side.high), last = out[out.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else out.push([from, to]);
  }
  return out;
}

function hatch(context, color) {
  const tile = document.createElement("canvas"), c = tile.getContext("2d");
  tile.width = tile.height = 4;
  c.strokeStyle = color;
  c.lineWidth = 1.6;
  c.beginPath();
  c.moveTo(-1, 5);
  c.lineTo(5, -1);
  c.stroke();
  return context.createPattern(tile, "repeat");
}

function drawSwatch(canvas, key) {
  const context = canvas.getContext("2d"), colors = theme.colors, p = new Swatch(context, colors.background);
  const number = Number(key.slice(1)), ink = pixel(colors.needed);
  const fill = (x0, x1, amount) => {
    const color = colors.fills[key === "unused" || key === "others" ? 1 : number], texture = key === "unused" || key === "others" ? 1 : number;
    p.textured(x0, 4, x1, 28, pixel(mix(color, colors.background, amount)), pixel(mix(color, colors.background, amount ? 0.82 : 0.35)), texture, 0);
  };
  if (key[0] === "f") {
    fill(4, 22, 0);
    fill(24, 40, 0.5);
  } else if (key === "unused") fill(4, 40, 0.5);
  else if (key === "others") fill(4, 40, 0);
  else if (key === "t0") for (let d = -6; d <= 6; d++) p.rect(22 + d, 16 - (6 - Math.abs(d)), 23 + d, 17 + 6 - Math.abs(d), ink, 0);
  else if (key === "t1") for (const x of [14, 22, 30]) p.rect(x, 10, x + 2, 22, pixel(colors.upper), 0);
  else if (key === "t2") {
    p.rect(21, 8, 24, 25, ink, 0);
    p.rect(14, 15, 31, 18, ink, 0);
  } else {
    const color = pixel(colors.stall);
    p.rect(4, 15, 40, 18, color, 0);
    p.rect(4, 9, 7, 24, color, 0);
    p.rect(37, 9, 40, 24, color, 0);
  }
  p.put();
}
