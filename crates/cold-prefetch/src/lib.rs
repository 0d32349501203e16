//! Learns plans from recordings, compiles them for a device, tunes and judges them.
//!
//! Pure: no I/O, no clock, no printing. [`learn`] turns one recording into what that start needed, [`mod@merge`]
//! adds it to a plan, [`mod@compile`] makes the plan's steps for a device; [`mod@waste`] says what a prefetched
//! start got out of them, [`tune`] looks for better knobs and [`mod@judge`] for plans that should be switched off.

pub mod compile;
pub mod evidence;
pub mod judge;
pub mod knobs;
pub mod learn;
pub mod merge;
mod random;
pub mod tune;
pub mod waste;

pub use compile::{compile, is_kept};
pub use judge::{Judgement, judge};
pub use knobs::default_knobs;
pub use learn::{ObservedStart, Sees, WhyNot, With, observe};
pub use merge::merge;
pub use tune::{Tuner, Verdict};
pub use waste::{Waste, waste};

#[cfg(test)]
mod sample;
