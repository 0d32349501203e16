"use strict";
// The pixel layer: a million marks as pixels of one image, each pixel knowing which mark it shows.

/** Textures by number: whether the darker tone is on at (x, y); so causes differ without colour. */
const TEXTURES = [
  () => true,
  (x, y) => (x + y) % 4 < 2,
  (x, y) => y % 4 < 2,
  (x, y) => (x - y + 4096) % 4 < 2,
  (x, y) => x % 4 < 2,
  (x, y) => x % 4 < 2 === y % 4 < 2,
  (x, y) => x % 4 > 0 && y % 4 > 0,
  (x, y) => x % 4 > 0 || y % 4 > 1,
];

class Pixels {
  constructor(context, x, y, width, height, background) {
    this.context = context;
    this.x = x;
    this.y = y;
    this.width = width;
    this.height = height;
    this.image = context.createImageData(width, height);
    this.words = new Uint32Array(this.image.data.buffer);
    this.words.fill(pixel(background));
    this.pick = new Int32Array(width * height);
    this.drawn = 0;
  }

  /** Fills a rectangle, whole pixels, ends not included; `id` 0 is not found by hovering. */
  rect(x0, y0, x1, y1, color, id) {
    x0 = x0 < 0 ? 0 : x0 | 0;
    y0 = y0 < 0 ? 0 : y0 | 0;
    x1 = x1 > this.width ? this.width : x1 | 0;
    y1 = y1 > this.height ? this.height : y1 | 0;
    if (x0 >= x1 || y0 >= y1) return;
    for (let y = y0; y < y1; y++) {
      const row = y * this.width;
      this.words.fill(color, row + x0, row + x1);
      if (id) this.pick.fill(id, row + x0, row + x1);
    }
    this.drawn += 1;
  }

  /** The same in two tones by a texture. */
  textured(x0, y0, x1, y1, dark, light, texture, id) {
    x0 = x0 < 0 ? 0 : x0 | 0;
    y0 = y0 < 0 ? 0 : y0 | 0;
    x1 = x1 > this.width ? this.width : x1 | 0;
    y1 = y1 > this.height ? this.height : y1 | 0;
    if (x0 >= x1 || y0 >= y1) return;
    const on = TEXTURES[texture] || TEXTURES[0];
    for (let y = y0; y < y1; y++) {
      for (let x = x0, at = y * this.width + x0; x < x1; x++, at++) {
        this.words[at] = on(x, y) ? dark : light;
        this.pick[at] = id;
      }
    }
    this.drawn += 1;
  }

  /** Shows the image; pixels that nobody filled keep the background. */
  put() {
    this.context.putImageData(this.image, this.x, this.y);
  }

  /** The mark nearest to a place (in pixels of the layer), at most `reach` away; 0: none. */
  find(x, y, reach) {
    let best = 0, nearest = Infinity;
    for (let dy = -reach; dy <= reach; dy++) {
      const row = Math.round(y) + dy;
      if (row < 0 || row >= this.height) continue;
      for (let dx = -reach; dx <= reach; dx++) {
        const column = Math.round(x) + dx;
        if (column < 0 || column >= this.width) continue;
        const id = this.pick[row * this.width + column], distance = dx * dx + dy * dy;
        if (id && distance < nearest) {
          nearest = distance;
          best = id;
        }
      }
    }
    return best;
  }
}

/** The small picture of a legend; places are given in halves of a pixel. */
class Swatch extends Pixels {
  constructor(context, background) {
    super(context, 0, 0, 22, 16, background);
  }
  rect(x0, y0, x1, y1, color, id) {
    super.rect(x0 / 2, y0 / 2, Math.max(x0 / 2 + 1, x1 / 2), Math.max(y0 / 2 + 1, y1 / 2), color, id);
  }
  textured(x0, y0, x1, y1, dark, light, texture, id) {
    super.textured(x0 / 2, y0 / 2, x1 / 2, y1 / 2, dark, light, texture, id);
  }
}

/** `#rrggbb` as a word of image data (little endian, as every browser's machine is). */
function pixel(color) {
  const n = parseInt(color.slice(1), 16);
  return (0xff000000 | ((n & 255) << 16) | (n & 0xff00) | (n >> 16)) >>> 0;
}

/** A colour between two, `part` of the way to the second. */
function mix(a, b, part) {
  const of = (c, shift) => (parseInt(c.slice(1), 16) >> shift) & 255;
  const one = (shift) => Math.round(of(a, shift) * (1 - part) + of(b, shift) * part) << shift;
  return `#${(one(16) | one(8) | one(0)).toString(16).padStart(6, "0")}`;
}

/** Colours of both themes: Okabe and Ito's, told apart by colour-blind eyes, lightened for dark ground. */
const PALETTES = {
  light: {
    background: "#ffffff", text: "#1a1a1a", muted: "#5a5a5a", grid: "#e4e4e4", line: "#8a8a8a", band: "#f5f6f8",
    needed: "#000000", upper: "#6a6a6a", stall: "#c1121f", ready: "#1a1a1a",
    fills: ["#d55e00", "#0072b2", "#b07d00", "#009e73", "#7a4fa3", "#767676", "#8c564b", "#a0a0a0"],
    stalls: ["#d55e00", "#b07d00", "#0072b2", "#009e73", "#8c564b", "#7a4fa3", "#a23b72", "#767676", "#b4b4b4"],
  },
  dark: {
    background: "#16181b", text: "#e8e8e8", muted: "#a8adb3", grid: "#2c3036", line: "#6d737a", band: "#1b1e22",
    needed: "#ffffff", upper: "#9aa0a6", stall: "#ff5d6c", ready: "#e8e8e8",
    fills: ["#f08a3c", "#4aa8e0", "#e0b030", "#2fc79a", "#b490dc", "#9aa0a6", "#c08878", "#70757b"],
    stalls: ["#f08a3c", "#e0b030", "#4aa8e0", "#2fc79a", "#c08878", "#b490dc", "#e07ab0", "#9aa0a6", "#62686e"],
  },
};

const theme = {
  dark: false,
  get colors() {
    return this.dark ? PALETTES.dark : PALETTES.light;
  },
};
