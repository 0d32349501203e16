//! Does a series drift? Theil–Sen slope and Mann–Kendall test: neither is moved by single outliers.

use serde::Serialize;

use crate::{median, sorted};

/// Values needed before a trend is judged: below 8 the normal approximation of the test is poor.
pub const LEAST: usize = 8;

/// A trend over the run order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Trend {
    /// Theil–Sen slope: median change per run, in the unit of the values.
    pub slope: f64,
    /// Two-sided p-value of the Mann–Kendall test (normal approximation with corrections for ties and
    /// continuity).
    pub p: f64,
}

/// The trend of values in order; none below [`LEAST`] values.
pub fn trend(values: &[f64]) -> Option<Trend> {
    let n = values.len();
    if n < LEAST {
        return None;
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    let mut s = 0.0;
    for (i, x) in values.iter().enumerate() {
        for (j, y) in values.iter().enumerate().skip(i + 1) {
            slopes.push((y - x) / (j - i) as f64);
            s += f64::from(i8::from(y > x) - i8::from(y < x));
        }
    }
    let count = n as f64;
    let term = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let ordered = sorted(values);
    let ties: f64 =
        ordered.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|group| term(group.len() as f64)).sum();
    let variance = (term(count) - ties) / 18.0;
    let z = if variance > 0.0 { (s.abs() - 1.0).max(0.0) / variance.sqrt() } else { 0.0 };
    Some(Trend { slope: median(&slopes)?, p: (2.0 * (1.0 - normal_cdf(z))).min(1.0) })
}

/// Distribution function of the standard normal (Abramowitz & Stegun 7.1.26, error below 1.5e-7).
fn normal_cdf(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let upper = 0.5 * poly * (-x * x).exp();
    if z > 0.0 { 1.0 - upper } else { upper }
}
