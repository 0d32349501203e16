//! A page of numbers that a process and its copies share, and waiting for them to change.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::{Error, Result};

/// Numbers of 32 bits, all 0 at first, shared with every process forked after this was made.
#[derive(Debug)]
pub struct SharedWords {
    at: *const AtomicU32,
}

const BYTES: usize = 4096;

// SAFETY: the memory holds atomics only and lives as long as the value.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// How many there are.
    pub const COUNT: usize = BYTES / 4;

    /// A new page.
    pub fn new() -> Result<Self> {
        // SAFETY: a new anonymous mapping of one page; nothing existing is touched.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(Error::last_os("map", "a shared page"));
        }
        Ok(Self { at: at.cast_const().cast() })
    }

    /// All of them, [`Self::COUNT`]; every process that shares the page sees and changes the same.
    pub fn words(&self) -> &[AtomicU32] {
        // SAFETY: the mapping has BYTES zeroed bytes, aligned to a page, for as long as `self` lives; any
        // bits are a valid AtomicU32.
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
