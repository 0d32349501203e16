//! Measures devices and ways of access.
//!
//! Does I/O on purpose and says what it cost; never prints, decides nothing. Start reading at [`spec`]
//! (what a trial does), [`trial`] (one trial) and [`experiments`] (the named ones); [`device`] measures a disk.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod device;
pub mod experiments;
pub mod group;
pub mod log;
pub mod script;
pub mod spec;
pub mod subject;
pub mod toucher;
pub mod trial;
pub mod variate;
pub mod verify;
pub mod worker;

mod error;
mod gate;

pub use error::{Error, Result};
