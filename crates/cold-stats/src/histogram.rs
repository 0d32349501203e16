//! Times of many events in little memory: exact moments, quantiles to 1.6%.

use serde::{Deserialize, Serialize};

use crate::quantile_by;

/// Buckets per power of two.
const FINE: u32 = 6;

/// Times in nanoseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Histogram {
    /// Number of times that were added.
    pub count: u64,
    mean: f64,
    squares: f64,
    min: u64,
    max: u64,
    /// Occupied buckets and their counts; while counting, `buckets` is the dense form.
    sparse: Vec<(u32, u64)>,
    #[serde(skip)]
    buckets: Vec<u64>,
}

fn bucket(ns: u64) -> u32 {
    let top = (ns | 1).ilog2();
    if top < FINE {
        return ns as u32;
    }
    let shift = top - FINE;
    ((shift + 1) << FINE) + ((ns >> shift) as u32 - (1 << FINE))
}

/// The middle of a bucket.
fn value(bucket: u32) -> f64 {
    let (shift, low) = (bucket >> FINE, bucket & ((1 << FINE) - 1));
    if shift == 0 {
        return f64::from(low);
    }
    let width = 2_f64.powi(shift.cast_signed() - 1);
    (f64::from(low + (1 << FINE)) + 0.5) * width
}

impl Histogram {
    /// Makes room, so that no later addition has to.
    pub fn reserve(&mut self) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; bucket(u64::MAX) as usize + 1];
        }
    }

    /// Adds a time.
    pub fn add(&mut self, ns: u64) {
        self.reserve();
        self.min = if self.count == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.count += 1;
        let delta = ns as f64 - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (ns as f64 - self.mean);
        if let Some(n) = self.buckets.get_mut(bucket(ns) as usize) {
            *n += 1;
        }
    }

    /// Ends the counting: the form that is kept and sent.
    #[must_use]
    pub fn closed(self) -> Self {
        self.closed_less(0.0)
    }

    /// The same with each time less `own` nanoseconds. Taken off here and not from each time, which cannot
    /// become negative: a cost near that of the clock's step would come out too large.
    #[must_use]
    pub fn closed_less(self, own: f64) -> Self {
        let less = |ns: u64| (ns as f64 - own).max(0.0).round() as u64;
        let mut sparse: Vec<(u32, u64)> = Vec::new();
        for (b, n) in self.buckets.iter().enumerate().filter(|(_, n)| **n > 0) {
            let b = if own > 0.0 { bucket((value(b as u32) - own).max(0.0) as u64) } else { b as u32 };
            match sparse.last_mut() {
                Some((last, sum)) if *last == b => *sum += n,
                _ => sparse.push((b, *n)),
            }
        }
        Self {
            mean: (self.mean - own).max(0.0),
            min: less(self.min),
            max: less(self.max),
            sparse,
            buckets: Vec::new(),
            ..self
        }
    }

    /// Mean in nanoseconds; `None` without events.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }
    /// Standard deviation; `None` below two events.
    pub fn sd(&self) -> Option<f64> {
        (self.count > 1).then(|| (self.squares / (self.count - 1) as f64).sqrt())
    }
    /// The shortest time in nanoseconds, exact; `None` without events.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }
    /// The longest time in nanoseconds, exact; `None` without events.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }
    /// Quantile `q` of the closed series, as of single values ([`quantile_by`]), each to 1.6%.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        quantile_by(self.count, q, |i| self.nth(i))
    }

    /// The i-th shortest, from 0: the middle of its bucket.
    fn nth(&self, i: u64) -> f64 {
        let mut seen = 0;
        let holds = |(_, n): &&(u32, u64)| {
            seen += n;
            seen > i
        };
        let bucket = self.sparse.iter().find(holds);
        bucket.map_or(self.max as f64, |(b, _)| value(*b).clamp(self.min as f64, self.max as f64))
    }

    /// Both series as one (of closed ones).
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { other.clone() } else { self.clone() };
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let delta = other.mean - self.mean;
        let mut buckets: std::collections::BTreeMap<u32, u64> = self.sparse.iter().copied().collect();
        for (k, n) in &other.sparse {
            *buckets.entry(*k).or_default() += n;
        }
        Self {
            count: self.count + other.count,
            mean: self.mean + delta * b / (a + b),
            squares: self.squares + other.squares + delta * delta * a * b / (a + b),
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            sparse: buckets.into_iter().collect(),
            buckets: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_exact_and_quantiles_close() {
        let mut s = Histogram::default();
        (1..=10_000).for_each(|n| s.add(n * 1000));
        let s = s.closed();
        assert_eq!((s.count, s.min(), s.max()), (10_000, Some(1000), Some(10_000_000)));
        assert!((s.mean().unwrap() - 5_000_500.0).abs() < 1.0);
        assert!((s.sd().unwrap() / 2_886_895.68 - 1.0).abs() < 1e-6, "{:?}", s.sd());
        for q in [0.01, 0.5, 0.95, 0.99, 1.0] {
            let (found, exact) = (s.quantile(q).unwrap(), q * 1e7);
            assert!((found / exact - 1.0).abs() < 0.017, "{q}: {found} {exact}");
        }
        let text = serde_json::to_string(&s).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), s);
    }

    /// Of few values the definitions of a quantile differ: it is the one of the whole project, type 7.
    #[test]
    fn quantiles_are_those_of_single_values() {
        let few = [10, 20, 40];
        let mut s = Histogram::default();
        for n in few {
            s.add(n);
        }
        let s = s.closed();
        for q in [0.0, 0.25, 0.5, 0.9, 1.0] {
            assert_eq!(s.quantile(q), crate::quantile(&few.map(|n| n as f64), q), "{q}");
        }
    }

    #[test]
    fn the_own_cost_is_taken_off_the_whole() {
        let mut s = Histogram::default();
        // A clock with steps of 10 ns shows 25 like this; none of it is the record's.
        (0..1000).for_each(|n| s.add(20 + n % 2 * 10));
        s.add(1_000_000);
        let s = s.closed_less(25.0);
        assert!((s.mean().unwrap() - 999_975.0 / 1001.0).abs() < 1e-6, "{:?}", s.mean());
        assert_eq!((s.min(), s.max(), s.count), (Some(0), Some(999_975), 1001));
        assert!((s.quantile(0.25).unwrap(), s.quantile(1.0).unwrap() > 980_000.0) == (0.0, true));
    }

    #[test]
    fn no_times_have_no_figures_and_parts_add_up() {
        let none = Histogram::default().closed();
        assert_eq!((none.mean(), none.sd(), none.quantile(0.5)), (None, None, None));
        let (mut a, mut b, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for n in 0..500 {
            a.add(n);
            b.add(n * n);
            both.add(n);
            both.add(n * n);
        }
        let (sum, both) = (a.closed().merged(&b.closed()), both.closed());
        assert_eq!((sum.count, sum.min(), sum.max()), (both.count, both.min(), both.max()));
        assert!((sum.sd().unwrap() - both.sd().unwrap()).abs() < 1e-6);
        assert_eq!(sum.quantile(0.9), both.quantile(0.9));
        assert_eq!(none.merged(&both), both);
    }

    #[test]
    fn every_time_has_a_bucket_near_it() {
        for ns in [0, 1, 63, 64, 65, 127, 128, 1_000_003, u64::MAX] {
            let middle = value(bucket(ns));
            assert!((middle - ns as f64).abs() <= ns as f64 / 64.0 + 0.5, "{ns}: {middle}");
        }
    }
}
