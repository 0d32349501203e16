//! Readers that keep a disk busy, as strangers do.

use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the readers, also where the work beside them panics: else a failed test would wait for them for ever.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads scattered pages of a file past the cache, so many at a time, while `work` runs; what it gives.
///
/// # Panics
///
/// Where the file cannot be read so (one in memory).
pub fn beside_readers<T>(path: &Path, readers: u64, work: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).expect("open");
    let pages = file.metadata().expect("stat").len() / 4096;
    let read = |mut place: u64| {
        let mut buffer = vec![0_u8; 8192];
        let at = buffer.as_ptr().align_offset(4096);
        while !ended.load(Ordering::Relaxed) {
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            file.read_at(&mut buffer[at..at + 4096], (place >> 20) % pages * 4096).expect("read");
        }
    };
    std::thread::scope(|scope| {
        for n in 0..readers {
            let read = &read;
            scope.spawn(move || read(n));
        }
        let _ends = Ends(&ended);
        work()
    })
}
