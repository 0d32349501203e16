//! A page of numbers that a process and its copies share, and waiting for them to change.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags};

use crate::{Error, Result};

/// Numbers, all 0 at first, shared with every process forked after this was made, and with who opens it by its
/// descriptor: some of 32 bits, and some of 64.
#[derive(Debug)]
pub struct SharedWords {
    at: *const AtomicU32,
    /// What others open it by; `None` where only copies shall share it.
    fd: Option<OwnedFd>,
}

const BYTES: usize = 4096;
/// From here on numbers have 64 bits.
const WIDE_FROM: usize = BYTES / 2;

// SAFETY: the memory holds atomics only and lives as long as the value.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// How many there are of 32 bits.
    pub const COUNT: usize = WIDE_FROM / 4;
    /// How many there are of 64 bits.
    pub const WIDE: usize = (BYTES - WIDE_FROM) / 8;

    /// A new page.
    pub fn new() -> Result<Self> {
        Self::map(None)
    }

    /// A new page that another process can [`Self::open`] by [`Self::fd`].
    pub fn with_fd() -> Result<Self> {
        let refused = |e: rustix::io::Errno| Error::io("make", "a shared page", e.into());
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create("cold-shared", flags).map_err(refused)?;
        rustix::fs::ftruncate(&fd, BYTES as u64).map_err(refused)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK).map_err(refused)?;
        Self::map(Some(fd))
    }

    /// The page that [`Self::with_fd`] made in another process. One that could be cut short is refused.
    pub fn open(fd: OwnedFd) -> Result<Self> {
        let no_page = || Error::io("map", "a shared page", io::ErrorKind::InvalidData.into());
        let sealed = rustix::fs::fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
        let long = rustix::fs::fstat(&fd)
            .is_ok_and(|stat| u64::try_from(stat.st_size).is_ok_and(|size| size >= BYTES as u64));
        if sealed && long { Self::map(Some(fd)) } else { Err(no_page()) }
    }

    fn map(fd: Option<OwnedFd>) -> Result<Self> {
        let (flags, number) = match &fd {
            Some(fd) => (libc::MAP_SHARED, fd.as_raw_fd()),
            None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
        };
        // SAFETY: a new mapping of one page, which its file has and keeps (sealed); nothing existing is touched.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, number, 0)
        };
        if at == libc::MAP_FAILED {
            return Err(Error::last_os("map", "a shared page"));
        }
        Ok(Self { at: at.cast_const().cast(), fd })
    }

    /// By what another process can open it, where it was made for that.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// The numbers of 64 bits, [`Self::WIDE`]; every process that shares the page sees and changes the same.
    pub fn wide(&self) -> &[AtomicU64] {
        // SAFETY: as in `words`; this half begins at a multiple of 8 bytes.
        unsafe { std::slice::from_raw_parts(self.at.byte_add(WIDE_FROM).cast(), Self::WIDE) }
    }

    /// The numbers of 32 bits, [`Self::COUNT`]; every process that shares the page sees and changes the same.
    pub fn words(&self) -> &[AtomicU32] {
        // SAFETY: the mapping has BYTES bytes, aligned to a page, for as long as `self` lives; any bits are a valid
        // number. Those of other widths lie elsewhere.
        unsafe { std::slice::from_raw_parts(self.at, Self::COUNT) }
    }

    /// Waits until number `index` may differ from `value`, at most `limit`.
    pub fn wait(&self, index: usize, value: u32, limit: Duration) {
        let Some(word) = self.words().get(index) else { return };
        if word.load(Ordering::Acquire) != value {
            return;
        }
        let timeout = libc::timespec {
            tv_sec: limit.as_secs().cast_signed(),
            tv_nsec: i64::from(limit.subsec_nanos()),
        };
        // SAFETY: `word` and `timeout` live across the call. Not the private kind: other processes wake us.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                std::ptr::from_ref(word),
                libc::FUTEX_WAIT,
                value,
                &raw const timeout,
            );
        }
    }

    /// Sets number `index` and wakes who waits for it.
    pub fn set_and_wake(&self, index: usize, value: u32) {
        let Some(word) = self.words().get(index) else { return };
        word.store(value, Ordering::Release);
        // SAFETY: `word` lives across the call.
        unsafe { libc::syscall(libc::SYS_futex, std::ptr::from_ref(word), libc::FUTEX_WAKE, i32::MAX) };
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `new`; no reference to it outlives `self`.
        unsafe { libc::munmap(self.at.cast_mut().cast(), BYTES) };
    }
}

/// A file in memory with these bytes, for a process that gets its descriptor; read from its beginning on.
pub fn file_of(bytes: &[u8]) -> Result<File> {
    let refused = |e| Error::io("make", "a file in memory", e);
    let fd = rustix::fs::memfd_create("cold-bytes", MemfdFlags::CLOEXEC).map_err(|e| refused(e.into()))?;
    let mut file = File::from(fd);
    file.write_all(bytes).and_then(|()| file.rewind()).map_err(refused)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_process_writes_into_the_same_page() {
        let shared = SharedWords::new().unwrap();
        assert_eq!(shared.words().len(), SharedWords::COUNT);
        assert!(shared.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
        // SAFETY: the copy writes to one word and ends.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            shared.set_and_wake(SharedWords::COUNT - 1, 7);
            // SAFETY: ends the copy.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: a child of this test; no status is wanted.
        assert_eq!(unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) }, pid);
        assert_eq!(shared.words()[SharedWords::COUNT - 1].load(Ordering::Acquire), 7);
    }

    #[test]
    fn who_opens_it_by_its_descriptor_sees_the_same_and_none_that_could_be_cut_short() {
        let made = SharedWords::with_fd().unwrap();
        let fd = || made.fd().unwrap().try_clone_to_owned().unwrap();
        let opened = SharedWords::open(fd()).unwrap();
        opened.wide()[SharedWords::WIDE - 1].store(1 << 40, Ordering::Relaxed);
        opened.words()[SharedWords::COUNT - 1].store(9, Ordering::Relaxed);
        assert_eq!(made.wide()[SharedWords::WIDE - 1].load(Ordering::Relaxed), 1 << 40);
        assert_eq!(made.words()[SharedWords::COUNT - 1].load(Ordering::Relaxed), 9);
        assert!(made.wide()[0].load(Ordering::Relaxed) == 0 && SharedWords::new().unwrap().fd().is_none());
        assert!(rustix::fs::ftruncate(fd(), 0).is_err(), "it keeps its length");
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let other = || rustix::fs::memfd_create("x", flags).unwrap();
        let unsealed = other();
        rustix::fs::ftruncate(&unsealed, BYTES as u64).unwrap();
        assert!(SharedWords::open(unsealed).is_err());
        let short = other();
        rustix::fs::fcntl_add_seals(&short, SealFlags::SHRINK).unwrap();
        assert!(SharedWords::open(short).is_err());
    }

    #[test]
    fn nobody_waits_for_what_is_so_already_or_is_no_number() {
        let shared = SharedWords::new().unwrap();
        let for_ever = Duration::from_secs(i64::MAX.cast_unsigned());
        shared.wait(0, 1, for_ever);
        shared.wait(SharedWords::COUNT, 0, for_ever);
        shared.set_and_wake(SharedWords::COUNT, 1);
        shared.wait(0, 0, Duration::ZERO);
        assert!(shared.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }
}
