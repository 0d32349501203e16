//! The private protocols for arbitrary bytes.

/// Reads a message of the observing helper, in both directions.
pub fn observe(bytes: &[u8]) {
    crate::observe::fuzz(bytes);
}

/// Reads lines of the supervisor, in both directions.
pub fn supervise(bytes: &[u8]) {
    crate::supervise::fuzz(bytes);
}
