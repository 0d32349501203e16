//! Judges a plan by its daily use.
//!
//! Every k-th eligible cold start is made without the plan. Each of these controls is set against one start
//! with the plan, the nearest one that is not taken yet; when the plan does nothing the two are
//! exchangeable, so the same test as in a tuning applies ([`crate::evidence`]), and may be asked after each start.

use cold_plan::Plan;
use cold_plan::plan::Standing;

use crate::evidence::{evidence, median};
use crate::tune::figures;

/// One cold start in daily use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Daily {
    /// With the plan; else a control.
    pub prefetched: bool,
    /// Time until the mark of readiness, nanoseconds.
    pub ns: u64,
    /// Files of the plan, and of these the ones that were missing or changed.
    pub files: u32,
    /// See `files`.
    pub stale_files: u32,
}

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

/// Controls after which a plan without a gain is switched off.
const ENOUGH: u32 = 20;
/// Share of stale files from which a plan is learnt again: one in so many.
const STALE: u32 = 10;
/// Starts of which two medians are compared, and how much longer the later may be.
const RECENT: usize = 5;
const LONGER: f64 = 1.25;
/// A gain below this is none.
const MARGIN: f64 = 0.01;

/// Judges by the starts of its history, oldest first.
pub fn judge(plan: &Plan, history: &[Daily]) -> Judgement {
    if let Standing::Off(why) = &plan.standing {
        return Judgement::Disable { why: why.clone() };
    }
    let pairs = pairs(history);
    let e = evidence(&pairs);
    if let Some(e) = e {
        let figures = figures(&e);
        if e.low > 1.0 {
            return Judgement::Disable { why: format!("daily starts with the plan are slower: {figures}") };
        }
        if e.pairs >= ENOUGH && e.high >= 1.0 - MARGIN && plan.standing != Standing::Proven {
            return Judgement::Disable { why: format!("daily use shows no gain: {figures}") };
        }
    }
    let with: Vec<&Daily> = history.iter().filter(|d| d.prefetched).collect();
    if let Some(last) = with.last()
        && last.stale_files > 0
        && last.stale_files * STALE >= last.files
    {
        let why = format!("{} of its {} files were replaced or removed", last.stale_files, last.files);
        return Judgement::Refresh { why };
    }
    if with.len() >= 2 * RECENT {
        let (before, recent) = with.split_at(with.len() - RECENT);
        let of = |list: &[&Daily]| median(&mut list.iter().map(|d| d.ns as f64).collect::<Vec<_>>());
        let (was, is) = (of(before), of(recent));
        if is > LONGER * was {
            let why = format!("the last {RECENT} starts took {:.2} times as long as those before", is / was);
            return Judgement::Refresh { why };
        }
    }
    let proven = e.is_some_and(|e| e.high < 1.0 - MARGIN);
    let why = match e {
        Some(e) if proven => format!("daily use shows a gain: {}", figures(&e)),
        Some(e) => format!("not decided yet: {}", figures(&e)),
        None => "no control starts yet".to_owned(),
    };
    Judgement::Keep { proven, why }
}

/// Each control with the nearest start with plan that no other control has.
fn pairs(history: &[Daily]) -> Vec<(f64, f64)> {
    let mut taken = vec![false; history.len()];
    let mut out = Vec::new();
    for (i, control) in history.iter().enumerate().filter(|(_, d)| !d.prefetched) {
        let free = |j: &usize| history[*j].prefetched && !taken[*j];
        if let Some(j) = (0..history.len()).filter(free).min_by_key(|j| (j.abs_diff(i), *j)) {
            taken[j] = true;
            out.push((history[j].ns as f64, control.ns as f64));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::merge;
    use crate::sample::{Noise, key, start};

    fn plan() -> Plan {
        merge(None, &key(), &start(1, &[(0, 0, 1, 1)]), 1)
    }

    fn history(n: u32, ratio: f64, spread: f64) -> Vec<Daily> {
        let mut noise = Noise::new(9);
        (0..n)
            .map(|i| {
                let prefetched = i % 5 != 4;
                let factor = if prefetched { ratio } else { 1.0 };
                let ns = (1e9 * factor * noise.time(spread)) as u64;
                Daily { prefetched, ns, files: 50, stale_files: 0 }
            })
            .collect()
    }

    #[test]
    fn a_gain_is_proven_and_harm_switched_off() {
        let good = judge(&plan(), &history(60, 0.6, 0.05));
        assert!(matches!(good, Judgement::Keep { proven: true, .. }), "{good:?}");
        let Judgement::Disable { why } = judge(&plan(), &history(60, 1.3, 0.05)) else { panic!("kept") };
        assert!(why.contains("slower: 1."), "{why}");
        let nothing = judge(&plan(), &history(120, 1.0, 0.05));
        assert!(matches!(nothing, Judgement::Disable { .. }), "{nothing:?}");
        let few = judge(&plan(), &history(20, 1.0, 0.05));
        assert!(matches!(few, Judgement::Keep { proven: false, .. }), "{few:?}");
        assert_eq!(
            judge(&plan(), &[]),
            Judgement::Keep { proven: false, why: "no control starts yet".into() }
        );
    }

    #[test]
    fn stale_files_and_slower_starts_ask_for_learning() {
        let mut h = history(30, 0.6, 0.05);
        h.last_mut().expect("some").prefetched = true;
        h.last_mut().expect("some").stale_files = 5;
        assert!(matches!(judge(&plan(), &h), Judgement::Refresh { .. }));
        let mut h = history(30, 0.6, 0.02);
        for d in h.iter_mut().rev().take(9) {
            d.ns *= 2;
        }
        let Judgement::Refresh { why } = judge(&plan(), &h) else { panic!("no refresh") };
        assert!(why.contains("times as long as those before"), "{why}");
    }
}
