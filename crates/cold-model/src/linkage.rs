//! How a program was linked, as far as it costs a start.

use std::ops::Range;

/// How a program of 64 bits was linked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Linkage {
    /// Relocations that only add the place at which the program is loaded.
    pub relative: u64,
    /// Of these, packed as RELR.
    pub packed: u64,
    /// Relocations for which a symbol is looked up, at the start.
    pub symbolic: u64,
    /// Functions of libraries, looked up at the start or at the first call.
    pub jump_slots: u64,
    /// Relocations by a function that runs at the start (`IRELATIVE`).
    pub by_function: u64,
    /// Bytes of the tables of relocations.
    pub table_bytes: u64,
    /// Bytes that the relative ones which are not packed would take as RELR.
    pub as_relr_bytes: u64,
    /// Pages of 4 KiB that relocating writes to, which copies each.
    pub written_pages: u64,
    /// Of these, pages that are constant afterwards (`.data.rel.ro`, `.got`: the segment `PT_GNU_RELRO`).
    pub constant_after: u64,
    /// Symbols of functions are looked up at the start (`-z now`), not at the first call.
    pub bind_now: bool,
    /// Loaded at any address: relative relocations come from that.
    pub position_independent: bool,
    /// Symbols can be found by `DT_GNU_HASH`; else only by the slower `DT_HASH`.
    pub gnu_hash: bool,
    /// Bytes of the file that each loaded segment has which is never written, by address.
    pub constant_segments: Vec<Range<u64>>,
    /// Pages of 4 KiB that only relative relocations write to.
    pub written_by_relative: u64,
    /// A loader reads it (`PT_DYNAMIC`). Of a static program at a fixed address the counts are those of no loader, and
    /// what its own start code relocates is not looked at.
    pub dynamic: bool,
}
