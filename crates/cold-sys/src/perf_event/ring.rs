//! The buffer that the kernel shares with the reader of an event.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::OpenPerfEvent;
use crate::page::page_size;

/// Offsets in `struct perf_event_mmap_page`: fixed by the ABI since 2.6.31 (`data_head`, `data_tail`)
/// and 4.1 (`data_offset`, `data_size`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// A mapped buffer of one event, which owns that event.
#[derive(Debug)]
pub struct Ring {
    /// Before the event, so that it goes first.
    memory: MmapRaw,
    event: OpenPerfEvent,
    /// Bytes of the data area, a power of two.
    size: usize,
    /// Records that crossed the end of the buffer are put together here.
    joined: Vec<u8>,
}

impl Ring {
    /// Maps a buffer of at least `bytes` for `event`. `EPERM` when it exceeds what the user may lock
    /// (`kernel.perf_event_mlock_kb` per CPU and `RLIMIT_MEMLOCK`).
    pub fn map(event: OpenPerfEvent, bytes: usize) -> io::Result<Self> {
        let page = page_size() as usize;
        let size = bytes.max(page).checked_next_power_of_two().ok_or(io::ErrorKind::InvalidInput)?;
        let mapped = size.checked_add(page).ok_or(io::ErrorKind::InvalidInput)?;
        let memory = MmapOptions::new().len(mapped).map_raw(&event.fd)?;
        Ok(Self { memory, event, size, joined: Vec::new() })
    }

    /// The event that owns the buffer.
    pub fn event(&self) -> &OpenPerfEvent {
        &self.event
    }

    /// Bytes of the data area.
    pub fn size(&self) -> usize {
        self.size
    }

    pub(super) fn raw_fd(&self) -> RawFd {
        self.event.fd.as_raw_fd()
    }

    /// Hands over everything that is in the buffer, as whole records one after the other, and makes room
    /// for more. Not called when there is nothing. Returns the number of bytes.
    ///
    /// The room is given back after `take` has returned, so it should only copy.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) -> usize {
        let head = self.word(DATA_HEAD).load(Ordering::Acquire);
        let tail = self.word(DATA_TAIL).load(Ordering::Relaxed);
        let held = (head.wrapping_sub(tail) as usize).min(self.size);
        if held == 0 {
            return 0;
        }
        let begin = (tail as usize) & (self.size - 1);
        let first = held.min(self.size - begin);
        if first == held {
            take(self.data(begin, held));
        } else {
            let mut joined = std::mem::take(&mut self.joined);
            joined.clear();
            joined.extend_from_slice(self.data(begin, first));
            joined.extend_from_slice(self.data(0, held - first));
            take(&joined);
            self.joined = joined;
        }
        // Release: everything was read before the kernel may write there again.
        self.word(DATA_TAIL).store(head, Ordering::Release);
        held
    }

    #[allow(clippy::cast_ptr_alignment)] // the base is aligned to a page and the offsets to 8
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets lie in the first page, which is mapped readable and writable for as long as
        // self lives, and are multiples of 8; the kernel accesses them atomically too.
        unsafe { AtomicU64::from_ptr(self.memory.as_mut_ptr().add(offset).cast::<u64>()) }
    }

    /// `len` bytes from `begin` of the data area; both are within its size.
    fn data(&self, begin: usize, len: usize) -> &[u8] {
        debug_assert!(begin + len <= self.size);
        // SAFETY: begin + len is at most `size` (see the only callers), and the data area begins one page
        // after the base. The kernel does not write between tail and head, and these bytes lie there.
        unsafe {
            std::slice::from_raw_parts(self.memory.as_ptr().add(self.memory.len() - self.size + begin), len)
        }
    }
}
