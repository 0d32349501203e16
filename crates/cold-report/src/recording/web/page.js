"use strict";
// Puts the page together. Errors are shown on the page: a silent gap would look like "nothing happened".

const page = { repaint: [], charts: [] };

function redraw() {
  page.repaint.forEach((paint) => paint());
  page.charts.forEach((chart) => chart.draw());
}

function useTheme(dark) {
  theme.dark = dark;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

function themeTools() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const words = () => (theme.dark ? "light" : "dark");
  const button = element("button", { type: "button", onclick: () => {
    chosen = !theme.dark;
    useTheme(chosen);
    button.textContent = words();
    redraw();
  } });
  useTheme(system.matches);
  button.textContent = words();
  button.setAttribute("aria-label", "Switch between light and dark");
  system.addEventListener("change", () => {
    if (chosen !== null) return;
    useTheme(system.matches);
    button.textContent = words();
    redraw();
  });
  byId("tools").append(button);
  // Paper is white.
  const paper = (on) => {
    document.documentElement.classList.toggle("paper", on);
    useTheme(!on && (chosen ?? system.matches));
    redraw();
  };
  window.addEventListener("beforeprint", () => paper(true));
  window.addEventListener("afterprint", () => paper(false));
}

function noticesOf(sides) {
  const rows = sides.flatMap((side) => side.notes.map((note) => (sides.length > 1 ? `${side.name}: ${note}` : note)));
  if (rows.length > 0) byId("offsets").before(element("ul", { class: "notices" }, ...rows.map((text) => element("li", { class: "note" }, element("b", {}, "note"), " ", element("span", {}, text)))));
}

/** Draws the first picture, lets it appear, then does the rest. */
async function build() {
  themeTools();
  document.body.append(element("div", { id: "tip", hidden: true }), element("div", { id: "aloud", "aria-live": "polite" }));
  const data = prepare(await unpack(byId("data").textContent));
  byId("data").remove();
  const { sides } = data, view = new TimeView(Math.min(...sides.map((s) => s.low)), Math.max(...sides.map((s) => s.high)));
  view.startAt(sides.every((s) => s.ready !== null) ? Math.max(...sides.map((s) => s.ready)) : null);
  page.charts = view.charts;
  noticesOf(sides);
  const files = collectFiles(sides), offsets = new OffsetPicture(sides, view, files);
  offsets.list = new FileList(files, (file) => offsets.choose(file));
  page.repaint.push(() => offsets.recolor());
  view.charts.forEach((chart) => chart.draw());
  performance.mark("cold-first");
  await new Promise((resolve) => setTimeout(resolve));
  const drawn = { offsets: sum(view.charts) };
  const part = (name, make) => {
    const before = view.charts.length, other = make();
    const made = view.charts.slice(before);
    made.forEach((chart) => chart.draw());
    drawn[name] = made.length > 0 ? sum(made) : other || 0;
  };
  part("device", () => deviceCharts(sides, view));
  part("depth", () => depthCharts(sides, view));
  part("timeline", () => timelines(sides, view));
  new SizeTable(sides, view);
  causeTables(sides);
  windowTables(sides);
  drawn.frames = flames(sides);
  drawn.frameTops = [...document.querySelectorAll(".frame")].map((frame) => frame.offsetTop);
  if (data.comparison) comparisonTable(data.comparison);
  sides.forEach((side) => tablesOf(side, sides));
  drawn.rows = document.querySelectorAll("#tables tbody tr").length;
  // Other widths, other pictures.
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (width === window.innerWidth) return;
    width = window.innerWidth;
    view.charts.forEach((chart) => chart.schedule());
  });
  return drawn;
}

const sum = (charts) => charts.reduce((all, chart) => all + chart.drawn, 0);

// Read by tests: how many marks each chart drew, how long it took, what went wrong.
const errors = [];
window.addEventListener("error", (event) => errors.push(event.message));
document.addEventListener("securitypolicyviolation", (event) => errors.push(`policy: ${event.violatedDirective}`));
build().then(
  (drawn) => {
    const first = performance.getEntriesByName("cold-first")[0];
    document.documentElement.dataset.drawn = JSON.stringify({ ...drawn, first: Math.round(first.startTime), all: Math.round(performance.now()), errors });
  },
  (error) => {
    document.documentElement.dataset.drawn = JSON.stringify({ errors: [...errors, String(error)] });
    document.querySelector("main").prepend(element("ul", { class: "notices" }, element("li", { class: "error" }, element("b", {}, "error"), ` This browser could not draw the page: ${error.message}`)));
    console.error(error);
  },
);
