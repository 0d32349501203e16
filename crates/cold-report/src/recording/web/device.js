"use strict";
// Requests: where on the device, how many at once, how large.

function deviceCharts(sides, view) {
  for (const side of sides) {
    const { reads } = side.tables;
    side.devices.forEach((device, number) => {
      let low = Infinity, high = 0;
      for (let i = 0; i < reads.rows; i++) {
        if (reads.device[i] !== number) continue;
        low = Math.min(low, reads.sector[i] * 512);
        high = Math.max(high, reads.sector[i] * 512 + reads.bytes[i]);
      }
      const room = Math.max((high - low) * 0.03, 65536), name = `${device.name}${device.model ? ` (${device.model})` : ""}`;
      new Chart(byId("device-charts"), view, {
        height: 300, axis: "bytes", unit: "device offset", tall: true, low: Math.max(0, low - room), high: high + room,
        ready: side.ready, end: side.end, title: sides.length > 1 || side.devices.length > 1 ? sideTitle(sides, side, name) : "",
        label: `Offset on ${name} over time: each read request from its issue to its completion.`,
        paint: (chart, pixels) => paintRequests(chart, pixels, reads, number),
        describe: (id) => describeRequest(side, id - 1),
      });
    });
    if (side.devices.length === 0) byId("device-charts").append(nothing(sides, side, side.has.includes("device_reads") ? "No device was read." : "This recording does not see device requests."));
  }
  legendOf("device-legend", [
    ["line in the device", (p, c) => p.rect(4, 14, 40, 20, pixel(c.fills[1]), 0), "by the start (line: in the device; thicker: larger)"],
    ["faint line: waiting", (p, c) => p.rect(4, 16, 40, 18, pixel(mix(c.fills[1], c.background, 0.5)), 0), "queued before"],
    ["metadata", (p, c) => p.textured(4, 12, 40, 22, pixel(c.fills[3]), pixel(mix(c.fills[3], c.background, 0.6)), 4, 0), "metadata"],
    ["others", (p, c) => p.textured(4, 12, 40, 22, pixel(c.line), pixel(c.background), 5, 0), "by others"],
  ]);
}

const sideTitle = (sides, side, name) => (sides.length > 1 ? `${"AB"[side.index]}: ${side.name}${name ? ` – ${name}` : ""}` : name);
const nothing = (sides, side, text) => element("p", { class: "nothing" }, sides.length > 1 ? `${"AB"[side.index]}: ${text}` : text);

function legendOf(id, items) {
  const swatches = items.map(([, draw, words]) => {
    const canvas = element("canvas", { width: 22, height: 16 });
    const paint = () => {
      const pixels = new Swatch(canvas.getContext("2d"), theme.colors.background);
      draw(pixels, theme.colors);
      pixels.put();
    };
    paint();
    page.repaint.push(paint);
    return element("span", {}, canvas, words);
  });
  byId(id).append(...swatches);
}

function paintRequests(chart, pixels, reads, device) {
  const { from, to } = chart.view, perTime = pixels.width / (to - from), scale = chart.scale, colors = theme.colors;
  const own = pixel(colors.fills[1]), waiting = pixel(mix(colors.fills[1], colors.background, 0.5));
  const meta = pixel(colors.fills[3]), metaLight = pixel(mix(colors.fills[3], colors.background, 0.6));
  const other = pixel(colors.line), ground = pixel(colors.background);
  for (let i = 0; i < reads.rows; i++) {
    if (reads.device[i] !== device) continue;
    const wait = reads.wait[i] === reads.wait[i] ? reads.wait[i] : 0, known = reads.service[i] === reads.service[i];
    const issued = reads.at[i] + wait, done = known ? issued + reads.service[i] : to;
    if (done < from || reads.at[i] > to) continue;
    const x0 = Math.round((reads.at[i] - from) * perTime), x1 = Math.round((issued - from) * perTime);
    const x2 = Math.max(Math.round((done - from) * perTime), x1 + Math.round(2 * scale));
    const high = (chart.y(reads.sector[i] * 512 + reads.bytes[i]) - MARGIN.top) * scale, low = (chart.y(reads.sector[i] * 512) - MARGIN.top) * scale;
    // At least as thick as the size in doublings above 4 KiB tells.
    const half = Math.max((low - high) / 2, (1 + Math.max(0, Math.log2(reads.bytes[i] / 4096)) * 0.35) * scale), y = (low + high) / 2;
    if (x1 > x0) pixels.rect(x0, Math.round(y), x1, Math.round(y + scale), waiting, 1 + i);
    if (!(reads.kind[i] & 1)) pixels.textured(x1, Math.round(y - half), x2, Math.round(y + half), other, ground, 5, 1 + i);
    else if (reads.kind[i] & 2) pixels.textured(x1, Math.round(y - half), x2, Math.round(y + half), meta, metaLight, 4, 1 + i);
    else pixels.rect(x1, Math.round(y - half), x2, Math.round(y + half), own, 1 + i);
  }
}

function describeRequest(side, row) {
  const { reads } = side.tables, kind = reads.kind[row], offset = reads.sector[row] * 512;
  const time = (value) => (value === value ? timeWords(value) : "unknown");
  return [
    `request of ${byteWords(reads.bytes[row])}`,
    ["device", side.devices[reads.device[row]].name],
    ["offset", `${hex(offset)} (sector ${countWords(reads.sector[row])})`],
    ["queued", `${time(reads.wait[row])}, in the device ${time(reads.service[row])}`],
    ["by", `${side.threadWords(reads.thread[row])}${kind & 1 ? "" : ", not of the start"}`],
    ["flags", [kind & 2 && "metadata", kind & 4 && "read-ahead"].filter(Boolean).join(", ") || "none"],
    ["at", timeWords(reads.at[row])],
  ];
}

/** How many requests are in the device, and how many more wait before it: [time, in device, waiting]. */
function depthSteps(reads) {
  const changes = [];
  for (let i = 0; i < reads.rows; i++) {
    const wait = reads.wait[i] === reads.wait[i] ? reads.wait[i] : 0, issued = reads.at[i] + wait;
    if (wait > 0) changes.push([reads.at[i], 0, 1], [issued, 0, -1]);
    changes.push([issued, 1, 0]);
    if (reads.service[i] === reads.service[i]) changes.push([issued + reads.service[i], -1, 0]);
  }
  // Ends before beginnings at one time: a request that follows another is not beside it.
  changes.sort((a, b) => a[0] - b[0] || a[1] + a[2] - b[1] - b[2]);
  let busy = 0, waiting = 0;
  return changes.map(([at, more, wait]) => [at, (busy += more), (waiting += wait)]);
}

function depthCharts(sides, view) {
  const all = sides.map((side) => depthSteps(side.tables.reads));
  const most = Math.max(1, ...all.map((steps) => steps.reduce((m, s) => Math.max(m, s[1] + s[2]), 0)));
  sides.forEach((side, index) => {
    if (all[index].length === 0) {
      byId("depth-charts").append(nothing(sides, side, "No device requests to count."));
      return;
    }
    new Chart(byId("depth-charts"), view, {
      height: 170, axis: "count", unit: "requests", low: 0, high: most * 1.05, ready: side.ready, end: side.end, title: sideTitle(sides, side, ""),
      label: "Number of read requests in the device and waiting before it, over time.",
      paint: (chart, pixels) => paintDepth(chart, pixels, all[index]),
      describe: () => null,
      describePlace: (chart, x) => {
        const at = chart.timeAt(x), steps = all[index];
        let low = 0, high = steps.length;
        while (low < high) {
          const middle = (low + high) >> 1;
          if (steps[middle][0] <= at) low = middle + 1;
          else high = middle;
        }
        const step = low > 0 ? steps[low - 1] : [0, 0, 0];
        return [timeWords(at), ["in the device", plural(step[1], "request")], ["waiting before it", plural(step[2], "request")]];
      },
    });
  });
  legendOf("depth-legend", [
    ["busy", (p, c) => p.rect(4, 8, 40, 24, pixel(c.fills[1]), 0), "in the device"],
    ["waiting", (p, c) => p.textured(4, 8, 40, 24, pixel(c.fills[2]), pixel(c.background), 1, 0), "waiting before it"],
  ]);
}

/** Columns of pixels, each as high as the most at once within it: peaks never vanish. */
function paintDepth(chart, pixels, steps) {
  const { from, to } = chart.view, perTime = pixels.width / (to - from);
  const busy = new Int32Array(pixels.width), both = new Int32Array(pixels.width);
  for (let i = 0; i < steps.length; i++) {
    const end = i + 1 < steps.length ? steps[i + 1][0] : steps[i][0];
    if (end < from || steps[i][0] > to) continue;
    const x0 = Math.max(0, Math.floor((steps[i][0] - from) * perTime)), x1 = Math.min(pixels.width - 1, Math.floor((end - from) * perTime));
    for (let x = x0; x <= x1; x++) {
      busy[x] = Math.max(busy[x], steps[i][1]);
      both[x] = Math.max(both[x], steps[i][1] + steps[i][2]);
    }
  }
  const colors = theme.colors, strong = pixel(colors.fills[1]), wait = pixel(colors.fills[2]), ground = pixel(colors.background);
  const y = (value) => Math.round((chart.y(value) - MARGIN.top) * chart.scale);
  for (let x = 0; x < pixels.width; x++) {
    if (both[x] > busy[x]) pixels.textured(x, y(both[x]), x + 1, y(busy[x]), wait, ground, 1, 0);
    if (busy[x] > 0) pixels.rect(x, y(busy[x]), x + 1, y(0), strong, 0);
  }
}

/** Request sizes of the time that is shown, as a table with bars. */
class SizeTable {
  constructor(sides, view) {
    Object.assign(this, { sides, view, box: byId("size-tables") });
    view.listeners.push(() => this.later());
    this.show();
  }
  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.show(), 150);
  }
  show() {
    const counts = this.sides.map((side) => {
      const { reads } = side.tables, bins = new Map();
      for (let i = firstAt(reads.at, this.view.from); i < reads.rows && reads.at[i] <= this.view.to; i++) {
        if (!(reads.kind[i] & 1)) continue;
        const bin = Math.max(9, Math.ceil(Math.log2(reads.bytes[i])));
        const old = bins.get(bin) || [0, 0];
        bins.set(bin, [old[0] + 1, old[1] + reads.bytes[i]]);
      }
      return bins;
    });
    this.box.replaceChildren(...this.sides.map((side, index) => this.table(side, counts[index], counts)));
  }
  table(side, bins, all) {
    const keys = all.flatMap((b) => [...b.keys()]);
    if (bins.size === 0) return nothing(this.sides, side, "No requests of the start in the time shown.");
    const low = Math.min(...keys), high = Math.max(...keys), most = Math.max(...all.flatMap((b) => [...b.values()].map((v) => v[0])));
    const rows = [];
    for (let bin = low; bin <= high; bin++) {
      const [count, bytes] = bins.get(bin) || [0, 0];
      rows.push(element("tr", {}, element("th", { scope: "row" }, bin === 9 || bin === low ? `up to ${roundBytes(2 ** bin)}` : roundBytes(2 ** bin)),
        element("td", { class: "wide" }, bar(count / most)), element("td", { class: "n" }, countWords(count)), element("td", { class: "n" }, byteWords(bytes))));
    }
    const head = ["largest size", "", "requests", "bytes"].map((name, i) => element("th", { scope: "col", class: i > 1 ? "n" : "" }, name));
    return element("table", { class: "bars" }, element("caption", {}, sideTitle(this.sides, side, this.view.whole ? "whole recording" : "time shown above")),
      element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows));
  }
}

function bar(part, className) {
  const inner = element("i", { class: className || "" });
  inner.style.width = `${100 * part}%`;
  return element("div", { class: "track" }, inner);
}

function causeTables(sides) {
  const most = Math.max(1, ...sides.flatMap((side) => side.analysis.causes));
  byId("cause-tables").append(...sides.map((side) => {
    const sum = side.analysis.causes.reduce((a, b) => a + b, 0);
    if (sum === 0) return nothing(sides, side, side.has.includes("fills") ? "The start read nothing." : "This recording does not see why pages were read.");
    const rows = side.words.fills.map((name, i) => [name, side.analysis.causes[i]]).filter((row) => row[1] > 0).sort((a, b) => b[1] - a[1]);
    return element("table", { class: "bars" }, element("caption", {}, sideTitle(sides, side, "start to ready, by the start's own processes")),
      element("thead", {}, element("tr", {}, ...["cause", "", "bytes", "share"].map((h, i) => element("th", { scope: "col", class: i > 1 ? "n" : "" }, h)))),
      element("tbody", {}, ...rows.map(([name, bytes]) => element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "wide" }, bar(bytes / most)),
        element("td", { class: "n" }, byteWords(bytes)), element("td", { class: "n" }, shareWords(bytes, sum))))));
  }));
}

/** How large the windows were that the kernel decided to read, start to ready. */
function windowTables(sides) {
  const most = Math.max(1, ...sides.flatMap((side) => side.windows.map((w) => w.decisions)));
  byId("window-tables").append(...sides.map((side) => {
    if (side.windows.length === 0) return nothing(sides, side, side.has.includes("readahead") ? "The kernel decided on no window." : "This recording does not see these decisions.");
    const limit = Math.max(...side.windows.map((w) => w.limit)), about = `start to ready, as decided: not cut at the ends of files; the limit is ${roundBytes(limit * side.page)}`;
    const row = (w) => element("tr", { title: Object.entries(w.kinds).map(([kind, n]) => `${kind}: ${countWords(n)}`).join(", ") }, element("th", { scope: "row" }, roundBytes(w.size * side.page)),
      element("td", { class: "wide" }, bar(w.decisions / most)), element("td", { class: "n" }, countWords(w.decisions)), element("td", { class: "n" }, byteWords(w.pages * side.page)));
    return element("table", { class: "bars" }, element("caption", {}, sideTitle(sides, side, about)),
      element("thead", {}, element("tr", {}, ...["largest window", "", "decisions", "bytes"].map((h, i) => element("th", { scope: "col", class: i > 1 ? "n" : "" }, h)))),
      element("tbody", {}, ...side.windows.map(row)));
  }));
}
