//! A recording of one start: what was touched, filled, read from devices and waited for.
//!
//! [`tables`] holds one row type per table, [`manifest`] what `recording.json` says. Rows are raw facts;
//! what was *needed*, *unused* or *late* is computed from them on read. A table that a tier cannot fill
//! is `None`, which is not the same as empty.
//!
//! All times are `CLOCK_MONOTONIC`, pages are of [`manifest::Manifest::page_bytes`] each, offsets count
//! from the start of the file. Files, stacks and requests are named by their index in their table.

use std::collections::BTreeMap;

use crate::Dev;

pub mod manifest;
mod off_cpu;
pub mod tables;
mod words;

pub use manifest::Manifest;
pub use tables::{
    Advice, DeviceRead, Eviction, File, FileKind, Fill, FillCause, Frame, Lookup, LookupKind, Mapping,
    OffCpu, OffCpuReason, PathFrom, Process, Readahead, ReadaheadKind, Resident, Stack, Stall, StallCause,
    Thread, Touch, TouchKind, Transfer,
};

/// Index of a row in [`Recording::files`].
pub type FileIdx = u32;
/// Index of a row in [`Recording::stacks`].
pub type StackIdx = u32;
/// Index of a row in [`Recording::device_reads`].
pub type RequestIdx = u32;

/// One recording, whole, in memory. Every table is sorted by its first time column.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recording {
    /// What was recorded, how, and what is missing.
    pub manifest: Manifest,
    /// Process images: one row per fork and per exec.
    pub processes: Vec<Process>,
    /// Threads, each process' first included.
    pub threads: Vec<Thread>,
    /// Every file that any other table names.
    pub files: Vec<File>,
    /// What the start needed. Its own tree only.
    pub touches: Option<Vec<Touch>>,
    /// Folios that entered the page cache, by anybody.
    pub fills: Option<Vec<Fill>>,
    /// Folios that left it.
    pub evictions: Option<Vec<Eviction>>,
    /// What was cached of the start's files when the recording began.
    pub residency: Option<Vec<Resident>>,
    /// The kernel's decisions to read ahead or around.
    pub readahead: Option<Vec<Readahead>>,
    /// Calls by which a program asks for pages (readahead, fadvise, madvise, `MAP_POPULATE`).
    pub advice: Option<Vec<Advice>>,
    /// Read requests to block devices, by anybody.
    pub device_reads: Option<Vec<DeviceRead>>,
    /// Which pages of which file each of them brought.
    pub transfers: Option<Vec<Transfer>>,
    /// Intervals in which a task of the tree did not run because it waited. Its own tree only.
    pub stalls: Option<Vec<Stall>>,
    /// Times without a CPU, by beginning; those of [`Self::stalls`] among them.
    pub off_cpu: Option<Vec<OffCpu>>,
    /// Path resolutions with their results. Its own tree only.
    pub lookups: Option<Vec<Lookup>>,
    /// File mappings of the tree's processes, to turn addresses into file offsets.
    pub mappings: Option<Vec<Mapping>>,
    /// User stacks, innermost frame first; each distinct stack once.
    pub stacks: Option<Vec<Stack>>,
}

impl Recording {
    /// Bytes of a page of the machine that was recorded; 4096 where a damaged manifest says nothing usable.
    pub fn page_bytes(&self) -> u64 {
        match u64::from(self.manifest.page_bytes) {
            n if n.is_power_of_two() => n,
            _ => 4096,
        }
    }

    /// It was made of a trace that tells only what was read: which pages were needed and in memory is not known.
    pub fn tells_only_reads(&self) -> bool {
        self.manifest.tier == manifest::Tier::Imported && self.device_reads.is_some()
    }

    /// It was made of a list of pages, without a time of anything.
    pub fn tells_only_pages(&self) -> bool {
        self.manifest.tier == manifest::Tier::Imported && self.device_reads.is_none()
    }

    /// The whole disk from which the start itself read most; `None`: it read from none.
    pub fn busiest_disk(&self) -> Option<Dev> {
        let mut read: BTreeMap<Dev, u64> = BTreeMap::new();
        for r in self.device_reads.iter().flatten().filter(|r| r.in_tree) {
            let bytes = read.entry(self.manifest.whole_disk(r.dev).unwrap_or(r.dev)).or_default();
            *bytes = bytes.saturating_add(r.bytes.into());
        }
        read.into_iter().max_by_key(|(dev, bytes)| (*bytes, *dev)).map(|(dev, _)| dev)
    }

    /// Names and row counts of the tables that are present, in the documented order.
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        fn of<T>(table: Option<&Vec<T>>) -> Option<usize> {
            table.map(Vec::len)
        }
        [
            ("processes", Some(self.processes.len())),
            ("threads", Some(self.threads.len())),
            ("files", Some(self.files.len())),
            ("touches", of(self.touches.as_ref())),
            ("fills", of(self.fills.as_ref())),
            ("evictions", of(self.evictions.as_ref())),
            ("residency", of(self.residency.as_ref())),
            ("readahead", of(self.readahead.as_ref())),
            ("advice", of(self.advice.as_ref())),
            ("device_reads", of(self.device_reads.as_ref())),
            ("transfers", of(self.transfers.as_ref())),
            ("stalls", of(self.stalls.as_ref())),
            ("off_cpu", of(self.off_cpu.as_ref())),
            ("lookups", of(self.lookups.as_ref())),
            ("mappings", of(self.mappings.as_ref())),
            ("stacks", of(self.stacks.as_ref())),
        ]
        .into_iter()
        .filter_map(|(name, n)| n.map(|n| (name, n)))
        .collect()
    }
}
