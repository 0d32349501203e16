//! How full a BPF ring buffer is.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use crate::{Error, Result};

/// The two pages in front of a ring buffer (`BPF_MAP_TYPE_RINGBUF`): how many bytes were taken out of it since it was
/// made, and how many were put in (`struct bpf_ringbuf` in kernel/bpf/ringbuf.c).
#[derive(Debug)]
pub struct RingPositions {
    memory: MmapRaw,
}

impl RingPositions {
    /// Those of this map.
    pub fn of(map: impl AsFd) -> Result<Self> {
        let fd = map.as_fd().as_raw_fd();
        let memory = MmapOptions::new()
            .len(2 * page())
            .map_raw_read_only(fd)
            .map_err(|e| Error::io("map the positions of", format!("ring buffer {fd}"), e))?;
        Ok(Self { memory })
    }

    /// Bytes put in so far, headers included: it changes with every record.
    pub fn put_in(&self) -> u64 {
        self.word(page())
    }

    /// Bytes not taken out yet.
    pub fn waiting(&self) -> u64 {
        let taken = self.word(0);
        self.put_in().saturating_sub(taken)
    }

    #[allow(clippy::cast_ptr_alignment)] // a mapping begins at a page, and so do both words
    fn word(&self, offset: usize) -> u64 {
        // SAFETY: both words lie in the mapping's two pages, aligned to pages, for as long as `self` lives; the
        // kernel and the reader of the ring write them as whole words.
        unsafe { AtomicU64::from_ptr(self.memory.as_mut_ptr().add(offset).cast::<u64>()) }
            .load(Ordering::Acquire)
    }
}

fn page() -> usize {
    crate::page::page_size() as usize
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn positions_are_read_where_the_kernel_writes_them() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 * page() as u64).unwrap();
        let positions = RingPositions::of(&file).unwrap();
        assert_eq!((positions.put_in(), positions.waiting()), (0, 0));
        file.write_all_at(&5000_u64.to_ne_bytes(), page() as u64).unwrap();
        assert_eq!((positions.put_in(), positions.waiting()), (5000, 5000));
        file.write_all_at(&4096_u64.to_ne_bytes(), 0).unwrap();
        assert_eq!((positions.put_in(), positions.waiting()), (5000, 904));
    }

    #[test]
    fn what_cannot_be_mapped_is_refused() {
        let (end, _other) = std::io::pipe().unwrap();
        assert!(RingPositions::of(&end).is_err());
    }
}
