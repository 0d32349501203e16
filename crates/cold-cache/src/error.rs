//! What can go wrong, with the file and the next step. A message contains its cause, so causes are not
//! given again as `source`: the chain would print them twice.

use std::path::PathBuf;

/// A failed operation on the page cache.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused something.
    #[error("{0}")]
    Kernel(cold_sys::Error),
    /// Reclaim of mapped pages would swap other programs out.
    #[error(
        "reclaim of mapped pages is not safe while swap is active: it would move other programs' memory to swap (swapoff -a, or do without reclaim)"
    )]
    SwapActive,
    /// There is no memory cgroup to reclaim through.
    #[error(
        "this kernel offers no memory cgroup to reclaim mapped pages through (needs cgroup v1 memory.force_empty or v2 memory.reclaim, Linux 5.19+)"
    )]
    NoReclaim,
    /// A root-only way was asked for without root.
    #[error("{what} needs root: {cause}")]
    NeedsRoot {
        /// What was asked for.
        what: &'static str,
        /// The kernel's answer.
        cause: cold_sys::Error,
    },
    /// A snapshot file cannot be used.
    #[error("{path}: {cause}")]
    Snapshot {
        /// The snapshot file.
        path: PathBuf,
        /// Why its bytes are no snapshot for this machine.
        cause: crate::snapshot::CodecError,
    },
    /// A path that was named is not there, or cannot be read or written.
    #[error("{path}: {cause}")]
    Path {
        /// The file or directory that could not be reached.
        path: PathBuf,
        /// The kernel's answer.
        cause: std::io::Error,
    },
}

// By hand, because `#[from]` would make it a `source`.
impl From<cold_sys::Error> for Error {
    fn from(error: cold_sys::Error) -> Self {
        Self::Kernel(error)
    }
}

/// Result with [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
