"use strict";
// Tables: sortable by every column, searchable, the first rows at once and the rest on demand.

const FIRST_ROWS = 20;

/** Columns: [heading, kind, value of a row, hover]; kinds text, words (long text), path, bytes, time, count, percent. */
class Table {
  constructor({ title, intro, columns, rows, all, sort }) {
    Object.assign(this, { columns, rows, shown: FIRST_ROWS, sort: sort || null, words: "" });
    this.body = element("tbody");
    this.heads = columns.map(([name, kind], index) => {
      const head = element("th", { scope: "col", class: numeric(kind) ? "n" : "" });
      head.append(element("button", { type: "button", onclick: () => this.by(index) }, name));
      return head;
    });
    const table = element("table", {}, element("thead", {}, element("tr", {}, ...this.heads)), this.body);
    this.more = element("button", { type: "button", class: "more", onclick: () => {
      this.shown = this.shown > FIRST_ROWS ? FIRST_ROWS : Math.min(this.rows.length, 2000);
      this.show();
    } });
    const id = `h-${title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;
    const section = element("section", {}, element("h2", { id }, title));
    section.setAttribute("aria-labelledby", id);
    table.setAttribute("aria-labelledby", id);
    if (intro) section.append(element("p", { class: "hint" }, intro));
    if (rows.length > FIRST_ROWS) {
      const search = element("input", { type: "search", placeholder: "search", oninput: () => {
        this.words = search.value.toLowerCase();
        this.show();
      } });
      search.setAttribute("aria-label", `Search in ${title}`);
      section.append(element("div", { class: "bar" }, search, all > rows.length ? `the first ${countWords(rows.length)} of ${countWords(all)}` : plural(rows.length, "row")));
    }
    section.append(element("div", { class: "scroll" }, table), this.more);
    byId("tables").append(section);
    this.show();
  }

  by(index) {
    // Figures begin with the largest, text at A.
    const down = this.sort && this.sort[0] === index ? !this.sort[1] : numeric(this.columns[index][1]);
    this.sort = [index, down];
    this.show();
  }

  show() {
    let rows = this.rows;
    if (this.words) rows = rows.filter((row) => this.columns.some(([, kind, value]) => !numeric(kind) && String(value(row) ?? "").toLowerCase().includes(this.words)));
    if (this.sort) {
      const [index, down] = this.sort, [, kind, value] = this.columns[index];
      const missing = (v) => v === null || v === undefined;
      rows = [...rows].sort((a, b) => {
        const x = value(a), y = value(b);
        if (missing(x) || missing(y)) return missing(x) - missing(y);
        const order = numeric(kind) ? x - y : String(x).localeCompare(String(y));
        return down ? -order : order;
      });
      this.heads.forEach((head, i) => {
        if (i === index) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
    }
    this.body.replaceChildren(...rows.slice(0, this.shown).map((row) => this.row(row)));
    this.more.hidden = rows.length <= FIRST_ROWS;
    this.more.textContent = this.shown > FIRST_ROWS ? "show fewer" : `show ${rows.length > 2000 ? "the first 2000" : "all"} of ${countWords(rows.length)}`;
  }

  row(row) {
    return element("tr", {}, ...this.columns.map(([, kind, value, hover], index) => {
      const cell = element(index === 0 ? "th" : "td", { class: numeric(kind) ? "n" : kind, title: hover ? hover(row) : undefined }, cellWords(kind, value(row)));
      if (index === 0) cell.scope = "row";
      return cell;
    }));
  }
}

const numeric = (kind) => kind === "bytes" || kind === "time" || kind === "count" || kind === "change-bytes" || kind === "change-time";

function cellWords(kind, value) {
  if (value === null || value === undefined) return "–";
  const signed = (words) => (value === 0 ? "0" : `${value > 0 ? "+" : "−"}${words(Math.abs(value))}`);
  switch (kind) {
    case "bytes": return byteWords(value);
    case "time": return timeWords(value);
    case "count": return countWords(value);
    case "change-bytes": return signed(byteWords);
    case "change-time": return signed(timeWords);
    default: return String(value);
  }
}

function tablesOf(side, sides) {
  const name = (title) => (sides.length > 1 ? `${title} (${"AB"[side.index]}: ${side.name})` : title);
  const files = side.files, a = side.analysis, path = (row) => (row.file === null ? "–" : files.path[row.file]);
  const add = (title, columns, rows, options) => {
    if (rows.length > 0) new Table({ title: name(title), columns, rows, all: rows.length, ...options });
  };
  const numbers = files.path.map((_, i) => i), file = (column) => (i) => files[column][i];
  // A page of one recording has them as text, above its pictures.
  if (sides.length > 1) {
    add("What would help", [
      ["suggestion", "words", (s) => s.what], ["why", "words", (s) => s.why],
      ["time saved", "time", (s) => s.saves_time], ["bytes saved", "bytes", (s) => s.saves_bytes], ["requests saved", "count", (s) => s.saves_requests],
      ["how this was estimated", "words", (s) => s.estimate],
      ["files", "words", (s) => s.files.map((f) => shortName(files.path[f])).join(", ")],
    ], a.suggestions);
  }
  const needs = (...columns) => (a.needs_told ? columns : []);
  add("Files", [
    ["file", "path", file("path")], ["waited", "time", file("stall")], ...needs(["needed", "bytes", file("needed")], ["of it at most", "bytes", file("needed_upper")]), ["read", "bytes", file("read")],
    ...needs(["not needed", "bytes", file("unused")], ["was cached", "bytes", file("cached")]), ["size", "bytes", file("size")], ["requests", "count", file("requests")], ["waits", "count", file("stalls")],
    ...needs(["pieces", "count", file("fragments")]), ["first use", "time", file("first_use")], ["how", "text", (i) => files.reached[i].replaceAll("_", " ")],
  ], numbers, { all: a.files, intro: `The costliest first.${a.needs_told ? " Pieces: separate runs of needed pages." : ""}` });
  add("Read, but hardly needed", [
    ["library", "path", file("path")], ["not needed", "bytes", file("unused")], ["needed", "bytes", file("needed")], ["read", "bytes", file("read")], ["waited", "time", file("stall")],
  ], a.hardly_needed, { all: a.rows.hardly_needed });
  add("Packages", [
    ["package", "path", (p) => p.name], ["language", "text", (p) => p.language], ["time", "time", (p) => p.elapsed], ["waited", "time", (p) => p.waited],
    ["read", "bytes", (p) => p.read], ["files", "count", (p) => p.files], ["failed lookups", "count", (p) => p.misses],
  ], a.packages, { all: a.rows.packages, intro: "Time: of the program's first thread, from each look at its files to the next look at something else. What a package does after it loaded another counts for the other." });
  add("Sections", [
    ["file", "path", path], ["section", "text", (s) => s.section], ["segment", "text", (s) => s.segment], ["size", "bytes", (s) => s.size],
    ["needed", "bytes", (s) => s.needed], ["read", "bytes", (s) => s.read], ["waited", "time", (s) => s.stall],
  ], a.sections, { all: a.rows.sections });
  add("Functions", [
    ["function", "path", (s) => s.symbol], ["file", "path", (s) => shortName(path(s)), path], ["waited", "time", (s) => s.stall], ["faults", "count", (s) => s.touches], ["first use", "time", (s) => s.first_use], ["told by", "text", (s) => (s.evidence === "instruction" ? "the instruction" : "a page wholly inside it")],
  ], a.symbols, { all: a.rows.symbols });
  add("Failed lookups by search", [
    ["searched by", "path", (s) => s.search ?? "not recognised"], ["failed", "count", (s) => s.misses], ["directories", "count", (s) => s.directories], ["time", "time", (s) => s.time], ["of it waited", "time", (s) => s.stall],
    ["most in", "path", (s) => s.most.join(", ")],
  ], a.searches);
  add("Failed lookups by directory", [
    ["directory", "path", (m) => m.directory], ["searched by", "text", (m) => m.search], ["failed", "count", (m) => m.misses], ["time", "time", (m) => m.time], ["of it waited", "time", (m) => m.stall],
    ["calls", "text", (m) => m.calls], ["for example", "text", (m) => m.examples.join(", ")],
  ], a.misses, { all: a.rows.misses });
  add("Pages the program asked for", [
    ["call", "text", (c) => c.call], ["file", "path", path], ["calls", "count", (c) => c.calls], ["bytes", "bytes", (c) => c.bytes], ["time in them", "time", (c) => c.time], ["failed", "count", (c) => c.failed], ["first", "time", (c) => c.first],
  ], side.advice, { intro: "readahead, fadvise, madvise and MAP_POPULATE. Bytes: a – means to the end of the file." });
  add("Stacks that waited", [
    ["innermost functions", "path", (s) => (s.frames.length > 0 ? s.frames.slice(-4).reverse().join(" ← ") : s.known ? "no frames" : "no stack recorded"), (s) => [...s.frames].reverse().join("\n")],
    ["waited", "time", (s) => s.stall], ["waits", "count", (s) => s.stalls], ["for", "text", (s) => Object.entries(s.causes).map(([cause, t]) => `${cause.replaceAll("_", " ")} ${timeWords(t)}`).join(", ")],
  ], a.stacks, { all: a.rows.stacks });
  add("Checks", [
    ["check", "text", (c) => c.id.replaceAll("_", " ")], ["holds", "text", (c) => (c.holds === null ? "cannot be told" : c.holds ? "yes" : "NO")], ["figures", "text", (c) => c.what],
  ], a.checks);
}

function comparisonTable(comparison) {
  const of = (letter, key) => (pair) => (pair[letter] ? pair[letter][key] : null), change = (key) => (pair) => pair.difference[key];
  new Table({
    title: "Differences, file by file", rows: comparison.files, all: comparison.all_files,
    intro: `B minus A. Only A has ${plural(comparison.only_a, "file")}, only B ${plural(comparison.only_b, "file")}.`,
    columns: [
      ["file", "path", (p) => p.path], ["waited", "change-time", change("stall")], ["A", "time", of("a", "stall")], ["B", "time", of("b", "stall")],
      ["read", "change-bytes", change("read")], ["A", "bytes", of("a", "read")], ["B", "bytes", of("b", "read")],
      ["needed", "change-bytes", change("needed")], ["A", "bytes", of("a", "needed")], ["B", "bytes", of("b", "needed")],
      ["", "text", (p) => (p.changed ? "contents differ" : !p.a ? "only B" : !p.b ? "only A" : "")],
    ],
  });
}
