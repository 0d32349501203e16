//! What can be wrong with an input.

/// Why an input could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The input ends before something that it promised.
    #[error("{what} at byte {at} needs {wanted} bytes, and the file has only {has} there")]
    Short {
        /// What was to be read.
        what: &'static str,
        /// Where it begins, bytes from the start of the input.
        at: u64,
        /// Its size, bytes.
        wanted: u64,
        /// What is left there, bytes.
        has: u64,
    },
    /// A value that no sound input has.
    #[error("{what} at byte {at} is damaged: {why}")]
    Damaged {
        /// What was to be read.
        what: &'static str,
        /// Where it begins, bytes from the start of the input.
        at: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The caller could not hand over bytes that it had promised.
    #[error("cannot read {len} bytes at byte {at}: {why}")]
    Source {
        /// Where they begin, bytes from the start of the input.
        at: u64,
        /// How many were wanted.
        len: u64,
        /// What the caller says.
        why: String,
    },
}

/// What reading an input gives.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The same, where what was read begins at `base` of the whole input: `at` counts from there.
    #[must_use]
    pub(crate) fn beginning_at(mut self, base: u64) -> Self {
        let (Self::Short { at, .. } | Self::Damaged { at, .. } | Self::Source { at, .. }) = &mut self;
        *at = at.saturating_add(base);
        self
    }
}
