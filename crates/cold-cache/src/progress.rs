//! How far a long operation is; the caller decides what to draw.

/// Is told about progress, from several threads. Every method does nothing by default.
pub trait Progress: Sync {
    /// `done` files were looked at so far.
    fn files(&self, done: u64) {
        let _ = done;
    }
    /// `done` of `total` bytes were read so far.
    fn bytes(&self, done: u64, total: u64) {
        let _ = (done, total);
    }
}

/// Nobody is interested.
impl Progress for () {}
