//! Bytes that were asked for and have not come yet, bounded: a fault of the program itself waits behind
//! everything that lies in the device's queue (2.5 to 4.3 ms behind 4 MiB, measured).

use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;

use cold_sys::readahead::await_page;

/// Requests in flight at most, bound or not: beyond the usual depth of a queue `readahead` itself waits.
const MOST: usize = 128;

struct Chunk {
    file: Arc<File>,
    /// An offset in its last page.
    last: u64,
    bytes: u64,
    critical: bool,
}

/// The chunks of one thread in flight, oldest first.
pub(crate) struct Window {
    chunks: VecDeque<Chunk>,
    bytes: u64,
    bound: u64,
}

impl Window {
    /// At most `bound` bytes; 0 for no bound.
    pub(crate) fn new(bound: u64) -> Self {
        Self { chunks: VecDeque::new(), bytes: 0, bound }
    }

    /// Makes room for `bytes` more. Returns how many critical chunks came meanwhile.
    ///
    /// One byte of a chunk's last page is read. That waits exactly until the page has come, for everyone
    /// who may read the file; polling with mincore would need ownership and a clock.
    pub(crate) fn make_room(&mut self, bytes: u64) -> u32 {
        let mut critical = 0;
        while self.chunks.len() >= MOST || (self.bound > 0 && self.bytes > 0 && self.bytes + bytes > self.bound) {
            critical += self.await_oldest();
        }
        critical
    }

    /// Enters a chunk that was asked for.
    pub(crate) fn enter(&mut self, file: Arc<File>, offset: u64, bytes: u64, critical: bool) {
        self.bytes += bytes;
        self.chunks.push_back(Chunk { file, last: (offset + bytes).saturating_sub(1), bytes, critical });
    }

    /// Waits until all have come. Returns how many of them were critical.
    pub(crate) fn drain(&mut self) -> u32 {
        let mut critical = 0;
        while !self.chunks.is_empty() {
            critical += self.await_oldest();
        }
        critical
    }

    fn await_oldest(&mut self) -> u32 {
        let Some(chunk) = self.chunks.pop_front() else { return 0 };
        self.bytes = self.bytes.saturating_sub(chunk.bytes);
        // An error is the disk's; the program will meet it itself.
        let _ = await_page(&chunk.file, chunk.last);
        u32::from(chunk.critical)
    }
}
