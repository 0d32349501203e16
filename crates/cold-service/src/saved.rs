//! How much time served starts saved, by control starts.
//!
//! A program's served starts are compared with its controls as independent series (`cold_stats::compare::independent`): ratio
//! r of their times to the mark. Served starts that took T in all would have taken T/r, so T·(1/r − 1) was
//! saved; the ends of the interval of r give those of the interval.

use cold_model::Nanos;
use serde::{Deserialize, Serialize};

/// One cold start that came to its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// It went without its plan, to compare.
    pub control: bool,
    /// From the exec to the mark, nanoseconds.
    pub wall_ns: u64,
}

/// All served starts of a program that came to their mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// How many there were.
    pub starts: u64,
    /// What they took together.
    pub took: Nanos,
}

/// Time saved, in nanoseconds; below 0: lost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// Best estimate of what was saved, nanoseconds; negative: lost.
    pub ns: f64,
    /// Lower end of the 95% interval; unknown before there are enough controls.
    pub low_ns: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high_ns: Option<f64>,
    /// Served starts that came to their mark, all of them.
    pub served: u64,
    /// Controls that they were compared with.
    pub controls: usize,
}

/// What `all` served starts of one program saved, by the ratio of the `latest` ones to the controls among them; `None`
/// before there is a control to compare with.
pub fn saved(latest: &[Start], all: Served) -> Option<Saved> {
    let times = |control| -> Vec<f64> {
        latest.iter().filter(|s| s.control == control && s.wall_ns > 0).map(|s| s.wall_ns as f64).collect()
    };
    let (served, controls) = (times(false), times(true));
    let gain = cold_stats::compare::independent(&served, &controls)?;
    let of = |ratio: f64| all.took.0 as f64 * (1.0 / ratio - 1.0);
    let full = gain.interval.is_full();
    Some(Saved {
        ns: of(gain.ratio),
        // The longer the served starts take, the less they save.
        low_ns: full.then(|| of(gain.interval.high)).filter(|ns| ns.is_finite()),
        high_ns: full.then(|| of(gain.interval.low)).filter(|ns| ns.is_finite()),
        served: all.starts,
        controls: controls.len(),
    })
}

/// What all programs saved together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Total {
    /// Sum of the estimates, nanoseconds.
    pub ns: f64,
    /// Sum of the lower ends, of programs that have an interval: at least a 95% interval, as not all ends are reached
    /// at once.
    pub low_ns: Option<f64>,
    /// Sum of the upper ends.
    pub high_ns: Option<f64>,
    /// Programs that have an interval. The ends are of these alone, and unknown without any.
    pub programs: usize,
    /// Programs with an estimate only: too few controls.
    pub undecided: usize,
}

/// The sum; `None` without any program that has a control.
pub fn total(each: &[Saved]) -> Option<Total> {
    let known: Vec<(f64, f64, f64)> =
        each.iter().filter_map(|s| Some((s.ns, s.low_ns?, s.high_ns?))).collect();
    (!each.is_empty()).then(|| Total {
        ns: if known.is_empty() { each.iter().map(|s| s.ns).sum() } else { known.iter().map(|k| k.0).sum() },
        low_ns: (!known.is_empty()).then(|| known.iter().map(|k| k.1).sum()),
        high_ns: (!known.is_empty()).then(|| known.iter().map(|k| k.2).sum()),
        programs: known.len(),
        undecided: each.len() - known.len(),
    })
}

/// Time that programs lost by their plans, all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Harm {
    /// Programs that have an interval.
    pub programs: usize,
    /// The lower end of its 95% interval.
    pub least: Nanos,
    /// The upper end.
    pub most: Nanos,
}

/// What those that are followed have lost together, by the whole of the interval: then no plan should be followed at
/// all. `None` where that is not proved, and of a single program, which is judged by its own test.
pub fn harm(each: &[Saved]) -> Option<Harm> {
    let total = total(each).filter(|total| total.programs > 1)?;
    let (least, most) = total.high_ns.zip(total.low_ns).filter(|(least, _)| *least < 0.0)?;
    let lost = |ns: f64| Nanos(-ns as u64);
    Some(Harm { programs: total.programs, least: lost(least), most: lost(most) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(served: u64, control: u64, n: u64) -> Vec<Start> {
        let one = |control: bool, ms: u64, i: u64| Start { control, wall_ns: ms * 1_000_000 + i * 100_000 };
        (0..n).flat_map(|i| [one(false, served, i), one(true, control, i)]).collect()
    }

    fn saved(starts: &[Start]) -> Option<Saved> {
        let served: Vec<u64> = starts.iter().filter(|s| !s.control).map(|s| s.wall_ns).collect();
        super::saved(starts, Served { starts: served.len() as u64, took: Nanos(served.iter().sum()) })
    }

    #[test]
    fn starts_that_are_compared_no_more_have_saved_all_the_same() {
        let latest = starts(100, 200, 10);
        let s =
            super::saved(&latest, Served { starts: 5000, took: Nanos(500_000_000_000) }).expect("controls");
        assert_eq!((s.served, s.controls), (5000, 10));
        assert!((s.ns / 500e9 - 1.0).abs() < 0.02, "5000 starts of 100 ms that would have taken 200: {s:?}");
    }

    #[test]
    fn starts_that_take_half_the_time_save_as_much_as_they_take() {
        let s = saved(&starts(100, 200, 10)).expect("controls");
        assert!((s.ns - 1e9).abs() < 2e7, "ten starts of 100 ms: {s:?}");
        assert!(s.low_ns.expect("known") <= s.ns && s.ns <= s.high_ns.expect("known"), "{s:?}");
        let lost = saved(&starts(200, 100, 10)).expect("controls");
        assert!(lost.high_ns.expect("known") < 0.0, "{lost:?}");
    }

    #[test]
    fn without_enough_controls_the_interval_is_unknown_and_without_any_all_of_it() {
        let few = saved(&starts(100, 200, 2)).expect("controls");
        assert_eq!((few.low_ns, few.high_ns, few.controls), (None, None, 2));
        let none: Vec<Start> = starts(100, 200, 5).into_iter().filter(|s| !s.control).collect();
        assert_eq!(saved(&none), None);
        assert_eq!(total(&[]), None);
        let t = total(&[few]).expect("an estimate");
        assert_eq!((t.low_ns, t.programs, t.undecided), (None, 0, 1));
    }

    #[test]
    fn the_total_is_of_those_that_are_decided() {
        let (good, few) = (saved(&starts(100, 200, 10)).expect("x"), saved(&starts(1, 9, 2)).expect("y"));
        let t = total(&[good, few, good]).expect("some");
        assert_eq!((t.programs, t.undecided), (2, 1));
        assert!((t.ns - 2.0 * good.ns).abs() < 1.0);
        assert_eq!(t.low_ns, good.low_ns.map(|ns| 2.0 * ns));
    }

    #[test]
    fn several_that_lose_together_do_harm() {
        let of = |served, control| saved(&starts(served, control, 12)).expect("controls");
        let (loses, gains, same) = (of(120, 100), of(100, 300), of(100, 100));
        let found = harm(&[loses, loses]).expect("harm");
        assert_eq!(found.programs, 2);
        assert!(found.least < found.most && found.least > Nanos(0), "{found:?}");
        assert_eq!(harm(&[loses, loses, gains]), None, "one that gains more makes up for them");
        assert_eq!(harm(&[loses]), None, "one alone is switched off by itself");
        assert_eq!(harm(&[same, same]), None, "nothing that could be chance");
    }
}
