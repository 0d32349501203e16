//! Why a file could not be read as ELF.

use std::path::PathBuf;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened, or is not a regular file.
    #[error(transparent)]
    Open(#[from] cold_sys::Error),
    /// It does not begin like an ELF file.
    #[error("{path} is not an ELF file")]
    NotElf {
        /// The file as it was named to be opened.
        path: PathBuf,
    },
    /// It begins like one and goes on differently, or is larger than any program is.
    #[error("{path} is a damaged ELF file: {why}")]
    Damaged {
        /// The file as it was named to be opened.
        path: PathBuf,
        /// What was wrong.
        why: String,
    },
}
