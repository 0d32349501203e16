//! Where each field lies. docs/formats/plan.md has the same tables; a test compares them.

use super::FormatError;

/// Bytes of the header before the section table.
pub(super) const HEADER: usize = 32;
/// Bytes of an entry of the section table.
pub(super) const ENTRY: usize = 32;
/// Sections, in the order of their ids (from 1) and of their places.
pub(super) const SECTIONS: [Section; 6] = [
    Section { name: "facts", record: META, most: 1 },
    Section { name: "files", record: FILE, most: super::MAX_FILES },
    Section { name: "steps", record: STEP, most: super::MAX_STEPS },
    Section { name: "depths", record: DEPTH, most: super::MAX_DEPTHS },
    Section { name: "texts", record: 1, most: super::MAX_BYTES },
    Section { name: "ranges", record: RANGE, most: super::MAX_RANGES },
];
/// Bytes of header and section table.
pub(super) const HEAD: usize = HEADER + ENTRY * SECTIONS.len();

/// Records: the plan's facts, a file, a step, a depth, a range.
pub(super) const META: usize = 328;
pub(super) const FILE: usize = 80;
pub(super) const STEP: usize = 32;
pub(super) const DEPTH: usize = 16;
pub(super) const RANGE: usize = 32;

/// What is fixed about a section.
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) record: usize,
    pub(super) most: u64,
}

/// Offsets in the header.
pub(super) mod header {
    pub(in super::super) const VERSION: usize = 8;
    pub(in super::super) const SECTIONS: usize = 12;
    pub(in super::super) const LENGTH: usize = 16;
    pub(in super::super) const CRC: usize = 24;
}

/// Offsets in an entry of the section table.
pub(super) mod entry {
    pub(in super::super) const ID: usize = 0;
    pub(in super::super) const CRC: usize = 4;
    pub(in super::super) const OFFSET: usize = 8;
    pub(in super::super) const COUNT: usize = 16;
    pub(in super::super) const RECORD: usize = 24;
}

/// Offsets in an identity, 56 bytes.
pub(super) mod identity {
    pub(in super::super) const MAJOR: usize = 0;
    pub(in super::super) const MINOR: usize = 4;
    pub(in super::super) const INODE: usize = 8;
    pub(in super::super) const SIZE: usize = 16;
    pub(in super::super) const MTIME: usize = 24;
    pub(in super::super) const BUILD_ID: usize = 32;
}

/// Offsets in the facts. A text is its offset in the texts (4 bytes) and its length (4 bytes).
pub(super) mod meta {
    pub(in super::super) const EXECUTABLE: usize = 0;
    pub(in super::super) const SCRIPT: usize = 8;
    pub(in super::super) const SCENARIO: usize = 16;
    pub(in super::super) const REASON: usize = 24;
    pub(in super::super) const IDENTITY: usize = 32;
    pub(in super::super) const STARTS: usize = 88;
    pub(in super::super) const COLD_STARTS: usize = 92;
    pub(in super::super) const FIRST: usize = 96;
    pub(in super::super) const LAST: usize = 104;
    pub(in super::super) const CPU: usize = 112;
    pub(in super::super) const COLD_READY: usize = 120;
    pub(in super::super) const OWN_CPU: usize = 128;
    pub(in super::super) const TIER: usize = 136;
    pub(in super::super) const EXACT: usize = 137;
    pub(in super::super) const STANDING: usize = 138;
    pub(in super::super) const PRESENT: usize = 139;
    pub(in super::super) const MIN_USES: usize = 140;
    pub(in super::super) const THREADS: usize = 141;
    pub(in super::super) const ORDER: usize = 142;
    pub(in super::super) const GATE: usize = 143;
    pub(in super::super) const METADATA: usize = 144;
    pub(in super::super) const ONE_THREAD: usize = 145;
    pub(in super::super) const GOES_ON: usize = 146;
    pub(in super::super) const GAP: usize = 148;
    pub(in super::super) const CHUNK: usize = 152;
    pub(in super::super) const IN_FLIGHT: usize = 156;
    pub(in super::super) const WINDOW: usize = 160;
    pub(in super::super) const CRITICAL: usize = 164;
    pub(in super::super) const BOUND: usize = 168;
    pub(in super::super) const BOUND_REQUESTS: usize = 200;
    pub(in super::super) const TRIAL: usize = 208;
    pub(in super::super) const TRIAL_PAIRS: usize = 264;
    pub(in super::super) const DEVICE: usize = 272;
    pub(in super::super) const DEVICE_NAME: usize = 280;
    pub(in super::super) const DEVICE_LATENCY: usize = 288;
    pub(in super::super) const DEVICE_BYTE: usize = 296;
    pub(in super::super) const DEVICE_CAP: usize = 304;
    pub(in super::super) const DEVICE_MEASURED: usize = 312;
    pub(in super::super) const DEVICE_ROTATIONAL: usize = 320;
}

/// Bits of [`meta::PRESENT`].
pub(super) mod present {
    pub(in super::super) const DEVICE: u8 = 1;
    pub(in super::super) const BOUND: u8 = 2;
    pub(in super::super) const TRIAL: u8 = 4;
}

/// Offsets in a file's record.
pub(super) mod file {
    pub(in super::super) const PATH: usize = 0;
    pub(in super::super) const IDENTITY: usize = 8;
    pub(in super::super) const NEED: usize = 64;
    pub(in super::super) const KIND: usize = 72;
    pub(in super::super) const USES: usize = 73;
    /// Since version 2; 0 before.
    pub(in super::super) const EXACT: usize = 74;
}

/// Offsets in a step's record.
pub(super) mod step {
    pub(in super::super) const FILE: usize = 0;
    pub(in super::super) const BYTES: usize = 4;
    pub(in super::super) const OFFSET: usize = 8;
    pub(in super::super) const NEED: usize = 16;
    pub(in super::super) const OP: usize = 24;
    pub(in super::super) const FLAGS: usize = 25;
    /// Bit of the flags: part of the critical prefix.
    pub(in super::super) const CRITICAL: u8 = 1;
}

/// Offsets in a depth's record.
pub(super) mod depth {
    pub(in super::super) const DEPTH: usize = 0;
    pub(in super::super) const IOPS: usize = 8;
}

/// Offsets in a range's record.
pub(super) mod range {
    pub(in super::super) const FILE: usize = 0;
    pub(in super::super) const PAGES: usize = 4;
    pub(in super::super) const FIRST_PAGE: usize = 8;
    pub(in super::super) const NEED: usize = 16;
    pub(in super::super) const USES: usize = 24;
    pub(in super::super) const FLAGS: usize = 25;
    /// Bit of the flags: only an upper bound.
    pub(in super::super) const AROUND: u8 = 1;
}

/// `N` bytes of a record. Every offset is a constant inside the record, so the compiler drops the
/// bounds check and zeros are never seen.
#[inline]
pub(super) fn bytes<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    record.get(at..).and_then(|r| r.first_chunk()).copied().unwrap_or([0; N])
}

#[inline]
pub(super) fn byte(record: &[u8], at: usize) -> u8 {
    record.get(at).copied().unwrap_or_default()
}

#[inline]
pub(super) fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes(record, at))
}

#[inline]
pub(super) fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes(record, at))
}

pub(super) fn f64_at(record: &[u8], at: usize) -> f64 {
    f64::from_bits(u64_at(record, at))
}

/// Sections begin at multiples of 8.
pub(super) const fn aligned(n: u64) -> u64 {
    n.next_multiple_of(8)
}

/// CRC-32 (IEEE) of header and section table, the header's checksum field taken as zeros.
pub(super) fn head_crc(head: &[u8; HEAD]) -> u32 {
    let mut copy = *head;
    copy[header::CRC..header::CRC + 4].fill(0);
    crc32fast::hash(&copy)
}

pub(super) const fn invalid(section: &'static str, index: u64, why: &'static str) -> FormatError {
    FormatError::Invalid { section, index, why }
}
