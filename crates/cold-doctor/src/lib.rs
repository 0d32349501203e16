//! What this machine allows, and what would disturb a measurement: findings with their consequence
//! and remedy.
//!
//! Reads `/proc`, `/sys`, `/etc` and `/var` below one root ([`Roots`]) and asks the kernel a few direct
//! questions ([`Probes`]); changes nothing, prints nothing. What cannot be read is
//! [`Status::Unknown`] with the reason, never [`Status::Ok`]. Start reading at [`examine`], then
//! [`checks::CHECKS`], the table of everything that is looked at.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

pub mod checks;
pub mod context;
pub mod finding;
pub mod report;

mod calendar;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod known;
mod loader_cache;
mod observation;
mod processes;
mod programs;

use std::path::{Path, PathBuf};

pub use context::{Config, Context, Leftover, Probes, Roots};
pub use finding::{Area, Finding, Status};
pub use report::{Eviction, Report, SCHEMA, Summary};

/// What the kernel opens by itself to execute this ELF file: the path of its interpreter as it stands in the file,
/// then what each symbolic link leads to. Empty for a static program, and for what is none.
///
/// ```
/// let names = cold_doctor::interpreter(std::path::Path::new("/usr/bin/env"));
/// assert!(names.is_empty() || names[0].is_absolute());
/// ```
pub fn interpreter(executable: &Path) -> Vec<PathBuf> {
    /// As the kernel (`MAXSYMLINKS`).
    const LINKS: usize = 40;
    let Ok((file, _)) = cold_sys::open::regular(executable, false) else { return Vec::new() };
    let Some(name) = cold_symbols::needs(&file).and_then(|n| n.interpreter) else { return Vec::new() };
    let next = |p: &PathBuf| Some(p.parent()?.join(std::fs::read_link(p).ok()?));
    std::iter::successors(Some(PathBuf::from(name)), next).take(LINKS).collect()
}

/// Why an examination could not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command is neither a path nor found through PATH.
    #[error("no such command: {name} (not found {searched})")]
    NoSuchCommand {
        /// First word of the command, as given.
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
        /// The path to examine, as given.
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
