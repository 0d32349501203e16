use std::path::PathBuf;

/// Why process creation could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process that starts programs failed, or could not start one.
    #[error(transparent)]
    Spawner(cold_sys::Error),
    /// An empty program could not be written.
    #[error("could not write the empty program {0}: {1}; give --scratch a directory that allows execution")]
    Scratch(PathBuf, std::io::Error),
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
