//! Why a plan was not found, believed or written.

use std::io;
use std::path::{Path, PathBuf};

use crate::format::FormatError;

/// A plan that could not be used or kept.
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
    /// Somebody else could have written it.
    #[error("{path} is not trusted: {why}; inspect it, then remove it or learn the plan again")]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// What is odd about it.
        why: String,
    },
    /// It is another user's.
    #[error("{path} is not trusted: {why}; inspect it, then remove it or learn the plan again")]
    Others {
        /// The file or directory.
        path: PathBuf,
        /// Whose it is.
        why: String,
    },
    /// A directory that holds other things.
    #[error("{path} is no store of plans: it holds {holds:?}; name a new or an empty directory")]
    NoStore {
        /// The directory that was to be used as a store.
        path: PathBuf,
        /// A name in it that no store has.
        holds: String,
    },
    /// Its bytes are no plan, or a plan cannot be bytes.
    #[error("{path}: {source}")]
    Format {
        /// The file that holds it, or was to hold it.
        path: PathBuf,
        /// What is wrong.
        source: FormatError,
    },
    /// A plan under another plan's name.
    #[error("{path} holds the plan of another executable, script or scenario than its name says; remove it")]
    OtherKey {
        /// The file, which lies in a store under that other name.
        path: PathBuf,
    },
    /// No directory for plans is known.
    #[error("no directory for plans: neither XDG_STATE_HOME nor HOME is set; set one of them")]
    NoDirectory,
}

/// Result of everything about stores.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// It tells of something of another user's, or that this user may not look into: nothing that is this user's to
    /// follow or to mend.
    pub fn is_others(&self) -> bool {
        match self {
            Self::Others { .. } => true,
            Self::Io { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            _ => false,
        }
    }
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
    pub(crate) fn untrusted(path: &Path, why: String) -> Self {
        Self::Untrusted { path: path.to_owned(), why }
    }
}
