//! Where things stand in each version: bytes from the beginning of the expanded file.

use super::Version;

/// Behind it stand the offsets of the blocks, then what the versions differ in.
pub(super) const INFORMATION: u64 = 84;

/// One version's places. `None`: it has no such field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Where the table of files begins, which tells the variants of version 30 apart.
    pub(super) files: u32,
    pub(super) directories: Option<u64>,
    /// Run times, and how many slots.
    pub(super) run_times: (u64, u64),
    pub(super) run_count: u64,
    pub(super) threshold: u64,
    /// Offset and size of the hashed string.
    pub(super) hash_string: Option<u64>,
    /// Bytes of an entry of each table.
    pub(super) file: u64,
    pub(super) record: u64,
    pub(super) volume: u64,
}

impl Layout {
    pub(super) const fn of(version: Version) -> Self {
        let eight = Self {
            files: 304,
            directories: Some(120),
            run_times: (128, 8),
            run_count: 208,
            threshold: 212,
            hash_string: None,
            file: 32,
            record: 12,
            volume: 104,
        };
        match version {
            Version::V17 => Self {
                files: 152,
                directories: None,
                run_times: (120, 1),
                run_count: 144,
                threshold: 148,
                file: 20,
                volume: 40,
                ..eight
            },
            Version::V23 => Self { files: 240, run_times: (128, 1), run_count: 152, threshold: 156, ..eight },
            Version::V26 => eight,
            Version::V30First => Self { hash_string: Some(220), record: 8, volume: 96, ..eight },
            Version::V30 | Version::V31 => Self {
                files: 296,
                run_count: 200,
                threshold: 204,
                hash_string: Some(212),
                record: 8,
                volume: 96,
                ..eight
            },
        }
    }

    /// The version of this number whose table of files begins there.
    pub(super) fn find(number: u32, files: u32) -> Option<Version> {
        Version::ALL.into_iter().find(|v| v.number() == number && Self::of(*v).files == files)
    }
}
