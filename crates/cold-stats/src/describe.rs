//! One series in figures: quantiles, mean, deviations, and all of them with an interval.

use serde::Serialize;

use crate::interval::{self, Interval};

/// A sorted copy; not-a-number sorts last and never occurs in measured values.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut v = values.to_vec();
    v.sort_unstable_by(f64::total_cmp);
    v
}

/// Quantile `q` (0 to 1) of `n` values of which `value` gives the i-th smallest, by linear interpolation
/// (Hyndman & Fan 1996, type 7: the default of R, `NumPy` and spreadsheets). None when there are none.
pub fn quantile_by(n: u64, q: f64, value: impl Fn(u64) -> f64) -> Option<f64> {
    let last = n.checked_sub(1)?;
    let h = q.clamp(0.0, 1.0) * last as f64;
    let low = (h.floor() as u64).min(last);
    let (below, above) = (value(low), value((low + 1).min(last)));
    Some(below + (h - low as f64) * (above - below))
}

/// [`quantile_by`] of sorted values.
pub fn quantile_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    quantile_by(sorted.len() as u64, q, |i| sorted[i as usize])
}

/// Quantile of unsorted values, type 7.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    quantile_sorted(&sorted(values), q)
}

/// Median: the middle value, or the mean of the two middle ones. None when empty.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The same of values that may be reordered: found by selection, in linear time.
pub fn median_of(values: &mut [f64]) -> Option<f64> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let lower = if n % 2 == 1 { upper } else { below.iter().copied().max_by(f64::total_cmp)? };
    // As in `quantile_by`, so that a median is the quantile of one half to the last bit.
    Some(lower + 0.5 * (upper - lower))
}

/// The median of whole numbers (nanoseconds, counts), rounded down. None when empty.
pub fn median_u64(values: impl IntoIterator<Item = u64>) -> Option<u64> {
    median_of(&mut values.into_iter().map(|v| v as f64).collect::<Vec<_>>()).map(|m| m as u64)
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
    /// Median: the mean of the two middle values where their number is even.
    pub median: f64,
    /// Interval of the median; none for a single value.
    pub interval: Option<Interval>,
    /// Arithmetic mean of all values; outliers are not left out.
    pub mean: f64,
    /// Sample standard deviation; none for a single value.
    pub sd: Option<f64>,
    /// Median absolute deviation.
    pub mad: f64,
    /// Smallest of all values, outliers included.
    pub min: f64,
    /// Largest of all values, outliers included.
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
