//! The picture: one plot per method, and one of what lengthened.

use std::fmt::Write;

use cold_spawn::Cause;
use cold_spawn::growth::Fit;
use cold_spawn::report::{Report, Series, Times};

use super::words::{cause_words, class_words, series_words};
use crate::axis::{Axis, time};
use crate::chart::{self, Ink, text};
use crate::escape::line;

const WIDTH: f64 = 1280.0;
const PLOT: f64 = 360.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 28.0;
/// All plots, from left to right.
const PLOTS: (f64, f64) = (LEFT, WIDTH - RIGHT);
/// Space above a plot for its title, below for its axis.
const HEAD: f64 = 58.0;
const FOOT: f64 = 58.0;
/// Height of the plot of what lengthened.
const CAUSE: f64 = 150.0;
/// Points drawn per series: more cannot be told apart on the width.
const MOST_POINTS: usize = 4000;
const OWN: &str = chart::BLUE;
const CONTROL: &str = chart::GREY;
const FITTED: &str = chart::VERMILION;
/// Largest value that the axis shows: the fit and most points; single slow starts lie at its upper edge.
fn axis(s: &Series, ticks: usize) -> Axis {
    let times = s.times.unwrap_or_default();
    let fitted = s.judged.verdict.time.as_ref().map_or(0.0, |f| f.at(s.starts.len() as f64));
    Axis::new(0.0, (times.p95 * 1.25).max(fitted * 1.1).max(1.0), ticks)
}

/// The picture: one plot per method.
pub fn svg(report: &Report) -> String {
    let whole = chart::HEADING + report.series.iter().map(height).sum::<f64>();
    let title = report.command.join(" ");
    let mut out = chart::open(&title, WIDTH, whole, 14.0);
    let facts = format!("cold spawn {}, {}, {}", report.version, report.started, report.machine);
    chart::heading(&mut out, LEFT, &title, &facts);
    let mut top = chart::HEADING;
    for s in &report.series {
        plot(&mut out, s, top + HEAD);
        if let Some(c) = s.judged.causes.first() {
            lengthened(&mut out, c, last(s), top + HEAD + PLOT + FOOT + HEAD / 2.0);
        }
        top += height(s);
    }
    chart::close(out)
}

/// Of a series: its plot, and that of what lengthened.
fn height(s: &Series) -> f64 {
    let cause = if s.judged.causes.is_empty() { 0.0 } else { HEAD / 2.0 + CAUSE + FOOT };
    HEAD + PLOT + FOOT + cause
}

/// The index at the right end.
fn last(s: &Series) -> f64 {
    let timed = s.starts.last().map_or(1, |t| t.index.max(1));
    s.observed.last().map_or(timed, |o| o.index.max(timed)) as f64
}

fn across(index: f64, last: f64) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * index / last
}

fn plot(out: &mut String, s: &Series, top: f64) {
    let scale = axis(s, 6);
    let last = last(s);
    let bottom = top + PLOT;
    let x = |index: f64| across(index, last);
    let y = |v: f64| bottom - scale.place(v).clamp(0.0, 1.0) * PLOT;
    let verdict = format!("{}: {}", series_words(s), class_words(s.judged.verdict.class));
    text(out, (LEFT, top - 34.0), Ink::Strong, "font-weight=\"600\"", &verdict);
    legend(out, s, top - 14.0);
    for tick in &scale.ticks {
        chart::level(out, PLOTS, y(*tick), &scale.time_label(*tick));
    }
    starts_axis(out, last, bottom);
    points(out, s, |t| t.control_ns, (&x, &y), ("control", CONTROL));
    points(out, s, |t| t.ns, (&x, &y), ("own", OWN));
    if let Some(fit) = &s.judged.verdict.time {
        curve(out, fit, last, &x, &y);
    }
}

/// The amount of the first cause in every recorded start, and its fit.
fn lengthened(out: &mut String, c: &Cause, last: f64, top: f64) {
    let bottom = top + CAUSE;
    let most = c.points.iter().map(|(_, amount)| *amount as f64).fold(1.0, f64::max);
    let scale = Axis::new(0.0, most, 3);
    let x = |index: f64| across(index, last);
    let y = |v: f64| bottom - scale.place(v).clamp(0.0, 1.0) * CAUSE;
    text(out, (LEFT, top - 14.0), Ink::Strong, "font-weight=\"600\"", &line(&cause_words(c), 130));
    for tick in &scale.ticks {
        chart::level(out, PLOTS, y(*tick), &tick.to_string());
    }
    starts_axis(out, last, bottom);
    curve(out, &c.growth.fit, last, &x, &y);
    for (index, amount) in &c.points {
        let (cx, cy) = (x(*index as f64), y(*amount as f64));
        let _ = write!(out, r#"<circle class="dot" cx="{cx:.1}" cy="{cy:.1}" r="4" fill="{OWN}"/>"#);
    }
}

fn starts_axis(out: &mut String, last: f64, bottom: f64) {
    chart::base(out, PLOTS, bottom);
    for tick in Axis::new(0.0, last, 8).ticks.iter().filter(|t| **t <= last) {
        chart::foot(out, (across(*tick, last), bottom), &tick.to_string());
    }
    chart::under(out, PLOTS, bottom, "starts before it");
}

fn curve(out: &mut String, fit: &Fit, last: f64, x: &impl Fn(f64) -> f64, y: &impl Fn(f64) -> f64) {
    let at: Vec<String> = (0..=200)
        .map(|i| last * f64::from(i) / 200.0)
        .map(|i| format!("{:.1} {:.1}", x(i), y(fit.at(i))))
        .collect();
    let _ = write!(out, r#"<path d="M{}" fill="none" stroke="{FITTED}" stroke-width="2.5"/>"#, at.join("L"));
}

fn legend(out: &mut String, s: &Series, y: f64) {
    let median = |t: Option<Times>| t.map_or_else(|| "unknown".to_owned(), |t| time(t.p50));
    let mut entries = vec![
        ("own", OWN, format!("the command, median {}", median(s.times))),
        ("control", CONTROL, format!("the empty program in between, median {}", median(s.control))),
    ];
    if s.judged.verdict.time.is_some() {
        entries.push(("fitted", FITTED, "fit, drift taken out".to_owned()));
    }
    let mut x = LEFT;
    for (class, color, words) in entries {
        let _ = write!(
            out,
            r#"<circle class="{class}" cx="{:.1}" cy="{:.1}" r="5" fill="{color}"/>"#,
            x + 6.0,
            y - 5.0
        );
        text(out, (x + 18.0, y), Ink::Muted, "font-size=\"12\"", &words);
        x += 40.0 + 7.0 * words.chars().count() as f64;
    }
}

/// All points as one path of round dots: far smaller than an element each. Those above the axis lie at its
/// upper edge.
fn points(
    out: &mut String,
    s: &Series,
    value: fn(&cold_spawn::report::TimedStart) -> u64,
    (x, y): (&impl Fn(f64) -> f64, &impl Fn(f64) -> f64),
    (class, color): (&str, &str),
) {
    let step = s.starts.len().div_ceil(MOST_POINTS).max(1);
    let mut path = String::new();
    for t in s.starts.iter().step_by(step) {
        let _ = write!(path, "M{:.1} {:.1}h0", x(t.index as f64), y(value(t) as f64));
    }
    let _ = write!(
        out,
        r#"<path class="{class}" d="{path}" fill="none" stroke="{color}" stroke-opacity="0.6" stroke-width="3.5" stroke-linecap="round"/>"#
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spawn::words::tests::cause;

    #[test]
    fn the_plot_of_a_cause_shows_every_recorded_start() {
        let mut out = String::new();
        lengthened(&mut out, &cause(&[]), 19.0, 0.0);
        assert_eq!(out.matches("class=\"dot\"").count(), 20);
        assert!(out.contains("/log/&lt;a&gt;.{n}"), "{out}");
    }
}
