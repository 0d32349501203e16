//! What a file is, whatever its path.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

/// Identity of a file on this machine: `st_dev` and `st_ino`. Reused once the file is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileId {
    /// `st_dev` as `stat` gives it.
    pub dev: u64,
    /// `st_ino` as `stat` gives it; unique only within `dev`.
    pub ino: u64,
}

/// What changes when somebody writes a file or replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Length in bytes (`st_size`).
    pub size: u64,
    /// Modification time, ns since 1970.
    pub mtime_ns: i64,
}

impl Content {
    /// Of the file that `meta` describes.
    pub fn of(meta: &Metadata) -> Self {
        Self { size: meta.len(), mtime_ns: mtime_ns(meta) }
    }
}

/// Modification time, ns since 1970; the years 1678 to 2262 fit.
pub fn mtime_ns(meta: &Metadata) -> i64 {
    meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec())
}

impl FileId {
    /// The identity in a `stat` result.
    pub fn of(meta: &Metadata) -> Self {
        Self { dev: meta.dev(), ino: meta.ino() }
    }
}
