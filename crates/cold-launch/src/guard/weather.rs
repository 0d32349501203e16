//! What the machine has to spare, found out once for many starts.

use cold_sys::procfs::{Mount, ProcFs};

use super::busy::Waits;

/// Free memory and waiting tasks at one moment. Finding them out takes about 150 µs, half of the time in which the
/// reading for a start should begin; they hardly change within a second, and the kernel itself brings its averages of
/// waits up to date every two.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Weather {
    /// Bytes that may be taken; `None` where nothing tells.
    pub(crate) room: Option<u64>,
    pub(crate) waits: Waits,
}

impl Weather {
    /// Now, by these mounts.
    pub fn now(mounts: &[Mount]) -> Self {
        let proc = ProcFs::default();
        Self { room: super::room(&proc, mounts), waits: Waits::now(&proc) }
    }
}
