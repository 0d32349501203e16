//! Random numbers as the experiments of 1993 drew them, and as theory has them.

use cold_stats::Pcg;
use serde::{Deserialize, Serialize};

/// Uniform numbers that the Response Probe adds up for one normal number.
const TERMS: u32 = 14;

/// How a normal number is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Variate {
    /// As the Response Probe: the sum of 14 uniform numbers less 7, times the stated deviation. The sum's
    /// variance is 14/12, so the deviation is 1.080 times the stated one; nothing lies beyond 7 of them.
    Nt,
    /// The normal distribution itself (Box-Muller).
    #[default]
    True,
}

impl Variate {
    /// A number of mean 0, in units of the stated deviation.
    pub fn standard(self, rng: &mut Pcg) -> f64 {
        match self {
            Self::Nt => (0..TERMS).map(|_| rng.unit()).sum::<f64>() - f64::from(TERMS) / 2.0,
            Self::True => rng.normal(),
        }
    }
}

/// A quantity that varies around its mean. Its unit is the field's.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Normal {
    /// What it varies around, in the unit of the field that holds it.
    pub mean: f64,
    /// Stated standard deviation.
    pub sd: f64,
}

impl Normal {
    /// A quantity that does not vary: it is `mean` each time, and draws no random number.
    pub fn fixed(mean: f64) -> Self {
        Self { mean, sd: 0.0 }
    }

    /// Whether it can only be 0.
    pub fn is_zero(&self) -> bool {
        self.mean == 0.0 && self.sd == 0.0
    }

    /// A value; it may be negative.
    pub fn draw(&self, variate: Variate, rng: &mut Pcg) -> f64 {
        if self.sd == 0.0 { self.mean } else { self.mean + variate.standard(rng) * self.sd }
    }

    /// A value that cannot be negative: one below 0 is reflected there.
    pub fn draw_positive(&self, variate: Variate, rng: &mut Pcg) -> f64 {
        self.draw(variate, rng).abs()
    }
}

/// Reflects a value at both ends of `0..=max`, as the Response Probe folds: 205 in 100 gives 5.
pub fn fold(value: f64, max: f64) -> f64 {
    if !value.is_finite() || max <= 0.0 {
        return 0.0;
    }
    let mut v = value;
    // Twice suffices for what a normal number of a sane deviation can be; more would be a uniform one.
    for _ in 0..8 {
        if v > max {
            v = max - (v - max);
        }
        v = v.abs();
        if v <= max {
            return v;
        }
    }
    v % max
}

/// Where in the file the records lie that are used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Seek {
    /// One after another, from the start again after the end.
    Sequential,
    /// Around a place, in records; folded at the file's ends. Neighbours are drawn alike: unlike fio's
    /// `random_distribution=normal`, nothing is hashed.
    Normal(Normal),
    /// Each of `from..to` (records) alike.
    Uniform {
        /// First record, inclusive.
        from: u64,
        /// The one after the last.
        to: u64,
    },
    /// Record 0 most often, record n in proportion to 1/(n+1)^theta, 0 < theta < 1; in order, not hashed.
    Zipf {
        /// How much the first are preferred: nearly all alike at 0, most of all at 1.
        theta: f64,
    },
}

impl Seek {
    /// The rule of 1993: the middle of `records`, with a deviation of a third of the half, so that nearly
    /// all fall inside.
    pub fn middle(records: u64) -> Self {
        Self::span(records, records)
    }

    /// As [`Seek::middle`], over the middle `span` records of `records`.
    pub fn span(records: u64, span: u64) -> Self {
        Self::Normal(Normal { mean: records as f64 / 2.0, sd: span as f64 / 6.0 })
    }
}

/// Draws where action strings begin, one record after another.
#[derive(Debug, Clone)]
pub struct Seeker {
    seek: Seek,
    variate: Variate,
    records: u64,
    next: u64,
    zipf: Option<Zipf>,
}

impl Seeker {
    /// For a file of so many records (at least 1).
    pub fn new(seek: Seek, variate: Variate, records: u64) -> Self {
        let records = records.max(1);
        let zipf = match seek {
            Seek::Zipf { theta } => Some(Zipf::new(records, theta)),
            _ => None,
        };
        Self { seek, variate, records, next: 0, zipf }
    }

    /// The record where an action string begins.
    pub fn seek(&mut self, rng: &mut Pcg) -> u64 {
        let last = self.records - 1;
        match self.seek {
            Seek::Sequential => {}
            Seek::Normal(n) => self.next = fold(n.draw(self.variate, rng), last as f64).round() as u64,
            Seek::Uniform { from, to } => {
                let to = to.min(self.records).max(from + 1);
                self.next = from + (rng.unit() * (to - from) as f64) as u64;
            }
            Seek::Zipf { .. } => self.next = self.zipf.as_ref().map_or(0, |z| z.draw(rng)),
        }
        self.next.min(last)
    }

    /// The record after `at`, which the next read takes.
    pub fn advance(&mut self, at: u64) {
        self.next = if at + 1 >= self.records { 0 } else { at + 1 };
    }

    /// Where the next read goes without a seek.
    pub fn here(&self) -> u64 {
        self.next.min(self.records - 1)
    }
}

/// The generator of Gray et al., "Quickly generating billion-record synthetic databases" (1994).
#[derive(Debug, Clone)]
struct Zipf {
    n: f64,
    theta: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    fn new(records: u64, theta: f64) -> Self {
        let theta = theta.clamp(0.01, 0.99);
        let zeta = (1..=records).map(|i| 1.0 / (i as f64).powf(theta)).sum::<f64>();
        let two = 1.0 + 0.5_f64.powf(theta);
        let n = records as f64;
        let eta = (1.0 - (2.0 / n).powf(1.0 - theta)) / (1.0 - two / zeta);
        Self { n, theta, zeta, eta: if eta.is_finite() { eta } else { 1.0 } }
    }

    fn draw(&self, rng: &mut Pcg) -> u64 {
        let u = rng.unit();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + 0.5_f64.powf(self.theta) {
            return 1;
        }
        let at = self.n * (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - self.theta));
        (at as u64).min(self.n as u64 - 1)
    }
}

#[cfg(test)]
mod tests;
