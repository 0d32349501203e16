//! The main picture for paper or a bug report: offset in the file over time, all files as bands above
//! each other, the first used at the bottom.
//!
//! Light ground, readable without colour: what was needed is black and has a shape, what was read and
//! not needed is dashed, waits are lines with bars. Marks closer than the picture can show are one.

use std::collections::HashMap;
use std::fmt::Write;

use cold_analyze::model::Headline;
use cold_model::recording::{FileIdx, TouchKind};

use super::View;
use super::marks::Marks;
use super::names::{FILLS, fill};
use crate::axis::{Axis, time};
use crate::chart::{self, Ink, text};
use crate::escape::line;

mod strokes;
use strokes::Strokes;

const WIDTH: f64 = 1280.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 220.0;
/// Height of the plot, of one recording and of each of two.
const HEIGHTS: [f64; 2] = [640.0, 430.0];
/// Above the first panel: title, figures of two, legend.
const HEAD: f64 = 140.0;
/// Height of a line of figures.
const FIGURES: f64 = 16.0;
/// Below a panel: labels of the axis, and the title of the next.
const FOOT: f64 = 66.0;
/// Okabe & Ito's colours per fill cause, as in the page.
const COLORS: [&str; 8] =
    ["#d55e00", "#0072b2", "#b07d00", "#009e73", "#7a4fa3", "#767676", "#8c564b", "#a0a0a0"];
const STALL: &str = "#c1121f";

/// The picture of one recording.
pub fn picture(view: View<'_>) -> String {
    render(&[view])
}

/// Both recordings below each other, with the same bands and the same time axis.
pub fn picture_of_two(a: View<'_>, b: View<'_>) -> String {
    render(&[a, b])
}

/// Any number of recordings below each other.
pub fn pictures(views: &[View<'_>]) -> String {
    render(views)
}

/// What more than two lines of figures need.
fn more_head(views: usize) -> f64 {
    FIGURES * views.saturating_sub(2) as f64
}

/// A file's band, and how many pages it stands for.
#[derive(Debug, Clone)]
struct Band {
    name: String,
    first_use: u64,
    pages: u64,
    height: f64,
    low: f64,
}

/// All bands, and which of them a file of each recording has.
struct StackedArea {
    bands: Vec<Band>,
    of: Vec<HashMap<FileIdx, usize>>,
    height: f64,
}

impl StackedArea {
    /// One band per path in the order of first use, as high as its pages that were read or needed.
    fn new(views: &[View<'_>], marks: &[Marks]) -> Self {
        let mut bands: Vec<Band> = Vec::new();
        let mut by_path: HashMap<&str, usize> = HashMap::new();
        let mut of = Vec::new();
        for (view, marks) in views.iter().zip(marks) {
            let page = view.recording.page_bytes();
            let mut ends: HashMap<FileIdx, u64> = HashMap::new();
            let all = marks.fills.iter().map(|m| (m.file, m.first + m.pages));
            for (file, end) in all.chain(marks.touches.iter().map(|m| (m.file, m.first + m.pages))) {
                let known = ends.entry(file).or_default();
                *known = end.max(*known);
            }
            let mut places = HashMap::new();
            for used in &view.analysis.files {
                let Some(end) = ends.get(&used.file) else { continue };
                let place = *by_path.entry(&used.path).or_insert_with(|| {
                    bands.push(Band {
                        name: line(&cold_analyze::short_name(&used.path), 32),
                        first_use: used.first_use.map_or(u64::MAX, |t| t.0),
                        pages: 1,
                        height: 0.0,
                        low: 0.0,
                    });
                    bands.len() - 1
                });
                let band = &mut bands[place];
                band.pages = band.pages.max(*end).max(used.size.map_or(0, |s| s.0.div_ceil(page)));
                // What was needed is not told by every trace; what was read then counts.
                let bytes = match used.needed.0 + used.unused.0 {
                    0 => used.read.0,
                    bytes => bytes,
                };
                band.height = band.height.max(bytes as f64 / page as f64);
                places.insert(used.file, place);
            }
            of.push(places);
        }
        let mut order: Vec<usize> = (0..bands.len()).collect();
        // High enough to see: no band is lower than a five-hundredth of the pages of all.
        let least = (bands.iter().map(|b| b.height).sum::<f64>() / 500.0).max(1e-9);
        order.sort_by(|&a, &b| {
            (bands[a].first_use, &bands[a].name).cmp(&(bands[b].first_use, &bands[b].name))
        });
        let mut low = 0.0;
        for i in order {
            bands[i].low = low;
            bands[i].height = bands[i].height.max(least);
            low += bands[i].height;
        }
        Self { bands, of, height: f64::max(low, 1.0) }
    }
}

/// Where a panel lies, and what its axes mean.
struct Panel<'a> {
    top: f64,
    height: f64,
    axis: &'a Axis,
    stack: &'a StackedArea,
    side: usize,
    start: u64,
}

impl Panel<'_> {
    fn x(&self, at: u64) -> f64 {
        let since = at as f64 - self.start as f64;
        LEFT + self.axis.place(since).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }
    fn bottom(&self) -> f64 {
        self.top + self.height
    }
    fn y_of(&self, value: f64) -> f64 {
        self.bottom() - value / self.stack.height * self.height
    }
    /// Heights of the beginning and the end of some pages.
    fn y(&self, file: FileIdx, first: u64, pages: u64) -> Option<(f64, f64)> {
        let band = &self.stack.bands[*self.stack.of[self.side].get(&file)?];
        let of = |page: u64| self.y_of(band.low + band.height * page as f64 / band.pages as f64);
        Some((of(first), of(first + pages)))
    }
}

fn render(views: &[View<'_>]) -> String {
    let marks: Vec<Marks> = views.iter().map(|v| Marks::new(v.recording, &v.analysis.usage)).collect();
    let stack = StackedArea::new(views, &marks);
    let span = views.iter().map(|v| {
        let m = &v.recording.manifest;
        m.end.saturating_sub(m.start).0.max(v.analysis.headline.ready.value().map_or(0, |r| r.0))
    });
    let axis = Axis::new(0.0, span.max().unwrap_or(1) as f64, 9);
    let panel = HEIGHTS[usize::from(views.len() > 1)];
    let head = HEAD + more_head(views.len());
    let height = head + (panel + FOOT) * views.len() as f64;
    let title = views.first().map_or(String::new(), |v| line(&v.analysis.headline.subject, 90));
    let mut out = chart::open(&title, WIDTH, height, 12.0);
    text(&mut out, (LEFT, 28.0), Ink::Strong, "font-size=\"19\" font-weight=\"600\"", &title);
    legend(&mut out, &marks, views);
    for (side, (view, marks)) in views.iter().zip(&marks).enumerate() {
        let top = head + (panel + FOOT) * side as f64;
        let start = view.recording.manifest.start.0;
        let place = Panel { top, height: panel, axis: &axis, stack: &stack, side, start };
        if views.len() > 1 {
            text(&mut out, (LEFT, top - 24.0), Ink::Strong, "font-weight=\"600\"", &line(view.name, 60));
        }
        frame(&mut out, &place);
        draw(&mut out, &place, view, marks);
        ready(&mut out, &place, view);
    }
    chart::close(out)
}

/// The figures of a recording in a line.
fn figures(view: &View<'_>) -> String {
    let h = &view.analysis.headline;
    let m = &view.recording.manifest;
    let lost: u64 = h.lost.values().sum();
    let mut parts = Vec::new();
    if lost > 0 {
        parts.push(format!("{lost} EVENTS LOST"));
    }
    if !h.complete {
        parts.push("INCOMPLETE".into());
    }
    parts.extend([
        match h.recorded {
            Some(recorded) => format!("recorded for {recorded}"),
            None => format!("ready after {}", h.ready),
        },
        format!("waited for storage {}", h.waited),
        needed(h),
        format!("read {}, of it {} not needed", h.read, h.unused),
        format!("{} requests", h.requests),
        format!("tier {}, {}", m.tier, line(&m.started_at, 30)),
    ]);
    let name = if view.name.is_empty() { String::new() } else { format!("{}: ", line(view.name, 40)) };
    name + &parts.join(" · ")
}

fn legend(out: &mut String, marks: &[Marks], views: &[View<'_>]) {
    for (i, view) in views.iter().enumerate() {
        let h = &view.analysis.headline;
        let sound = h.complete && h.lost.values().all(|n| *n == 0);
        let (ink, style) = if sound { (Ink::Muted, "") } else { (Ink::Of(STALL), "font-weight=\"600\"") };
        text(out, (LEFT, 48.0 + FIGURES * i as f64), ink, style, &figures(view));
    }
    let y = 90.0 + more_head(views.len());
    let mut x = LEFT;
    let mut item = |out: &mut String, swatch: &str, words: &str| {
        let _ = write!(out, r#"<g transform="translate({x:.1} {y:.1})">{swatch}</g>"#);
        text(out, (x + 20.0, y + 4.0), Ink::Strong, "font-size=\"11.5\"", words);
        // About 6.1 units per character of this size.
        x += 36.0 + 6.1 * words.chars().count() as f64;
    };
    let touched = |kind: TouchKind| marks.iter().any(|m| m.touches.iter().any(|t| t.kind == kind));
    if touched(TouchKind::Fault) {
        item(out, "<path d=\"M2 0l5 -5 5 5 -5 5z\"/>", "needed: fault");
    }
    if touched(TouchKind::Read) {
        item(out, "<path d=\"M2 0h10M7 -5v10\" stroke=\"#000\" stroke-width=\"1.5\"/>", "needed: read");
    }
    if touched(TouchKind::FaultAround) {
        item(out, "<path d=\"M7 -5v10\" stroke=\"#6a6a6a\"/>", "mapped around a fault");
    }
    let pair = |color: &str| {
        format!(
            r#"<path d="M2 -5v10" stroke="{color}" stroke-width="4"/><path d="M10 -5v10" stroke="{color}" stroke-width="4" stroke-dasharray="1 1.5"/>"#
        )
    };
    for (i, (cause, name)) in FILLS.iter().enumerate() {
        if marks.iter().any(|m| m.fills.iter().any(|f| f.cause == *cause)) {
            item(out, &pair(COLORS[i]), name.split(" (").next().unwrap_or(name));
        }
    }
    item(out, &format!("<path d=\"M1 0h13M1 -4v8M14 -4v8\" stroke=\"{STALL}\" fill=\"none\"/>"), "waiting");
    text(
        out,
        (WIDTH - 20.0, y + 24.0),
        Ink::Muted,
        "font-size=\"11.5\" text-anchor=\"end\"",
        "dashed: read, not needed",
    );
}

/// Bands with their names, axis, frame.
fn frame(out: &mut String, p: &Panel<'_>) {
    let right = WIDTH - RIGHT;
    let mut bands: Vec<&Band> = p.stack.bands.iter().collect();
    bands.sort_by(|a, b| a.low.total_cmp(&b.low));
    for band in bands.iter().step_by(2) {
        let (top, height) = (p.y_of(band.low + band.height), band.height / p.stack.height * p.height);
        let _ = write!(
            out,
            r##"<rect x="{LEFT}" y="{top:.1}" width="{:.1}" height="{height:.1}" fill="#f4f5f7"/>"##,
            right - LEFT
        );
    }
    let unit = p.axis.time_unit();
    for tick in &p.axis.ticks {
        let x = p.x(p.start + *tick as u64);
        chart::grid(out, (x, p.top), (x, p.bottom()));
        chart::foot(out, (x, p.bottom()), &unit.number(*tick));
    }
    text(out, (right + 26.0, p.bottom() + 20.0), Ink::Muted, "", &format!("{} since the start", unit.name));
    let _ = write!(
        out,
        r##"<rect x="{LEFT}" y="{:.1}" width="{:.1}" height="{:.1}" fill="none" stroke="#8a8a8a"/>"##,
        p.top,
        right - LEFT,
        p.height
    );
    chart::beside(out, 28.0, (p.top, p.bottom()), "files in the order of their first use →");
    // The largest bands get their names first; what would overlap stays without.
    bands.sort_by(|a, b| b.height.total_cmp(&a.height));
    let mut taken: Vec<f64> = Vec::new();
    for band in bands {
        let y = p.y_of(band.low + band.height / 2.0);
        if taken.iter().all(|other| (other - y).abs() >= 12.5) {
            taken.push(y);
            text(out, (right + 10.0, y + 4.0), Ink::Strong, "font-size=\"11\"", &band.name);
        }
    }
}

fn draw(out: &mut String, p: &Panel<'_>, view: &View<'_>, marks: &Marks) {
    let mut fills: [[Strokes; 2]; 8] = Default::default();
    for m in &marks.fills {
        if let Some((low, high)) = p.y(m.file, m.first, m.pages) {
            fills[usize::from(fill(m.cause))][usize::from(m.used)].vertical(p.x(m.at.0), high, low);
        }
    }
    for used in [0, 1] {
        for (cause, color) in fills.iter().zip(COLORS) {
            let looks = if used == 0 { " stroke-dasharray=\"1 1.5\" stroke-opacity=\"0.75\"" } else { "" };
            cause[used].path(out, &format!("stroke=\"{color}\" stroke-width=\"2\"{looks}"));
        }
    }
    let mut stalls = Strokes::default();
    let end = view.recording.manifest.end;
    for s in view.recording.stalls.iter().flatten() {
        let Some((low, _)) = s.file.and_then(|f| p.y(f, s.page.unwrap_or(0), 1)) else { continue };
        let woken = s.woken.or(s.ended).unwrap_or(end);
        stalls.horizontal(p.x(s.began.0), p.x(woken.0), low);
    }
    stalls.path(out, &format!("stroke=\"{STALL}\" stroke-width=\"1\""));
    let (mut around, mut reads, mut faults) = (Strokes::default(), Strokes::default(), Strokes::default());
    for m in &marks.touches {
        let Some((low, high)) = p.y(m.file, m.first, m.pages) else { continue };
        let x = p.x(m.at.0);
        match m.kind {
            TouchKind::FaultAround => around.vertical(x, high, low),
            TouchKind::Read => reads.vertical(x, high, low),
            TouchKind::Fault => faults.vertical(x, f64::midpoint(low, high), f64::midpoint(low, high)),
        }
    }
    around.path(out, "stroke=\"#6a6a6a\" stroke-width=\"0.8\"");
    reads.path(out, "stroke=\"#000000\" stroke-width=\"0.9\"");
    reads.crosses(out);
    faults.diamonds(out);
}

fn ready(out: &mut String, p: &Panel<'_>, view: &View<'_>) {
    let Some(at) = view.analysis.headline.ready.value() else { return };
    let x = p.x(p.start + at.0);
    let _ = write!(
        out,
        r##"<path d="M{x:.1} {:.1}V{:.1}" stroke="#1a1a1a" stroke-dasharray="5 3"/>"##,
        p.top - 4.0,
        p.bottom()
    );
    text(
        out,
        (x, p.top - 8.0),
        Ink::Strong,
        "text-anchor=\"middle\"",
        &format!("ready {}", time(at.0 as f64)),
    );
}

/// What was needed, as two figures where a part is uncertain.
fn needed(h: &Headline) -> String {
    match (h.needed.value(), h.needed_upper.value().filter(|upper| upper.0 > 0)) {
        (Some(most), Some(upper)) => format!("needed {} to {most}", most.saturating_sub(*upper)),
        _ => format!("needed {}", h.needed),
    }
}
