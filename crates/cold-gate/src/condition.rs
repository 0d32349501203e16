//! Operator and limit of a condition, and the judgement of a figure by them.
//!
//! A condition fails the command when it is true. What varies is judged by its 95% interval: true when the whole
//! interval meets the condition, false when none of it does, undecided when it crosses the limit. What is the same
//! in every start is judged as it is.

use cold_stats::{Interval, compare};

use crate::answer::Outcome;
use crate::unit::Unit;

/// Below so many values no interval has a confidence of 95%.
const LEAST_RUNS: u32 = 6;

/// How a figure is compared with the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `>`
    More,
    /// `>=`
    AtLeast,
    /// `<`
    Less,
    /// `<=`
    AtMost,
}

impl Op {
    /// Whether the comparison is true.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::More => value > limit,
            Self::AtLeast => value >= limit,
            Self::Less => value < limit,
            Self::AtMost => value <= limit,
        }
    }
}

/// What a limit is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// To nothing: it is the figure itself.
    Nothing,
    /// How many times the reference's.
    Factor,
    /// By how much more than the reference's.
    Difference,
}

/// The right side of a gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// How the figure is compared with the limit.
    pub op: Op,
    /// Nanoseconds, bytes, a number of things or a ratio.
    pub limit: f64,
    /// What the limit is relative to.
    pub against: Against,
}

/// A value with its interval where it has one.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// The value, in the unit of the limit.
    pub value: f64,
    /// Of how many runs.
    pub n: usize,
    /// Its 95% interval; `None`: it does not vary.
    pub interval: Option<Interval>,
    /// Where it is only known to lie between two values: these.
    pub between: Option<(f64, f64)>,
    /// The value in words.
    pub words: String,
}

impl Observed {
    /// A figure that does not vary.
    pub fn exact(value: f64, n: usize, unit: Unit) -> Self {
        Self { value, n, interval: None, between: None, words: unit.show(value) }
    }

    /// A figure of which only bounds are known.
    #[must_use]
    pub fn within(mut self, low: f64, high: f64) -> Self {
        self.between = Some((low, high));
        self
    }

    /// How many times the reference's figure it is; an error in words, where that is nothing.
    pub fn ratio(own: f64, reference: f64, n: usize, unit: Unit) -> Result<Self, String> {
        let show = |v: f64| unit.show(v);
        if reference <= 0.0 {
            return Err(format!("the reference is {}, so there is no ratio to it", show(reference)));
        }
        let value = own / reference;
        let words = format!("{value:.3}x ({} against {})", show(own), show(reference));
        Ok(Self { value, n, interval: None, between: None, words })
    }

    /// By how much more than the reference's figure it is.
    pub fn difference(own: f64, reference: f64, n: usize, unit: Unit) -> Self {
        let value = own - reference;
        let (size, which) = (unit.show(value.abs()), if value < 0.0 { "less" } else { "more" });
        let words = format!("{} against {}, {size} {which}", unit.show(own), unit.show(reference));
        Self { value, n, interval: None, between: None, words }
    }
}

impl Condition {
    /// The limit needs a reference.
    pub fn is_relative(&self) -> bool {
        self.against != Against::Nothing
    }

    /// Whether the condition is true of what was observed.
    pub fn judge(&self, o: &Observed) -> Outcome {
        let holds = |v: f64| self.op.holds(v, self.limit);
        if let Some((low, high)) = o.between.filter(|(low, high)| low < high) {
            return match (holds(low), holds(high)) {
                (true, true) => Outcome::Fail,
                (false, false) => Outcome::Pass,
                _ => Outcome::Inconclusive {
                    reason: "the figure is known to lie on either side of the limit only".into(),
                    runs_needed: None,
                },
            };
        }
        let Some(i) = o.interval else {
            return if holds(o.value) { Outcome::Fail } else { Outcome::Pass };
        };
        if !i.is_full() {
            let reason = format!("{} runs are too few for a 95% interval", o.n);
            let runs_needed = Some(LEAST_RUNS.saturating_sub(o.n as u32).max(1));
            return Outcome::Inconclusive { reason, runs_needed };
        }
        match (holds(i.low), holds(i.high)) {
            (true, true) => Outcome::Fail,
            (false, false) => Outcome::Pass,
            _ => {
                let distance = self.limit - o.value;
                let reach = if distance > 0.0 { i.high - o.value } else { o.value - i.low };
                Outcome::Inconclusive {
                    reason: "the interval crosses the limit".into(),
                    runs_needed: compare::more_runs(o.n, reach, distance.abs()),
                }
            }
        }
    }
}
