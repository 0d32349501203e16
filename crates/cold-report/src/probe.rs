//! Charts of `cold probe`: lines over time, size or span, as SVG or in a page.
//!
//! Colours and markers are those of the other pictures, so series are told apart without colour as well.

use std::fmt::Write;

use crate::axis::Axis;
use crate::chart::{self, Ink, marker::Marker, text};
use crate::escape::{line as shorten, markup};
use crate::page;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 24.0;
const PLOT: f64 = 260.0;
const LEGEND: f64 = 20.0;
/// Series drawn in one chart; the rest is said.
const MOST: usize = 12;
/// Points drawn per series: more than there are pixels is only weight.
const POINTS: usize = 1500;

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// Values as they are: equal differences are equal lengths.
    Linear,
    /// Even, from 0 to so much, so that charts of the same time can be compared.
    Time(f64),
    /// By powers of ten; values of 0 are not drawn.
    Log,
    /// By powers of two, for what was doubled; values of 0 are not drawn.
    Doubling,
    /// Words for 0, 1, 2, …
    Words(&'static [&'static str]),
}

impl Scale {
    /// From a value to its place on an even scale; `None` where it has none.
    fn even(self, value: f64) -> Option<f64> {
        let even = match self {
            Self::Linear | Self::Time(_) | Self::Words(_) => value,
            Self::Log => value.log10(),
            Self::Doubling => value.log2(),
        };
        even.is_finite().then_some(even)
    }

    /// The inverse of `even`: from a place to its value.
    fn value(self, even: f64) -> f64 {
        match self {
            Self::Linear | Self::Time(_) | Self::Words(_) => even,
            Self::Log => 10_f64.powf(even),
            Self::Doubling => even.exp2(),
        }
    }
}

/// A line of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeLine {
    /// Name in the legend; cut after 100 characters.
    pub name: String,
    /// Its points by x.
    pub points: Vec<(f64, f64)>,
}

/// One chart: lines over two axes of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// Heading of the chart; cut after 90 characters.
    pub title: String,
    /// What is to the right, with its unit.
    pub x: String,
    /// What is upward, with its unit.
    pub y: String,
    /// Scales of both axes.
    pub scales: (Scale, Scale),
    /// Lines in the order of the legend; beyond the twelfth they are only counted.
    pub series: Vec<ProbeLine>,
}

/// An axis of either scale.
struct Ruler {
    axis: Axis,
    scale: Scale,
}

impl Ruler {
    fn new(values: impl Iterator<Item = f64>, scale: Scale, wanted: usize) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for v in values.filter_map(|v| scale.even(v)) {
            (low, high) = (low.min(v), high.max(v));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let axis = match scale {
            // What is never negative needs no room below 0.
            Scale::Linear if low == 0.0 && high == 0.0 => Axis::new(0.0, 1.0, wanted),
            Scale::Linear => Axis::new(low, high, wanted),
            Scale::Time(end) => Axis::new(0.0, end.max(high), wanted),
            // Room at both ends, so that no word is cut.
            Scale::Words(words) => Axis {
                low: -0.5,
                high: words.len() as f64 - 0.5,
                ticks: (0..words.len()).map(|n| n as f64).collect(),
            },
            Scale::Log | Scale::Doubling => {
                // A power itself is an end, whatever rounding made of it.
                let low = (low + 1e-9).floor();
                let high = (high - 1e-9).ceil().max(low + 1.0);
                let step = ((high - low) / wanted as f64).ceil().max(1.0);
                let n = ((high - low) / step) as usize;
                Axis { low, high, ticks: (0..=n).map(|i| low + i as f64 * step).collect() }
            }
        };
        Self { axis, scale }
    }

    /// From 0 to 1; `None` for what has no place.
    fn place(&self, value: f64) -> Option<f64> {
        let p = self.axis.place(self.scale.even(value)?);
        p.is_finite().then(|| p.clamp(0.0, 1.0))
    }

    fn labels(&self) -> Vec<(f64, String)> {
        let number = |v: f64| {
            let plain = format!("{v:.6}");
            let short = plain.trim_end_matches('0').trim_end_matches('.');
            if v.abs() >= 1e6 {
                format!("{v:.0e}")
            } else if short == "-0" || short.is_empty() {
                "0".to_owned()
            } else {
                short.to_owned()
            }
        };
        let text = |tick: f64| match self.scale {
            Scale::Words(words) => words.get(tick as usize).map_or_else(String::new, |w| (*w).to_owned()),
            scale => number(scale.value(tick)),
        };
        self.axis.ticks.iter().map(|t| (self.axis.place(*t), text(*t))).collect()
    }
}

fn height(panel: &Panel) -> f64 {
    let lines = panel.series.len().min(MOST + 1) as f64;
    34.0 + LEGEND * lines + PLOT + 64.0
}

/// All charts below each other. `facts` is a line on what was measured where.
pub fn svg(title: &str, facts: &str, panels: &[Panel]) -> String {
    let total = chart::HEADING + 12.0 + panels.iter().map(height).sum::<f64>();
    let mut out = chart::open(title, WIDTH, total, 13.0);
    chart::heading(&mut out, 24.0, title, facts);
    let mut top = chart::HEADING + 12.0;
    for panel in panels {
        draw(&mut out, panel, top);
        top += height(panel);
    }
    if panels.is_empty() {
        text(&mut out, (24.0, 72.0), Ink::Muted, "", "nothing to draw");
    }
    chart::close(out)
}

/// A page with the same charts: no script, no request.
pub fn html(title: &str, facts: &str, panels: &[Panel]) -> String {
    page::report(title, "cold probe", &svg(title, facts, panels), "")
}

fn draw(out: &mut String, panel: &Panel, top: f64) {
    let shown: Vec<&ProbeLine> = panel.series.iter().take(MOST).collect();
    let left_out = panel.series.len() - shown.len();
    text(
        out,
        (24.0, top + 20.0),
        Ink::Strong,
        "font-size=\"15\" font-weight=\"600\"",
        &shorten(&panel.title, 90),
    );
    for (i, s) in shown.iter().enumerate() {
        let y = top + 34.0 + LEGEND * (i as f64 + 0.6);
        Marker::of(i).draw(out, (LEFT + 7.0, y - 4.0), 5.0, true, "");
        text(out, (LEFT + 20.0, y), Ink::Strong, "", &shorten(&s.name, 100));
    }
    if left_out > 0 {
        let y = top + 34.0 + LEGEND * (shown.len() as f64 + 0.6);
        text(out, (LEFT + 20.0, y), Ink::Muted, "", &format!("and {left_out} more, not drawn"));
    }
    let plot_top = top + 34.0 + LEGEND * panel.series.len().min(MOST + 1) as f64 + 12.0;
    let bottom = plot_top + PLOT;
    let all = || shown.iter().flat_map(|s| s.points.iter());
    let across = Ruler::new(all().map(|p| p.0), panel.scales.0, 10);
    let up = Ruler::new(all().map(|p| p.1), panel.scales.1, 5);
    let x = |v: f64| across.place(v).map(|p| LEFT + p * (WIDTH - LEFT - RIGHT));
    let y = |v: f64| up.place(v).map(|p| bottom - p * PLOT);
    let sides = (LEFT, WIDTH - RIGHT);
    for (place, label) in up.labels() {
        chart::level(out, sides, bottom - place * PLOT, &label);
    }
    for (place, label) in across.labels() {
        chart::foot(out, (LEFT + place * (WIDTH - LEFT - RIGHT), bottom), &label);
    }
    chart::under(out, sides, bottom, &panel.x);
    chart::beside(out, 20.0, (plot_top, bottom), &panel.y);
    for (i, s) in shown.iter().enumerate() {
        curve(out, i, s, &x, &y);
    }
}

fn curve(
    out: &mut String,
    index: usize,
    s: &ProbeLine,
    x: &dyn Fn(f64) -> Option<f64>,
    y: &dyn Fn(f64) -> Option<f64>,
) {
    let step = s.points.len().div_ceil(POINTS).max(1);
    // The last point, too: a thinned line ends where its series does.
    let last = s.points.last().filter(|_| s.points.len() % step != 1 && step > 1);
    let thinned = s.points.iter().step_by(step).chain(last);
    let places: Vec<(f64, f64)> = thinned.filter_map(|(a, b)| Some((x(*a)?, y(*b)?))).collect();
    let mut path = String::new();
    for (i, (a, b)) in places.iter().enumerate() {
        let _ = write!(path, "{}{a:.1} {b:.1}", if i == 0 { "M" } else { "L" });
    }
    let colour = Marker::of(index).color;
    let _ = write!(
        out,
        r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"><title>{}</title></path>"#,
        markup(&s.name)
    );
    // Markers tell the lines apart in print; on long series a dozen suffices.
    let every = places.len().div_ceil(12).max(1);
    for place in places.iter().step_by(every) {
        Marker::of(index).draw(out, *place, 3.5, true, "");
    }
}

#[cfg(test)]
mod tests;
