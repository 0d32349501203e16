//! Whether growth is gone once what starts leave behind is dropped before each of them.

use cold_stats::median;

use crate::report::{Series, TimedStart};
use crate::verdict::{CountOf, From, Judged};

/// Starts of a repetition, at least: fewer are too few to be judged.
const LEAST_STARTS: usize = 200;

/// What still grows in a repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remaining {
    /// The time of a start.
    Time,
    /// Not seen to grow in the repetition, but its starts take as long as the last ones of the series.
    Length,
    /// The cause of this name.
    Cause(String),
    /// A count that grew before as well.
    Count(CountOf),
}

/// Starts of the repetition of a series of so many: half of it, but enough to be judged.
pub fn starts(of: usize) -> usize {
    (of / 2).max(LEAST_STARTS).min(of.max(LEAST_STARTS))
}

/// What still grows, by the same evidence that the first verdict had: time grows for more reasons than counts do.
pub fn remaining(again: &Series, before: &Series) -> Vec<Remaining> {
    if before.judged.verdict.from != From::Time {
        return counted(&again.judged, &before.judged);
    }
    if again.judged.verdict.grows() {
        return vec![Remaining::Time];
    }
    // Half as many starts may be too few for growth to show; but its end is where they would begin.
    let long = is_nearer_to_the_end(&again.starts, &before.starts);
    long.then_some(Remaining::Length).into_iter().collect()
}

fn counted(again: &Judged, before: &Judged) -> Vec<Remaining> {
    let causes = again.causes.iter().filter(|c| c.growth.grows()).map(|c| Remaining::Cause(c.name.clone()));
    let grew = |what: &CountOf| before.counts.iter().any(|c| c.what == *what && c.growth.grows());
    let counts = again.counts.iter().filter(|c| c.growth.grows() && c.decides() && grew(&c.what));
    causes.chain(counts.map(|c| Remaining::Count(c.what.clone()))).collect()
}

/// Whether the starts take as long as the last of a series rather than as its first, in starts of the empty
/// program beside them.
fn is_nearer_to_the_end(again: &[TimedStart], series: &[TimedStart]) -> bool {
    let level = |starts: &[TimedStart]| {
        let of = |f: fn(&TimedStart) -> u64| median(&starts.iter().map(|s| f(s) as f64).collect::<Vec<_>>());
        Some(of(|s| s.ns)? / of(|s| s.control_ns)?.max(1.0))
    };
    let tenth = (series.len() / 10).max(1).min(series.len());
    let (first, last) = (level(&series[..tenth]), level(&series[series.len() - tenth..]));
    match (first, last, level(again)) {
        (Some(first), Some(last), Some(again)) => again > f64::midpoint(first, last),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(ns: impl IntoIterator<Item = u64>) -> Vec<TimedStart> {
        let one = |ns| TimedStart {
            index: 0,
            ns,
            created_ns: 1,
            control_ns: 100,
            user_ns: 0,
            system_ns: 0,
            minor_faults: 0,
            major_faults: 0,
            status: 0,
        };
        ns.into_iter().map(one).collect()
    }

    #[test]
    fn a_repetition_has_half_of_the_starts_but_enough_to_be_judged() {
        assert_eq!([1000, 500, 300, 100, 1].map(starts), [500, 250, 200, 200, 200]);
    }

    #[test]
    fn starts_that_stay_long_did_not_get_rid_of_growth() {
        let series = timed(200..400);
        assert!(is_nearer_to_the_end(&timed([390; 50]), &series));
        assert!(!is_nearer_to_the_end(&timed([220; 50]), &series));
        assert!(!is_nearer_to_the_end(&timed([]), &series));
    }
}
