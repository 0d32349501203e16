//! What `cold bench` computes: statistics of runs, words about them, gates, parameters and exports.
//!
//! Never prints, exits or reads argv. Start reading at [`stats`] (numbers in, numbers out), then
//! [`summary`] (a report's figures), [`diagnose`] (its words) and [`gate`] (`--fail-if`).

pub mod baseline;
pub mod diagnose;
pub mod export;
pub mod gate;
pub mod metric;
pub mod params;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod stats;
pub mod summary;
