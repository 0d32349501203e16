//! The journal of system changes.
//!
//! Every change `cold` makes to the system (a setting, a cgroup, a mount, a loop device, a temporary
//! file, a process) is written to a file and synced *before* it is made. It is
//! undone at the normal end (guards), at a signal ([`Journal::undo_all`]), at the next start of `cold`
//! ([`recover`]) or by `cold doctor --repair` ([`leftovers`]). The file's format is described in
//! `docs/formats/journal.md`.
//!
//! Never prints, and never undoes what it cannot recognise as its own: a setting that somebody else
//! changed meanwhile is reported and left alone. Start reading at [`Journal`], then [`Change`] and
//! the private module `undo`.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))] // clippy.toml

mod change;
mod error;
mod file;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod journal;
mod kernel;
mod make;
mod place;
mod record;
mod recover;
mod setting;
mod text;
mod turn;
mod undo;

pub use change::{Change, Made};
pub use error::{Error, Result};
pub use journal::{Guard, Journal, Step};
pub use kernel::KernelFile;
pub use place::default_directory;
pub use record::{Owner, boot_id};
pub use recover::{Leftover, leftovers, recover};
pub use undo::{Outcome, Undone};
