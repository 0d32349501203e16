//! What this machine allows, and what would disturb a measurement: findings with their consequence
//! and remedy.
//!
//! Reads `/proc`, `/sys`, `/etc` and `/var` below one root ([`Roots`]) and asks the kernel a few direct
//! questions ([`Probes`]); changes nothing, prints nothing. What cannot be read is
//! [`Status::Unknown`] with the reason, never [`Status::Ok`]. Start reading at [`examine`], then
//! [`checks::CHECKS`], the table of everything that is looked at.

pub mod checks;
pub mod context;
pub mod finding;
pub mod report;

mod calendar;
mod elf;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod known;
mod observation;
mod processes;
mod programs;

use std::path::PathBuf;

pub use context::{Config, Context, Leftover, Probes, Roots};
pub use finding::{Area, Finding, Status};
pub use report::{Eviction, Report, SCHEMA, Summary};

/// Why an examination could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command is neither a path nor found through PATH.
    #[error("no such command: {name} (not found {searched})")]
    NoSuchCommand {
        /// As given.
        name: String,
        /// Where it was looked for, in words.
        searched: String,
    },
    /// The command exists but is not an executable file.
    #[error("{path} is not an executable file")]
    NotExecutable {
        /// The path found.
        path: PathBuf,
    },
    /// A given path cannot be examined.
    #[error("cannot examine {path}: {cause}")]
    Path {
        /// As given.
        path: PathBuf,
        /// The kernel's answer (in the message, so it is not repeated as the error's source).
        cause: std::io::Error,
    },
    /// Without /proc nothing can be said.
    #[error(transparent)]
    Proc(#[from] cold_sys::Error),
}

/// Runs every check and sums up. Takes about [`Config::window`], because some things only show by
/// watching for a while; the checks that need no watching run meanwhile.
pub fn examine(roots: Roots, probes: Probes, config: Config) -> Result<Report, Error> {
    let context = Context::new(roots, probes, config)?;
    Ok(Report::new(checks::run_all(&context), &context))
}
