"use strict";
// One chart with a time axis: canvas, axes, zoom, move, hover and keys. What is drawn comes from outside.

const MARGIN = { left: 74, right: 176, top: 20, bottom: 26 };
const FONT = "12px system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif";

/** The stretch of time that all charts of the page show. */
class TimeView {
  constructor(low, high) {
    // A little room, so that marks at both ends are whole.
    const room = Math.max(1, (high - low) * 0.01);
    this.low = low - room;
    this.high = high + room;
    this.from = this.low;
    this.to = this.high;
    this.charts = [];
    this.listeners = [];
  }
  /** Shows what matters first: from the start to the last ready; the rest is a click away. */
  startAt(ready) {
    this.ready = ready;
    this.hasHome = ready !== null && ready < this.high * 0.95;
    if (this.hasHome) this.home();
  }
  home() {
    this.set(this.low, Math.min(this.ready * 1.04, this.high));
  }
  get whole() {
    return this.from === this.low && this.to === this.high;
  }
  set(from, to) {
    const span = Math.min(Math.max(to - from, 1000), this.high - this.low);
    this.from = Math.min(Math.max(from, this.low), this.high - span);
    this.to = this.from + span;
    this.charts.forEach((chart) => chart.schedule());
    this.listeners.forEach((listener) => listener());
  }
  zoom(factor, at) {
    this.set(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }
  /** Shows one moment in all charts; null hides it. */
  point(at) {
    this.charts.forEach((chart) => chart.cross(at));
  }
}

class Chart {
  /**
   * Options: height; label (for screen readers); low and high of the vertical axis; axis "bytes", "count" or
   * "none"; unit (title of that axis); tall: may be zoomed vertically; paint(chart, pixels) draws marks;
   * decorate(chart, context) draws above them; describe(id) gives lines of a mark; empty: what to say when
   * there is nothing; end and ready in nanoseconds.
   */
  constructor(host, view, options) {
    Object.assign(this, { host, view, options, y0: options.low, y1: options.high, pending: false });
    this.base = element("canvas", { class: "base" });
    this.over = element("canvas", { class: "over", tabIndex: 0, role: "application" });
    this.over.setAttribute("aria-roledescription", "chart");
    this.over.setAttribute("aria-label", options.label);
    this.box = element("div", { class: "chart" }, this.base, this.over);
    if (options.title) host.append(element("h3", {}, options.title));
    host.append(this.box);
    view.charts.push(this);
    this.listen();
  }

  get width() {
    return this.box.clientWidth - MARGIN.left - MARGIN.right;
  }
  get height() {
    return this.options.height - MARGIN.top - MARGIN.bottom;
  }
  x(ns) {
    return MARGIN.left + ((ns - this.view.from) / (this.view.to - this.view.from)) * this.width;
  }
  y(value) {
    return MARGIN.top + (1 - (value - this.y0) / (this.y1 - this.y0)) * this.height;
  }
  timeAt(x) {
    return this.view.from + ((x - MARGIN.left) / this.width) * (this.view.to - this.view.from);
  }
  valueAt(y) {
    return this.y0 + (1 - (y - MARGIN.top) / this.height) * (this.y1 - this.y0);
  }

  setRange(low, high) {
    this.options.low = low;
    this.options.high = high;
    this.y0 = low;
    this.y1 = high;
    this.schedule();
  }
  setHeight(height) {
    this.options.height = height;
    this.schedule();
  }
  reset() {
    this.y0 = this.options.low;
    this.y1 = this.options.high;
    this.view.set(this.view.low, this.view.high);
  }
  moveValues(low, high) {
    if (!this.options.tall) return;
    const whole = this.options.high - this.options.low;
    const span = Math.min(Math.max(high - low, whole / 1e6), whole);
    this.y0 = Math.min(Math.max(low, this.options.low), this.options.high - span);
    this.y1 = this.y0 + span;
    this.schedule();
  }

  schedule() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      if (this.pending) this.draw();
    });
  }

  draw() {
    this.pending = false;
    const scale = Math.min(3, window.devicePixelRatio || 1), width = this.box.clientWidth, height = this.options.height;
    if (width < MARGIN.left + MARGIN.right + 20) return;
    this.box.style.height = `${height}px`;
    for (const canvas of [this.base, this.over]) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    this.scale = scale;
    const context = this.base.getContext("2d"), colors = theme.colors;
    context.fillStyle = colors.background;
    context.fillRect(0, 0, this.base.width, this.base.height);
    const left = Math.round(MARGIN.left * scale), top = Math.round(MARGIN.top * scale);
    const pixels = new Pixels(context, left, top, Math.round(this.width * scale), Math.round(this.height * scale), colors.background);
    this.pixels = pixels;
    this.stops = null;
    if (this.options.underlay) this.options.underlay(this, pixels);
    this.gridLines(pixels);
    pixels.drawn = 0;
    this.options.paint(this, pixels);
    this.drawn = pixels.drawn;
    pixels.put();
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = FONT;
    this.axes(context);
    if (this.options.decorate) this.options.decorate(this, context);
    if (this.options.empty) {
      context.fillStyle = colors.muted;
      context.textAlign = "center";
      context.fillText(this.options.empty, MARGIN.left + this.width / 2, MARGIN.top + this.height / 2);
    }
  }

  timeTicks() {
    return ticks(Math.max(0, this.view.from), this.view.to, this.width / 110);
  }
  valueTicks() {
    return ticks(this.y0, this.y1, Math.min(8, this.height / 34), this.options.axis === "bytes");
  }

  gridLines(pixels) {
    const color = pixel(theme.colors.grid), scale = this.scale;
    for (const tick of this.timeTicks().values) {
      const x = Math.round((this.x(tick) - MARGIN.left) * scale);
      pixels.rect(x, 0, x + 1, pixels.height, color, 0);
    }
    if (this.options.axis === "none") return;
    for (const tick of this.valueTicks().values) {
      const y = Math.round((this.y(tick) - MARGIN.top) * scale);
      pixels.rect(0, y, pixels.width, y + 1, color, 0);
    }
  }

  axes(context) {
    const colors = theme.colors, bottom = MARGIN.top + this.height, right = MARGIN.left + this.width;
    context.strokeStyle = colors.line;
    context.lineWidth = 1;
    context.strokeRect(MARGIN.left - 0.5, MARGIN.top - 0.5, this.width + 1, this.height + 1);
    context.fillStyle = colors.text;
    context.textBaseline = "alphabetic";
    const time = this.timeTicks(), scale = timeScale(this.view.to - this.view.from, time.step);
    context.textAlign = "center";
    let end = right;
    for (const tick of time.values) {
      const x = this.x(tick);
      if (x < MARGIN.left - 1 || x > right + 1) continue;
      context.fillRect(x - 0.5, bottom, 1, 4);
      context.fillText(scale.label(tick), x, bottom + 17);
      end = Math.max(end, x + context.measureText(scale.label(tick)).width / 2);
    }
    context.textAlign = "left";
    context.fillStyle = colors.muted;
    context.fillText(`${scale.unit} since the start`, end + 8, bottom + 17);
    context.textAlign = "right";
    context.fillStyle = colors.text;
    if (this.options.axis !== "none") {
      for (const tick of this.valueTicks().values) {
        const y = this.y(tick);
        if (y < MARGIN.top - 1 || y > bottom + 1) continue;
        context.fillText(this.options.axis === "bytes" ? roundBytes(tick) : countWords(tick), MARGIN.left - 7, y + 4);
      }
    }
    if (this.options.unit) {
      context.textAlign = "left";
      context.fillStyle = colors.muted;
      context.fillText(this.options.unit, 4, 13);
    }
    this.marker(context, this.options.ready, "ready");
    this.marker(context, this.options.end, "end");
  }

  marker(context, at, words) {
    if (at === null || at === undefined) return;
    const x = this.x(at);
    if (x < MARGIN.left || x > MARGIN.left + this.width) return;
    context.save();
    context.strokeStyle = theme.colors.ready;
    context.setLineDash(words === "ready" ? [5, 3] : [1, 3]);
    context.beginPath();
    context.moveTo(x, MARGIN.top - 4);
    context.lineTo(x, MARGIN.top + this.height);
    context.stroke();
    context.restore();
    // No room for the words of both.
    if (words === "end" && this.options.ready !== null && Math.abs(this.x(this.options.ready) - x) < 130) return;
    const label = `${words} ${timeWords(at)}`, room = context.measureText(label).width / 2;
    context.fillStyle = theme.colors.text;
    context.textAlign = "center";
    context.fillText(label, Math.min(x, MARGIN.left + this.width + MARGIN.right - room - 4), MARGIN.top - 7);
  }

  /** A name at the right edge. */
  label(context, y, text, muted) {
    context.textAlign = "left";
    context.fillStyle = muted ? theme.colors.muted : theme.colors.text;
    context.fillText(fit(context, text, MARGIN.right - 14), MARGIN.left + this.width + 8, y);
  }

  /** Draws the moving layer: the moment under the pointer, and a box while zooming. */
  cross(at, box) {
    const context = this.over.getContext("2d"), scale = this.scale || 1;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.over.width, this.over.height);
    context.strokeStyle = theme.colors.muted;
    if (at !== null && at !== undefined) {
      const x = this.x(at);
      if (x >= MARGIN.left && x <= MARGIN.left + this.width) {
        context.beginPath();
        context.moveTo(x, MARGIN.top);
        context.lineTo(x, MARGIN.top + this.height);
        context.stroke();
      }
    }
    if (box) {
      context.fillStyle = "#0072b233";
      context.fillRect(...box);
      context.strokeRect(...box);
    }
    if (this.ring) {
      context.strokeStyle = theme.colors.stall;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(this.ring.x, this.ring.y, 8, 0, 7);
      context.stroke();
      context.lineWidth = 1;
    }
  }

  listen() {
    const over = this.over;
    over.addEventListener("pointerdown", (event) => this.press(event));
    over.addEventListener("pointermove", (event) => this.hover(event));
    over.addEventListener("pointerup", (event) => this.release(event));
    over.addEventListener("pointercancel", () => (this.drag = null));
    over.addEventListener("pointerleave", () => {
      if (this.drag) return;
      this.view.point(null);
      tip.hide();
    });
    over.addEventListener("dblclick", () => this.reset());
    over.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    over.addEventListener("keydown", (event) => this.key(event));
    over.addEventListener("blur", () => {
      this.ring = null;
      this.cross(null);
      tip.hide();
    });
  }

  press(event) {
    if (event.button !== 0) return;
    this.over.focus({ preventScroll: true });
    this.over.setPointerCapture(event.pointerId);
    this.drag = { x: event.offsetX, y: event.offsetY, move: event.shiftKey, from: this.view.from, to: this.view.to, y0: this.y0, y1: this.y1 };
  }

  /** The rectangle that a drag chose. */
  dragged(event) {
    const clampX = (x) => Math.min(Math.max(x, MARGIN.left), MARGIN.left + this.width);
    const clampY = (y) => Math.min(Math.max(y, MARGIN.top), MARGIN.top + this.height);
    let y0 = clampY(Math.min(this.drag.y, event.offsetY)), y1 = clampY(Math.max(this.drag.y, event.offsetY));
    // A drag along the time axis zooms only time.
    if (!this.options.tall || y1 - y0 < 14) [y0, y1] = [MARGIN.top, MARGIN.top + this.height];
    const x0 = clampX(Math.min(this.drag.x, event.offsetX)), x1 = clampX(Math.max(this.drag.x, event.offsetX));
    return [x0, y0, x1 - x0, y1 - y0];
  }

  hover(event) {
    this.ring = null;
    const drag = this.drag;
    if (drag && drag.move) {
      const time = ((event.offsetX - drag.x) / this.width) * (drag.to - drag.from);
      const value = ((event.offsetY - drag.y) / this.height) * (drag.y1 - drag.y0);
      this.view.set(drag.from - time, drag.to - time);
      this.moveValues(drag.y0 + value, drag.y1 + value);
      return;
    }
    if (drag) {
      this.cross(null, this.dragged(event));
      return;
    }
    const at = this.timeAt(event.offsetX);
    this.view.point(at);
    const id = this.pixels && this.pixels.find((event.offsetX - MARGIN.left) * this.scale, (event.offsetY - MARGIN.top) * this.scale, Math.round(4 * this.scale));
    const lines = id ? this.options.describe(id) : this.options.describePlace && this.options.describePlace(this, event.offsetX, event.offsetY);
    if (lines) tip.show(lines, event.clientX, event.clientY);
    else tip.hide();
  }

  release(event) {
    const drag = this.drag, [x, y, width, height] = drag ? this.dragged(event) : [];
    this.drag = null;
    if (!drag || drag.move) return;
    this.view.point(null);
    if (width < 5) {
      if (this.options.click) this.options.click(this, event.offsetX, event.offsetY);
      return;
    }
    const low = this.valueAt(y + height), high = this.valueAt(y);
    this.view.set(this.timeAt(x), this.timeAt(x + width));
    this.moveValues(low, high);
  }

  wheel(event) {
    if (!event.ctrlKey && document.activeElement !== this.over) return;
    event.preventDefault();
    const factor = Math.exp(Math.max(-1, Math.min(1, event.deltaY / 200)));
    if (event.shiftKey && this.options.tall) {
      const at = this.valueAt(event.offsetY);
      this.moveValues(at - (at - this.y0) * factor, at + (this.y1 - at) * factor);
    } else this.view.zoom(factor, this.timeAt(event.offsetX));
  }

  key(event) {
    const { from, to } = this.view, step = (to - from) / 5, rise = (this.y1 - this.y0) / 5;
    const middle = (from + to) / 2, center = (this.y0 + this.y1) / 2;
    const grow = (factor) => {
      if (event.shiftKey && this.options.tall) this.moveValues(center - (center - this.y0) * factor, center + (this.y1 - center) * factor);
      else this.view.zoom(factor, middle);
    };
    const actions = {
      ArrowLeft: () => this.view.set(from - step, to - step),
      ArrowRight: () => this.view.set(from + step, to + step),
      ArrowUp: () => this.moveValues(this.y0 + rise, this.y1 + rise),
      ArrowDown: () => this.moveValues(this.y0 - rise, this.y1 - rise),
      "+": () => grow(0.7), "=": () => grow(0.7), "*": () => grow(0.7),
      "-": () => grow(1 / 0.7), "_": () => grow(1 / 0.7),
      0: () => this.reset(), Escape: () => this.reset(),
      ".": () => this.step(1), ",": () => this.step(-1),
    };
    if (!actions[event.key] || event.metaKey || event.ctrlKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  /** Goes to the next mark that can be seen, from left to right, and reads it out. */
  step(direction) {
    if (!this.pixels) return;
    if (!this.stops) {
      const { pick, width, height } = this.pixels, seen = new Set();
      this.stops = [];
      this.stop = direction > 0 ? -1 : 0;
      for (let x = 0; x < width; x++) {
        for (let y = 0; y < height; y++) {
          const id = pick[y * width + x];
          if (!id || seen.has(id)) continue;
          seen.add(id);
          this.stops.push({ id, x: x / this.scale + MARGIN.left, y: y / this.scale + MARGIN.top });
        }
      }
    }
    if (this.stops.length === 0) return;
    this.stop = (this.stop + direction + this.stops.length) % this.stops.length;
    this.ring = this.stops[this.stop];
    this.cross(null);
    const place = this.over.getBoundingClientRect(), lines = this.options.describe(this.ring.id);
    if (lines) tip.show(lines, place.left + this.ring.x, place.top + this.ring.y, true);
  }
}

/** The box beside the pointer. Lines are [name, value], or a heading alone. */
const tip = {
  show(lines, x, y, aloud) {
    const box = byId("tip");
    box.replaceChildren(...lines.filter(Boolean).map((line) => (typeof line === "string" ? element("b", {}, line) : element("div", {}, element("span", {}, line[0]), line[1]))));
    box.hidden = false;
    const width = box.offsetWidth, height = box.offsetHeight;
    box.style.left = `${Math.max(4, x + 16 + width > window.innerWidth ? x - 16 - width : x + 16)}px`;
    box.style.top = `${Math.max(4, Math.min(y + 12, window.innerHeight - height - 4))}px`;
    if (aloud) byId("aloud").textContent = lines.filter(Boolean).map((line) => (typeof line === "string" ? line : line.join(" "))).join(", ");
  },
  hide() {
    byId("tip").hidden = true;
  },
};
