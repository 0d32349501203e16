//! Sizes and times that cannot be mixed up, and their one way of being printed.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A size or count of bytes. Prints in binary units with three significant digits (`1.46 MiB`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A length of time, or a point of `CLOCK_MONOTONIC`, in nanoseconds. Prints with three significant
/// digits (`12.3 ms`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The length in seconds.
    pub fn as_secs(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// From seconds; negative and not-a-number become 0.
    pub fn from_secs(secs: f64) -> Self {
        Self((secs.max(0.0) * 1e9).round() as u64)
    }
    /// `self - earlier`, or 0 when `earlier` is later.
    #[must_use]
    pub fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(d: std::time::Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for std::time::Duration {
    fn from(n: Nanos) -> Self {
        Self::from_nanos(n.0)
    }
}

impl Bytes {
    /// `self - other`, or 0 when `other` is larger.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

macro_rules! arithmetic {
    ($($t:ident),*) => {$(
        impl Add for $t { type Output = Self; fn add(self, o: Self) -> Self { Self(self.0 + o.0) } }
        impl Sub for $t { type Output = Self; fn sub(self, o: Self) -> Self { Self(self.0 - o.0) } }
        impl AddAssign for $t { fn add_assign(&mut self, o: Self) { self.0 += o.0; } }
        impl Sum for $t { fn sum<I: Iterator<Item = Self>>(i: I) -> Self { Self(i.map(|x| x.0).sum()) } }
    )*};
}
arithmetic!(Bytes, Nanos);

/// `value` with three significant digits and no exponent.
fn three_digits(f: &mut fmt::Formatter<'_>, value: f64, unit: &str) -> fmt::Result {
    let decimals = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    f.pad(&format!("{value:.decimals$} {unit}"))
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        // 1023.5 KiB would print as 1024 KiB: go to the next unit first.
        while value >= 1023.5 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        three_digits(f, value, UNITS[unit])
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        if ns < 999.5 {
            f.pad(&format!("{} ns", self.0))
        } else if ns < 999.5e3 {
            three_digits(f, ns / 1e3, "µs")
        } else if ns < 999.5e6 {
            three_digits(f, ns / 1e6, "ms")
        } else {
            three_digits(f, ns / 1e9, "s")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_print_with_three_digits_and_never_as_1024_of_a_unit() {
        for (n, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1_535_000, "1.46 MiB"),
            (1024 * 1024 - 1, "1.00 MiB"),
            (24 << 30, "24.0 GiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(Bytes(n).to_string(), text);
        }
    }

    #[test]
    fn times_print_with_three_digits() {
        for (n, text) in
            [(999, "999 ns"), (1_000, "1.00 µs"), (12_345_678, "12.3 ms"), (999_600_000, "1.00 s")]
        {
            assert_eq!(Nanos(n).to_string(), text);
        }
        assert_eq!(format!("{:>10}", Nanos(5)), "      5 ns");
    }
}
