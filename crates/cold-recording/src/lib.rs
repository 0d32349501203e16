//! A recording on disk: written crash-safe, read, validated, exported as tables.
//!
//! Never analyses. [`log`] holds raw events while the program runs. Start reading there.

pub mod error;
pub mod log;
#[cfg(any(test, feature = "sample"))]
pub mod sample;

pub use error::{Error, Result};
