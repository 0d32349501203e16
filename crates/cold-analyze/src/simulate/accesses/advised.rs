//! What programs told the kernel of pages: asked for, given up, how they will be used.

use std::collections::HashMap;

use cold_model::Nanos;
use cold_model::recording::{Advice, FileIdx, LookupKind, Mapping};
use cold_sim::op::{Huge, MapAdvice, MapId, Op, Pattern};

use super::{Handles, MappedAs, RecordedAccess};
use crate::usage::Window;

/// What was said of a mapping, for processes that inherit it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said {
    at: Nanos,
    pid: u32,
    first: u64,
    pages: u64,
    advice: MapAdvice,
}

/// Adds what programs told of their files and mappings in the window.
pub(super) fn add(handles: &mut Handles<'_>, window: Window, out: &mut Vec<RecordedAccess>) {
    let recording = handles.recording;
    let mut told: HashMap<(u32, FileIdx), Nanos> = HashMap::new();
    let worked = |a: &&Advice| window.holds(a.at) && a.result >= 0;
    for a in recording.advice.iter().flatten().filter(worked) {
        let Some(op) = handles.advised(a) else { continue };
        if let (Op::AdviseOpen { .. }, Some(file)) = (op, a.file) {
            told.entry((a.pid, file)).or_insert(a.at);
        }
        out.push(RecordedAccess { at: a.at.0, tid: a.tid, op, needs: None });
    }
    // Who opens such a file again has another open file, of which nothing was said.
    for l in recording.lookups.iter().flatten().filter(|l| l.kind == LookupKind::Open && l.result >= 0) {
        let Some(file) = l.file else { continue };
        if window.holds(l.at) && told.get(&(l.pid, file)).is_some_and(|at| *at < l.at) {
            let of_process = handles.open(l.pid, file).zip(handles.ids.get(&file));
            out.extend(of_process.map(|(open, file)| {
                let op = Op::Open { open, file: *file };
                RecordedAccess { at: l.at.0, tid: l.tid, op, needs: None }
            }));
        }
    }
    handles.inherit();
}

/// The call asks for pages, and got them.
pub(in super::super) fn asks(a: &Advice) -> bool {
    const ASK: [&str; 5] =
        ["readahead", "fadvise:WILLNEED", "madvise:WILLNEED", "madvise:POPULATE_READ", "mmap:POPULATE"];
    a.result >= 0 && ASK.contains(&a.call.as_str())
}

/// What a call says of an open file; `None` of others.
fn of_open_file(call: &str) -> Option<Pattern> {
    Some(match call {
        "fadvise:NORMAL" => Pattern::Normal,
        "fadvise:RANDOM" => Pattern::Random,
        "fadvise:SEQUENTIAL" => Pattern::Sequential,
        _ => return None,
    })
}

/// What a call says of mappings; `None` of others.
fn of_mapping(call: &str) -> Option<MapAdvice> {
    Some(match call {
        "madvise:NORMAL" => MapAdvice::Pattern(Pattern::Normal),
        "madvise:RANDOM" => MapAdvice::Pattern(Pattern::Random),
        "madvise:SEQUENTIAL" => MapAdvice::Pattern(Pattern::Sequential),
        "madvise:HUGEPAGE" => MapAdvice::Huge(Huge::Wanted),
        "madvise:NOHUGEPAGE" => MapAdvice::Huge(Huge::Unwanted),
        _ => return None,
    })
}

impl Handles<'_> {
    /// `COLD`, `PAGEOUT` and `NOREUSE` change only which pages are evicted first.
    fn advised(&mut self, a: &Advice) -> Option<Op> {
        let file = a.file?;
        if let Some(pattern) = of_open_file(&a.call) {
            return Some(Op::AdviseOpen { open: self.open(a.pid, file)?, pattern });
        }
        match a.call.as_str() {
            "readahead" | "fadvise:WILLNEED" | "madvise:WILLNEED" => self.asked(a, file),
            "fadvise:DONTNEED" => self.given_up(a, file),
            "madvise:DONTNEED" => {
                let (_, map, first, pages) = self.part(a, file)?;
                Some(Op::Forget { map, first, pages })
            }
            "madvise:POPULATE_READ" | "mmap:POPULATE" => {
                let (_, map, first, pages) = self.part(a, file)?;
                let all = self.recording.files.get(file as usize)?.size?.div_ceil(self.page_bytes);
                Some(Op::Populate { map, first, pages: pages.min(all.saturating_sub(first)) })
            }
            call => {
                let advice = of_mapping(call)?;
                let (row, map, first, pages) = self.part(a, file)?;
                let said = Said { at: a.at, pid: a.pid, first, pages, advice };
                self.said.entry(row).or_default().push(said);
                Some(Op::AdviseMap { map, first, pages, advice })
            }
        }
    }

    /// The mapping that a call is about, and its pages: row of the table, number, first page, pages.
    fn part(&mut self, a: &Advice, file: FileIdx) -> Option<(usize, MapId, u64, u64)> {
        let holds = |m: &Mapping| match a.address {
            Some(address) => address >= m.address && address - m.address < m.bytes,
            None => a.offset >= m.offset && a.offset - m.offset < m.bytes,
        };
        // A call that maps has made its mapping when it ends.
        let row = self.row(a.pid, file, a.ended, holds)?;
        let map = self.map(a.pid, MappedAs::Row(row))?;
        let first = a.offset / self.page_bytes;
        let end = a.offset.saturating_add(a.bytes).div_ceil(self.page_bytes);
        Some((row, map, first, end.saturating_sub(first)))
    }

    /// One past the last byte that a call is about, and the file's size.
    fn end(&self, a: &Advice, file: FileIdx) -> Option<(u64, u64)> {
        let size = self.recording.files.get(file as usize)?.size?;
        let end = if a.bytes == 0 { size } else { a.offset.saturating_add(a.bytes) };
        Some((end, size))
    }

    fn asked(&mut self, a: &Advice, file: FileIdx) -> Option<Op> {
        let (end, size) = self.end(a, file)?;
        let (first, end) = (a.offset / self.page_bytes, end.min(size).div_ceil(self.page_bytes));
        let open = self.open(a.pid, file)?;
        (first < end).then_some(Op::WillNeed { open, first, pages: end - first })
    }

    /// Pages of which only a part is given up stay, but for the last one of the file.
    fn given_up(&self, a: &Advice, file: FileIdx) -> Option<Op> {
        let (end, size) = self.end(a, file)?;
        let first = a.offset.div_ceil(self.page_bytes);
        let end = if end == size { end.div_ceil(self.page_bytes) } else { end / self.page_bytes };
        let file = *self.ids.get(&file)?;
        (first < end).then_some(Op::DontNeed { file, first, pages: end - first })
    }

    /// Of a mapping that a process got from its parent holds what its parents had said of it until then.
    fn inherit(&mut self) {
        let of_row = |((pid, what), map): (&(u32, MappedAs), &MapId)| match what {
            MappedAs::Row(row) => Some((*pid, *row, *map)),
            MappedAs::Whole(_) => None,
        };
        let mut maps: Vec<(u32, usize, MapId)> = self.maps.iter().filter_map(of_row).collect();
        maps.sort_unstable_by_key(|(.., map)| *map);
        for (pid, row, map) in maps {
            let mut said: Vec<Said> = Vec::new();
            let (mut child, all) = (pid, self.said.get(&row).map_or(&[][..], Vec::as_slice));
            for _ in 0..super::MOST_ANCESTORS {
                let Some((parent, born)) = self.parents.get(&child).copied() else { break };
                said.extend(all.iter().filter(|s| s.pid == parent && s.at < born));
                child = parent;
            }
            said.sort_by_key(|s| s.at);
            let op = |s: Said| Op::AdviseMap { map, first: s.first, pages: s.pages, advice: s.advice };
            self.setup.extend(said.into_iter().map(op));
        }
    }
}
