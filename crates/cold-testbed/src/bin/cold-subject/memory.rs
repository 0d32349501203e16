//! Mapped memory, touched page by page.
#![allow(unsafe_code)] // touching a page is the purpose of this program, and needs raw memory

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
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
        let prot = if exec { ProtFlags::READ | ProtFlags::EXEC } else { ProtFlags::READ };
        Self::with(file, prot, MapFlags::PRIVATE)
    }

    /// Maps the file with all its pages at once.
    pub(crate) fn populated(file: &File) -> io::Result<Self> {
        Self::with(file, ProtFlags::READ, MapFlags::PRIVATE | MapFlags::POPULATE)
    }

    /// Maps the file so.
    pub(crate) fn with(file: &File, prot: ProtFlags, flags: MapFlags) -> io::Result<Self> {
        let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing of ours.
        let start = unsafe { mmap(null_mut(), len, prot, flags, file, 0)? };
        Ok(Self { start, len })
    }

    /// Asks for all its pages.
    pub(crate) fn advise_willneed(&self) -> io::Result<()> {
        // SAFETY: the range is our own mapping; the advice does not change its content.
        unsafe { madvise(self.start, self.len, Advice::WillNeed)? };
        Ok(())
    }

    /// Switches read-around off.
    pub(crate) fn advise_random(&self) -> io::Result<()> {
        self.advise(Advice::Random)
    }

    /// Gives such advice for some of its pages.
    pub(crate) fn advise_part(&self, advice: Advice, first: usize, pages: usize) -> io::Result<()> {
        let bytes = pages.saturating_mul(page_size());
        let inside = first.checked_mul(page_size()).filter(|at| at.saturating_add(bytes) <= self.len);
        let at = inside.ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: the range is inside our own mapping; callers give no advice that changes its content.
        unsafe { madvise(self.start.byte_add(at), bytes, advice)? };
        Ok(())
    }

    /// Takes its pages out of the mapping; nothing was written to them.
    pub(crate) fn forget(&self) -> io::Result<()> {
        // SAFETY: the range is our own mapping of a file, whose pages come back as they were.
        unsafe { madvise(self.start, self.len, Advice::LinuxDontNeed)? };
        Ok(())
    }

    /// Gives advice that does not change what the mapping holds.
    pub(crate) fn advise(&self, advice: Advice) -> io::Result<()> {
        // SAFETY: the range is our own mapping; callers give no advice that changes its content.
        unsafe { madvise(self.start, self.len, advice)? };
        Ok(())
    }

    /// Keeps all its pages in memory.
    pub(crate) fn lock(&self) -> io::Result<()> {
        // SAFETY: the range is our own mapping.
        unsafe { rustix::mm::mlock(self.start, self.len)? };
        Ok(())
    }

    /// Writes the first byte of a page of a writable mapping.
    pub(crate) fn write(&self, page: usize) -> io::Result<()> {
        let offset = page.checked_mul(page_size()).filter(|&o| o < self.len);
        let offset = offset.ok_or_else(|| io::Error::other(format!("page {page} lies beyond the file")))?;
        // SAFETY: the offset is inside the mapping, which lives as long as `self`.
        unsafe { write_volatile(self.start.cast::<u8>().add(offset), 7) };
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

/// Both ends of a pipe, the one to read from first.
pub(crate) fn pipe() -> io::Result<(File, File)> {
    let mut ends = [-1; 2];
    // SAFETY: the array has room for the two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: they were just made, and nobody else has them.
    Ok(unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) })
}

/// Moves bytes of a file, from `at` on, into a pipe.
pub(crate) fn splice(from: &File, at: &mut i64, into: &File, bytes: usize) -> io::Result<usize> {
    // SAFETY: `at` is valid for the call; a pipe has no position.
    let n = unsafe { libc::splice(from.as_raw_fd(), at, into.as_raw_fd(), null_mut(), bytes, 0) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

// SAFETY: the mapping is only read, and it stays until `drop`, which needs the value itself.
unsafe impl Sync for FileMap {}

/// Many mappings of one page each, side by side: neighbours show the file's pages in falling order, so
/// that the kernel cannot join them, and a fault can map nothing but its own page.
pub(crate) struct Pieces {
    start: *mut c_void,
    number: usize,
}

impl Pieces {
    /// So many mappings of a file.
    pub(crate) fn new(file: &File, number: usize) -> io::Result<Self> {
        let pages = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)? / page_size();
        if pages < 3 {
            return Err(io::Error::other("the file needs at least 3 pages"));
        }
        let len = number * page_size();
        // SAFETY: a new mapping at an address of the kernel's choice aliases nothing of ours.
        let start = unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE)? };
        let me = Self { start, number };
        for i in 0..number {
            let offset = (pages - 1 - i % pages) * page_size();
            // SAFETY: the page lies inside the mapping made above, which is ours alone.
            unsafe {
                let flags = MapFlags::PRIVATE | MapFlags::FIXED;
                let at = me.start.byte_add(i * page_size());
                mmap(at, page_size(), ProtFlags::READ, flags, file, offset as u64)?;
            }
        }
        Ok(me)
    }

    /// Reads one byte of every page.
    pub(crate) fn touch_all(&self) {
        for i in 0..self.number {
            // SAFETY: the page lies inside the mapping; see `FileMap::touch`.
            unsafe { read_volatile(self.start.cast::<u8>().add(i * page_size())) };
        }
    }

    /// Takes the pages out of the page table; they stay cached.
    pub(crate) fn empty(&self) -> io::Result<()> {
        // SAFETY: private mappings that are never written lose nothing.
        unsafe { madvise(self.start, self.number * page_size(), Advice::LinuxDontNeed)? };
        Ok(())
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        // SAFETY: the range is our own, and no reference into it exists.
        let _ = unsafe { munmap(self.start, self.number * page_size()) };
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
