use cold_model::Bytes;
use cold_model::bench::Taint;
use cold_stats::compare::Design;

use super::*;
use crate::sample::{noise, report};

fn dropped() -> Taint {
    Taint::CachesDropped { times: 1 }
}

#[test]
fn only_runs_that_count_enter_the_figures_and_each_kind_of_taint_counts_once_a_run() {
    let mut r = report(&[("a", State::Cold, vec![100.0, 110.0, 120.0, 9000.0])]);
    let steal = Taint::Steal { percent: 12.0 };
    r.runs[3].taints = vec![dropped(), steal, dropped()];
    let s = summarize(&r, 0);
    assert_eq!((s.counted, s.tainted), (3, 1));
    assert_eq!(s.taints, [("caches_dropped", 1), ("steal", 1)].into());
    assert_eq!(s.ready().map(|d| (d.n, d.median, d.max)), Some((3, 110e6, 120e6)));
}

#[test]
fn a_figure_that_one_counted_run_does_not_have_is_unknown_with_its_reason() {
    let mut r = report(&[("a", State::Cold, vec![100.0; 4])]);
    r.runs[2].read_bytes = Known::unknown("no account is kept");
    r.runs[3].peak_memory = Known::unknown("too small");
    r.runs[3].taints = vec![dropped()];
    let s = summarize(&r, 0);
    assert_eq!(s.metrics["read_bytes"], Known::unknown("no account is kept"));
    assert!(s.metrics["peak_memory"].value().is_some(), "the run that lacks it does not count");
}

#[test]
fn a_series_without_a_run_that_counts_has_no_figures() {
    let mut r = report(&[("a", State::Cold, vec![100.0])]);
    r.runs[0].taints = vec![dropped()];
    let s = summarize(&r, 0);
    assert_eq!((s.ready(), s.counted, s.tainted), (None, 0, 1));
    assert_eq!(s.metrics["ready"], Known::unknown("no run counts"));
}

#[test]
fn six_rounds_that_both_have_are_compared_as_pairs() {
    let (a, b) = (noise(200.0, 0.2, 6, 1), noise(100.0, 0.2, 6, 2));
    let mut r = report(&[("a", State::Cold, a), ("a", State::Warm, b)]);
    assert_eq!(compare(&r, 0, 1).unwrap().design, Design::Paired);
    // A seventh round that only one of them has does not matter.
    r.runs.push(crate::sample::run(0, 6, 12, 200.0, true));
    let c = compare(&r, 0, 1).unwrap();
    assert_eq!((c.design, c.n), (Design::Paired, 6));
}

#[test]
fn with_fewer_rounds_in_common_the_series_are_compared_as_independent_ones() {
    let mut r = report(&[
        ("a", State::Cold, noise(200.0, 0.01, 10, 1)),
        ("a", State::Warm, noise(100.0, 0.01, 10, 2)),
    ]);
    // Five rounds lose one run each, of either series by turns: five pairs, but seven and eight runs.
    for (n, round) in [0_usize, 2, 4, 6, 8].into_iter().enumerate() {
        r.runs[2 * round + n % 2].taints = vec![dropped()];
    }
    let c = compare(&r, 0, 1).unwrap();
    assert_eq!((c.design, c.interval.is_full()), (Design::Independent, true));
    assert!(c.interval.low > 1.9 && c.interval.high < 2.1, "{c:?}");
}

#[test]
fn too_few_of_both_give_the_pairs_that_there_are_and_no_verdict() {
    let r = report(&[("a", State::Cold, vec![200.0, 220.0]), ("a", State::Warm, vec![100.0, 110.0])]);
    let c = compare(&r, 0, 1).unwrap();
    assert_eq!((c.design, c.n, c.interval.is_full()), (Design::Paired, 2, false));
    assert!((c.ratio - 2.0).abs() < 1e-9, "{c:?}");
    let one = report(&[("a", State::Cold, vec![200.0]), ("a", State::Warm, vec![100.0])]);
    assert_eq!(compare(&one, 0, 1), None);
    let all = analyze(&one, 0.02).comparisons;
    let undecided = Verdict::Inconclusive { why: Undecided::TooFewRuns, runs_needed: None };
    assert_eq!((all.len(), &all[0].comparison, all[0].verdict), (1, &None, undecided));
}

#[test]
fn a_figure_that_is_unknown_in_a_run_leaves_that_round_out() {
    let times = vec![100.0; 8];
    let mut r = report(&[("a", State::Cold, times.clone()), ("b", State::Cold, times)]);
    for run in &mut r.runs {
        run.read_bytes = Known::Value(Bytes(if run.series == 0 { 3000 } else { 1000 }));
    }
    r.runs[0].read_bytes = Known::unknown("gone");
    let c = compare_by(&r, 0, 1, Metric::ReadBytes).unwrap();
    assert_eq!((c.n, c.design), (7, Design::Paired));
    assert!((c.ratio - 3.0).abs() < 1e-9, "{c:?}");
}

/// The names of what is compared, of series with these commands and states.
fn compared(series: &[(&str, State)]) -> Vec<[String; 2]> {
    let series: Vec<_> = series.iter().map(|(name, s)| (*name, s.clone(), vec![1.0; 2])).collect();
    analyze(&report(&series), 0.0).comparisons.into_iter().map(|c| c.names).collect()
}

#[test]
fn states_are_compared_with_warm_or_else_with_the_first() {
    let all = compared(&[("a", State::Cold), ("a", State::Light), ("a", State::Warm)]);
    assert_eq!(all, [["cold", "warm"], ["light", "warm"]]);
    assert_eq!(compared(&[("a", State::Light), ("a", State::Cold)]), [["cold", "light"]]);
    // Against cold it is compared once, also where cold is the first.
    assert_eq!(compared(&[("a", State::Cold), ("a", State::Prefetched)]), [["prefetched", "cold"]]);
    assert!(compared(&[("a", State::Cold)]).is_empty());
}

#[test]
fn commands_are_compared_with_the_first_in_the_states_that_both_have() {
    let all = compared(&[("a", State::Cold), ("b", State::Cold), ("b", State::Warm)]);
    assert_eq!(all, [["b (cold)", "b (warm)"], ["b (cold)", "a (cold)"]]);
}
