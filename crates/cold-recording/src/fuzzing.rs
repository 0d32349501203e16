//! Readers of untrusted bytes for fuzzers: any bytes, no panic, bounded memory.

use std::fs::File;
use std::path::Path;

use crate::columns::decode;
use crate::log::Reader;
use crate::schema::tables;

/// A log of raw events; `file` holds it.
///
/// # Panics
/// When more was read than there is.
pub fn log(file: File, bytes: u64) {
    if let Ok(mut log) = Reader::of(file, bytes, Path::new("fuzz")) {
        let read: u64 = log.by_ref().map(|b| b.payload.len() as u64).sum();
        assert!(read + log.end().unreadable_bytes <= bytes);
    }
}

/// Bytes in place of `recording.json`; whether they are one does not matter.
pub fn manifest(bytes: &[u8]) {
    let _ = crate::manifest::parse(bytes, Path::new("fuzz"));
}

/// Bytes in place of `order.json`; whether they are one does not matter.
pub fn order(bytes: &[u8]) {
    let _ = crate::order::parse(bytes, Path::new("fuzz"));
}

/// A table in Parquet, behind its checksum, read as tables with each kind of column. Says how many rows it
/// had.
pub fn table(file: &File) -> usize {
    let path = Path::new("fuzz");
    let again = || file.try_clone().ok();
    let processes = again().and_then(|f| decode(&tables::PROCESSES, f, path).ok()).map_or(0, |r| r.len());
    let lookups = again().and_then(|f| decode(&tables::LOOKUPS, f, path).ok()).map_or(0, |r| r.len());
    let frames = again().and_then(|f| decode(&tables::STACK_FRAMES, f, path).ok()).map_or(0, |r| r.len());
    let functions =
        again().and_then(|f| decode(&tables::order::FUNCTIONS, f, path).ok()).map_or(0, |r| r.len());
    let entries = again().and_then(|f| decode(&tables::order::ENTRIES, f, path).ok()).map_or(0, |r| r.len());
    processes + lookups + frames + functions + entries
}
