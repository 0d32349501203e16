//! Descriptive statistics, intervals, comparisons, trends and modes of short series (1 to 200 values).
//!
//! Pure: the same values and seed give the same bits on every machine. Values are plain `f64` of one
//! unit (nanoseconds in this crate); every function says what it returns for too few of them.

pub mod changepoint;
pub mod compare;
pub mod interval;
pub mod modes;
pub mod rng;
pub mod trend;

use serde::Serialize;

pub use compare::{Comparison, Undecided, Verdict};
pub use interval::Interval;
pub use rng::Pcg;

/// A sorted copy; not-a-number sorts last and never occurs in measured values.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut v = values.to_vec();
    v.sort_unstable_by(f64::total_cmp);
    v
}

/// Quantile `q` (0 to 1) of sorted values by linear interpolation (Hyndman & Fan 1996, type 7: the
/// default of R, `NumPy` and spreadsheets). None when empty.
pub fn quantile_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let h = q.clamp(0.0, 1.0) * last as f64;
    let low = (h.floor() as usize).min(last);
    let high = (low + 1).min(last);
    Some(sorted[low] + (h - low as f64) * (sorted[high] - sorted[low]))
}

/// Quantile of unsorted values, type 7.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    quantile_sorted(&sorted(values), q)
}

/// Median: the middle value, or the mean of the two middle ones. None when empty.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Arithmetic mean. None when empty.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (divides by n − 1). None below two values.
pub fn sd(values: &[f64]) -> Option<f64> {
    let m = mean(values)?;
    let n = values.len();
    (n > 1).then(|| (values.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (n - 1) as f64).sqrt())
}

/// Median absolute deviation from the median, not scaled to a normal distribution. None when empty.
pub fn mad(values: &[f64]) -> Option<f64> {
    let m = median(values)?;
    median(&values.iter().map(|x| (x - m).abs()).collect::<Vec<_>>())
}

/// The usual figures of one series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Described {
    /// Number of values.
    pub n: usize,
    /// Median.
    pub median: f64,
    /// Interval of the median; none for a single value.
    pub interval: Option<Interval>,
    /// Mean.
    pub mean: f64,
    /// Sample standard deviation; none for a single value.
    pub sd: Option<f64>,
    /// Median absolute deviation.
    pub mad: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// 95% quantile, type 7.
    pub p95: f64,
}

impl Described {
    /// Half the width of the interval relative to the median (0.02 for ± 2%): what a benchmark that runs
    /// until it is precise enough waits for. None while the interval does not reach 95%.
    pub fn precision(&self) -> Option<f64> {
        let i = self.interval.filter(Interval::is_full)?;
        (self.median > 0.0).then(|| (i.high - i.low) / 2.0 / self.median)
    }
}

/// Describes values; none when there are none.
pub fn describe(values: &[f64], seed: u64) -> Option<Described> {
    let s = sorted(values);
    Some(Described {
        n: s.len(),
        median: quantile_sorted(&s, 0.5)?,
        interval: interval::of_median(values, seed),
        mean: mean(values)?,
        sd: sd(values),
        mad: mad(values)?,
        min: *s.first()?,
        max: *s.last()?,
        p95: quantile_sorted(&s, 0.95)?,
    })
}

/// Distribution function of the standard normal (Abramowitz & Stegun 7.1.26, error below 1.5e-7).
pub(crate) fn normal_cdf(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let upper = 0.5 * poly * (-x * x).exp();
    if z > 0.0 { 1.0 - upper } else { upper }
}

#[cfg(test)]
mod tests;
