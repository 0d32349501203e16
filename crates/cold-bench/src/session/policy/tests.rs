use cold_model::Bytes;
use cold_model::bench::{Ending, State};

use super::*;
use crate::sample::report;

fn policy(min_runs: u32, max_runs: u32, series: usize) -> Policy {
    Policy {
        runs: RunPolicy { min_runs, max_runs, max_time: None, precision: None },
        seed: 1,
        started: Instant::now(),
        attempts: vec![(0, 0); series],
        given_up: vec![None; series],
    }
}

/// One series in state cold whose runs have these taints, a round each.
fn tainted(taints: &[Option<Taint>]) -> Report {
    let mut r = report(&[("a", State::Cold, vec![100.0; taints.len()])]);
    for (run, taint) in r.runs.iter_mut().zip(taints) {
        run.taints = taint.iter().cloned().collect();
    }
    r
}

fn not_cold() -> Taint {
    Taint::NotCold { bytes: Bytes(4096), holders: vec![], held: vec![] }
}

fn steal() -> Taint {
    Taint::Steal { percent: 20.0 }
}

#[test]
fn rounds_go_on_until_the_least_number_of_runs_counts() {
    let p = policy(3, 9, 1);
    assert_eq!(p.next_round(&tainted(&[None, None])), Some(vec![0]));
    assert_eq!(
        p.next_round(&tainted(&[None, Some(steal()), None])),
        Some(vec![0]),
        "a disturbed run is none"
    );
    assert_eq!(p.next_round(&tainted(&[None, None, None])), None);
}

#[test]
fn a_series_that_has_all_its_runs_stays_out_of_the_rounds_of_another() {
    let r = report(&[("a", State::Cold, vec![100.0; 4]), ("b", State::Cold, vec![100.0; 2])]);
    assert_eq!(policy(4, 4, 2).next_round(&r), Some(vec![1]));
    // With room for more runs both go on: their ratios are taken within rounds.
    assert_eq!(policy(4, 5, 2).next_round(&r), Some(vec![0, 1]));
}

#[test]
fn a_series_that_was_given_up_keeps_nobody_waiting() {
    let r = report(&[("a", State::Cold, vec![100.0; 4]), ("b", State::Cold, vec![100.0; 1])]);
    let mut p = policy(4, 9, 2);
    assert_eq!(p.next_round(&r), Some(vec![0, 1]));
    p.given_up[1] = Some("gave up".into());
    assert_eq!(p.next_round(&r), None);
}

#[test]
fn a_wanted_precision_asks_for_more_rounds_until_the_most() {
    let mut p = policy(6, 12, 1);
    p.runs.precision = Some(0.02);
    let wide = |n: usize| report(&[("a", State::Warm, [80.0, 100.0, 120.0].repeat(4)[..n].to_vec())]);
    assert_eq!(p.next_round(&wide(6)), Some(vec![0]));
    assert_eq!(p.next_round(&wide(12)), None, "no more than --max-runs");
    let narrow = |n: usize| report(&[("a", State::Warm, [99.9, 100.0, 100.1].repeat(4)[..n].to_vec())]);
    assert_eq!(p.next_round(&narrow(6)), None);
    // Five runs have no interval of 95%, however alike they are.
    p.runs.min_runs = 5;
    assert_eq!(p.next_round(&narrow(5)), Some(vec![0]));
}

#[test]
fn when_the_time_is_over_it_is_said_which_series_is_short() {
    let mut p = policy(3, 3, 2);
    p.runs.max_time = Some(Duration::ZERO);
    let r = report(&[("a", State::Cold, vec![100.0; 3]), ("b", State::Warm, vec![100.0; 2])]);
    assert_eq!(p.next_round(&r), None);
    assert_eq!(p.stopped(&r).as_deref(), Some("the time was over before b (warm) had its runs"));
    let whole = report(&[("a", State::Cold, vec![100.0; 3]), ("b", State::Warm, vec![100.0; 3])]);
    assert_eq!(p.stopped(&whole), None);
}

#[test]
fn a_disturbed_run_is_replaced_twice_in_its_round_and_anew_in_the_next() {
    let mut p = policy(3, 9, 1);
    let r = tainted(&[None, Some(steal()), Some(steal()), Some(steal())]);
    assert!(!p.note(&r, 0, true, 0), "a good run needs no replacement");
    let round =
        |p: &mut Policy, n| [p.note(&r, 0, false, n), p.note(&r, 0, false, n), p.note(&r, 0, false, n)];
    assert_eq!(round(&mut p, 1), [true, true, false]);
    assert_eq!(round(&mut p, 2), [true, true, false]);
    assert!(!p.note(&r, 7, false, 2), "there is no such series");
}

#[test]
fn five_starts_with_nothing_but_lasting_troubles_are_hopeless() {
    let failed = || Some(Taint::Failed { ending: Ending::Code(1) });
    let four = [Some(not_cold()), Some(not_cold()), Some(not_cold()), failed()];
    assert_eq!(give_up(&tainted(&four), 0, 20), None, "four may be chance");
    let five = [Some(not_cold()), Some(not_cold()), failed(), Some(not_cold()), Some(not_cold())];
    assert_eq!(
        give_up(&tainted(&five), 0, 20).as_deref(),
        Some("gave up after 5 disturbed runs, most of them not_cold")
    );
    for passing in [None, Some(steal())] {
        let one_of_them = [Some(not_cold()), Some(not_cold()), passing, Some(not_cold()), Some(not_cold())];
        assert_eq!(give_up(&tainted(&one_of_them), 0, 20), None);
    }
}

#[test]
fn passing_disturbances_are_borne_as_often_as_runs_are_wanted_and_ten_times_at_least() {
    let disturbed = |n: usize| tainted(&vec![Some(steal()); n]);
    assert_eq!(give_up(&disturbed(9), 0, 3), None);
    assert!(give_up(&disturbed(10), 0, 3).is_some());
    assert_eq!(give_up(&disturbed(19), 0, 20), None);
    assert!(give_up(&disturbed(20), 0, 20).is_some());
}

#[test]
fn the_troubles_of_one_series_are_not_those_of_another() {
    let mut r = report(&[("a", State::Cold, vec![100.0; 6]), ("a", State::Warm, vec![100.0; 6])]);
    for run in r.runs.iter_mut().filter(|run| run.series == 0) {
        run.taints.extend(Some(not_cold()));
    }
    let mut p = policy(6, 6, 2);
    assert!(!p.note(&r, 0, false, 5), "given up: no replacement");
    assert!(!p.note(&r, 1, true, 5));
    assert_eq!(p.next_round(&r), None);
    let why = "cold: gave up after 6 disturbed runs, most of them not_cold";
    assert_eq!(p.stopped(&r).as_deref(), Some(why));
}
