//! Judges a plan by its daily use.
//!
//! Every k-th eligible cold start is made without the plan. Each of these controls is set against one start
//! with the plan, the nearest one that is not taken yet and was watched for the same amount of CPU time; when
//! the plan does nothing the two are exchangeable, so the same test as in a tuning applies
//! ([`mod@cold_stats::sequential`]), and may be asked after each start. Only starts with what was last learnt or tuned
//! count, here and in the figures that people are shown ([`Daily`]).

use cold_stats::{Comparison, median, median_u64, sequential};

use crate::history::{LaunchKind, Mark, Record, Skip};
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

impl Judgement {
    /// What to do, and why.
    pub fn words(&self) -> (&'static str, &str) {
        match self {
            Self::Keep { why, .. } => ("keep", why),
            Self::Refresh { why } => ("learn again", why),
            Self::Disable { why } => ("switch off", why),
        }
    }

    /// The plan's standing by this; none where it stays what it is.
    pub fn standing(&self, now: &Standing) -> Option<Standing> {
        let standing = match self {
            Self::Keep { proven: true, .. } => Standing::Proven,
            Self::Disable { why } => Standing::Off(why.clone()),
            Self::Keep { .. } | Self::Refresh { .. } => return None,
        };
        (standing != *now).then_some(standing)
    }
}

/// Pairs without which nothing is decided ([`mod@cold_stats::sequential`]).
const LEAST: usize = 6;
/// Pairs that are looked at: all pairs of these are compared.
const MOST: usize = 1000;
/// Controls after which a plan without a gain is switched off.
const ENOUGH: usize = 20;
/// Launches in a row that found the plan stale.
const STALE: usize = 2;
/// Starts of which two medians are compared, and how much longer the later may be.
const RECENT: usize = 5;
const LONGER: f64 = 1.25;
/// A gain below this is none.
const MARGIN: f64 = 0.01;

/// Starts of one kind, and how long they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timed {
    /// All of this kind, whether they came to their mark or not.
    pub starts: usize,
    /// Of these, those that came to their mark.
    pub marked: usize,
    /// Median of their times to the mark, nanoseconds; none where none came to it.
    pub median_ns: Option<u64>,
}

/// Daily use of a plan since it was last learnt or tuned: what [`judge`] goes by, in figures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Daily {
    /// Starts with the plan.
    pub prefetched: Timed,
    /// Starts that went without the plan to compare ([`LaunchKind::Control`]).
    pub controls: Timed,
    /// Starts in which nothing was issued, by the reason.
    pub skipped: Vec<(Skip, usize)>,
    /// Starts before that, which say nothing about it.
    pub earlier: usize,
}

impl Daily {
    /// Of a whole history.
    pub fn of(learnt: &Learnt, trial: Option<&Trial>, history: &[Record]) -> Self {
        let since = since(learnt, trial, history);
        let count = |kind| since.iter().filter(|r| r.kind == kind).count();
        let timed = |kind| {
            let times = times(&since, kind);
            Timed { starts: count(kind), marked: times.len(), median_ns: median_u64(times) }
        };
        let skipped = Skip::ALL.iter().map(|why| (*why, count(LaunchKind::Skipped(*why))));
        Self {
            prefetched: timed(LaunchKind::Prefetched),
            controls: timed(LaunchKind::Control),
            skipped: skipped.filter(|(_, n)| *n > 0).collect(),
            earlier: history.len() - since.len(),
        }
    }
}

/// The starts since the plan was last learnt or tuned.
fn since(learnt: &Learnt, trial: Option<&Trial>, history: &[Record]) -> Vec<Record> {
    let made = learnt.last.max(trial.map_or(0, |t| t.at));
    history.iter().filter(|r| r.when_ns / 1_000_000_000 >= made).copied().collect()
}

/// Times to the mark of the starts of a kind that came to it, oldest first.
fn times(history: &[Record], kind: LaunchKind) -> Vec<u64> {
    history.iter().filter(|r| r.kind == kind).filter_map(|r| Some(r.mark?.wall_ns)).collect()
}

/// `0.97 times as long as without (95% interval 0.93 to 1.02, 20 pairs)`: pairs with a plan and without.
pub fn gain_words(gain: &Comparison) -> String {
    let end = |x: f64| if x.is_finite() && x > 1e-3 { format!("{x:.2}") } else { "unknown".to_owned() };
    let (low, high) = (end(gain.interval.low), end(gain.interval.high));
    format!("{:.2} times as long as without (95% interval {low} to {high}, {} pairs)", gain.ratio, gain.n)
}

/// Judges a plan of this standing by the starts of its history, oldest first.
pub fn judge(standing: &Standing, learnt: &Learnt, trial: Option<&Trial>, history: &[Record]) -> Judgement {
    if let Standing::Off(why) = standing {
        return Judgement::Disable { why: why.clone() };
    }
    let since = since(learnt, trial, history);
    let gain = sequential(&pairs(&since));
    let proven = gain.as_ref().is_some_and(|g| g.interval.high < 1.0 - MARGIN);
    if let Some(g) = &gain {
        if g.interval.low > 1.0 {
            return Judgement::Disable {
                why: format!("daily starts with the plan are slower: {}", gain_words(g)),
            };
        }
        if g.n >= ENOUGH && !proven && *standing != Standing::Proven {
            return Judgement::Disable { why: format!("daily use shows no gain: {}", gain_words(g)) };
        }
    }
    let launches =
        since.iter().rev().filter(|r| !matches!(r.kind, LaunchKind::Skipped(s) if s != Skip::Stale));
    if launches.take(STALE).filter(|r| r.kind == LaunchKind::Skipped(Skip::Stale)).count() == STALE {
        let why = format!("the last {STALE} launches found too many of its files replaced or removed");
        return Judgement::Refresh { why };
    }
    if let Some(longer) = longer(&since) {
        let why = format!("the last {RECENT} starts took {longer:.2} times as long as those before");
        return Judgement::Refresh { why };
    }
    let why = match gain.as_ref().map(|g| (g.n, gain_words(g))) {
        Some((_, words)) if proven => format!("daily use shows a gain: {words}"),
        Some((n, words)) if n < LEAST => format!("not decided yet, which takes {LEAST} pairs: {words}"),
        Some((_, words)) => format!("not decided yet: {words}"),
        None if since.iter().any(|r| r.kind == LaunchKind::Control) => {
            "no control start can be compared with a start by the plan yet".to_owned()
        }
        None => "no control starts yet".to_owned(),
    };
    Judgement::Keep { proven, why }
}

/// How many times as long as before the last starts with the plan took, where that is too long.
fn longer(since: &[Record]) -> Option<f64> {
    let with: Vec<f64> = times(since, LaunchKind::Prefetched).into_iter().map(|ns| ns as f64).collect();
    let (before, recent) = with.split_at_checked(with.len().checked_sub(RECENT)?)?;
    if before.len() < RECENT {
        return None;
    }
    let ratio = median(recent)? / median(before)?;
    (ratio > LONGER).then_some(ratio)
}

/// Each control with the nearest start with plan that no other control has, as times with and without plan;
/// of very many, the last.
fn pairs(history: &[Record]) -> Vec<(f64, f64)> {
    let mut taken = vec![false; history.len()];
    let mut out = Vec::new();
    for (i, control) in history.iter().enumerate() {
        let Some(mark) = control.mark.filter(|_| control.kind == LaunchKind::Control) else { continue };
        let free = |j: &usize| {
            let other = history[*j].mark.is_some_and(|m| same_work(m, mark));
            history[*j].kind == LaunchKind::Prefetched && !taken[*j] && other
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

    fn record(at: u64, kind: LaunchKind, wall_ns: u64) -> Record {
        let mark = Some(Mark { wall_ns, cpu_ns: 100, exited: false, rested: false });
        Record { when_ns: at * 1_000_000_000, plan: 1, kind, mark, bytes: 0, requests: 0, late: false }
    }

    fn history(n: u64, ratio: f64, spread: f64) -> Vec<Record> {
        let mut noise = Noise::new(9);
        (0..n)
            .map(|i| {
                let kind = if i % 5 == 4 { LaunchKind::Control } else { LaunchKind::Prefetched };
                let factor = if kind == LaunchKind::Control { 1.0 } else { ratio };
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
    fn only_what_is_decided_changes_a_standing() {
        let off = Judgement::Disable { why: "slow".into() };
        assert_eq!(off.standing(&Standing::Proven), Some(Standing::Off("slow".into())));
        assert_eq!(off.standing(&Standing::Off("slow".into())), None);
        let keep = |proven| Judgement::Keep { proven, why: String::new() };
        assert_eq!(keep(true).standing(&Standing::Untried), Some(Standing::Proven));
        assert_eq!(
            (keep(true).standing(&Standing::Proven), keep(false).standing(&Standing::Untried)),
            (None, None)
        );
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

    /// `prefetch status` shows these figures beside the verdict: they are of the same starts, by the same median.
    #[test]
    fn the_figures_shown_are_those_of_the_starts_that_are_judged() {
        let mark = |wall_ns| Some(Mark { wall_ns, cpu_ns: 100, exited: false, rested: false });
        let of = |at, kind, mark| Record { mark, ..record(at, kind, 0) };
        let warm = LaunchKind::Skipped(Skip::Warm);
        let all = [
            of(5, LaunchKind::Prefetched, mark(900)),
            of(10, LaunchKind::Prefetched, mark(10)),
            of(11, LaunchKind::Prefetched, mark(20)),
            of(12, LaunchKind::Prefetched, None),
            of(13, LaunchKind::Control, None),
            of(14, warm, None),
        ];
        let daily = Daily::of(&Learnt { last: 10, ..Learnt::default() }, None, &all);
        assert_eq!(daily.prefetched, Timed { starts: 3, marked: 2, median_ns: Some(15) });
        assert_eq!(daily.controls, Timed { starts: 1, marked: 0, median_ns: None }, "unknown, not 0");
        assert_eq!((daily.skipped, daily.earlier), (vec![(Skip::Warm, 1)], 1));
        let tuned = crate::sample::sample().trial.map(|t| Trial { at: 12, ..t });
        let daily = Daily::of(&Learnt { last: 10, ..Learnt::default() }, tuned.as_ref(), &all);
        assert_eq!((daily.prefetched.starts, daily.earlier), (1, 3));
    }

    #[test]
    fn a_short_program_that_often_ends_before_the_mark_is_judged_all_the_same() {
        // With its pages there it needs a little less CPU time, and ends; without, it passes the mark.
        let mut h = history(60, 1.3, 0.05);
        for r in h.iter_mut().filter(|r| r.kind == LaunchKind::Prefetched) {
            r.mark.as_mut().expect("marked").exited = true;
        }
        assert!(matches!(judged(&h), Judgement::Disable { .. }), "{:?}", judged(&h));
    }

    #[test]
    fn only_the_same_amount_of_work_is_compared() {
        let mut h = history(60, 0.6, 0.05);
        for r in h.iter_mut().filter(|r| r.kind == LaunchKind::Control) {
            r.mark.as_mut().expect("marked").cpu_ns = 150;
        }
        assert!(pairs(&h).is_empty());
    }

    #[test]
    fn stale_files_and_slower_starts_ask_for_learning() {
        let mut h = history(30, 0.6, 0.05);
        let stale = Record { mark: None, ..record(99, LaunchKind::Skipped(Skip::Stale), 0) };
        h.push(stale);
        assert!(matches!(judged(&h), Judgement::Keep { .. }));
        h.push(Record { mark: None, ..record(99, LaunchKind::Skipped(Skip::Warm), 0) });
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
