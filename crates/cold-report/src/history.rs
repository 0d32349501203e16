//! A history of commits: a plot for each figure, with its levels and where they changed.

use std::fmt::Write;

use cold_gate::Unit;
use cold_stats::changepoint::Change;

use crate::axis::Axis;
use crate::chart::marker::Marker;
use crate::chart::{self, Ink};
use crate::escape::line;
use crate::page::{self, Cell};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 40.0;
/// Height of a plot, of the words above it, and of those below.
const PLOT: f64 = 120.0;
const HEAD: f64 = 34.0;
const FOOT: f64 = 46.0;
/// Digits of a commit that are shown.
const SHORT: usize = 10;
/// Characters of a plot's heading.
const WORDS: usize = 120;

/// A value with the commit that it was measured at.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitPoint {
    /// When it was added, as ISO 8601.
    pub at: String,
    /// The commit, where known.
    pub commit: Option<String>,
    /// The value, in the series' unit.
    pub value: f64,
    /// Its 95 % interval, where it has one.
    pub interval: Option<(f64, f64)>,
}

/// One figure of one command on one kind of machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The command line that was measured.
    pub command: String,
    /// CPU and memory.
    pub machine: String,
    /// Name of the figure.
    pub figure: String,
    /// Of its values.
    pub unit: Unit,
    /// The oldest first.
    pub points: Vec<CommitPoint>,
    /// Where its level changed.
    pub changes: Vec<Change>,
}

impl CommitPoint {
    fn name(&self) -> String {
        let commit = self.commit.as_deref().map(|id| id.get(..SHORT).unwrap_or(id));
        commit.unwrap_or_else(|| self.at.get(..10).unwrap_or(&self.at)).to_owned()
    }
}

impl Series {
    /// Begin, end and value of each level: the medians between changes.
    fn levels(&self) -> Vec<(usize, usize, f64)> {
        let mut out = Vec::new();
        let mut from = 0;
        for change in &self.changes {
            out.push((from, change.at, change.before));
            from = change.at;
        }
        out.extend(self.changes.last().map(|last| (from, self.points.len(), last.after)));
        out
    }
}

/// All plots, one below the other.
pub fn svg(title: &str, all: &[Series]) -> String {
    let height = chart::HEADING + (HEAD + PLOT + FOOT) * all.len().max(1) as f64;
    let mut out = chart::open(title, WIDTH, height, 13.0);
    let facts = "points: values with their intervals; lines: levels; dashed: where the level changed";
    chart::heading(&mut out, 24.0, title, facts);
    for (n, series) in all.iter().enumerate() {
        plot(&mut out, series, chart::HEADING + (HEAD + PLOT + FOOT) * n as f64);
    }
    if all.is_empty() {
        chart::text(
            &mut out,
            (24.0, chart::HEADING + HEAD),
            Ink::Muted,
            "",
            "The history has no such points.",
        );
    }
    chart::close(out)
}

fn plot(out: &mut String, series: &Series, top: f64) {
    let heading = format!("{}: {} ({})", series.figure, series.command, series.machine);
    chart::text(out, (24.0, top + 22.0), Ink::Strong, "font-weight=\"600\"", &line(&heading, WORDS));
    let (top, bottom) = (top + HEAD, top + HEAD + PLOT);
    let ends = |p: &CommitPoint| p.interval.map_or([p.value, p.value], |(low, high)| [low, high]);
    let most = series.points.iter().flat_map(ends).fold(0.0, f64::max);
    let least = series.points.iter().flat_map(ends).fold(most, f64::min);
    // Of values that are all the same nothing says how far to look round them.
    let axis = if least < most { Axis::new(least, most, 3) } else { Axis::new(0.0, most.max(1.0), 3) };
    let y = |value: f64| bottom - axis.place(value).clamp(0.0, 1.0) * PLOT;
    let last = series.points.len().saturating_sub(1).max(1) as f64;
    let x = |n: usize| LEFT + n as f64 / last * (WIDTH - LEFT - RIGHT);
    for tick in &axis.ticks {
        chart::level(out, (LEFT, WIDTH - RIGHT), y(*tick), &series.unit.show(*tick));
    }
    for (n, change) in series.changes.iter().map(|c| (c.at, c)) {
        // Between the last point of the old level and the first of the new one.
        let at = f64::midpoint(x(n.saturating_sub(1)), x(n));
        chart::rule(out, (at, top), (at, bottom), "median", "stroke=\"#1a1a1a\" stroke-dasharray=\"4 3\"");
        let name = series.points.get(n).map_or_else(String::new, CommitPoint::name);
        let words = format!("{name}: {}", series.unit.show(change.after));
        chart::text(out, (at + 5.0, bottom - 6.0), Ink::Muted, "font-size=\"11\"", &words);
    }
    for (from, to, value) in series.levels() {
        let level = "stroke=\"#1a1a1a\" stroke-width=\"1.6\"";
        chart::rule(out, (x(from), y(value)), (x(to.saturating_sub(1)), y(value)), "median", level);
    }
    let marker = Marker::of(0);
    for (n, point) in series.points.iter().enumerate() {
        let at = x(n);
        if let Some((low, high)) = point.interval {
            let stroke = format!("stroke=\"{}\"", marker.color);
            chart::rule(out, (at, y(low)), (at, y(high)), "interval", &stroke);
        }
        let title = format!("{} ({}): {}", point.name(), point.at, series.unit.show(point.value));
        marker.draw(out, (at, y(point.value)), 3.2, true, &title);
    }
    chart::base(out, (LEFT, WIDTH - RIGHT), bottom);
    for (n, anchor) in [(0, "start"), (series.points.len().saturating_sub(1), "end")] {
        if let Some(point) = series.points.get(n) {
            let anchor = format!("text-anchor=\"{anchor}\"");
            chart::text(out, (x(n), bottom + 20.0), Ink::Muted, &anchor, &point.name());
        }
    }
}

/// The page: the plots, and a table of all changes.
pub fn html(title: &str, all: &[Series]) -> String {
    let mut below = String::from("<h2>Where a level changed</h2>\n");
    let rows: Vec<Vec<Cell>> = all.iter().flat_map(|s| s.changes.iter().map(move |c| row(s, c))).collect();
    if rows.is_empty() {
        below.push_str("<p>Nowhere that a permutation test at 1 % finds.</p>\n");
    } else {
        let head = ["command", "figure", "from", "added", "before", "after", "p"];
        page::table(&mut below, "sortable", &head, 4, rows);
    }
    page::report(title, "cold history", &svg(title, all), &below)
}

fn row(series: &Series, change: &Change) -> Vec<Cell> {
    let point = series.points.get(change.at);
    let of = |value: f64| Cell::number(value, series.unit.show(value));
    let mut p = String::new();
    let _ = write!(p, "{:.4}", change.p);
    vec![
        Cell::text(series.command.clone()),
        Cell::text(series.figure.clone()),
        Cell::text(point.map_or_else(String::new, CommitPoint::name)),
        Cell::text(point.map_or_else(String::new, |p| p.at.clone())),
        of(change.before),
        of(change.after),
        Cell::number(change.p, p),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series() -> Series {
        let point = |n: usize| CommitPoint {
            at: format!("2026-11-{:02}T10:00:00Z", n + 1),
            commit: Some(format!("{n:02}abcdef<b>0123456789")),
            value: if n < 8 { 10.0 } else { 20.0 },
            interval: Some((9.0, 21.0)),
        };
        let points: Vec<CommitPoint> = (0..16).map(point).collect();
        let values: Vec<f64> = points.iter().map(|p| p.value).collect();
        let changes = cold_stats::changepoint::changes(&values, 1);
        let (command, machine) = ("app & co".to_owned(), "2 × CPU".to_owned());
        Series { command, machine, figure: "files".to_owned(), unit: Unit::Count, points, changes }
    }

    #[test]
    fn each_level_is_drawn_and_the_change_between_them_is_named() {
        let one = series();
        assert_eq!(one.levels(), [(0, 8, 10.0), (8, 16, 20.0)]);
        let picture = svg("h", std::slice::from_ref(&one));
        assert_eq!(picture.matches("stroke-dasharray=\"4 3\"").count(), 1);
        assert_eq!(picture.matches("stroke-width=\"1.6\"").count(), 2, "{picture}");
        assert!(picture.contains("08abcdef&lt;b") && picture.contains("app &amp; co"), "{picture}");
        let page = html("h", &[one]);
        assert!(page.contains("Where a level changed") && page.contains(">20<"), "{page}");
        assert!(html("h", &[]).contains("no such points"));
    }

    #[test]
    fn one_point_and_equal_points_are_drawn() {
        let mut one = series();
        one.points.truncate(1);
        one.changes.clear();
        assert!(!svg("h", &[one]).contains("NaN"));
    }
}
