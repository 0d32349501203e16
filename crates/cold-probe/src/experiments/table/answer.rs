//! The answer of the table: which way is the fastest, line by line, with the intervals that prove it.

use cold_stats::compare::{Comparison, Undecided, Verdict, paired};
use cold_stats::median;
use serde::Serialize;

use super::{State, TableRow};

/// The ways that compete. `exact` is there to prove the counting.
const WAYS: [&str; 3] = ["mapped", "buffered", "direct"];

/// What one order and action come to, with the cache in one state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrderAnswer {
    /// `sequential`, `normal`, `uniform`.
    pub order: &'static str,
    /// `read`, `write`, `read-write`.
    pub action: &'static str,
    /// The cache before.
    pub state: State,
    /// The way with the least median time.
    pub least: &'static str,
    /// It is proved faster than every other.
    pub proved: bool,
    /// The others, the nearest first.
    pub others: Vec<Other>,
}

/// A way beside the one with the least median.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Other {
    /// `mapped`, `buffered` or `direct`.
    pub mode: &'static str,
    /// Its time as a ratio of the least, within rounds; none with fewer than two rounds.
    pub comparison: Option<Comparison>,
    /// `slower` when that is proved.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl OrderAnswer {
    /// The way that the answer hangs on: the nearest that is not proved slower, else the nearest of all.
    pub fn next(&self) -> Option<&Other> {
        self.others.iter().find(|o| o.verdict != Verdict::Slower).or(self.others.first())
    }
}

impl Other {
    fn of(row: &TableRow, least: &TableRow) -> Self {
        let rounds = row.rounds_ms.iter().copied().zip(least.rounds_ms.iter().copied());
        let comparison = paired(&rounds.collect::<Vec<_>>());
        let none = Verdict::Inconclusive { why: Undecided::TooFewRuns, runs_needed: None };
        let verdict = comparison.as_ref().map_or(none, |c| c.verdict(0.0));
        Self { mode: row.mode, comparison, verdict }
    }
}

/// The answers to all that was measured in two ways at least, in the order of the lines.
pub fn answers(rows: &[TableRow]) -> Vec<OrderAnswer> {
    let mut found: Vec<OrderAnswer> = Vec::new();
    for like in rows {
        if found.iter().any(|a| (a.order, a.action, a.state) == (like.order, like.action, like.state)) {
            continue;
        }
        let same = |r: &&TableRow| (r.order, r.action, r.state) == (like.order, like.action, like.state);
        let timed = |r: &TableRow| Some((median(&r.rounds_ms)?, WAYS.iter().position(|w| *w == r.mode)?));
        let mut by_time: Vec<((f64, usize), &TableRow)> =
            rows.iter().filter(same).filter_map(|r| Some((timed(r)?, r))).collect();
        by_time.sort_by(|((a, n), _), ((b, m), _)| a.total_cmp(b).then(n.cmp(m)));
        let [(_, least), others @ ..] = &by_time[..] else { continue };
        let others: Vec<Other> = others.iter().map(|(_, r)| Other::of(r, least)).collect();
        if others.is_empty() {
            continue;
        }
        let proved = others.iter().all(|o| o.verdict == Verdict::Slower);
        let (order, action, state) = (like.order, like.action, like.state);
        found.push(OrderAnswer { order, action, state, least: least.mode, proved, others });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::Measured;
    use super::*;

    fn row(mode: &'static str, state: State, rounds_ms: Vec<f64>) -> TableRow {
        TableRow { order: "normal", action: "read", mode, state, rounds_ms, measured: Measured::default() }
    }

    /// Ten rounds around a time, each of which the whole machine makes slower or faster.
    fn rounds(ms: f64, own: &[f64]) -> Vec<f64> {
        (0..10).map(|n| ms * (1.0 + 0.2 * f64::from(n % 3)) * own[n as usize % own.len()]).collect()
    }

    #[test]
    fn a_clear_winner_is_proved_against_each_other_way() {
        let rows = [
            row("direct", State::Cold, rounds(9.0, &[1.0, 1.01])),
            row("buffered", State::Cold, rounds(2.0, &[1.01, 0.99, 1.0])),
            row("exact", State::Cold, rounds(0.1, &[1.0])),
            row("mapped", State::Cold, rounds(1.0, &[0.99, 1.0])),
            row("buffered", State::Warm, rounds(0.5, &[1.0, 1.01])),
            row("mapped", State::Warm, rounds(1.0, &[1.0, 0.99])),
        ];
        let found = answers(&rows);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].least, found[0].proved, found[0].state), ("mapped", true, State::Cold));
        let names: Vec<_> = found[0].others.iter().map(|o| o.mode).collect();
        assert_eq!(names, ["buffered", "direct"], "the nearest first, and exact does not compete");
        let nearest = found[0].others[0].comparison.as_ref().unwrap();
        assert!(nearest.interval.low > 1.9 && nearest.interval.high < 2.1, "{nearest:?}");
        assert_eq!((found[1].least, found[1].proved, found[1].others.len()), ("buffered", true, 1));
    }

    #[test]
    fn two_alike_are_no_answer_even_when_both_beat_the_third() {
        let rows = [
            row("direct", State::Cold, rounds(9.0, &[1.0, 1.01])),
            row("buffered", State::Cold, rounds(1.0, &[1.2, 0.8, 1.1, 0.9])),
            row("mapped", State::Cold, rounds(1.0, &[0.9, 1.15, 0.85, 1.1])),
        ];
        let found = answers(&rows);
        assert!(!found[0].proved, "{found:?}");
        assert_eq!(found[0].next(), Some(&found[0].others[0]), "what is not proved decides");
        let verdicts: Vec<_> = found[0].others.iter().map(|o| o.verdict).collect();
        let why = Undecided::CrossesTheMargin;
        assert!(matches!(verdicts[0], Verdict::Inconclusive { why: w, .. } if w == why), "{verdicts:?}");
        assert_eq!(verdicts[1], Verdict::Slower);
    }

    #[test]
    fn too_few_rounds_prove_nothing_and_say_how_many_more() {
        let few = |n: usize| {
            let cut = |ms: f64| rounds(ms, &[1.0])[..n].to_vec();
            answers(&[row("buffered", State::Warm, cut(5.0)), row("mapped", State::Warm, cut(1.0))])
        };
        let (one, five, six) = (few(1), few(5), few(6));
        assert_eq!((one[0].proved, &one[0].others[0].comparison), (false, &None));
        let needed = |a: &[OrderAnswer]| match a[0].others[0].verdict {
            Verdict::Inconclusive { why: Undecided::TooFewRuns, runs_needed } => runs_needed,
            other => panic!("{other:?}"),
        };
        assert_eq!((needed(&one), needed(&five)), (None, Some(1)));
        assert!(!five[0].proved && six[0].proved);
    }

    #[test]
    fn one_way_alone_is_no_question() {
        assert_eq!(answers(&[row("direct", State::Cold, rounds(1.0, &[1.0]))]), []);
    }
}
