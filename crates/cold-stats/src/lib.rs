//! Statistics of short series (1 to 200 values), of pairs, and of many events; and the one random generator.
//!
//! Pure: the same values and seed give the same bits on every machine. Values are plain `f64` of one unit, and
//! every function says what it returns for too few of them: what nothing was measured of is none, never 0.
//! Start reading at [`describe`]; then [`interval`] and [`compare`] (rounds of a benchmark) or [`mod@sequential`]
//! (pairs that are looked at one by one).

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod changepoint;
pub mod compare;
mod describe;
pub mod histogram;
pub mod interval;
pub mod modes;
mod rng;
pub mod sequential;
pub mod trend;

pub use compare::{Comparison, Undecided, Verdict};
pub use describe::{
    Described, describe, mad, mean, median, median_of, median_u64, quantile, quantile_by, quantile_sorted,
    sd, sorted,
};
pub use histogram::Histogram;
pub use interval::Interval;
pub use rng::Pcg;
pub use sequential::sequential;

#[cfg(test)]
mod tests;
