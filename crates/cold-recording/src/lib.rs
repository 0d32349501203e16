//! A recording on disk: written crash-safe, read, validated, exported as tables.
//!
//! Never analyses. [`schema`] is the one source of tables and columns; [`begin`], [`log`] and [`write()`] make
//! a recording, [`read()`] opens one. [`order`] does the same for traced first entries of functions, [`fleet`] adds what many
//! recordings tell to a dataset for SQL. Start reading at [`schema::tables`], then `write.rs`.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

mod columns;
mod document;
pub mod error;
pub mod export;
pub mod fleet;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod log;
pub mod manifest;
pub mod order;
mod read;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod schema;
mod validate;
mod write;

pub use error::{Error, Result};
pub use manifest::manifest_of;
pub use read::read;
pub use validate::validate;
pub use write::{begin, is_part, make, write};

#[cfg(test)]
mod tests;
