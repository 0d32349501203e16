//! A raw log in memory: its facts, and its events in order of time. Bounded by the log's own size.

use cold_model::recording::Manifest;

use crate::blocks::{self, Existing, Fact, FileFact, Mount};
use crate::perf::record::{self as perf, Events};
use crate::raw;
use crate::waiting::KernelFunction;

/// Where an event lies.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: u64,
    block: u32,
    offset: u32,
    source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Bpf,
    Perf,
    Timed,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // made one at a time on the stack, never kept
pub(super) enum Event<'a> {
    Bpf(raw::RawRecord<'a>),
    Perf(perf::PerfRecord<'a>),
    Timed(&'a Timed),
}

/// A fact with a time.
#[derive(Debug)]
pub(super) enum Timed {
    Follow { pid: u32, itself: bool },
    Existing(Box<Existing>),
    CommandLine { pid: u32, arguments: Vec<String> },
}

/// What a look into the page cache saw of one file, before or after the start.
#[derive(Debug)]
pub(super) struct CacheLook {
    pub(super) after: bool,
    pub(super) dev: cold_model::Dev,
    pub(super) inode: u64,
    pub(super) runs: Vec<(u64, u64)>,
}

/// A whole log.
#[derive(Debug, Default)]
pub(super) struct Input {
    blocks: Vec<Vec<u8>>,
    timed: Vec<Timed>,
    entries: Vec<Entry>,
    pub(super) perf_events: Events,
    pub(super) manifest: Option<Manifest>,
    pub(super) mounts: Vec<Mount>,
    pub(super) files: Vec<FileFact>,
    pub(super) cache_looks: Vec<CacheLook>,
    pub(super) notes: Vec<String>,
    /// Sorted by address.
    pub(super) kernel: Vec<KernelFunction>,
    pub(super) lost: std::collections::BTreeMap<String, u64>,
    /// Blocks of BPF records were there.
    pub(super) has_bpf: bool,
    /// BPF records tell of mappings.
    pub(super) areas_by_bpf: bool,
    /// Blocks of perf records were there.
    pub(super) has_perf: bool,
    /// Blocks or records that could not be understood.
    pub(super) damaged: u64,
}

impl Input {
    pub(super) fn read(log: impl IntoIterator<Item = (u16, Vec<u8>)>) -> Self {
        let mut input = Self::default();
        let mut perf = Vec::new();
        for (kind, bytes) in log {
            match kind {
                blocks::BPF => input.bpf(bytes),
                // Perf records are understood by a fact, which may come later.
                blocks::PERF => perf.push(bytes),
                blocks::FACT => match serde_json::from_slice(&bytes) {
                    Ok(fact) => input.fact(fact),
                    Err(_) => input.damaged += 1,
                },
                _ => input.damaged += 1,
            }
        }
        for bytes in perf {
            input.perf(bytes);
        }
        input.entries.sort_by_key(|e| e.at);
        input
    }

    fn bpf(&mut self, bytes: Vec<u8>) {
        let Ok(block) = u32::try_from(self.blocks.len()) else { return };
        self.has_bpf = true;
        let mut records = raw::records(&bytes);
        loop {
            let offset = records.position();
            match records.next() {
                Some(Ok(record)) => {
                    let offset = offset as u32;
                    self.entries.push(Entry { at: record.head.at, block, offset, source: Source::Bpf });
                }
                Some(Err(_)) => self.damaged += 1,
                None => break,
            }
        }
        self.blocks.push(bytes);
    }

    fn perf(&mut self, bytes: Vec<u8>) {
        let Ok(block) = u32::try_from(self.blocks.len()) else { return };
        self.has_perf = true;
        let mut offset = 0;
        for one in perf::split(&bytes) {
            if let Some(record) = perf::decode(one, &self.perf_events) {
                self.entries.push(Entry {
                    at: record.at,
                    block,
                    offset: offset as u32,
                    source: Source::Perf,
                });
            }
            offset += one.len();
        }
        self.damaged += u64::from(offset < bytes.len());
        self.blocks.push(bytes);
    }

    fn fact(&mut self, fact: Fact) {
        let (at, timed) = match fact {
            Fact::Manifest(m) => return self.manifest = Some(*m),
            Fact::PerfEvents(events) => return self.perf_events.extend(&events),
            Fact::Mounts(mounts) => return self.mounts = mounts,
            Fact::File(file) => return self.files.push(*file),
            Fact::Resident { after, dev, inode, runs } => {
                return self.cache_looks.push(CacheLook { after, dev, inode, runs });
            }
            Fact::KernelFunctions(functions) => return self.kernel = functions,
            Fact::Lost(lost) => return self.lost = lost,
            Fact::AreasByBpf => return self.areas_by_bpf = true,
            Fact::Note(note) => return self.notes.push(note),
            Fact::Follow { at, pid, itself } => (at, Timed::Follow { pid, itself }),
            Fact::Existing(e) => (e.at, Timed::Existing(e)),
            Fact::CommandLine { at, pid, arguments } => (at, Timed::CommandLine { pid, arguments }),
        };
        if let Ok(block) = u32::try_from(self.timed.len()) {
            self.timed.push(timed);
            self.entries.push(Entry { at, block, offset: 0, source: Source::Timed });
        }
    }

    /// All events in order of time; those of one time in the order of the log.
    pub(super) fn events(&self) -> impl Iterator<Item = Event<'_>> {
        self.entries.iter().filter_map(|e| {
            let bytes = || self.blocks.get(e.block as usize)?.get(e.offset as usize..);
            Some(match e.source {
                Source::Timed => Event::Timed(self.timed.get(e.block as usize)?),
                Source::Bpf => Event::Bpf(raw::records(bytes()?).next()?.ok()?),
                Source::Perf => {
                    let bytes = bytes()?;
                    Event::Perf(perf::decode(bytes.get(..perf::length(bytes)?)?, &self.perf_events)?)
                }
            })
        })
    }

    /// Only the BPF records.
    pub(super) fn bpf_records(&self) -> impl Iterator<Item = raw::RawRecord<'_>> {
        self.events().filter_map(|event| match event {
            Event::Bpf(record) => Some(record),
            _ => None,
        })
    }

    /// Number of events.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Time of the last event.
    pub(super) fn last(&self) -> Option<u64> {
        self.entries.last().map(|e| e.at)
    }

    /// Bytes of events.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks.iter().map(|b| b.len() as u64).sum()
    }
}
