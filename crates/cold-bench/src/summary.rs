//! The figures of a whole report, computed from its runs: per series, and between series.

mod proof;

use std::collections::BTreeMap;

use cold_model::Known;
use cold_model::bench::{Report, Run, State};
use cold_stats::{Comparison, Described, Undecided, Verdict, compare};
use serde::Serialize;

use crate::diagnose::{self, Finding};
use crate::metric::Metric;

pub use proof::ColdProof;

/// Everything computed from a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// One per series, in the report's order.
    pub summary: Vec<SeriesSummary>,
    /// Series against series.
    pub comparisons: Vec<SeriesComparison>,
    /// What there is to say about the runs.
    pub findings: Vec<Finding>,
}

impl Analysis {
    /// The command (index) whose starts from this state take longest by their median; `None`: none counts.
    pub fn slowest(&self, report: &Report, state: &State) -> Option<usize> {
        let of_state = self.summary.iter().filter_map(|s| {
            let series = report.series.get(s.series).filter(|series| series.state == *state)?;
            Some((s.ready()?.median, series.command))
        });
        of_state.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, command)| command)
    }
}

/// The figures of one series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeriesSummary {
    /// Index into [`Report::series`].
    pub series: usize,
    /// Its name, as [`Report::series_name`].
    pub name: String,
    /// Runs that count.
    pub counted: usize,
    /// Runs of rounds that were tainted.
    pub tainted: usize,
    /// How many runs had each kind of taint.
    pub taints: BTreeMap<&'static str, usize>,
    /// Each figure over the counted runs, or why it is not known; keys are [`Metric::name`].
    pub metrics: BTreeMap<&'static str, Known<Described>>,
}

impl SeriesSummary {
    /// The time to ready; none when no run counts.
    pub fn ready(&self) -> Option<&Described> {
        self.metrics.get(Metric::Ready.name()).and_then(Known::value)
    }
}

/// One series against another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeriesComparison {
    /// The series measured (index).
    pub series: usize,
    /// The series it is compared with (index).
    pub with: usize,
    /// Both names, `a` against `b`.
    pub names: [String; 2],
    /// Ratio of the times to ready, series / with; none with too few runs.
    pub comparison: Option<Comparison>,
    /// The verdict against the margin.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Computes everything. `margin` is the relative difference that does not matter (0.02 for 2%).
pub fn analyze(report: &Report, margin: f64) -> Analysis {
    Analysis {
        summary: (0..report.series.len()).map(|i| summarize(report, i)).collect(),
        comparisons: comparisons(report, margin),
        findings: diagnose::diagnose(report),
    }
}

/// The figures of one series.
pub fn summarize(report: &Report, series: usize) -> SeriesSummary {
    let runs: Vec<&Run> = report.runs.iter().filter(|r| r.series == series).collect();
    let counted: Vec<&Run> = report.counted(series).collect();
    let mut taints: BTreeMap<&'static str, usize> = BTreeMap::new();
    for run in &runs {
        let mut kinds: Vec<_> = run.taints.iter().map(cold_model::bench::Taint::kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            *taints.entry(kind).or_default() += 1;
        }
    }
    let describe = |metric: Metric| match metric.of_all(counted.iter().copied()) {
        Known::Value(v) => cold_stats::describe(&v, report.seed)
            .map_or_else(|| Known::unknown("no run counts"), Known::Value),
        Known::Unknown { unknown } => Known::Unknown { unknown },
    };
    SeriesSummary {
        series,
        name: report.series_name(series),
        counted: counted.len(),
        tainted: runs.iter().filter(|r| !r.counts()).count(),
        taints,
        metrics: Metric::ALL.into_iter().map(|m| (m.name(), describe(m))).collect(),
    }
}

/// Times to ready of the counted runs, in run order, in nanoseconds.
pub fn times(report: &Report, series: usize) -> Vec<f64> {
    report.counted(series).map(|r| r.ready.0 as f64).collect()
}

/// Compares two series of one report: within the rounds in which both count, or as independent series
/// when fewer than six rounds (the least for 95%) have both.
pub fn compare(report: &Report, series: usize, with: usize) -> Option<Comparison> {
    compare_by(report, series, with, Metric::Ready)
}

/// As [`compare()`], for any figure; none when it is unknown or too few runs have it.
pub fn compare_by(report: &Report, series: usize, with: usize, metric: Metric) -> Option<Comparison> {
    let by_round = |s: usize| -> BTreeMap<u32, f64> {
        report.counted(s).filter_map(|r| Some((r.round, *metric.of(r).value()?))).collect()
    };
    let (a, b) = (by_round(series), by_round(with));
    let pairs: Vec<(f64, f64)> = a.iter().filter_map(|(round, x)| Some((*x, *b.get(round)?))).collect();
    let paired = compare::paired(&pairs);
    if paired.as_ref().is_some_and(|c| c.interval.is_full()) {
        return paired;
    }
    let values =
        |s: usize| -> Vec<f64> { report.counted(s).filter_map(|r| metric.of(r).value().copied()).collect() };
    let independent = compare::independent(&values(series), &values(with));
    match (paired, independent) {
        (Some(p), Some(i)) => Some(if i.interval.is_full() { i } else { p }),
        (p, i) => p.or(i),
    }
}

/// The comparisons a reader expects: each other state against `warm` of the same command (or against its
/// first state when there is no `warm`), `prefetched` also against `cold`, and each command against the
/// first in the same state.
fn comparisons(report: &Report, margin: f64) -> Vec<SeriesComparison> {
    let find = |command: usize, state: &State| {
        report.series.iter().position(|s| s.command == command && s.state == *state)
    };
    let mut wanted = Vec::new();
    for (i, s) in report.series.iter().enumerate() {
        let reference = find(s.command, &State::Warm)
            .or_else(|| report.series.iter().position(|other| other.command == s.command));
        wanted.extend(reference.filter(|r| *r != i).map(|r| (i, r)));
        let cold = find(s.command, &State::Cold).filter(|_| s.state == State::Prefetched);
        wanted.extend(cold.filter(|c| reference != Some(*c)).map(|c| (i, c)));
    }
    for (i, s) in report.series.iter().enumerate().filter(|(_, s)| s.command > 0) {
        wanted.extend(find(0, &s.state).map(|r| (i, r)));
    }
    wanted
        .into_iter()
        .map(|(series, with)| {
            let comparison = compare(report, series, with);
            let verdict = comparison
                .as_ref()
                .map_or(Verdict::Inconclusive { why: Undecided::TooFewRuns, runs_needed: None }, |c| {
                    c.verdict(margin)
                });
            let names = [report.series_name(series), report.series_name(with)];
            SeriesComparison { series, with, names, comparison, verdict }
        })
        .collect()
}

#[cfg(test)]
mod tests;
