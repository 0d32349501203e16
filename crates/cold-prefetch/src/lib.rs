//! Learns plans from recordings, compiles them for a device, tunes them.
//!
//! Pure: no I/O, no clock, no printing. [`learn`] turns one recording into what that start needed, [`mod@merge`]
//! adds it to a plan, [`mod@compile`] makes the plan's steps for a device, [`bound()`] says what none can beat;
//! [`mod@predict`] says what a plan would bring, [`mod@rehearse`] compares plans by that, [`mod@exact`] decides by it
//! whether exact needs pay; [`mod@waste`] says what a prefetched start got out of the steps, and
//! [`tune`] looks for better knobs; [`export`] writes for builders of images what a start needs.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod arrange;
mod bound;
pub mod compile;
pub mod exact;
pub mod export;
pub mod knobs;
pub mod learn;
pub mod merge;
pub mod predict;
pub mod rehearse;
pub mod tune;
pub mod waste;
mod whole;

pub use bound::{DevicePart, Ground, Latest, bound, bound_of_warm, parts};
pub use compile::{compile, is_kept};
pub use exact::{Worth, knobs_by};
pub use knobs::{default_knobs, knobs_for};
pub use learn::{LeftOut, Sees, StartNeeds, TeachesNothing, Unseen, With, not_shown, observe};
pub use merge::{lesson, merge};
pub use tune::{Forecast, Tuner, TuningVerdict};
pub use waste::{Unneeded, Waste, unneeded, waste};
pub use whole::whole;

#[cfg(test)]
mod sample;
