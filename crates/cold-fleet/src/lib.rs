//! Many recordings of many machines together.
//!
//! [`start`] makes of one recording the rows of a dataset (its format and writer: `cold_recording::fleet`), with paths
//! hidden where that is asked for ([`redact`]). [`query`] owns the SQL that asks such a dataset; engines run it, this
//! crate does not. [`consensus`] makes a plan of what one query answers. Pure: reads and starts nothing.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod consensus;
pub mod query;
pub mod redact;
#[cfg(feature = "sample")]
pub mod sample;
pub mod start;
