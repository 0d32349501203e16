//! Why there is no result.

use std::io;
use std::path::{Path, PathBuf};

/// What failed, on what, and why.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The attempted action.
        action: &'static str,
        /// What it was attempted on.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The file or directory cannot be used.
    #[error("{path} cannot be used: {why}")]
    Subject {
        /// What was named.
        path: PathBuf,
        /// What is wrong with it, and where there is a choice what to choose instead.
        why: String,
    },
    /// Somebody set the device otherwise meanwhile.
    #[error(
        "read-ahead of the device of {path} was set meanwhile: what was compared means nothing, try again"
    )]
    Reset {
        /// Directory of the files.
        path: PathBuf,
    },
    /// The file could not be taken out of the cache.
    #[error("{path} is not cold: {why}")]
    NotCold {
        /// The experiment's file, as this process opens it.
        path: PathBuf,
        /// How many pages stayed, or that the kernel does not tell.
        why: String,
    },
    /// The file could not be kept in the cache.
    #[error("{path} is not warm: {why}")]
    NotWarm {
        /// The experiment's file, as this process opens it.
        path: PathBuf,
        /// How many of its pages went again.
        why: String,
    },
    /// A worker process failed.
    #[error("the process {name} failed: {why}")]
    Worker {
        /// Name of its crew ([`Crew::name`](crate::spec::Crew::name)).
        name: String,
        /// What it said.
        why: String,
    },
    /// No memory limit can be set.
    #[error("no memory limit can be set: {why}")]
    NoLimit {
        /// The right or the controller that is missing.
        why: String,
    },
    /// A line of a script.
    #[error(transparent)]
    Script(#[from] crate::script::Mistake),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The device could not be measured.
    #[error(transparent)]
    Device(#[from] crate::device::Error),
    /// A change of the system.
    #[error(transparent)]
    Journal(#[from] cold_journal::Error),
    /// The kernel's interface.
    #[error(transparent)]
    System(#[from] cold_sys::Error),
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
