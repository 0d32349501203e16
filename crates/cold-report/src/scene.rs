//! What is drawn where: the same for terminal and SVG.

use cold_bench::diagnose::taints;
use cold_bench::metric::Metric;
use cold_bench::summary::{Analysis, SeriesSummary};
use cold_model::bench::{Report, Run};
use cold_model::figures::plural;

use crate::axis::{Axis, time};
use crate::escape::line;

/// All points of the runs of rounds (warm-up runs are not drawn), in the order they were made.
#[derive(Debug, Clone)]
pub struct Scene<'a> {
    /// Time axis in nanoseconds.
    pub axis: Axis,
    /// Points; `x` counts from 0.
    pub points: Vec<RunPoint<'a>>,
    /// Figures of each series.
    pub series: &'a [SeriesSummary],
    report: &'a Report,
}

/// A run as it is drawn.
#[derive(Debug, Clone, Copy)]
pub struct RunPoint<'a> {
    /// The run, which may be tainted.
    pub run: &'a Run,
    /// Time to ready in nanoseconds.
    pub time: f64,
    /// Whether it lies above the axis and is drawn at its upper edge.
    pub beyond: bool,
}

impl<'a> Scene<'a> {
    /// Lays out a report. The axis holds all counted runs; tainted ones that take more than 1.5 times as
    /// long as the slowest of them (a timeout, say) would squeeze the rest and are drawn at the edge.
    pub fn new(report: &'a Report, analysis: &'a Analysis, ticks: usize) -> Self {
        let runs: Vec<&Run> = report.runs.iter().collect();
        let ready = |r: &&Run| r.ready.0 as f64;
        let largest = |all: &mut dyn Iterator<Item = f64>| all.fold(f64::NEG_INFINITY, f64::max);
        let counted = largest(&mut runs.iter().filter(|r| r.counts()).map(ready));
        let limit = if counted.is_finite() { 1.5 * counted } else { f64::INFINITY };
        let shown: Vec<f64> = runs.iter().map(ready).filter(|t| *t <= limit).collect();
        let low = shown.iter().copied().fold(f64::INFINITY, f64::min);
        let axis = Axis::new(low, largest(&mut shown.into_iter()), ticks);
        let points = runs
            .iter()
            .map(|run| RunPoint { run, time: ready(run), beyond: ready(run) > axis.high })
            .collect();
        Self { axis, points, series: &analysis.summary, report }
    }

    /// The name of a series in at most about `most` characters: a long command is cut, its state stays.
    pub fn short_name(&self, series: usize, most: usize) -> String {
        let name = self.report.series_name(series);
        let Some(state) = self.report.series.get(series).map(|s| format!(" ({})", s.state)) else {
            return name;
        };
        match name.strip_suffix(&state) {
            Some(command) => line(command, most.saturating_sub(state.chars().count()).max(8)) + &state,
            None => line(&name, most),
        }
    }
}

/// The figures of a series in words, without its name.
pub fn figures(s: &SeriesSummary) -> String {
    let tainted = if s.tainted > 0 { format!(", {} tainted", s.tainted) } else { String::new() };
    let Some(d) = s.ready() else { return format!("no run counts{tainted}") };
    let interval = d
        .interval
        .map_or(String::new(), |i| format!(" [{} to {}, {}]", time(i.low), time(i.high), i.level_shown()));
    let runs = plural(s.counted as u64, "run");
    format!("median {}{interval}, {runs}{tainted}", time(d.median))
}

/// A run in words: round, time, what disqualifies it.
pub fn run_words(name: &str, run: &Run) -> String {
    let round = format!("round {}", run.round + 1);
    let reads = Metric::ReadBytes
        .of(run)
        .value()
        .map_or(String::new(), |b| format!(", read {}", Metric::ReadBytes.unit().show(*b)));
    let taints: Vec<String> = run.taints.iter().map(taints::words).collect();
    let tainted =
        if taints.is_empty() { String::new() } else { format!(" — tainted: {}", taints.join("; ")) };
    format!("{name}, {round}: {}{reads}{tainted}", time(run.ready.0 as f64))
}
