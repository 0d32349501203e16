//! Judges a plan by its daily use.
//!
//! Every k-th eligible cold start is made without the plan. Each of these controls is set against one start
//! with the plan, the nearest one that is not taken yet and was watched for the same amount of CPU time; when
//! the plan does nothing the two are exchangeable, so the same test as in a tuning applies
//! ([`crate::evidence`]), and may be asked after each start. Only starts with what was last learnt or tuned count.

use crate::evidence::{evidence, median};
use crate::history::{Kind, Mark, Record, Skip};
use crate::plan::{Learnt, Standing, Trial};

/// What to do with a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgement {
    /// Use it as it is.
    Keep {
        /// Its gain is shown by daily use alone.
        proven: bool,
        /// In one sentence.
        why: String,
    },
    /// Learn it again.
    Refresh {
        /// In one sentence.
        why: String,
    },
    /// Switch it off.
    Disable {
        /// In one sentence.
        why: String,
    },
}

/// Pairs without which nothing is decided ([`crate::evidence`]).
const LEAST: u32 = 6;
/// Pairs that are looked at: all pairs of these are compared.
const MOST: usize = 1000;
/// Controls after which a plan without a gain is switched off.
const ENOUGH: u32 = 20;
/// Launches in a row that found the plan stale.
const STALE: usize = 2;
/// Starts of which two medians are compared, and how much longer the later may be.
const RECENT: usize = 5;
const LONGER: f64 = 1.25;
/// A gain below this is none.
const MARGIN: f64 = 0.01;

/// Judges a plan of this standing by the starts of its history, oldest first.
pub fn judge(standing: &Standing, learnt: &Learnt, trial: Option<&Trial>, history: &[Record]) -> Judgement {
    if let Standing::Off(why) = standing {
        return Judgement::Disable { why: why.clone() };
    }
    let made = learnt.last.max(trial.map_or(0, |t| t.at));
    let since: Vec<Record> = history.iter().filter(|r| r.when_ns / 1_000_000_000 >= made).copied().collect();
    let e = evidence(&pairs(&since));
    if let Some(e) = e {
        if e.low > 1.0 {
            return Judgement::Disable { why: format!("daily starts with the plan are slower: {e}") };
        }
        if e.pairs >= ENOUGH && e.high >= 1.0 - MARGIN && *standing != Standing::Proven {
            return Judgement::Disable { why: format!("daily use shows no gain: {e}") };
        }
    }
    let launches = since.iter().rev().filter(|r| !matches!(r.kind, Kind::Skipped(s) if s != Skip::Stale));
    if launches.take(STALE).filter(|r| r.kind == Kind::Skipped(Skip::Stale)).count() == STALE {
        let why = format!("the last {STALE} launches found too many of its files replaced or removed");
        return Judgement::Refresh { why };
    }
    let with: Vec<f64> = since
        .iter()
        .filter(|r| r.kind == Kind::Prefetched)
        .filter_map(|r| r.mark)
        .map(|m| m.wall_ns as f64)
        .collect();
    if with.len() >= 2 * RECENT {
        let (before, recent) = with.split_at(with.len() - RECENT);
        let (was, is) = (median(&mut before.to_vec()), median(&mut recent.to_vec()));
        if is > LONGER * was {
            let why = format!("the last {RECENT} starts took {:.2} times as long as those before", is / was);
            return Judgement::Refresh { why };
        }
    }
    let proven = e.is_some_and(|e| e.high < 1.0 - MARGIN);
    let why = match e {
        Some(e) if proven => format!("daily use shows a gain: {e}"),
        Some(e) if e.pairs < LEAST => format!("not decided yet, which takes {LEAST} pairs: {e}"),
        Some(e) => format!("not decided yet: {e}"),
        None if since.iter().any(|r| r.kind == Kind::Control) => {
            "no control start can be compared with a start by the plan yet".to_owned()
        }
        None => "no control starts yet".to_owned(),
    };
    Judgement::Keep { proven, why }
}

/// Each control with the nearest start with plan that no other control has, as times with and without plan;
/// of very many, the last.
fn pairs(history: &[Record]) -> Vec<(f64, f64)> {
    let mut taken = vec![false; history.len()];
    let mut out = Vec::new();
    for (i, control) in history.iter().enumerate() {
        let Some(mark) = control.mark.filter(|_| control.kind == Kind::Control) else { continue };
        let free = |j: &usize| {
            let other = history[*j].mark.is_some_and(|m| same_work(m, mark));
            history[*j].kind == Kind::Prefetched && !taken[*j] && other
        };
        let nearest = (0..history.len()).filter(free).min_by_key(|j| (j.abs_diff(i), *j));
        if let Some((j, with)) = nearest.and_then(|j| Some((j, history[j].mark?))) {
            taken[j] = true;
            out.push((with.wall_ns as f64, mark.wall_ns as f64));
        }
    }
    out.split_off(out.len().saturating_sub(MOST))
}

/// Both were watched up to the same CPU time: another mark is another race. Whether the program ended before it
/// is no difference: one that needs about as much CPU time as the mark does so now and then, the more
/// often the better its pages are cached. If only those that ended the same way were compared, a plan would be
/// judged by the starts in which it did nothing.
fn same_work(a: Mark, b: Mark) -> bool {
    a.cpu_ns.abs_diff(b.cpu_ns) <= a.cpu_ns.max(b.cpu_ns) / 10
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Noise;

    fn judged(history: &[Record]) -> Judgement {
        judge(&Standing::Untried, &Learnt { last: 1, ..Learnt::default() }, None, history)
    }

    fn record(at: u64, kind: Kind, wall_ns: u64) -> Record {
        let mark = Some(Mark { wall_ns, cpu_ns: 100, exited: false, rested: false });
        Record { when_ns: at * 1_000_000_000, plan: 1, kind, mark, bytes: 0, requests: 0, late: false }
    }

    fn history(n: u64, ratio: f64, spread: f64) -> Vec<Record> {
        let mut noise = Noise::new(9);
        (0..n)
            .map(|i| {
                let kind = if i % 5 == 4 { Kind::Control } else { Kind::Prefetched };
                let factor = if kind == Kind::Control { 1.0 } else { ratio };
                record(i + 1, kind, (1e9 * factor * noise.time(spread)) as u64)
            })
            .collect()
    }

    #[test]
    fn a_gain_is_proven_and_harm_switched_off() {
        let good = judged(&history(60, 0.6, 0.05));
        assert!(matches!(good, Judgement::Keep { proven: true, .. }), "{good:?}");
        let Judgement::Disable { why } = judged(&history(60, 1.3, 0.05)) else { panic!("kept") };
        assert!(why.contains("slower: 1."), "{why}");
        let nothing = judged(&history(120, 1.0, 0.05));
        assert!(matches!(nothing, Judgement::Disable { .. }), "{nothing:?}");
        let few = judged(&history(20, 1.0, 0.05));
        assert!(matches!(few, Judgement::Keep { proven: false, .. }), "{few:?}");
        assert_eq!(judged(&[]), Judgement::Keep { proven: false, why: "no control starts yet".into() });
    }

    #[test]
    fn starts_before_the_plan_was_learnt_or_tuned_say_nothing_about_it() {
        let harmed = history(60, 1.3, 0.05);
        let of = |learnt, trial: Option<&Trial>| {
            judge(&Standing::Untried, &Learnt { last: learnt, ..Learnt::default() }, trial, &harmed)
        };
        let tuned = crate::sample::sample().trial.map(|t| Trial { at: 1000, ..t });
        for kept in [of(1000, None), of(1, tuned.as_ref())] {
            assert!(matches!(kept, Judgement::Keep { proven: false, .. }), "{kept:?}");
        }
        assert!(matches!(of(1, None), Judgement::Disable { .. }));
        let off = judge(&Standing::Off("why".into()), &Learnt::default(), None, &[]);
        assert_eq!(off, Judgement::Disable { why: "why".into() });
    }

    #[test]
    fn a_short_program_that_often_ends_before_the_mark_is_judged_all_the_same() {
        // With its pages there it needs a little less CPU time, and ends; without, it passes the mark.
        let mut h = history(60, 1.3, 0.05);
        for r in h.iter_mut().filter(|r| r.kind == Kind::Prefetched) {
            r.mark.as_mut().expect("marked").exited = true;
        }
        assert!(matches!(judged(&h), Judgement::Disable { .. }), "{:?}", judged(&h));
    }

    #[test]
    fn only_the_same_amount_of_work_is_compared() {
        let mut h = history(60, 0.6, 0.05);
        for r in h.iter_mut().filter(|r| r.kind == Kind::Control) {
            r.mark.as_mut().expect("marked").cpu_ns = 150;
        }
        assert!(pairs(&h).is_empty());
    }

    #[test]
    fn stale_files_and_slower_starts_ask_for_learning() {
        let mut h = history(30, 0.6, 0.05);
        let stale = Record { mark: None, ..record(99, Kind::Skipped(Skip::Stale), 0) };
        h.push(stale);
        assert!(matches!(judged(&h), Judgement::Keep { .. }));
        h.push(Record { mark: None, ..record(99, Kind::Skipped(Skip::Warm), 0) });
        h.push(stale);
        assert!(matches!(judged(&h), Judgement::Refresh { .. }));
        let mut h = history(30, 0.6, 0.02);
        for r in h.iter_mut().rev().take(9) {
            r.mark.as_mut().expect("marked").wall_ns *= 2;
        }
        let Judgement::Refresh { why } = judged(&h) else { panic!("no refresh") };
        assert!(why.contains("times as long as those before"), "{why}");
    }
}
