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
        /// The path.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The file or directory cannot be used.
    #[error("{path} cannot be used: {why}")]
    Subject {
        /// What was named.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The file could not be taken out of the cache.
    #[error("{path} is not cold: {why}")]
    NotCold {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The file could not be kept in the cache.
    #[error("{path} is not warm: {why}")]
    NotWarm {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A worker process failed.
    #[error("the process {name} failed: {why}")]
    Worker {
        /// Its name.
        name: String,
        /// What it said.
        why: String,
    },
    /// No memory limit can be set.
    #[error("no memory limit can be set: {why}")]
    NoLimit {
        /// Why.
        why: String,
    },
    /// A line of a script.
    #[error(transparent)]
    Script(#[from] crate::script::Mistake),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// The device.
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
