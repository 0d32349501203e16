//! Is A slower than B? The ratio of two series with an interval, and a verdict of three kinds.
//!
//! Ratios are taken on the logarithmic scale. Series measured in the same rounds are paired: per round
//! the logarithm of a/b, over the rounds the Hodges–Lehmann estimate (the median of all pairwise means)
//! with the interval that inverts Wilcoxon's signed-rank test. When both series are the same command,
//! a and b of a round are exchangeable, so the distribution of the log ratio is symmetric and the
//! interval excludes 1 in at most 5% of comparisons for *every* noise: skewed, bimodal, drifting from
//! round to round. Neither alternative does both: in simulations of 10 to 20 rounds the percentile
//! bootstrap of the median ratio called 7 to 9% of identical commands different, and the exact sign
//! test found a 5% delay at sd 2% in only 94% of 10-round comparisons (this one: at least 95%, a test).
//! Independent series (a baseline from a file) use the two-sample Hodges–Lehmann shift with the
//! interval that inverts the Mann–Whitney test, exact when both have the same distribution.

use serde::Serialize;

use crate::interval::{Interval, LEVEL};
use crate::{quantile_sorted, sorted};

/// How two series were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// Round by round: the ratio of both runs of a round comes first.
    Paired,
    /// As independent series.
    Independent,
    /// In pairs that were looked at one by one ([`mod@crate::sequential`]).
    Sequential,
}

/// The ratio of two series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Hodges–Lehmann estimate of a/b: 1.05 means that a takes 5% longer.
    pub ratio: f64,
    /// Its interval; of a level below 95% when there are too few runs.
    pub interval: Interval,
    /// Paired rounds, or the smaller number of runs when independent.
    pub n: usize,
    /// How it was made.
    pub design: Design,
}

/// What a comparison says against a margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval lies below 1 − margin.
    Faster,
    /// The whole interval lies above 1 + margin.
    Slower,
    /// The whole interval lies within 1 ± margin.
    Same,
    /// It is not decided.
    Inconclusive {
        /// What keeps the interval from deciding.
        why: Undecided,
        /// Further rounds after which the interval would, at the present ratio and spread, no longer
        /// cross; none when more than 1,000 or when the ratio sits on the bound. A plan for the next
        /// benchmark, not a reason to go on with this one: who adds rounds until the verdict changes is
        /// wrong far more often than 5%. Stop by precision instead ([`crate::Described::precision`]).
        runs_needed: Option<u32>,
    },
}

/// Why a comparison decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Undecided {
    /// There are too few runs for an interval of 95%.
    TooFewRuns,
    /// The interval crosses a bound of the margin.
    CrossesTheMargin,
}

/// Compares paired positive values; none below two pairs.
pub fn paired(pairs: &[(f64, f64)]) -> Option<Comparison> {
    let logs: Vec<f64> =
        pairs.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).map(|(a, b)| (a / b).ln()).collect();
    let n = logs.len();
    if n < 2 {
        return None;
    }
    let (cut, level) = cut_of(&signed_rank_counts(n));
    from_sorted(&walsh(&logs), cut, level, n, Design::Paired)
}

/// The means of all pairs of values, each with itself, too; sorted. Their median is the Hodges–Lehmann estimate.
pub(crate) fn walsh(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    let mut means = Vec::with_capacity(n * (n + 1) / 2);
    for (i, x) in values.iter().enumerate() {
        means.extend(values[i..].iter().map(|y| f64::midpoint(*x, *y)));
    }
    means.sort_unstable_by(f64::total_cmp);
    means
}

/// Compares independent positive values; none when either is empty or both have one value.
pub fn independent(a: &[f64], b: &[f64]) -> Option<Comparison> {
    let a: Vec<f64> = a.iter().copied().filter(|x| *x > 0.0).collect();
    let b: Vec<f64> = b.iter().copied().filter(|x| *x > 0.0).collect();
    if a.is_empty() || b.is_empty() || a.len() + b.len() < 3 {
        return None;
    }
    let shifts: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| (x / y).ln())).collect();
    let (cut, level) = cut_of(&mann_whitney_counts(a.len(), b.len()));
    from_sorted(&sorted(&shifts), cut, level, a.len().min(b.len()), Design::Independent)
}

fn from_sorted(s: &[f64], cut: usize, level: f64, n: usize, design: Design) -> Option<Comparison> {
    let ratio = quantile_sorted(s, 0.5)?.exp();
    let (low, high) = (s.get(cut)?.exp(), s.get(s.len() - 1 - cut)?.exp());
    Some(Comparison { ratio, interval: Interval { low, high, level }, n, design })
}

/// Probability of each value of the signed-rank statistic of `n` pairs without ties.
fn signed_rank_counts(n: usize) -> Vec<f64> {
    let mut p = vec![0.0; n * (n + 1) / 2 + 1];
    p[0] = 1.0;
    let mut top = 0;
    for rank in 1..=n {
        for w in (0..=top).rev() {
            p[w] *= 0.5;
            p[w + rank] += p[w];
        }
        top += rank;
    }
    p
}

/// Probability of each value of the Mann–Whitney statistic of samples of `m` and `n` without ties.
fn mann_whitney_counts(m: usize, n: usize) -> Vec<f64> {
    // counts[j][u]: probability of u for (i, j) values, by which sample holds the largest value.
    let mut counts = vec![vec![0.0; m * n + 1]; n + 1];
    for row in &mut counts {
        row[0] = 1.0;
    }
    for i in 1..=m {
        for j in 1..=n {
            let share = i as f64 / (i + j) as f64;
            let (before, rest) = counts.split_at_mut(j);
            let (row, less) = (&mut rest[0], &before[j - 1]);
            for u in (0..=i * j).rev() {
                let largest_in_first = if u >= j { row[u - j] } else { 0.0 };
                row[u] = share * largest_in_first + (1.0 - share) * less[u];
            }
        }
    }
    counts.swap_remove(n)
}

/// How many ordered values to leave out at each end for 95%, and the level: 0.95, or the level of
/// leaving out none when that is less. The statistic is symmetric, so both tails are equal.
fn cut_of(probabilities: &[f64]) -> (usize, f64) {
    let mut tail = 0.0;
    for (value, p) in probabilities.iter().enumerate() {
        tail += p;
        if 2.0 * tail > 1.0 - LEVEL {
            return if value == 0 { (0, (1.0 - 2.0 * tail).max(0.0)) } else { (value - 1, LEVEL) };
        }
    }
    (0, LEVEL)
}

impl Comparison {
    /// The verdict against a margin (0.02 for 2%). Without 95% it is always inconclusive.
    pub fn verdict(&self, margin: f64) -> Verdict {
        let (lower, upper) = (1.0 - margin, 1.0 + margin);
        let Interval { low, high, .. } = self.interval;
        if !self.interval.is_full() {
            let why = Undecided::TooFewRuns;
            return Verdict::Inconclusive { why, runs_needed: Some(self.runs_for_level()) };
        }
        if high < lower {
            Verdict::Faster
        } else if low > upper {
            Verdict::Slower
        } else if low >= lower && high <= upper {
            Verdict::Same
        } else {
            let nearest =
                if (self.ratio / lower).ln().abs() < (self.ratio / upper).ln().abs() { lower } else { upper };
            let why = Undecided::CrossesTheMargin;
            Verdict::Inconclusive { why, runs_needed: self.runs_to_leave(nearest) }
        }
    }

    /// Further rounds until the interval no longer holds `bound`, given that its width shrinks with the
    /// square root of their number.
    pub fn runs_to_leave(&self, bound: f64) -> Option<u32> {
        if !self.interval.is_full() {
            return Some(self.runs_for_level());
        }
        let distance = (self.ratio / bound).ln();
        let reach =
            if distance > 0.0 { self.ratio / self.interval.low } else { self.interval.high / self.ratio };
        more_runs(self.n, reach.ln(), distance.abs())
    }

    fn runs_for_level(&self) -> u32 {
        let least = match self.design {
            Design::Paired | Design::Sequential => 6,
            Design::Independent => 4,
        };
        u32::try_from(least.max(self.n + 1) - self.n).unwrap_or(1)
    }
}

/// Further values until an interval that reaches `reach` from its centre reaches no further than
/// `distance`; none when more than 1,000.
pub fn more_runs(n: usize, reach: f64, distance: f64) -> Option<u32> {
    let needed = n as f64 * (reach / distance).powi(2) - n as f64;
    (needed.is_finite() && needed <= 1000.0).then(|| needed.max(1.0).ceil() as u32)
}
