//! What the page cache holds, who holds it, and how to get it out and back, with proof.
//!
//! Start reading at [`evict()`] (out, with the reasons for what stays) and [`holders()`] (who maps or opens
//! a file); then [`scan()`] (residency of trees), [`snapshot`] (exactly these pages again) and [`overview`]
//! (the machine's memory by use). Never prints and never changes a system setting. Pages a file keeps are
//! always counted by asking the kernel afterwards; what it does not tell is unknown, never 0.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod evict;
pub mod holders;
pub mod overview;
pub mod scan;
pub mod snapshot;

mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod progress;

pub use error::{Error, Result};
pub use evict::{EvictReport, EvictTarget, Method, Reason, Stayed, evict, stayed};
pub use holders::{FileHolders, Holder, Holders, SystemHolder, holders};
pub use progress::Progress;
pub use scan::{FileOrder, Residency, Scan, ScanOptions, ScannedDir, ScannedFile, Skipped, Totals, scan};
