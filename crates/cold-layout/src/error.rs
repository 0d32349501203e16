//! What is wrong with a file that was handed in.

/// Errors of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Its headers cannot be read as those of an ELF file.
    #[error("not an ELF file, or a damaged one: {0}")]
    NotElf(String),
}
