//! An SVG of the runs: in run order at the left, as distributions with medians and intervals at the
//! right, figures of each series above, the machine below.
//!
//! Colours are those of Okabe & Ito (told apart with colour-blind eyes), and every series has its own
//! marker shape, so the picture also works printed without colour.

use std::fmt::Write;

use cold_bench::summary::Analysis;
use cold_model::bench::Report;

use crate::axis::time;
use crate::chart::{self, Ink, marker::Marker, rule, text};
use crate::escape::{line, markup};
use crate::scene::{RunPoint, Scene, figures, run_words};

const WIDTH: f64 = 1280.0;
const PLOT_HEIGHT: f64 = 420.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 28.0;
/// Width of one distribution strip, and the gap between both panels.
const STRIP: f64 = 66.0;
const GAP: f64 = 34.0;
const LEGEND_LINE: f64 = 22.0;

/// Places of the panels.
struct Layout {
    top: f64,
    bottom: f64,
    main: (f64, f64),
    strips: (f64, f64),
}

/// Draws a report, titled with its commands. 1280 units wide; the height follows the number of series.
pub fn svg(report: &Report, analysis: &Analysis) -> String {
    let scene = Scene::new(report, analysis, 6);
    let legend = scene.series.len() as f64 * LEGEND_LINE;
    let top = chart::HEADING + legend + 30.0;
    let strips = WIDTH - RIGHT - STRIP * scene.series.len().max(1) as f64;
    let layout = Layout {
        top,
        bottom: top + PLOT_HEIGHT,
        main: (LEFT, strips - GAP),
        strips: (strips, WIDTH - RIGHT),
    };
    let machine = machine_lines(report);
    let height = layout.bottom + 74.0 + 18.0 * machine.len() as f64;

    let title = title(report);
    let mut out = chart::open(&title, WIDTH, height, 14.0);
    let sub = format!("cold bench {}, {}, seed {}", report.version, report.started, report.seed);
    chart::heading(&mut out, LEFT, &title, &sub);
    draw_legend(&mut out, &scene);
    draw_axes(&mut out, &scene, &layout);
    if scene.points.is_empty() {
        let middle = (f64::midpoint(layout.main.0, layout.main.1), f64::midpoint(layout.top, layout.bottom));
        text(&mut out, middle, Ink::Muted, "text-anchor=\"middle\"", "no runs");
    }
    draw_intervals(&mut out, &scene, &layout);
    draw_points(&mut out, &scene, &layout);
    draw_medians(&mut out, &scene, &layout);
    for (i, text_line) in machine.iter().enumerate() {
        let y = layout.bottom + 66.0 + 18.0 * i as f64;
        text(&mut out, (LEFT, y), Ink::Muted, "font-size=\"12\"", &line(text_line, 175));
    }
    chart::close(out)
}

/// The commands' names.
pub(crate) fn title(report: &Report) -> String {
    report.commands.iter().map(|c| c.name.as_str()).collect::<Vec<_>>().join(" · ")
}

fn machine_lines(report: &Report) -> Vec<String> {
    let m = &report.machine;
    let facts = [
        if m.kernel.is_empty() { String::new() } else { format!("Linux {}", m.kernel) },
        m.cpu.clone(),
        if m.memory.0 == 0 { String::new() } else { format!("{} memory", m.memory) },
        if m.eviction.is_empty() { String::new() } else { format!("eviction: {}", m.eviction) },
    ];
    let first: Vec<String> = facts.into_iter().filter(|f| !f.is_empty()).collect();
    [first.join(" · "), m.devices.join(" · ")].into_iter().filter(|l| !l.is_empty()).collect()
}

fn draw_legend(out: &mut String, scene: &Scene<'_>) {
    for (i, s) in scene.series.iter().enumerate() {
        let y = chart::HEADING + LEGEND_LINE * (i as f64 + 0.6);
        Marker::of(i).draw(out, (LEFT + 7.0, y - 5.0), 6.0, true, "");
        let _ = write!(
            out,
            r##"<text class="fg" x="{:.1}" y="{y:.1}" fill="#1a1a1a"><title>{}</title><tspan font-weight="600">{}</tspan><tspan class="muted" fill="#5a5a5a" dx="12">{}</tspan></text>"##,
            LEFT + 22.0,
            markup(&s.name),
            markup(&scene.short_name(i, 60)),
            markup(&figures(s))
        );
    }
    if scene.points.iter().any(|p| !p.run.counts()) {
        let note = "hollow: tainted, not counted";
        text(out, (WIDTH - RIGHT, 52.0), Ink::Muted, "font-size=\"12\" text-anchor=\"end\"", note);
    }
}

impl Layout {
    fn y(&self, scene: &Scene<'_>, time: f64) -> f64 {
        self.bottom - scene.axis.place(time).clamp(0.0, 1.0) * (self.bottom - self.top)
    }
    fn x(&self, scene: &Scene<'_>, index: usize) -> f64 {
        let (from, to) = (self.main.0 + 14.0, self.main.1 - 14.0);
        let last = scene.points.len().saturating_sub(1);
        if last == 0 { f64::midpoint(from, to) } else { from + (to - from) * index as f64 / last as f64 }
    }
    fn strip(&self, series: usize) -> f64 {
        self.strips.0 + STRIP * (series as f64 + 0.5)
    }
}

fn draw_axes(out: &mut String, scene: &Scene<'_>, l: &Layout) {
    let unit = scene.axis.time_unit();
    for tick in &scene.axis.ticks {
        let y = l.y(scene, *tick);
        chart::level(out, l.main, y, &unit.number(*tick));
        chart::grid(out, (l.strips.0, y), (l.strips.1, y));
    }
    chart::beside(out, 24.0, (l.top, l.bottom), &format!("time to ready [{}]", unit.name));
    for n in run_ticks(scene.points.len()) {
        chart::foot(out, (l.x(scene, n - 1), l.bottom), &n.to_string());
    }
    for (panel, what) in [(l.main, "run, in the order they were made"), (l.strips, "spread")] {
        chart::base(out, panel, l.bottom);
        chart::under(out, panel, l.bottom, what);
    }
    for i in 0..scene.series.len() {
        Marker::of(i).draw(out, (l.strip(i), l.bottom + 15.0), 5.0, true, "");
    }
}

/// Numbers of runs that get a label: 1 and round ones.
fn run_ticks(count: usize) -> Vec<usize> {
    let step = crate::axis::Axis::new(0.0, count as f64, 10).ticks.get(1).map_or(1, |t| (*t as usize).max(1));
    let mut ticks: Vec<usize> = (step..=count).step_by(step).collect();
    if count > 0 && step > 1 {
        ticks.insert(0, 1);
    }
    ticks
}

/// Half the width of the bands and lines in a strip.
const HALF: f64 = STRIP * 0.38;

/// Intervals as bands in the strips, medians as faint lines across the runs: both lie below the points.
fn draw_intervals(out: &mut String, scene: &Scene<'_>, l: &Layout) {
    for (i, s) in scene.series.iter().enumerate() {
        let Some(d) = s.ready() else { continue };
        let color = Marker::of(i).color;
        if let Some(interval) = d.interval {
            let (high, low) = (l.y(scene, interval.high), l.y(scene, interval.low));
            let _ = write!(
                out,
                r#"<rect x="{:.1}" y="{high:.1}" width="{:.1}" height="{:.1}" fill="{color}" fill-opacity="0.25"><title>{}</title></rect>"#,
                l.strip(i) - HALF,
                2.0 * HALF,
                (low - high).max(1.0),
                markup(&format!("{}: {}", s.name, figures(s)))
            );
        }
        let y = l.y(scene, d.median);
        let faint = format!("stroke=\"{color}\" stroke-opacity=\"0.45\" stroke-dasharray=\"6 4\"");
        rule(out, (l.main.0, y), (l.main.1, y), "faint", &faint);
    }
}

/// Medians as strong lines in the strips, above the points.
fn draw_medians(out: &mut String, scene: &Scene<'_>, l: &Layout) {
    for (i, s) in scene.series.iter().enumerate() {
        let Some(d) = s.ready() else { continue };
        let (x, y) = (l.strip(i), l.y(scene, d.median));
        rule(out, (x - HALF, y), (x + HALF, y), "median", "stroke=\"#1a1a1a\" stroke-width=\"2\"");
    }
}

fn draw_points(out: &mut String, scene: &Scene<'_>, l: &Layout) {
    let many = scene.points.len() > 120;
    let size = if many { 3.5 } else { 5.0 };
    for (i, p) in scene.points.iter().enumerate() {
        let Some(s) = scene.series.get(p.run.series) else { continue };
        let words = run_words(&s.name, p.run) + if p.beyond { " (above the axis)" } else { "" };
        let marker = Marker::of(p.run.series);
        let place = (l.x(scene, i), l.y(scene, p.time));
        marker.draw(out, place, size, p.run.counts(), &words);
        if p.beyond {
            let (x, y) = place;
            let color = marker.color;
            let _ = write!(
                out,
                r#"<path d="M{x:.1} {:.1}v-12m-4 5l4 -5l4 5" fill="none" stroke="{color}"/>"#,
                y - 7.0
            );
            // Beside the arrow, on the side that has room.
            let (shift, anchor) =
                if x > f64::midpoint(l.main.0, l.main.1) { (-8.0, "end") } else { (8.0, "start") };
            let looks = format!("font-size=\"11\" text-anchor=\"{anchor}\"");
            text(out, (x + shift, y - 10.0), Ink::Muted, &looks, &time(p.time));
        }
        let aside = l.strip(p.run.series) + spread(scene, i, l, p);
        marker.draw(out, (aside, place.1), if many { 2.3 } else { 3.5 }, p.run.counts(), &words);
    }
}

/// Sideways place of a point in its strip, so that near ones lie beside each other: the middle, then
/// right and left in turn, by the number of earlier points of the series within 6 units of height.
/// More than fit begin at the middle again.
fn spread(scene: &Scene<'_>, index: usize, l: &Layout, p: &RunPoint<'_>) -> f64 {
    const STEP: f64 = 5.0;
    let y = l.y(scene, p.time);
    let near = scene.points[..index]
        .iter()
        .filter(|q| q.run.series == p.run.series && (l.y(scene, q.time) - y).abs() < 6.0)
        .count();
    let place = near % (2 * (HALF / STEP) as usize + 1);
    let side = if place % 2 == 1 { 1.0 } else { -1.0 };
    side * place.div_ceil(2) as f64 * STEP
}

#[cfg(test)]
pub(crate) mod tests;
