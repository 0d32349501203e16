//! The decisions of `cold service`: which starts are followed up, which are controls, what all scenarios of a program
//! share, what was saved, what is read before a start.
//!
//! Pure: no I/O, no clock, no printing. The loop that hears of starts and the threads that read lie in
//! `cold/src/commands/service`, the reading itself in `cold-launch`. Start reading at [`Pace`] (warm starts, controls) and [`Storm`],
//! then [`mod@common`], [`with_private`] and [`mod@saved`]; [`replay`] compares rules of what is read before a start.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod common;
pub mod keep;
pub mod learning;
pub mod pace;
mod private;
pub mod recent;
pub mod replay;
pub mod saved;
pub mod storm;

pub use common::common;
pub use learning::Candidates;
pub use pace::Pace;
pub use private::with_private;
pub use recent::{Opened, Recent};
pub use saved::{Harm, Saved, Served, Start, Total, harm, saved, total};
pub use storm::{Often, Storm};
