//! Why a change was not made, or not undone.

use std::io;
use std::path::PathBuf;

use cold_model::Shown as _;

/// A change that could not be journalled, made or undone.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.shown())]
    Io {
        /// The attempted action as a verb phrase.
        action: &'static str,
        /// The file, directory or program that it was attempted on.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] cold_sys::Error),
    /// The journal or its directory could have been written by somebody else.
    #[error("{} is not trusted: {why}; inspect it, then remove it or run as its owner", path.shown())]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// What is odd about it.
        why: String,
    },
    /// No directory for the journal is known.
    #[error("no directory for the journal: neither XDG_STATE_HOME nor HOME is set; set one of them")]
    NoDirectory,
    /// Everything was undone already, so nothing may be changed any more.
    #[error("no change is made any more: the journal was closed by undoing everything")]
    Closed,
    /// Another process has changed the same thing and not yet put it back.
    #[error("cannot change {}: {holder} holds it (its journal: {}); try again when that has ended", path.shown(), journal.shown())]
    Held {
        /// The file that sets it, in `/proc`, `/sys` or a control group.
        path: PathBuf,
        /// The process, as `name[pid]`.
        holder: String,
        /// The file of the journal in which that process noted its change.
        journal: PathBuf,
    },
    /// The change cannot be made as asked.
    #[error("cannot {action} {}: {why}", path.shown())]
    Refused {
        /// The attempted action as a verb phrase.
        action: &'static str,
        /// What it was attempted on: a setting, a file, a directory, a mount point.
        path: PathBuf,
        /// What stands against it, in words.
        why: String,
    },
    /// Processes did not end in time.
    #[error(
        "{subject} still holds {holders} after {seconds} s of SIGKILL; they wait in the kernel, retry later"
    )]
    StillAlive {
        /// The cgroup or process.
        subject: String,
        /// Processes as `name[pid]`.
        holders: String,
        /// How long was waited.
        seconds: u64,
    },
}

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The same about the path by which a user knows the thing.
    pub(crate) fn of(self, known: &std::path::Path) -> Self {
        match self {
            Self::Io { action, source, .. } => Self::io(action, known, source),
            Self::Refused { action, why, .. } => Self::refused(action, known, why),
            other => other,
        }
    }
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }
    pub(crate) fn refused(action: &'static str, path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::Refused { action, path: path.into(), why: why.into() }
    }
}

/// Whether the error says that there is no such thing (any more).
pub(crate) fn is_gone(e: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let gone = [Errno::NOENT, Errno::NODEV, Errno::NXIO, Errno::NOTDIR, Errno::SRCH];
    e.raw_os_error().is_some_and(|n| gone.iter().any(|g| g.raw_os_error() == n))
}
