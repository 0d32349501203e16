//! When to go on, when to replace, when to stop. Looks at counts and intervals, never at whether a
//! result is welcome.

use std::time::{Duration, Instant};

use cold_model::bench::{Report, Taint};

use crate::config::{Config, RunPolicy};

/// Attempts of one series within one round; a disturbance usually lasts no longer than two starts.
const PER_ROUND: u32 = 3;
/// A series whose first attempts all fail in the same lasting way is given up early.
const LASTING: usize = 5;

/// The rules of one benchmark.
pub(super) struct Policy {
    runs: RunPolicy,
    seed: u64,
    started: Instant,
    /// Per series: attempts in the current round.
    attempts: Vec<(u32, u32)>,
    given_up: Vec<Option<String>>,
}

impl Policy {
    pub(super) fn new(config: &Config, series: usize) -> Self {
        Self {
            runs: config.runs,
            seed: config.seed,
            started: Instant::now(),
            attempts: vec![(0, 0); series],
            given_up: vec![None; series],
        }
    }

    /// The series of the next round, or `None` when enough is known, or time is up.
    pub(super) fn next_round(&self, report: &Report) -> Option<Vec<usize>> {
        let counts = |s: usize| report.counted(s).count() as u64;
        let enough = |s: usize| counts(s) >= u64::from(self.runs.min_runs) && self.is_precise(report, s);
        // A series that has all its runs stays out of the extra rounds of those that lost some.
        let open: Vec<usize> = (0..report.series.len())
            .filter(|&s| self.given_up[s].is_none() && counts(s) < u64::from(self.runs.max_runs))
            .collect();
        let done = open.iter().all(|&s| enough(s));
        (!done && !self.is_time_over()).then_some(open)
    }

    fn is_time_over(&self) -> bool {
        self.runs.max_time.is_some_and(|t: Duration| self.started.elapsed() >= t)
    }

    fn is_precise(&self, report: &Report, series: usize) -> bool {
        let Some(wanted) = self.runs.precision else { return true };
        let times: Vec<f64> = report.counted(series).map(|r| r.ready.as_secs()).collect();
        cold_stats::describe(&times, self.seed).and_then(|d| d.precision()).is_some_and(|p| p <= wanted)
    }

    /// Takes note of a run; says whether it is to be replaced now.
    pub(super) fn note(&mut self, report: &Report, series: usize, good: bool, round: u32) -> bool {
        let Some((in_round, attempts)) = self.attempts.get_mut(series) else { return false };
        if *in_round != round {
            (*in_round, *attempts) = (round, 0);
        }
        *attempts += 1;
        if good {
            return false;
        }
        self.given_up[series] = give_up(report, series, self.runs.min_runs);
        self.given_up[series].is_none() && *attempts < PER_ROUND
    }

    /// Why the benchmark ended before every series had its runs, if it did.
    pub(super) fn stopped(&self, report: &Report) -> Option<String> {
        let given_up: Vec<String> = self
            .given_up
            .iter()
            .enumerate()
            .filter_map(|(s, why)| Some(format!("{}: {}", report.series_name(s), why.as_ref()?)))
            .collect();
        if !given_up.is_empty() {
            return Some(given_up.join("; "));
        }
        let short = (0..report.series.len())
            .find(|&s| (report.counted(s).count() as u64) < u64::from(self.runs.min_runs))?;
        Some(format!("the time was over before {} had its runs", report.series_name(short)))
    }
}

/// Why a series is hopeless: nothing but lasting troubles so far, or too many disturbances in all.
fn give_up(report: &Report, series: usize, min_runs: u32) -> Option<String> {
    let runs: Vec<_> = report.runs.iter().filter(|r| r.series == series).collect();
    let bad = runs.iter().filter(|r| !r.counts()).count();
    let lasting = |t: &Taint| {
        matches!(
            t,
            Taint::NotCold { .. }
                | Taint::Failed { .. }
                | Taint::TimedOut { .. }
                | Taint::NotWarm { .. }
                | Taint::NotPrefetched { .. }
                | Taint::NotSet { .. }
        )
    };
    let first_bad = runs.len() >= LASTING && runs.iter().all(|r| r.taints.iter().any(lasting));
    // As many disturbed runs as wanted ones, and at least ten: the machine is not fit for this now.
    let too_many = bad >= (min_runs as usize).max(10);
    if !first_bad && !too_many {
        return None;
    }
    let most = most_frequent(runs.iter().flat_map(|r| r.taints.iter().map(Taint::kind)));
    Some(format!("gave up after {bad} disturbed runs, most of them {most}"))
}

fn most_frequent<'a>(kinds: impl Iterator<Item = &'a str>) -> &'a str {
    let mut counts = std::collections::BTreeMap::new();
    for k in kinds {
        *counts.entry(k).or_insert(0_u32) += 1;
    }
    counts.into_iter().max_by_key(|(_, n)| *n).map_or("of unknown cause", |(k, _)| k)
}

#[cfg(test)]
mod tests;
