//! What can go wrong with a recording, and what to do then.

use std::io;
use std::path::{Path, PathBuf};

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// The attempted action as a verb phrase.
        action: &'static str,
        /// The file or directory that it was attempted on.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A file of the recording could not be opened safely (a link, FIFO or device instead of a file).
    #[error(transparent)]
    Open(#[from] cold_sys::Error),
    /// The path is taken.
    #[error("{path} already exists; choose another name, or allow it to be overwritten")]
    Exists {
        /// Directory of a recording, or file of an export, that is in the way.
        path: PathBuf,
    },
    /// The path is taken by something that this program will not replace.
    #[error("{path} exists and is not replaced: {why}; choose another name")]
    NotReplaced {
        /// The directory that was to hold the recording.
        path: PathBuf,
        /// What it is.
        why: String,
    },
    /// There is no recording here.
    #[error("{path} is not a recording: {why}")]
    NotARecording {
        /// The directory that was to be read.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// A later program wrote it.
    #[error(
        "{path} has format version {found}, this program reads up to version {known}; update coldstart to read it"
    )]
    Future {
        /// The later file: `recording.json`, or the log of raw events.
        path: PathBuf,
        /// Version of the file.
        found: u64,
        /// Latest version known here.
        known: u32,
    },
    /// The recorder did not end in order; its raw events may still be recovered from the log.
    #[error("{dir} was not finished: its recorder was killed, or still runs")]
    Unfinished {
        /// Directory of the recording.
        dir: PathBuf,
    },
    /// A file does not hold what the format promises.
    #[error("{path} is damaged: {why}; record again")]
    Damaged {
        /// The file; where tables contradict each other, the recording's directory.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A recording in memory breaks a rule of the format: a mistake of whoever made it.
    #[error("the recording is inconsistent: {why}; this is a bug of the recorder, nothing was written")]
    Inconsistent {
        /// What is wrong.
        why: String,
    },
    /// A block larger than the log allows.
    #[error("an event block of {bytes} bytes is larger than the {limit} that a log holds")]
    BlockTooLarge {
        /// Length of the payload that was to be appended.
        bytes: usize,
        /// [`crate::log::MAX_PAYLOAD`].
        limit: u32,
    },
}

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An [`Error::Io`] as a closure for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
    /// An [`Error::Damaged`].
    pub(crate) fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.into() }
    }
}
