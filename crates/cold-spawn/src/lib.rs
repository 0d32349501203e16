//! How fast processes are created, whether that grows with their number, and why.
//!
//! Never prints. Start reading at [`growth`], which decides from a series of costs or counts how the cost
//! of one more start depends on how many there were, then [`session`], which measures, [`cause`], which
//! names what lengthened, [`verdict`], and [`report`], the document of it all.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod cause;
pub mod confirm;
pub mod empty;
mod error;
pub mod evidence;
pub mod growth;
pub mod report;
pub mod session;
pub mod tree;
pub mod verdict;

pub use cause::{Cause, causes};
pub use error::{Error, Result};
pub use evidence::Evidence;
pub use growth::{Class, Growth};
