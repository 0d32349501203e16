//! What cachestat(2) and mincore(2) tell this process about a file.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::page::{page_size, pages_of};
use crate::{Error, Result, open};

/// cachestat(2) has the same number on every architecture that got it after the tables were unified.
const SYS_CACHESTAT: libc::c_long = 451;

/// Calls cachestat on `path` (6.5; refused with EPERM for files one neither owns nor may write since
/// 6.13). The outer error is about opening the file.
pub fn cachestat(path: &Path) -> Result<io::Result<()>> {
    let (file, _) = open::regular(path, true)?;
    let range: [u64; 2] = [0, 0]; // offset, length: 0 means to the end
    let mut answer = [0u64; 5]; // cached, dirty, writeback, evicted, recently evicted
    // SAFETY: both arrays have the size of the kernel's structures and live until the call returns.
    let rc = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            answer.as_mut_ptr(),
            0 as libc::c_uint,
        )
    };
    Ok(if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) })
}

/// mincore's answer about a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mincore {
    /// Pages of the file (of its first GiB).
    pub pages: u64,
    /// Pages said to be resident. For a file one neither owns nor may write, Linux 5.2 and later say
    /// "all", whatever the truth.
    pub resident: u64,
}

/// Asks mincore about the first GiB of `path`.
pub fn mincore(path: &Path) -> Result<Mincore> {
    let subject = || path.display().to_string();
    let (file, meta) = open::regular(path, true)?;
    let len = meta.len().min(1 << 30);
    if len == 0 {
        return Ok(Mincore { pages: 0, resident: 0 });
    }
    let map = Mapping::new(&file, len as usize).map_err(|e| Error::io("map", subject(), e))?;
    let mut answer = vec![0u8; pages_of(len) as usize];
    debug_assert_eq!(map.len.div_ceil(page_size() as usize), answer.len());
    // SAFETY: the range is the whole live mapping; answer has one byte per page of it.
    let rc = unsafe { libc::mincore(map.start, map.len, answer.as_mut_ptr()) };
    if rc != 0 {
        return Err(Error::last_os("ask mincore about", subject()));
    }
    let resident = answer.iter().filter(|b| **b & 1 != 0).count() as u64;
    Ok(Mincore { pages: answer.len() as u64, resident })
}

struct Mapping {
    start: *mut libc::c_void,
    len: usize,
}

impl Mapping {
    fn new(file: &File, len: usize) -> io::Result<Self> {
        // SAFETY: a fresh private mapping at an address the kernel chooses; it is never dereferenced, so
        // truncation of the file cannot raise SIGBUS.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { start, len }) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and len are those of the mapping made in `new`, which nobody else unmaps.
        unsafe { libc::munmap(self.start, self.len) };
    }
}
