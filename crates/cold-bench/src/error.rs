//! What can stop a benchmark.

use std::path::PathBuf;

use cold_model::{Bytes, Nanos};

/// A benchmark that cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `--ready` is wrong or already holds.
    #[error(transparent)]
    Ready(#[from] crate::ready::ReadyError),
    /// The first request to a command that was ready got no answer that counts.
    #[error("{page} got no answer to a first request: {why}")]
    FirstRequest {
        /// What was asked for.
        page: String,
        /// Its status, or what went wrong.
        why: String,
    },
    /// The command cannot be started.
    #[error("{command}: {source}")]
    Start {
        /// The command's name.
        command: String,
        /// The call that failed while it was prepared, let go or waited for.
        source: cold_sys::Error,
    },
    /// The command cannot be found or executed.
    #[error("{program}: {reason}")]
    Program {
        /// Its name, or the line that holds none, as typed.
        program: String,
        /// What is wrong with it, in words.
        reason: String,
    },
    /// Interrupted before a run was made.
    #[error("interrupted before anything was measured")]
    Interrupted,
    /// A file of ours cannot be used.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// The attempted action as a verb phrase.
        action: &'static str,
        /// The file; where it has no name, words for it (`a pipe`).
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A hook failed.
    #[error("--{hook} {line:?} failed ({ending})")]
    Hook {
        /// setup, prepare, conclude or cleanup.
        hook: &'static str,
        /// The shell line.
        line: String,
        /// "exit code 1", "signal 9", or why it could not be started.
        ending: String,
    },
    /// The command failed and failures are not ignored.
    #[error("{command} failed ({ending}) in its {which} start")]
    Command {
        /// The command's name.
        command: String,
        /// How it ended, in words (`exit code 1`, `signal 9`).
        ending: String,
        /// "observed", "warm-up", or "measured".
        which: &'static str,
    },
    /// The command was not ready within the time limit.
    #[error("{command} was not ready within {limit} in its observed start")]
    NotReady {
        /// The command's name.
        command: String,
        /// Time limit of one start ([`crate::config::Config::timeout`]).
        limit: Nanos,
        /// What would end its starts, where that is known.
        port: Option<u16>,
        /// A start was to end with the command.
        by_exit: bool,
    },
    /// The command ended by itself and was never ready.
    #[error("{command} failed ({ending}, and was never ready) in its observed start")]
    NeverReady {
        /// The command's name.
        command: String,
        /// How it ended.
        ending: String,
    },
    /// A run that must be cold is not.
    #[error("{command} is not cold: {bytes} of its files stayed cached{why}")]
    NotCold {
        /// The command's name.
        command: String,
        /// Cached bytes (known ones).
        bytes: Bytes,
        /// Who holds them, or what is unknown.
        why: String,
    },
    /// A state that cannot be reached on this machine.
    #[error("cannot reach the state {state}: {why}")]
    State {
        /// Its name, as `--states` takes it.
        state: String,
        /// What is missing or refused, in words.
        why: String,
    },
    /// `--disk-limit` cannot be set.
    #[error("cannot limit the disk: {0}")]
    DiskLimit(String),
    /// The cache could not be inspected or evicted.
    #[error(transparent)]
    Cache(#[from] cold_cache::Error),
    /// A change of the system could not be journalled or undone.
    #[error(transparent)]
    Journal(#[from] cold_journal::Error),
    /// Somebody who watches the start cannot go on.
    #[error(transparent)]
    Around(Box<dyn std::error::Error + Send + Sync>),
    /// The kernel refused something.
    #[error(transparent)]
    Sys(#[from] cold_sys::Error),
}

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
