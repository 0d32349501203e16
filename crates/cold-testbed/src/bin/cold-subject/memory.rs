//! Mapped memory, touched page by page.
#![allow(unsafe_code)] // touching a page is the purpose of this program, and needs raw memory

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::{null_mut, read_volatile, write_volatile};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// A private mapping of a whole file.
pub(crate) struct FileMap {
    start: *mut c_void,
    len: usize,
}

impl FileMap {
    /// Maps the file for reading, or as code.
    pub(crate) fn new(file: &File, exec: bool) -> io::Result<Self> {
        let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let prot = if exec { ProtFlags::READ | ProtFlags::EXEC } else { ProtFlags::READ };
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing of ours.
        let start = unsafe { mmap(null_mut(), len, prot, MapFlags::PRIVATE, file, 0)? };
        Ok(Self { start, len })
    }

    /// Switches read-around off.
    pub(crate) fn advise_random(&self) -> io::Result<()> {
        // SAFETY: the range is our own mapping; the advice does not change its content.
        unsafe { madvise(self.start, self.len, Advice::Random)? };
        Ok(())
    }

    /// Reads one byte of a page.
    pub(crate) fn touch(&self, page: usize) -> io::Result<()> {
        let offset = page.checked_mul(page_size()).filter(|&o| o < self.len);
        let offset = offset.ok_or_else(|| io::Error::other(format!("page {page} lies beyond the file")))?;
        // SAFETY: the offset is inside the mapping, which lives as long as `self`; bytes that another
        // process changes meanwhile are read as a volatile u8, of which every value is valid.
        unsafe { read_volatile(self.start.cast::<u8>().add(offset)) };
        Ok(())
    }

    /// Reads one byte of every page.
    pub(crate) fn touch_all(&self) -> io::Result<()> {
        (0..self.len.div_ceil(page_size())).try_for_each(|page| self.touch(page))
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        // SAFETY: the range is our own mapping, and no reference into it exists.
        let _ = unsafe { munmap(self.start, self.len) };
    }
}

/// Writes one byte of every page of `len` bytes of new memory, kept to the end of the process.
pub(crate) fn touch_anonymous(len: usize) -> io::Result<()> {
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice aliases nothing of ours.
    let start = unsafe { mmap_anonymous(null_mut(), len, prot, MapFlags::PRIVATE)? };
    for offset in (0..len).step_by(page_size()) {
        // SAFETY: the offset is inside the mapping, which is writable and never unmapped.
        unsafe { write_volatile(start.cast::<u8>().add(offset), 1) };
    }
    Ok(())
}

fn page_size() -> usize {
    usize::try_from(cold_sys::page::page_size()).unwrap_or(4096)
}
