//! Mapped files that may be touched, page by page and byte by byte, mapped in any of the ways programs do.
//!
//! Reads are volatile, so that a touch whose value nobody uses still happens. A file that is cut short
//! while it is mapped ends the process with SIGBUS: map files of your own, or in a process of its own.

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::{Error, Result};

/// The same on every architecture; `libc` does not have it for musl.
const MADV_COLLAPSE: libc::c_int = 25;

/// A function that does nothing but return, as it lies in memory; `None` on processors for which it is not known.
pub const RETURN: Option<[u8; 4]> = if cfg!(target_arch = "x86_64") {
    // ret, and three bytes that are never reached.
    Some([0xc3, 0xcc, 0xcc, 0xcc])
} else if cfg!(target_arch = "aarch64") {
    Some([0xc0, 0x03, 0x5f, 0xd6])
} else {
    None
};

/// How a file is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MapKind {
    /// `PROT_EXEC` beside `PROT_READ`: since Linux 6.17 the kernel reads code in another way than data.
    pub exec: bool,
    /// `PROT_WRITE`; with `shared` the writes reach the file.
    pub write: bool,
    /// `MAP_SHARED` instead of `MAP_PRIVATE`.
    pub shared: bool,
}

/// Which part of a file is mapped, and where to. Bytes, multiples of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MapPlace {
    /// First byte of the file.
    pub offset: u64,
    /// Address of that byte, where nothing else is mapped; 0: of the kernel's choice. Page faults map around
    /// themselves by address, so the same touches may do different things elsewhere.
    pub address: u64,
}

/// What the kernel is told of a mapping (madvise(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapAdvice {
    /// Nothing: takes back what was told.
    Normal,
    /// Read in huge pages.
    Huge,
    /// Not in huge pages.
    NotHuge,
    /// No read-around, and touched pages are evicted first.
    Random,
    /// Read ahead only, and touched pages are evicted first.
    Sequential,
    /// Start reading the whole range.
    WillNeed,
    /// Fault all pages in for reading (Linux 5.14).
    PopulateRead,
    /// Take the pages out of the mapping; what was not written comes back as it was.
    Forget,
    /// Put huge pages in the place of small ones, now (Linux 6.1).
    Collapse,
}

/// A mapped file.
#[derive(Debug)]
pub struct MappedFile {
    at: *mut u8,
    len: usize,
    kind: MapKind,
}

// SAFETY: the mapping is plain bytes, read and written by volatile or bulk copies only, and unmapped once.
unsafe impl Send for MappedFile {}

impl MappedFile {
    /// Maps the first `len` bytes. Nothing is read yet.
    pub fn new(file: &File, len: u64, kind: MapKind) -> Result<Self> {
        Self::at(file, MapPlace::default(), len, kind)
    }

    /// Maps `len` bytes of a part of the file. An error where the address is taken.
    pub fn at(file: &File, place: MapPlace, len: u64, kind: MapKind) -> Result<Self> {
        let fd = file.as_raw_fd();
        let subject = || format!("descriptor {fd}");
        let len = usize::try_from(len)
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| Error::io("map", subject(), std::io::ErrorKind::InvalidInput.into()))?;
        let mut protection = libc::PROT_READ;
        if kind.exec {
            protection |= libc::PROT_EXEC;
        }
        if kind.write {
            protection |= libc::PROT_WRITE;
        }
        let mut flags = if kind.shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
        if place.address != 0 {
            flags |= libc::MAP_FIXED_NOREPLACE;
        }
        let (address, offset) = (place.address as usize as *mut _, place.offset.cast_signed());
        // SAFETY: a new mapping at an address of the kernel's choice, or at one where nothing is (NOREPLACE);
        // nothing existing is touched.
        let at = unsafe { libc::mmap(address, len, protection, flags, fd, offset) };
        if at == libc::MAP_FAILED {
            return Err(Error::last_os("map", subject()));
        }
        Ok(Self { at: at.cast(), len, kind })
    }

    /// Bytes mapped; never 0.
    #[allow(clippy::len_without_is_empty)] // a mapping is never empty
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Where its first byte lies.
    pub fn address(&self) -> u64 {
        self.at as u64
    }

    fn place(&self, offset: u64, len: usize) -> Option<*mut u8> {
        let from = usize::try_from(offset).ok()?;
        let end = from.checked_add(len)?;
        // SAFETY: from <= end <= the mapping's length, so the pointer stays inside it.
        (end <= self.len).then(|| unsafe { self.at.add(from) })
    }

    /// Reads one byte, as a program does that touches a page; `None` beyond the end.
    #[inline]
    pub fn touch(&self, offset: u64) -> Option<u8> {
        // SAFETY: `place` checked that the byte lies in the mapping, which is readable.
        self.place(offset, 1).map(|at| unsafe { at.read_volatile() })
    }

    /// Runs the code at `offset`, as a program does that enters a function there, if it is [`RETURN`] and nothing else;
    /// false where it is not, beyond the end, in a mapping without `exec` or on another processor.
    ///
    /// The instruction is looked at first, by a load: nothing else is ever run. Only a private mapping of a file that
    /// nobody else writes keeps it that way until the call: map a file of your own.
    #[inline]
    pub fn enter(&self, offset: u64) -> bool {
        let (Some(code), true) = (RETURN, self.kind.exec) else { return false };
        let mut there = [0; 4];
        if !self.copy_out(offset, &mut there) || there != code {
            return false;
        }
        let Some(at) = self.place(offset, code.len()).filter(|at| (*at as usize).is_multiple_of(4)) else {
            return false;
        };
        // SAFETY: the mapping is executable, and the instruction there is a plain return, by the calling convention of C
        // a whole function without arguments or results.
        unsafe { std::mem::transmute::<*mut u8, extern "C" fn()>(at)() };
        true
    }

    /// Writes one byte; false beyond the end or where the mapping is not for writing.
    #[inline]
    pub fn poke(&mut self, offset: u64, value: u8) -> bool {
        let Some(at) = self.place(offset, 1).filter(|_| self.kind.write) else { return false };
        // SAFETY: inside the mapping, which is writable; `self` is borrowed mutably.
        unsafe { at.write_volatile(value) };
        true
    }

    /// Copies bytes out; false when they do not all lie in the mapping.
    pub fn copy_out(&self, offset: u64, to: &mut [u8]) -> bool {
        let Some(at) = self.place(offset, to.len()) else { return false };
        // SAFETY: the source lies in the mapping; `to` is not part of it, as no reference into it is given out.
        unsafe { std::ptr::copy_nonoverlapping(at, to.as_mut_ptr(), to.len()) };
        true
    }

    /// Copies bytes in; false when they do not all lie in it or it is not for writing.
    pub fn copy_in(&mut self, offset: u64, from: &[u8]) -> bool {
        let Some(at) = self.place(offset, from.len()).filter(|_| self.kind.write) else { return false };
        // SAFETY: the destination lies in the writable mapping; `from` is not part of it.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), at, from.len()) };
        true
    }

    /// Gives advice for `offset..offset+len`, cut at the mapping's end; `offset` is a multiple of a page.
    pub fn advise(&self, advice: MapAdvice, offset: u64, len: u64) -> Result<()> {
        let what = match advice {
            MapAdvice::Normal => libc::MADV_NORMAL,
            MapAdvice::Huge => libc::MADV_HUGEPAGE,
            MapAdvice::Random => libc::MADV_RANDOM,
            MapAdvice::Sequential => libc::MADV_SEQUENTIAL,
            MapAdvice::WillNeed => libc::MADV_WILLNEED,
            MapAdvice::PopulateRead => libc::MADV_POPULATE_READ,
            MapAdvice::NotHuge => libc::MADV_NOHUGEPAGE,
            MapAdvice::Forget => libc::MADV_DONTNEED,
            MapAdvice::Collapse => MADV_COLLAPSE,
        };
        let len = len.min(self.len().saturating_sub(offset)) as usize;
        let Some(at) = self.place(offset, len) else { return Ok(()) };
        // SAFETY: the range lies in our own mapping, and none of these kinds changes its content.
        match unsafe { libc::madvise(at.cast(), len, what) } {
            0 => Ok(()),
            _ => Err(Error::last_os("advise about", "a mapping")),
        }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made by `new`; no reference into it exists.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_part_is_mapped_at_an_address_where_nothing_else_is() {
        let page = crate::page::page_size();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; page as usize]).unwrap();
        file.write_all(&[2; 10]).unwrap();
        let place = MapPlace { offset: page, address: (1 << 40) + 3 * page };
        let map = MappedFile::at(&file, place, 10, MapKind::default()).unwrap();
        assert_eq!((map.touch(0), map.at as u64), (Some(2), place.address));
        assert!(MappedFile::at(&file, place, 10, MapKind::default()).is_err(), "taken");
    }

    #[test]
    fn nothing_is_entered_but_a_return_in_a_mapping_for_code() {
        let Some(code) = RETURN else { return };
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let page = crate::page::page_size();
        file.write_all(&code).unwrap();
        file.write_all(&[0xcc; 12]).unwrap();
        file.set_len(2 * page).unwrap();
        let data = MappedFile::new(&file, 2 * page, MapKind::default()).unwrap();
        assert!(!data.enter(0), "no code");
        let map = MappedFile::new(&file, 2 * page, MapKind { exec: true, ..MapKind::default() }).unwrap();
        assert!(map.enter(0));
        for (at, why) in [(4, "other code"), (page, "nothing"), (1, "not at a multiple of four")] {
            assert!(!map.enter(at), "{why}");
        }
        for beyond in [2 * page - 2, 2 * page, u64::MAX] {
            assert!(!map.enter(beyond));
        }
    }

    #[test]
    fn a_file_is_read_and_written_through_its_mapping_and_never_beyond() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 5000]).unwrap();
        let kind = MapKind { write: true, shared: true, exec: false };
        let mut map = MappedFile::new(&file, 5000, kind).unwrap();
        assert_eq!((map.touch(0), map.touch(4999), map.touch(5000)), (Some(7), Some(7), None));
        assert!(map.poke(4096, 9) && !map.poke(5000, 9));
        assert!(map.copy_in(10, b"abc") && !map.copy_in(4998, b"abc"));
        let mut out = [0; 3];
        assert!(map.copy_out(10, &mut out) && &out == b"abc" && !map.copy_out(u64::MAX, &mut out));
        map.advise(MapAdvice::Random, 0, u64::MAX).unwrap();
        let mut told = [0; 5000];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut told, 0).unwrap();
        assert_eq!((told[4096], &told[10..13]), (9, &b"abc"[..]));
        let only_read = MapKind::default();
        assert!(!MappedFile::new(&file, 5000, only_read).unwrap().poke(0, 1));
        assert!(MappedFile::new(&file, 0, only_read).is_err());
    }
}
