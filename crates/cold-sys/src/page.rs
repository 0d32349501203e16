//! The size of a page.

use std::sync::OnceLock;

/// Bytes per page of this machine (4096 on x86-64; 16384 or 65536 on some arm64 kernels).
pub fn page_size() -> u64 {
    static SIZE: OnceLock<u64> = OnceLock::new();
    *SIZE.get_or_init(|| {
        // SAFETY: sysconf has no preconditions.
        let n = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        u64::try_from(n).ok().filter(|n| n.is_power_of_two()).unwrap_or(4096)
    })
}

/// Pages needed to hold `bytes`.
pub fn pages_of(bytes: u64) -> u64 {
    bytes.div_ceil(page_size())
}
