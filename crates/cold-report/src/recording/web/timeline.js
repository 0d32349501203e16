"use strict";
// Threads as rows: when each lived, and what it waited for.

const ROW = 20;

class Timeline {
  constructor(side, sides, view) {
    Object.assign(this, { side, view, all: false });
    const { stalls } = side.tables;
    this.waited = new Float64Array(side.threads.length + 1);
    for (let i = 0; i < stalls.rows; i++) if (stalls.wait[i] === stalls.wait[i]) this.waited[stalls.thread[i]] += stalls.wait[i];
    const tree = side.threads.map((thread, i) => ({ ...thread, number: i + 1 })).filter((thread) => thread.tree);
    const begins = new Map();
    for (const thread of tree) begins.set(thread.pid, Math.min(begins.get(thread.pid) ?? Infinity, thread.began));
    tree.sort((a, b) => begins.get(a.pid) - begins.get(b.pid) || a.pid - b.pid || a.began - b.began);
    this.threads = tree;
    this.waiting = tree.filter((thread) => this.waited[thread.number] > 0);
    const first = this.rows();
    this.chart = new Chart(byId("timeline-charts"), view, {
      height: this.heightFor(first), axis: "none", low: 0, high: first.length, ready: side.ready, end: side.end, title: sideTitle(sides, side, ""),
      label: "Threads over time with their waits for storage by cause.",
      paint: (chart, pixels) => this.paint(chart, pixels),
      decorate: (chart, context) => this.names(chart, context),
      describe: (id) => describeStall(side, id - 1),
      describePlace: (chart, x, y) => this.describeThread(chart, y),
      empty: tree.length === 0 ? "No threads are known." : "",
    });
    this.button(sides);
  }

  heightFor(rows) {
    return MARGIN.top + MARGIN.bottom + Math.max(3, rows.length) * ROW;
  }

  /** Threads that waited, the 40 that did so longest; or the first 500 of all. */
  rows() {
    if (this.all) return this.threads.slice(0, 500);
    const chosen = new Set([...this.waiting].sort((a, b) => this.waited[b.number] - this.waited[a.number]).slice(0, 40));
    if (chosen.size === 0) return this.threads.slice(0, 12);
    return this.threads.filter((thread) => chosen.has(thread));
  }

  button(sides) {
    if (this.threads.length <= this.rows().length) return;
    const words = () => (this.all ? "show those that waited longest" : `show all ${plural(this.threads.length, "thread")}`);
    const button = element("button", { type: "button", onclick: () => {
      this.all = !this.all;
      button.textContent = words();
      const rows = this.rows();
      this.chart.setHeight(this.heightFor(rows));
      this.chart.setRange(0, rows.length);
    } }, words());
    byId("timeline-tools").append(sides.length > 1 ? `${"AB"[this.side.index]}: ` : "", button);
  }

  paint(chart, pixels) {
    const rows = this.rows(), colors = theme.colors, scale = chart.scale, { from, to } = this.view, perTime = pixels.width / (to - from);
    const { stalls } = this.side.tables, at = new Map(rows.map((thread, i) => [thread.number, i]));
    const top = (row) => Math.round(row * ROW * scale), life = pixel(mix(colors.line, colors.background, 0.45)), band = pixel(colors.band);
    rows.forEach((thread, row) => {
      if (row % 2 === 0) pixels.rect(0, top(row), pixels.width, top(row + 1), band, 0);
      const x0 = (thread.began - from) * perTime, x1 = ((thread.ended ?? this.side.high) - from) * perTime;
      pixels.rect(x0, top(row) + 9 * scale, Math.max(x1, x0 + scale), top(row) + 11 * scale, life, 0);
    });
    const dark = colors.stalls.map(pixel), light = colors.stalls.map((color) => pixel(mix(color, colors.background, 0.5)));
    for (let i = 0; i < stalls.rows; i++) {
      const row = at.get(stalls.thread[i]);
      if (row === undefined) continue;
      const end = stalls.at[i] + (stalls.wait[i] === stalls.wait[i] ? stalls.wait[i] : this.side.high);
      if (end < from || stalls.at[i] > to) continue;
      const x0 = Math.round((stalls.at[i] - from) * perTime), x1 = Math.max(x0 + Math.round(scale), Math.round((end - from) * perTime)), cause = stalls.cause[i];
      pixels.textured(x0, top(row) + 3 * scale, x1, top(row + 1) - 3 * scale, dark[cause], light[cause], cause, 1 + i);
    }
  }

  names(chart, context) {
    this.rows().forEach((thread, row) => {
      const y = MARGIN.top + row * ROW + 14, waited = this.waited[thread.number];
      chart.label(context, y, thread.pid === thread.tid ? `${thread.process || thread.name} ${thread.pid}` : `· ${thread.name} ${thread.tid}`, thread.pid !== thread.tid);
      if (waited > 0) {
        context.textAlign = "right";
        context.fillStyle = theme.colors.text;
        context.fillText(timeWords(waited), MARGIN.left - 7, y);
      }
    });
    context.textAlign = "left";
    context.fillStyle = theme.colors.muted;
    context.fillText("waited", 30, 13);
  }

  describeThread(chart, y) {
    const thread = this.rows()[Math.floor((y - MARGIN.top) / ROW)];
    if (!thread || y < MARGIN.top) return null;
    return [
      this.side.threadWords(thread.number),
      thread.line && ["command", thread.line],
      ["began", timeWords(thread.began)],
      ["ended", thread.ended === null ? "after the recording" : timeWords(thread.ended)],
      ["waited", timeWords(this.waited[thread.number])],
    ];
  }
}

function timelines(sides, view) {
  const seen = new Set(sides.flatMap((side) => [...side.tables.stalls.cause]));
  for (const side of sides) {
    if (!side.has.includes("stalls")) byId("timeline-charts").append(nothing(sides, side, "This recording does not see waiting, only when threads lived."));
    new Timeline(side, sides, view);
  }
  legendOf("timeline-legend", sides[0].words.stalls.map((name, i) => [i, (p, c) => p.textured(4, 6, 40, 26, pixel(c.stalls[i]), pixel(mix(c.stalls[i], c.background, 0.5)), i, 0), name]).filter(([i]) => seen.has(i)));
}
