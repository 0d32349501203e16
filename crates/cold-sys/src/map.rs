//! A file's bytes in place.

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::{Error, Result};

/// A whole file, mapped for reading.
///
/// For files that are replaced by rename and never written in place, by owners whom the caller trusts: one
/// that is cut short meanwhile ends this process by SIGBUS.
#[derive(Debug)]
pub struct Mapping {
    at: *const u8,
    len: usize,
}

// SAFETY: the memory is only read and lives as long as the value.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of `file`, which has as many.
    pub fn of(file: &File, len: usize) -> Result<Self> {
        if len == 0 {
            return Ok(Self { at: std::ptr::NonNull::dangling().as_ptr(), len });
        }
        let fd = file.as_raw_fd();
        // SAFETY: a new private mapping; nothing existing is touched.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_PRIVATE, fd, 0) };
        if at == libc::MAP_FAILED {
            return Err(Error::last_os("map", format!("descriptor {fd}")));
        }
        Ok(Self { at: at.cast_const().cast(), len })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has `len` readable bytes for as long as `self` lives, or `len` is 0 and the
        // pointer is aligned and not null.
        unsafe { std::slice::from_raw_parts(self.at, self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the mapping made by `of`; no reference to it outlives `self`.
            unsafe { libc::munmap(self.at.cast_mut().cast(), self.len) };
        }
    }
}
