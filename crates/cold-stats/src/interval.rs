//! Intervals for one series: of the median, and of any statistic by bootstrap.
//!
//! The percentile bootstrap of the median is too narrow for few values (below about 8 it can only
//! return the values themselves). So the interval here is the wider, at each end, of the percentile
//! bootstrap (10,000 draws) and the exact order-statistic interval from the binomial distribution,
//! which holds for every continuous distribution. Below 6 values even minimum to maximum does not
//! reach 95%; then that range is returned with the level it does reach (5 values: 93.75%).

use cold_model::figures::percent;
use serde::Serialize;

use crate::describe::median_of;
use crate::{Pcg, quantile_sorted, sorted};

/// Draws of every bootstrap.
pub const DRAWS: usize = 10_000;
/// The level every interval aims at.
pub const LEVEL: f64 = 0.95;

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end, in the unit of the statistic that it is of.
    pub low: f64,
    /// Upper end, in the unit of the statistic that it is of.
    pub high: f64,
    /// Its level: 0.95, or less when there are too few values for it.
    pub level: f64,
}

impl Interval {
    /// Whether it reaches 95%.
    pub fn is_full(&self) -> bool {
        self.level >= LEVEL
    }

    /// Its level as it is printed: `95%`, or the lower one that it reaches.
    pub fn level_shown(&self) -> String {
        if self.is_full() { "95%".to_owned() } else { percent(self.level * 100.0) }
    }
}

/// Number of values to leave out at each end so that the order-statistic interval of the median keeps
/// 95%; none when even leaving out none does not reach it.
pub fn order_statistic_cut(n: usize) -> Option<usize> {
    // P(at most k of n values lie below the median), in logarithms so that n = 2000 does not underflow.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = 0.0;
    let mut cut = None;
    for k in 0..n {
        tail += f64::exp(log_term);
        if 2.0 * tail > 1.0 - LEVEL {
            break;
        }
        cut = Some(k);
        log_term += ((n - k) as f64 / (k + 1) as f64).ln();
    }
    cut
}

/// Interval of the median; none below two values. See the module for the method.
pub fn of_median(values: &[f64], seed: u64) -> Option<Interval> {
    let s = sorted(values);
    let (first, last) = (*s.first()?, *s.last()?);
    if s.len() < 2 {
        return None;
    }
    let Some(cut) = order_statistic_cut(s.len()) else {
        return Some(Interval { low: first, high: last, level: 1.0 - 0.5_f64.powf((s.len() - 1) as f64) });
    };
    if first.total_cmp(&last).is_eq() {
        // Counts are often all equal; every draw would be too.
        return Some(Interval { low: first, high: last, level: LEVEL });
    }
    let b = bootstrap(values, seed, |draw| median_of(draw).unwrap_or(f64::NAN))?;
    Some(Interval { low: b.low.min(s[cut]), high: b.high.max(s[s.len() - 1 - cut]), level: LEVEL })
}

/// Percentile bootstrap interval of a statistic of one series. None below two values.
pub fn bootstrap(
    values: &[f64],
    seed: u64,
    mut statistic: impl FnMut(&mut [f64]) -> f64,
) -> Option<Interval> {
    let n = u32::try_from(values.len()).ok().filter(|n| *n > 1)?;
    let mut rng = Pcg::new(seed, 1);
    let mut draw = vec![0.0; values.len()];
    let mut results: Vec<f64> = (0..DRAWS)
        .map(|_| {
            draw.fill_with(|| values[rng.below(n) as usize]);
            statistic(&mut draw)
        })
        .collect();
    results.sort_unstable_by(f64::total_cmp);
    let low = quantile_sorted(&results, (1.0 - LEVEL) / 2.0)?;
    let high = quantile_sorted(&results, f64::midpoint(1.0, LEVEL))?;
    Some(Interval { low, high, level: LEVEL })
}

/// Percentile bootstrap interval of the ratio of a statistic of two independent series. None below two
/// values in either.
pub fn bootstrap_ratio(
    a: &[f64],
    b: &[f64],
    seed: u64,
    mut statistic: impl FnMut(&mut [f64]) -> f64,
) -> Option<Interval> {
    let m = u32::try_from(b.len()).ok().filter(|n| *n > 1)?;
    let mut rng = Pcg::new(seed, 2);
    let mut other = vec![0.0; b.len()];
    bootstrap(a, seed, |draw| {
        other.fill_with(|| b[rng.below(m) as usize]);
        statistic(draw) / statistic(&mut other)
    })
}
