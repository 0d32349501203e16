"use strict";
// Stall time by stack: the outermost function at the top, where the reader begins, and what it called below it, each
// as wide as the time waited in it.

/** Narrower boxes are towers of single pixels that say nothing and make the picture high. */
const LEAST_PART = 0.003;

/** What fits: the whole name, or the function without its library. */
function frameWords(name, pixels) {
  if (pixels < 16) return "";
  const at = name.indexOf("`");
  return at > 0 && name.length * 6.4 > pixels ? name.slice(at + 1) : name;
}

class Flame {
  constructor(side, sides) {
    Object.assign(this, { side, height: 19 });
    this.root = { name: "all", time: 0, stalls: 0, children: new Map(), parent: null };
    for (const stack of side.analysis.stacks) {
      const frames = stack.frames.length > 0 ? stack.frames : [stack.known ? "no frames" : "no stack recorded"];
      let node = this.root;
      for (const name of [null, ...frames]) {
        if (name !== null) {
          if (!node.children.has(name)) node.children.set(name, { name, time: 0, stalls: 0, children: new Map(), parent: node });
          node = node.children.get(name);
        }
        node.time += stack.stall;
        node.stalls += stack.stalls;
      }
    }
    this.top = this.root;
    this.words = "";
    const title = sideTitle(sides, side, "");
    if (title) byId("flame-charts").append(element("h3", {}, title));
    if (this.root.time === 0) {
      byId("flame-charts").append(nothing(sides, side, side.has.includes("stalls") ? "Nothing waited for storage." : "This recording does not see waiting."));
      return;
    }
    this.box = element("div", { class: "flame", role: "group" });
    this.box.setAttribute("aria-label", "Flame graph of stall time; the table of stacks below says the same");
    byId("flame-charts").append(this.box);
    this.show();
  }

  search(words) {
    this.words = words.toLowerCase();
    if (this.box) this.show();
  }

  matches(node) {
    return this.words !== "" && node.name.toLowerCase().includes(this.words);
  }

  show() {
    const above = [];
    for (let node = this.top; node; node = node.parent) above.unshift(node);
    const boxes = above.map((node, depth) => this.frame(node, depth, 0, 1, node !== this.top));
    let deepest = above.length, count = boxes.length;
    // Boxes too narrow to see or click are left out, widest first, at most 3000.
    const queue = [[this.top, above.length - 1, 0, 1]];
    while (queue.length > 0 && count < 3000) {
      const [node, depth, left, width] = queue.shift();
      let x = left;
      for (const child of [...node.children.values()].sort((a, b) => b.time - a.time)) {
        const part = node.time > 0 ? (width * child.time) / node.time : 0;
        if (part < LEAST_PART) break;
        boxes.push(this.frame(child, depth + 1, x, part, false));
        queue.push([child, depth + 1, x, part]);
        deepest = Math.max(deepest, depth + 2);
        count += 1;
        x += part;
      }
    }
    this.box.style.height = `${deepest * this.height}px`;
    this.box.replaceChildren(...boxes);
    this.count = count;
  }

  frame(node, depth, left, width, outer) {
    const text = `${node.name === "…" ? "callers not recorded (the stack was cut)" : node.name}: ${timeWords(node.time)} in ${plural(node.stalls, "wait")}, ${shareWords(node.time, this.root.time)} of all`;
    const box = element("button", { type: "button", class: `frame${outer ? " outer" : ""}${this.matches(node) ? " found" : ""}`, title: text, onclick: () => {
      this.top = node;
      this.show();
    } }, frameWords(node.name === "…" ? "callers not recorded" : node.name, width * this.box.clientWidth));
    box.setAttribute("aria-label", text);
    // Narrow boxes are for the pointer; keys reach the wide ones.
    if (width < 0.02) box.tabIndex = -1;
    Object.assign(box.style, { left: `${100 * left}%`, width: `calc(${100 * width}% - 1px)`, top: `${depth * this.height}px` });
    // Neighbours differ in brightness, by name, so that zooming does not recolour.
    let sum = 0;
    for (let i = 0; i < node.name.length; i++) sum = (sum * 31 + node.name.charCodeAt(i)) % 997;
    box.dataset.tone = String(sum % 4);
    return box;
  }
}

function flames(sides) {
  const all = sides.map((side) => new Flame(side, sides));
  const found = element("span", {});
  const search = element("input", { type: "search", placeholder: "function or library", oninput: () => {
    all.forEach((flame) => flame.search(search.value));
    const marked = document.querySelectorAll(".frame.found").length;
    found.textContent = search.value ? `${marked} shown` : "";
  } });
  byId("flame-tools").append(element("label", {}, "Search ", search), found,
    element("button", { type: "button", onclick: () => all.forEach((flame) => {
      flame.top = flame.root;
      if (flame.box) flame.show();
    }) }, "show all"));
  return all.reduce((sum, flame) => sum + (flame.count || 0), 0);
}
