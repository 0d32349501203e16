//! The part of bpf(2) that libbpf's safe wrapper lacks.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::{Error, Result};

/// `BPF_ENABLE_STATS` and `BPF_STATS_RUN_TIME` of `linux/bpf.h`.
const ENABLE_STATS: libc::c_int = 32;
const RUN_TIME: u32 = 0;

/// Makes the kernel count runs and time of all BPF programs as long as the descriptor is open (5.8;
/// `CAP_SYS_ADMIN`). Costs each run about 40 ns.
pub fn enable_statistics() -> Result<OwnedFd> {
    let kind = RUN_TIME;
    // SAFETY: the kernel reads the four bytes of `kind`, all of this command's attributes.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, ENABLE_STATS, &raw const kind, size_of_val(&kind)) };
    match i32::try_from(fd) {
        // SAFETY: the kernel has just made this descriptor, and nobody else has it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Error::Io {
            action: "count the cost of",
            subject: "BPF programs".into(),
            source: io::Error::last_os_error(),
        }),
    }
}
