//! Round numbers for axes.

use cold_model::Nanos;

/// A linear axis from `low` to `high` with ticks at 1, 2 or 5 times a power of ten.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Value at its beginning: not above the smallest that it holds.
    pub low: f64,
    /// Value at its end: not below the largest that it holds.
    pub high: f64,
    /// Positions of the ticks, all between both ends.
    pub ticks: Vec<f64>,
}

impl Axis {
    /// An axis that holds `min` to `max` and ends at ticks, about `wanted` of them. Starts at 0 for a single value, and when the
    /// smallest value is less than half of the largest: then the ratio is what the reader looks at.
    pub fn new(min: f64, max: f64, wanted: usize) -> Self {
        let (min, max) =
            if min.is_finite() && max.is_finite() { (min.min(max), max.max(min)) } else { (0.0, 1.0) };
        let min = if (0.0..0.5 * max).contains(&min) { 0.0 } else { min };
        // Equal values still need some room around them.
        let room = (max.abs() * 0.01).max(1.0);
        let (min, max) = match max > min {
            true => (min, max),
            // A lone value has nothing to be compared with but 0: hair's breadths around it say nothing.
            false if max > 0.0 => (0.0, max),
            false => (min - room, max + room),
        };
        let span = max - min;
        let step = step(span / wanted.max(1) as f64);
        let first = (min / step + 1e-9).floor();
        let last = ((min + span) / step - 1e-9).ceil();
        let count = (last - first) as usize;
        let ticks: Vec<f64> = (0..=count).map(|i| (first + i as f64) * step).collect();
        Self { low: first * step, high: last * step, ticks }
    }

    /// Place of a value from 0 (low) to 1 (high); beyond them for values outside.
    pub fn place(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// A value of a time axis, in its unit.
    pub fn time_label(&self, ns: f64) -> String {
        let unit = self.time_unit();
        format!("{} {}", unit.number(ns), unit.name)
    }

    /// The unit for nanoseconds on this axis.
    pub fn time_unit(&self) -> TimeUnit {
        let (name, ns) = match self.high {
            h if h >= 1e9 => ("s", 1e9),
            h if h >= 1e6 => ("ms", 1e6),
            h if h >= 1e3 => ("µs", 1e3),
            _ => ("ns", 1.0),
        };
        let step = self.ticks.get(1).zip(self.ticks.first()).map_or(1.0, |(b, a)| (b - a) / ns);
        let decimals = if step >= 0.999 { 0 } else { (-step.log10() - 1e-9).ceil().clamp(0.0, 9.0) as usize };
        TimeUnit { name, ns, decimals }
    }
}

/// In what a time axis is labelled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeUnit {
    /// `s`, `ms`, `µs` or `ns`.
    pub name: &'static str,
    /// Its length in nanoseconds.
    pub ns: f64,
    /// Decimals that the axis' ticks need.
    pub decimals: usize,
}

impl TimeUnit {
    /// So many nanoseconds in this unit, without its name.
    pub fn number(&self, ns: f64) -> String {
        format!("{:.*}", self.decimals, ns / self.ns)
    }
}

/// The smallest of 1, 2, 5 × 10^k that is not below `rough`.
fn step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let mantissa = rough / power;
    power * [1.0, 2.0, 5.0].into_iter().find(|m| mantissa <= m + 1e-9).unwrap_or(10.0)
}

/// A time in words.
pub fn time(ns: f64) -> String {
    Nanos(ns.max(0.0).round() as u64).to_string()
}

#[cfg(test)]
mod tests;
