"use strict";
// Figures in words, and elements made without markup: text of a recording only ever becomes text nodes.

function element(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null) continue;
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

const byId = (id) => document.getElementById(id);

// Between a number and its unit no line breaks: U+00A0.
/** Three significant digits without exponent. */
function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function timeWords(ns) {
  const size = Math.abs(ns);
  if (size < 999.5) return `${Math.round(ns)}\u00a0ns`;
  if (size < 999.5e3) return `${digits(ns / 1e3)}\u00a0µs`;
  if (size < 999.5e6) return `${digits(ns / 1e6)}\u00a0ms`;
  return `${digits(ns / 1e9)}\u00a0s`;
}

function byteWords(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = bytes, unit = 0;
  while (Math.abs(value) >= 1023.5 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(value) : digits(value)}\u00a0${units[unit]}`;
}

/** For axes: without digits that say nothing. */
const roundBytes = (bytes) => byteWords(bytes).replace(/\.0+(?=\u00a0)/, "");
/** A share as everywhere else (`cold_model::figures`): a little is never none, not quite all never all. */
function shareWords(part, whole) {
  if (!(whole > 0)) return "–";
  const p = (100 * Math.min(part, whole)) / whole;
  if (p === 0 || p === 100) return `${p}%`;
  return p < 0.1 ? "<0.1%" : p > 99.9 ? ">99.9%" : `${p.toFixed(1)}%`;
}

const countWords = (n) => n.toLocaleString("en-US").replaceAll(",", "\u202f");
const hex = (n) => `0x${n.toString(16)}`;
const baseName = (path) => path.slice(path.lastIndexOf("/") + 1) || path;
/** Tells files apart: with the directory where the name alone says little (as `short_name` of the analysis). */
function shortName(path) {
  const parts = path.split("/"), name = parts.pop();
  if (path.includes(" on /dev/")) return path;
  if (parts[parts.length - 1] === "__pycache__") parts.pop();
  const parent = parts.pop();
  return name.includes(".so") || !parent || ["bin", "sbin", "etc"].includes(parent) ? name || path : `${parent}/${name}`;
}
const plural = (n, one, many) => `${countWords(n)} ${n === 1 ? one : many || `${one}s`}`;

/** Round steps: 1, 2, 5 times a power of ten, or powers of two for bytes. */
function ticks(low, high, wanted, binary) {
  const rough = (high - low) / Math.max(1, wanted);
  if (!(rough > 0)) return { step: 1, values: [low] };
  let step;
  if (binary) step = 2 ** Math.ceil(Math.log2(rough));
  else {
    const power = 10 ** Math.floor(Math.log10(rough));
    step = power * [1, 2, 5, 10].find((m) => rough <= power * m * (1 + 1e-9));
  }
  const values = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9 && values.length < 200; v += step) values.push(v === 0 ? 0 : v);
  return { step, values };
}

/** Labels of a time axis in one unit: function from nanoseconds, and the unit. */
function timeScale(span, step) {
  const [unit, size] = span >= 2e9 ? ["s", 1e9] : span >= 2e6 ? ["ms", 1e6] : span >= 2e3 ? ["µs", 1e3] : ["ns", 1];
  const decimals = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return { unit, label: (ns) => (Math.abs(ns) < step / 1e6 ? "0" : (ns / size).toFixed(decimals)) };
}

/** Text that fits a width: the middle of a name says least (`_asyncio.cpython-311-x86_64-linux-gnu.so`). */
function fit(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const cut = (kept) => `${text.slice(0, Math.ceil(kept * 0.6))}…${text.slice(text.length - Math.floor(kept * 0.4))}`;
  let low = 0, high = text.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(cut(middle)).width <= width) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? cut(low) : "";
}
