//! Does a series have two modes? A 2-means split judged against simulated unimodal series.
//!
//! Values are taken as logarithms and split where the sum of squares within both groups is smallest.
//! The share of the variance that stays within the groups is small for two modes. How small it gets by
//! chance is simulated for series of the same length from three unimodal families: normal (lognormal
//! times), uniform (the least favourable unimodal one, as in Hartigan's dip test) and exponential (a
//! long tail of slow starts); the smallest of their 1% quantiles is the threshold. Tests that look for
//! outliers see nothing when half of the runs are slow: 5 × 0.10 s and 5 × 0.25 s have a MAD of 0.075 s.

use serde::Serialize;

use crate::{Pcg, median, quantile};

/// Values needed before modes are judged.
pub const LEAST: usize = 6;
/// Modes nearer than this factor are not worth a word.
const LEAST_RATIO: f64 = 1.05;
const SIMULATIONS: usize = 2000;
const ALPHA: f64 = 0.01;

/// A series split into a faster and a slower mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Modes {
    /// Median of the faster mode.
    pub fast: f64,
    /// Median of the slower mode.
    pub slow: f64,
    /// Indices of the faster values, in order.
    pub fast_runs: Vec<usize>,
    /// Indices of the slower values, in order.
    pub slow_runs: Vec<usize>,
}

/// The two modes of positive values; none when one mode explains them or there are too few.
pub fn modes(values: &[f64]) -> Option<Modes> {
    if values.len() < LEAST {
        return None;
    }
    with_threshold(values, threshold(values.len()))
}

/// The share of variance within both groups below which `n` values have two modes.
pub fn threshold(n: usize) -> f64 {
    let families: [fn(&mut Pcg) -> f64; 3] = [Pcg::normal, Pcg::unit, |rng| -(1.0 - rng.unit()).ln()];
    families
        .iter()
        .zip(10..)
        .filter_map(|(draw, stream)| {
            // The seed is fixed: the threshold is a property of n, not of the report.
            let mut rng = Pcg::new(n as u64, stream);
            let shares: Vec<f64> = (0..SIMULATIONS)
                .filter_map(|_| {
                    let mut x: Vec<f64> = (0..n).map(|_| draw(&mut rng)).collect();
                    x.sort_unstable_by(f64::total_cmp);
                    split(&x).map(|s| s.1)
                })
                .collect();
            quantile(&shares, ALPHA)
        })
        .fold(1.0, f64::min)
}

/// As [`modes`], with a threshold computed before.
pub fn with_threshold(values: &[f64], threshold: f64) -> Option<Modes> {
    if values.iter().any(|v| *v <= 0.0) {
        return None;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let logs: Vec<f64> = order.iter().map(|i| values[*i].ln()).collect();
    let (at, share) = split(&logs)?;
    let (mut fast_runs, mut slow_runs) = (order[..at].to_vec(), order[at..].to_vec());
    fast_runs.sort_unstable();
    slow_runs.sort_unstable();
    let middle = |runs: &[usize]| median(&runs.iter().map(|i| values[*i]).collect::<Vec<_>>());
    let (fast, slow) = (middle(&fast_runs)?, middle(&slow_runs)?);
    (share < threshold && slow / fast >= LEAST_RATIO).then_some(Modes { fast, slow, fast_runs, slow_runs })
}

/// Best split of sorted values (index of the first of the upper group) and the share of the sum of
/// squares that stays within. Each group has at least 2 values and an eighth of them; none when all
/// values are equal or too few.
fn split(x: &[f64]) -> Option<(usize, f64)> {
    let n = x.len();
    let least = (n / 8).max(2);
    if n < 2 * least {
        return None;
    }
    let mean = x.iter().sum::<f64>() / n as f64;
    let total: f64 = x.iter().map(|v| (v - mean).powi(2)).sum();
    if total <= f64::EPSILON * n as f64 * mean.abs().max(1.0) {
        return None;
    }
    let mut sum = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (i, v) in x.iter().enumerate().take(n - least) {
        sum += v - mean;
        let k = i + 1;
        if k >= least {
            // Between-group sum of squares of centred values.
            let between = sum * sum * n as f64 / (k * (n - k)) as f64;
            let share = ((total - between) / total).max(0.0);
            if best.is_none_or(|b| share < b.1) {
                best = Some((k, share));
            }
        }
    }
    best
}
