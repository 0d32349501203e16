//! What a start needs, as a file: the plan, its binary format, its place on disk, its history.
//!
//! Never traces, never reads pages ahead, never prints. A plan is untrusted input: every count is bounded
//! by the bytes that are left. Start reading at [`Plan`]; a launcher uses [`mod@format`]'s view, which neither
//! parses nor allocates per range.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

#[cfg(feature = "portable")]
pub mod document;
pub mod fit;
pub mod format;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod history;
pub mod identity;
pub mod judge;
pub mod plan;
#[cfg(feature = "portable")]
pub mod portable;
#[cfg(any(test, feature = "fuzzing"))]
pub mod sample;
pub mod scenario;
pub mod store;

pub use identity::Match;
pub use judge::{Daily, Judgement, judge};
pub use plan::Plan;
pub use store::Store;
