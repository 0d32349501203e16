use super::super::{OwnCost, Times};
use super::*;

#[test]
fn each_round_takes_every_line_once_and_one_cut_short_is_dropped() {
    let lines = ["a", "b", "c"];
    let until = |last: usize| {
        let mut seen = Vec::new();
        let found = rounds(&lines, 4, 7, |line, round| {
            seen.push(*line);
            if seen.len() > last { Err(Error::Interrupted) } else { Ok((*line, round)) }
        });
        found.map(|f| (f, seen))
    };
    let ((all, interrupted), seen) = until(100).expect("all rounds");
    assert!(!interrupted);
    for (line, found) in lines.iter().zip(&all) {
        assert_eq!(*found, (0..4).map(|round| (*line, round)).collect::<Vec<_>>());
    }
    assert!(seen.chunks(3).any(|round| round != lines), "each in an order of its own: {seen:?}");
    let ((all, interrupted), _) = until(8).expect("two rounds");
    assert!(interrupted && all.iter().all(|found| found.len() == 2), "{all:?}");
    assert!(matches!(until(2), Err(Error::Interrupted)), "no round was whole");
}

#[test]
fn all_lines_show_the_usual_round_and_compare_with_the_flush() {
    let lines =
        lines(&TableOptions { order: Some("normal"), action: Some("write"), ..TableOptions::PUBLISHED });
    let names: Vec<_> = lines.iter().map(|l| (l.mode, l.state)).collect();
    let (cold, warm) = (State::Cold, State::Warm);
    let wanted =
        [("direct", cold), ("buffered", cold), ("buffered", warm), ("mapped", cold), ("mapped", warm)];
    assert_eq!(names, wanted);
    let round = |mean, flush_ms, misses| Measured {
        ms: Times { count: 4, mean, ..Times::default() },
        flush_ms,
        misses: Some(misses),
        ..Measured::default()
    };
    let rounds = [round(3.0, Some(8.0), 3), round(1.0, Some(4.0), 1), round(2.0, None, 2)];
    let row = TableRow::of(&lines[0], &rounds, 2).expect("three rounds");
    assert_eq!((row.rounds_ms, row.measured.misses), (vec![5.0, 2.0, 2.0], Some(2)));
    // The middle of one line is the worst of the other: what is nearest to both is shown.
    let other = [round(10.0, None, 0), round(11.0, None, 0), round(40.0, None, 0)];
    assert_eq!(usual_round(&[rounds.to_vec(), other.to_vec()], 3), 0);
    assert_eq!(usual_round(&[rounds.to_vec()], 3), 2);
}

fn row(order: &'static str, mode: &'static str, state: State, mean: f64) -> TableRow {
    let measured = Measured { ms: Times { count: 1, mean, ..Times::default() }, ..Measured::default() };
    TableRow { order, action: "read", mode, state, rounds_ms: vec![mean], measured }
}

#[test]
fn a_ranking_is_of_the_three_ways_cold_and_a_tie_does_not_break_it() {
    let warm = row("normal", "mapped", State::Warm, 99.0);
    let of = |mapped, buffered, direct| {
        let all = [("direct", direct), ("buffered", buffered), ("mapped", mapped)];
        let cold = all.map(|(mode, ms)| row("normal", mode, State::Cold, ms));
        let rows = [vec![warm.clone()], cold.to_vec()].concat();
        let found = rankings(&rows);
        assert_eq!(found.len(), 1);
        found[0].holds()
    };
    assert!(of(1.0, 2.0, 3.0) && of(2.0, 2.0, 2.0));
    assert!(!of(3.0, 2.0, 3.0) && !of(1.0, 4.0, 3.0));
    let two = ["direct", "buffered"].map(|mode| row("normal", mode, State::Cold, 1.0));
    let other = row("uniform", "mapped", State::Cold, 1.0);
    assert_eq!(rankings(&[two.to_vec(), vec![other]].concat()).len(), 0, "of one order, or there is none");
}

#[test]
fn counts_say_why_a_ranking_is_another() {
    let of = |buffered: (f64, u64), mapped: (f64, u64, u64)| {
        let mut rows = ["direct", "buffered", "mapped"].map(|mode| row("normal", mode, State::Cold, 9.0));
        let m = &mut rows[1].measured;
        (m.ms.mean, m.read_bytes) = buffered;
        let m = &mut rows[2].measured;
        (m.ms.mean, m.read_bytes, m.major_faults) = mapped;
        rankings(&rows)[0].why_not()
    };
    assert_eq!(of((10.0, 9), (1.0, 9, 1)), WhyNot::ReadAlong);
    assert_eq!(of((1.0, 0), (2.0, 9, 1)), WhyNot::ReadBeforeWritten);
    assert_eq!(of((1.0, 9), (2.0, 9, 1)), WhyNot::Faults);
    assert_eq!(of((1.0, 0), (2.0, 0, 0)), WhyNot::NothingRead);
}

#[test]
fn every_line_is_there_once_and_those_of_an_order_draw_the_same_places() {
    let all = lines(&TableOptions::PUBLISHED);
    let names: std::collections::BTreeSet<_> =
        all.iter().map(|l| (l.order, l.action, l.mode, l.state == State::Warm)).collect();
    // Five of each order and action, and the exact way of reading.
    assert_eq!((all.len(), names.len()), (3 * (3 * 5 + 1), 48));
    for l in &all {
        assert_eq!(Some(l.stream as usize), WORDS.0.iter().position(|w| *w == l.order));
        assert_eq!(l.acts.len(), if l.action == "read-write" { 2 } else { 1 });
        assert!(l.mode != "direct" || l.state == State::Cold, "past the cache it makes no difference");
    }
    let warm = lines(&TableOptions { state: Some(State::Warm), ..TableOptions::PUBLISHED });
    assert!(warm.len() == 18 && warm.iter().all(|l| ["buffered", "mapped"].contains(&l.mode)));
}

#[test]
fn a_line_without_times_has_no_say_in_which_round_is_usual() {
    let ms = |means: &[f64]| -> Vec<Measured> {
        let times = means.iter().map(|mean| Times { count: 1, mean: *mean, ..Times::default() });
        times.map(|ms| Measured { ms, ..Measured::default() }).collect()
    };
    assert_eq!(usual_round(&[ms(&[0.0, 0.0, 0.0]), ms(&[9.0, 1.0, 2.0])], 3), 2);
    assert_eq!(usual_round(&[], 0), 0);
    // Nothing was timed: the flush is not shared out by zero.
    let flushed = Measured { flush_ms: Some(4.0), ..Measured::default() };
    assert!((whole_ms(&flushed) - 4.0).abs() < 1e-9);
}

#[test]
fn the_own_cost_is_of_the_lines_in_which_something_was_timed() {
    let line = |count, own_ns, between_ns, ms| {
        let mut m = row("normal", "mapped", State::Cold, ms).measured;
        (m.ms.count, m.own_ns, m.between_ns) = (count, own_ns, between_ns);
        m
    };
    let all = [line(5, 30.0, 10.0, 2.0), line(1, 20.0, 30.0, 0.5), line(0, 99.0, 99.0, 0.1)];
    let cost = OwnCost { most_ns: 30.0, between_ns: 20.0, cheapest_ns: 500_000.0 };
    assert_eq!(OwnCost::of(all.iter()), Some(cost));
    assert_eq!(OwnCost::of(all[2..].iter()), None);
}
