//! A file's bytes in place.

use std::fs::File;
use std::os::fd::AsRawFd;

use memmap2::MmapOptions;

use crate::{Error, Result};

pub use memmap2::{Mmap, MmapMut};

/// Maps the first `len` bytes of `file`, which has as many, for reading.
///
/// For files that are replaced by rename and never written in place, by owners whom the caller trusts: one
/// that is cut short meanwhile ends this process by SIGBUS.
pub fn whole(file: &File, len: usize) -> Result<Mmap> {
    // SAFETY: as said above, nobody writes to it.
    let map = unsafe { MmapOptions::new().len(len).map_copy_read_only(file) };
    map.map_err(|e| Error::io("map", format!("descriptor {}", file.as_raw_fd()), e))
}

/// Zeroed memory of at least one byte that begins at a page: buffers for direct I/O, stacks.
pub fn pages(len: usize) -> Result<MmapMut> {
    let map = MmapMut::map_anon(len.max(1));
    map.map_err(|e| Error::io("map", format!("{len} bytes of memory"), e))
}
