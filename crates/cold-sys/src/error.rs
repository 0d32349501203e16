//! One error type: what was attempted, on what, and what the kernel answered.

use std::io;
use std::path::PathBuf;

/// A failed kernel interaction.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call or file operation failed.
    #[error("cannot {action} {subject}: {source}")]
    Io {
        /// The attempted action as a verb phrase: "open", "read", "map".
        action: &'static str,
        /// The path, pid or object.
        subject: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The path is not a regular file, so it is not opened (a FIFO or device could block or act).
    #[error("{path} is not a regular file ({kind})")]
    NotRegular {
        /// The path as it was to be opened.
        path: PathBuf,
        /// What it is instead: "directory", "FIFO", "character device", …
        kind: &'static str,
    },
    /// A kernel text file does not have the documented form.
    #[error("{file}: cannot understand {text:?} (expected {expected})")]
    Parse {
        /// The file it was read from, or what else it came from ("command line").
        file: PathBuf,
        /// The offending text, shortened.
        text: String,
        /// What the documentation promises.
        expected: &'static str,
    },
}

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The number of the last error of this thread. Allocates nothing.
pub(crate) fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

impl Error {
    /// An [`Error::Io`] from `errno`.
    pub(crate) fn last_os(action: &'static str, subject: impl Into<String>) -> Self {
        Self::io(action, subject, io::Error::last_os_error())
    }
    /// An [`Error::Io`] from a given error.
    pub fn io(action: &'static str, subject: impl Into<String>, source: io::Error) -> Self {
        Self::Io { action, subject: subject.into(), source }
    }
    /// The kernel's error number, if this came from a system call.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}
