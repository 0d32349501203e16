"use strict";
// Files of one or two recordings as bands above each other, in the order of their first use.

/** All files that were touched or filled: one entry per path, with its number in each recording. */
function collectFiles(sides) {
  const byPath = new Map();
  sides.forEach((side, index) => {
    const { path, first_use, size, needed, read, unused, stall } = side.files;
    const end = new Float64Array(path.length);
    for (const table of [side.tables.fills, side.tables.touches]) {
      for (let i = 0; i < table.rows; i++) end[table.file[i]] = Math.max(end[table.file[i]], table.first[i] + table.pages[i]);
    }
    side.band = new Array(path.length).fill(null);
    path.forEach((name, file) => {
      if (end[file] === 0) return;
      // Two files of one path (replaced during the start) stay two.
      const key = byPath.has(name) && byPath.get(name).numbers[index] >= 0 ? `${name}\0${file}` : name;
      let entry = byPath.get(key);
      if (!entry) byPath.set(key, (entry = { path: name, numbers: sides.map(() => -1), pages: 0, used: 0, first: Infinity, needed: 0, read: 0, unused: 0, stall: 0, others: true }));
      entry.numbers[index] = file;
      if (side.files.reached[file] !== "by_others") entry.others = false;
      entry.pages = Math.max(entry.pages, end[file], Math.ceil((size[file] || 0) / side.page));
      entry.used = Math.max(entry.used, (needed[file] + unused[file] || read[file]) / side.page);
      // Those of others alone are above all.
      const first = first_use[file] === null ? Infinity : first_use[file];
      // Of two recordings the first decides where it knows the file.
      if (index === 0 || entry.numbers[0] < 0) entry.first = first;
      for (const [name, column] of Object.entries({ needed, read, unused, stall })) entry[name] = Math.max(entry[name], column[file]);
      side.band[file] = entry;
    });
  });
  const files = [...byPath.values()].sort((a, b) => a.first - b.first || (a.path < b.path ? -1 : 1));
  files.forEach((file, order) => (file.order = order));
  return files;
}

const BAND_HEIGHTS = {
  pages: { words: "pages used", height: (file, sum) => Math.max(file.used, sum / 500) },
  log: { words: "log of the pages used", height: (file) => 1 + Math.log2(1 + file.used) },
  equal: { words: "all the same", height: () => 1 },
};

/** Places the bands; returns the height of all in their own units. */
function stackFiles(files, mode) {
  const sum = files.reduce((all, file) => all + file.used, 0);
  let y = 0;
  for (const file of files) {
    file.y = y;
    file.height = BAND_HEIGHTS[mode].height(file, sum);
    y += file.height;
  }
  return y || 1;
}

/** The band at a height of the stack. */
function bandAt(files, y) {
  let low = 0, high = files.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (files[middle].y <= y) low = middle;
    else high = middle - 1;
  }
  const file = files[low];
  return file && y >= file.y && y < file.y + file.height ? file : null;
}

/** The list beside the picture: search, choose with pointer or keys. */
class FileList {
  constructor(files, choose) {
    Object.assign(this, { files, choose, chosen: null, box: byId("file-list"), search: byId("file-search") });
    this.byCost = [...files].sort((a, b) => b.stall - a.stall || b.read - a.read || b.needed - a.needed);
    this.most = Math.max(1, ...files.map((file) => file.needed + file.unused || file.read));
    this.search.addEventListener("input", () => this.show());
    this.box.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const at = this.shown.indexOf(this.chosen) + step;
      if (at >= 0 && at < this.shown.length) this.pick(this.shown[at]);
    });
    this.show();
  }

  pick(file) {
    this.chosen = file;
    this.choose(file);
    this.show();
    const active = this.box.querySelector("[aria-selected=true]");
    if (active) active.scrollIntoView({ block: "nearest" });
  }

  show() {
    const wanted = this.search.value.toLowerCase(), most = 300;
    const found = this.byCost.filter((file) => file.path.toLowerCase().includes(wanted));
    this.shown = [null, ...found.slice(0, most)];
    this.box.replaceChildren(...this.shown.map((file, index) => this.row(file, index)));
    if (found.length > most) this.box.append(element("p", {}, `and ${plural(found.length - most, "file")}; search to find them`));
    if (found.length === 0) this.box.append(element("p", {}, "no file has this in its path"));
    this.box.setAttribute("aria-activedescendant", `file-${Math.max(0, this.shown.indexOf(this.chosen))}`);
  }

  row(file, index) {
    const row = element("div", { id: `file-${index}`, role: "option", onclick: () => this.pick(file) });
    row.setAttribute("aria-selected", String(file === this.chosen));
    if (!file) {
      row.append(element("b", {}, `All ${plural(this.files.length, "file")}, stacked`));
      return row;
    }
    const part = (bytes, name) => {
      const bar = element("i", { class: name });
      bar.style.width = `${(100 * bytes) / this.most}%`;
      return bar;
    };
    row.title = file.others ? `${file.path} (read by others only)` : file.path;
    row.append(
      element("b", {}, shortName(file.path)),
      element("span", {}, file.others ? "by others only" : file.stall > 0 ? `waited ${timeWords(file.stall)}` : byteWords(file.needed + file.unused || file.read)),
      element("div", { class: "mini" }, part(file.needed, "needed"), part(file.unused, "unused")),
    );
    return row;
  }
}
