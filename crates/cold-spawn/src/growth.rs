//! How the cost of one start grows with its index: constant, logarithmic, linear, quadratic, or a step.
//!
//! Least squares of five models with an intercept on the medians of blocks, so that a large constant (the
//! start itself) cannot hide or fake a slope; the Bayesian information criterion with a margin; a rank test
//! as a second, robust voice; and a threshold below which growth is too small to matter. Google Benchmark's
//! fits have neither intercept nor penalty and call a large constant with a small slope constant, or noise
//! linear (its `complexity.cc`).
//!
//! Linear here means linear *per start*: the total of n starts is then O(n²).

mod fits;

pub use fits::Fit;

use cold_stats::{median, quantile, trend};
use serde::Serialize;

/// Starts whose median makes one point of the fit.
pub const BLOCK: usize = 10;
/// Points of a fit, at most; blocks of longer series are larger. The rank test and the slope look at all pairs.
const MOST_POINTS: usize = 500;
/// Points needed: with fewer the rank test cannot reach [`TREND_P`].
pub const LEAST_POINTS: usize = 10;
/// A model with more parameters must have a BIC lower by so much ("very strong", Kass and Raftery 1995).
pub const MARGIN: f64 = 10.0;
/// Two-sided p-value that the rank test must reach before anything is called growing.
pub const TREND_P: f64 = 0.001;
/// The same for a step of an exact count: 20 points of which 4 lie before it reach 0.003.
pub const TREND_P_OF_STEPS: f64 = 0.01;
/// Growth over the observed starts below this share of the cost is called constant: the residue of drift
/// that the control program leaves is about 1% on a virtual machine.
pub const LEAST_SHARE: f64 = 0.03;
/// Where the control program itself drifted, growth below this share of that drift is called constant: load
/// slows two programs alike, but not to the percent.
pub const LEAST_OF_DRIFT: f64 = 0.5;
/// Half-width in starts of the window in which the control program's cost is smoothed.
const CONTROL_REACH: usize = 25;

/// How a cost depends on the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Does not grow.
    Constant,
    /// a + b·ln(i + 1).
    Logarithmic,
    /// a + b·i: the total is quadratic.
    Linear,
    /// a + b·i + c·i²: the total is cubic.
    Quadratic,
    /// One level, then another.
    Step,
}

/// What the values are, which decides how exact they can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Times, and counts that vary by chance (page faults with the memory's layout).
    Varying,
    /// Counts that vary by what a program does: whole numbers.
    Exact,
}

/// How a series grows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Growth {
    /// The model that describes it best, after all tests; constant when nothing is sure.
    pub class: Class,
    /// Fit of the model of `class`.
    pub fit: Fit,
    /// Every model's fit, simplest first.
    pub fits: Vec<Fit>,
    /// BIC of the constant minus that of the verdict's model; 0 for the constant.
    pub margin: f64,
    /// Theil–Sen slope per start over the block medians or points.
    pub slope: f64,
    /// Two-sided p-value of the Mann–Kendall test on the same.
    pub trend_p: f64,
    /// Starts that were judged.
    pub starts: usize,
    /// Exponent p with which the *total* of all starts grows at the last of them: total ~ nᵖ.
    pub exponent: f64,
}

impl Growth {
    /// Predicted cost of the start with this index (from 0).
    pub fn at(&self, index: f64) -> f64 {
        self.fit.at(index)
    }
    /// Predicted total cost of the first `n` starts.
    pub fn total(&self, n: u64) -> f64 {
        self.fit.total(n as f64)
    }
    /// The rank test alone: later ones are larger.
    pub fn rises(&self) -> bool {
        self.slope > 0.0 && self.trend_p < TREND_P
    }
    /// The cost of a start depends on how many there were.
    pub fn grows(&self) -> bool {
        self.class != Class::Constant
    }
}

/// Takes drift out of `values`: each is divided by the smoothed cost of the control program at its time,
/// relative to the control's median. `control[i]` ran right before or after `values[i]`.
pub fn without_drift(values: &[f64], control: &[f64]) -> Vec<f64> {
    let n = values.len().min(control.len());
    let control = &control[..n];
    let Some(level) = median(control).filter(|m| *m > 0.0) else {
        return values.to_vec();
    };
    smoothed(control).into_iter().zip(values).map(|(here, v)| v * level / here.unwrap_or(level)).collect()
}

/// The control's cost around each of its starts; none where it took no time.
fn smoothed(control: &[f64]) -> Vec<Option<f64>> {
    let n = control.len();
    let window = |i: usize| &control[i.saturating_sub(CONTROL_REACH)..(i + CONTROL_REACH + 1).min(n)];
    (0..n).map(|i| median(window(i)).filter(|m| *m > 0.0)).collect()
}

/// By how much the control program's smoothed cost varies: from its 5th to its 95th percentile, as a share
/// of its median.
pub fn drift(control: &[f64]) -> f64 {
    let smooth: Vec<f64> = smoothed(control).into_iter().flatten().collect();
    let at = |q| quantile(&smooth, q).unwrap_or(0.0);
    if at(0.5) > 0.0 { (at(0.95) - at(0.05)) / at(0.5) } else { 0.0 }
}

/// Judges measured times in start order, drift taken out by the control's. None when there are too few.
pub fn judge_times(values: &[f64], control: &[f64]) -> Option<Growth> {
    let least = LEAST_SHARE.max(LEAST_OF_DRIFT * drift(control));
    judge_series(&without_drift(values, control), ValueKind::Varying, least)
}

/// Judges a series in start order. None when it is too short: [`LEAST_POINTS`] blocks of [`BLOCK`].
pub fn judge(values: &[f64], kind: ValueKind) -> Option<Growth> {
    judge_series(values, kind, LEAST_SHARE)
}

fn judge_series(values: &[f64], kind: ValueKind, least: f64) -> Option<Growth> {
    let size = BLOCK.max(values.len().div_ceil(MOST_POINTS));
    let points: Vec<(f64, f64)> = values
        .chunks_exact(size)
        .enumerate()
        .filter_map(|(b, block)| Some(((b * size) as f64 + (size - 1) as f64 / 2.0, median(block)?)))
        .collect();
    judged(&points, values.len(), kind, least)
}

/// Judges points (index of the start, value) that need not be evenly spaced: counts of the starts that were
/// observed. `starts` is the number of all starts.
pub fn judge_points(points: &[(f64, f64)], starts: usize, kind: ValueKind) -> Option<Growth> {
    judged(points, starts, kind, LEAST_SHARE)
}

fn judged(points: &[(f64, f64)], starts: usize, kind: ValueKind, least: f64) -> Option<Growth> {
    if points.len() < LEAST_POINTS || points.iter().any(|(x, y)| !x.is_finite() || !y.is_finite()) {
        return None;
    }
    let fits = fits::all(points, kind);
    let ys: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
    let rank = trend::trend(&ys)?;
    let slope = theil_sen(points)?;
    let voice = Voice { p: rank.p, slope, least };
    let chosen = choose(&fits, points, &voice, kind);
    let fit = fits.iter().find(|f| f.class == chosen)?.clone();
    let last = starts.max(2) as f64;
    Some(Growth {
        class: chosen,
        margin: fits[0].bic - fit.bic,
        exponent: ratio(last * fit.at(last - 1.0), fit.total(last)),
        fit,
        fits,
        slope,
        trend_p: rank.p,
        starts,
    })
}

/// Median of the slopes between all pairs of points. Points may lie in clusters (observed groups), so each
/// pair is divided by its own distance; pairs of one cluster are few among all.
fn theil_sen(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes = Vec::with_capacity(points.len() * (points.len() - 1) / 2);
    for (i, (x, y)) in points.iter().enumerate() {
        slopes.extend(points[i + 1..].iter().filter(|(u, _)| u > x).map(|(u, v)| (v - y) / (u - x)));
    }
    median(&slopes)
}

/// What is known beside the fits.
struct Voice {
    p: f64,
    slope: f64,
    /// Smallest growth over the series that counts, as a share of its beginning.
    least: f64,
}

/// The simplest model that no richer one beats by the margin.
fn choose(fits: &[Fit], points: &[(f64, f64)], voice: &Voice, kind: ValueKind) -> Class {
    let constant = &fits[0];
    let (first, last) = (points[0].0, points[points.len() - 1].0);
    let mut best = constant;
    // Fits come with few parameters first; equal numbers compete by BIC alone.
    for f in &fits[1..] {
        let gain = f.at(last) - f.at(first);
        let least = match kind {
            ValueKind::Varying => voice.least * f.at(first).abs(),
            ValueKind::Exact => 1.0,
        };
        let needed = if f.parameters > best.parameters { MARGIN } else { 0.0 };
        if f.grows_throughout(first, last) && gain >= least && f.bic + needed < best.bic {
            best = f;
        }
    }
    let (needed, rises) = match (kind, best.class) {
        // A step leaves most pairs of whole numbers equal.
        (ValueKind::Exact, Class::Step) => (TREND_P_OF_STEPS, voice.slope >= 0.0),
        (ValueKind::Exact, _) => (TREND_P, voice.slope >= 0.0),
        (ValueKind::Varying, _) => (TREND_P, voice.slope > 0.0),
    };
    let trusted = constant.bic - best.bic >= MARGIN && voice.p < needed && rises;
    if trusted { best.class } else { Class::Constant }
}

fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 1.0 }
}

#[cfg(test)]
mod tests;
