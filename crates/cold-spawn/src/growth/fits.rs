//! Least squares of the five models.

use serde::Serialize;

use super::{Class, ValueKind};

/// Points each level of a step must have.
const LEAST_SIDE: usize = 3;
/// A parabola may fall over so much of the series: noise moves its lowest point that far from the start.
const FALLING_SHARE: f64 = 0.25;

/// One fitted model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// The model that is fitted.
    pub class: Class,
    /// Constant: a. Logarithmic, linear: a, b. Quadratic: a, b, c. Step: level before, level after, index of
    /// the first start of the second level.
    pub coefficients: Vec<f64>,
    /// Free parameters, the step's place included.
    pub parameters: usize,
    /// Residual sum of squares.
    pub rss: f64,
    /// Bayesian information criterion: n·ln(RSS/n) + k·ln(n).
    pub bic: f64,
}

impl Fit {
    /// Value at an index.
    pub fn at(&self, x: f64) -> f64 {
        let c = |i: usize| self.coefficients.get(i).copied().unwrap_or(0.0);
        match self.class {
            Class::Constant => c(0),
            Class::Logarithmic => c(0) + c(1) * (x + 1.0).ln(),
            Class::Linear | Class::Quadratic => c(0) + x * (c(1) + x * c(2)),
            Class::Step => c(usize::from(x >= c(2))),
        }
    }

    /// Sum over the indices 0..n, as the integral of the model (exact for the sums to within one start).
    pub fn total(&self, n: f64) -> f64 {
        let c = |i: usize| self.coefficients.get(i).copied().unwrap_or(0.0);
        match self.class {
            Class::Constant => c(0) * n,
            Class::Logarithmic => c(0) * n + c(1) * ((n + 1.0) * (n + 1.0).ln() - n),
            Class::Linear | Class::Quadratic => n * (c(0) + n * (c(1) / 2.0 + n * c(2) / 3.0)),
            Class::Step => {
                let before = c(2).min(n);
                c(0) * before + c(1) * (n - before)
            }
        }
    }

    /// It rises between two indices: a parabola that turns in their midst is noise fitted, not growth.
    pub(super) fn grows_throughout(&self, first: f64, last: f64) -> bool {
        let c = |i: usize| self.coefficients.get(i).copied().unwrap_or(0.0);
        match self.class {
            Class::Constant => false,
            Class::Logarithmic | Class::Linear => c(1) > 0.0,
            Class::Quadratic => {
                c(2) > 0.0 && c(1) + 2.0 * c(2) * (first + FALLING_SHARE * (last - first)) >= 0.0
            }
            Class::Step => c(1) > c(0),
        }
    }
}

/// All models, those with fewer parameters first.
pub(super) fn all(points: &[(f64, f64)], kind: ValueKind) -> Vec<Fit> {
    let n = points.len() as f64;
    // Counts are whole numbers: their medians cannot be more exact than rounding (variance 1/12). Times are
    // not more exact than a millionth of their size.
    let floor = match kind {
        ValueKind::Exact => 1.0 / 12.0,
        ValueKind::Varying => (points.iter().map(|p| p.1.abs()).sum::<f64>() / n * 1e-6).powi(2).max(1e-300),
    };
    let finish = |class, coefficients: Vec<f64>, parameters: usize| {
        let mut fit = Fit { class, coefficients, parameters, rss: 0.0, bic: 0.0 };
        fit.rss = points.iter().map(|(x, y)| (y - fit.at(*x)).powi(2)).sum();
        fit.bic = n * (fit.rss / n).max(floor).ln() + parameters as f64 * n.ln();
        fit
    };
    let mut fits = vec![finish(Class::Constant, polynomial(points, 1, |x| x), 1)];
    fits.push(finish(Class::Logarithmic, polynomial(points, 2, |x| (x + 1.0).ln()), 2));
    fits.push(finish(Class::Linear, polynomial(points, 2, |x| x), 2));
    fits.push(finish(Class::Quadratic, polynomial(points, 3, |x| x), 3));
    if let Some(c) = step(points) {
        fits.push(finish(Class::Step, c, 3));
    }
    fits
}

/// Coefficients of the polynomial with `terms` terms in `g(x)`, by orthogonalisation (Gram–Schmidt), which
/// stays exact where the normal equations of i² lose half the digits.
fn polynomial(points: &[(f64, f64)], terms: usize, g: impl Fn(f64) -> f64) -> Vec<f64> {
    let scale = points.iter().map(|p| g(p.0).abs()).fold(0.0, f64::max).max(1.0);
    let n = points.len();
    // Each basis vector with its coefficients in powers of g/scale.
    let mut basis: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    let mut result = vec![0.0; terms];
    let mut rest: Vec<f64> = points.iter().map(|p| p.1).collect();
    for degree in 0..terms {
        let power = i32::try_from(degree).unwrap_or(0);
        let mut v: Vec<f64> = points.iter().map(|p| (g(p.0) / scale).powi(power)).collect();
        let mut powers = vec![0.0; terms];
        powers[degree] = 1.0;
        for (b, bp) in &basis {
            let dot: f64 = v.iter().zip(b).map(|(a, b)| a * b).sum();
            (0..n).for_each(|i| v[i] -= dot * b[i]);
            (0..terms).for_each(|i| powers[i] -= dot * bp[i]);
        }
        let norm = v.iter().map(|a| a * a).sum::<f64>().sqrt();
        if norm < 1e-12 {
            continue;
        }
        for a in v.iter_mut().chain(&mut powers) {
            *a /= norm;
        }
        let weight: f64 = rest.iter().zip(&v).map(|(a, b)| a * b).sum();
        (0..n).for_each(|i| rest[i] -= weight * v[i]);
        (0..terms).for_each(|i| result[i] += weight * powers[i]);
        basis.push((v, powers));
    }
    result.iter().zip(0..).map(|(c, i)| c / scale.powi(i)).collect()
}

/// The two levels and the place that leave the least squares.
fn step(points: &[(f64, f64)]) -> Option<Vec<f64>> {
    let n = points.len();
    let total: f64 = points.iter().map(|p| p.1).sum();
    let mut before = 0.0;
    let mut best: Option<(f64, Vec<f64>)> = None;
    for k in 1..n {
        before += points[k - 1].1;
        if k < LEAST_SIDE || n - k < LEAST_SIDE {
            continue;
        }
        let (a, b) = (before / k as f64, (total - before) / (n - k) as f64);
        // Between-group sum of squares: the larger, the smaller the rest.
        let between = a * a * k as f64 + b * b * (n - k) as f64;
        if best.as_ref().is_none_or(|(s, _)| between > *s) {
            best = Some((between, vec![a, b, f64::midpoint(points[k - 1].0, points[k].0)]));
        }
    }
    best.map(|(_, c)| c)
}
