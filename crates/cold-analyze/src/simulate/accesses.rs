//! What threads do with files, in order of time.

mod advised;

pub(super) use advised::asks;

use std::collections::HashMap;

use crate::usage::{Usage, Window};
use cold_model::Nanos;
use cold_model::pages::{LiveRuns, Range};
use cold_model::recording::manifest::Tier;
use cold_model::recording::tables::Began;
use cold_model::recording::{FileIdx, FileKind, Fill, FillCause, Mapping, Recording, Touch, TouchKind};

use cold_sim::op::{FileId, MapId, Op, OpenId, Pattern};

/// The kernel maps around a fault within one page table at most.
const MOST_AROUND: u64 = 512;
/// A damaged recording may make a process its own ancestor.
const MOST_ANCESTORS: usize = 64;

/// An access of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordedAccess {
    pub(super) at: u64,
    pub(super) tid: u32,
    pub(super) op: Op,
    /// File, first page and pages that it needs; none of a file system's metadata.
    pub(super) needs: Option<(FileId, u64, u64)>,
}

/// Blocks that are asked for one after another without a wait come within some microseconds of each other.
const PAUSE_NS: u64 = 100_000;

/// What stands for a mapping of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum MappedAs {
    /// A row of the table of mappings.
    Row(usize),
    /// The whole file as data: another system's evidence tells that a page was mapped, and not how.
    Whole(FileIdx),
}

/// Open files and mappings, made when they are first used, before the start: when they were made changes nothing that is
/// read.
struct Handles<'a> {
    recording: &'a Recording,
    ids: &'a HashMap<FileIdx, FileId>,
    page_bytes: u64,
    setup: Vec<Op>,
    /// Of each process and file: Linux keeps read-ahead state with the open file, and a loader maps all segments of one.
    opens: HashMap<(u32, FileIdx), OpenId>,
    maps: HashMap<(u32, MappedAs), MapId>,
    mapped: HashMap<(u32, FileIdx), Vec<usize>>,
    /// Who made a process, and when.
    parents: HashMap<u32, (u32, Nanos)>,
    /// What was said of each mapping, by rows of the table.
    said: HashMap<usize, Vec<advised::Said>>,
}

impl<'a> Handles<'a> {
    fn of(recording: &'a Recording, ids: &'a HashMap<FileIdx, FileId>) -> Self {
        let mut mapped: HashMap<(u32, FileIdx), Vec<usize>> = HashMap::new();
        for (row, m) in recording.mappings.iter().flatten().enumerate() {
            mapped.entry((m.pid, m.file)).or_default().push(row);
        }
        let forked = recording.processes.iter().filter(|p| p.how == Began::Fork);
        Self {
            recording,
            ids,
            page_bytes: recording.page_bytes(),
            setup: Vec::new(),
            opens: HashMap::new(),
            maps: HashMap::new(),
            mapped,
            parents: forked.map(|p| (p.pid, (p.parent, p.began))).collect(),
            said: HashMap::new(),
        }
    }

    fn open(&mut self, pid: u32, file: FileIdx) -> Option<OpenId> {
        let id = *self.ids.get(&file)?;
        if let Some(open) = self.opens.get(&(pid, file)) {
            return Some(*open);
        }
        let open = OpenId(self.opens.len() as u32);
        self.opens.insert((pid, file), open);
        self.setup.push(Op::Open { open, file: id });
        if self.recording.files.get(file as usize).is_some_and(|f| f.kind == FileKind::BlockDevice) {
            // A file system reads block by block.
            self.setup.push(Op::AdviseOpen { open, pattern: Pattern::Random });
        }
        Some(open)
    }

    /// The mapping of a process that holds something: its own last one before that time, else its parent's, whose copy it
    /// got. A row of the table.
    fn row(&self, pid: u32, file: FileIdx, at: Nanos, holds: impl Fn(&Mapping) -> bool) -> Option<usize> {
        let rows = self.recording.mappings.as_deref()?;
        let holds = |row: &&usize| rows.get(**row).is_some_and(|m| m.at <= at && holds(m));
        let mut of = pid;
        (0..MOST_ANCESTORS).find_map(|_| {
            let found = self.mapped.get(&(of, file)).and_then(|rows| rows.iter().rev().find(holds));
            of = self.parents.get(&of).map_or(of, |(parent, _)| *parent);
            found.copied()
        })
    }

    /// The mapping through which a process touched a page.
    fn map_of(&mut self, pid: u32, file: FileIdx, page: u64, at: Nanos) -> Option<MapId> {
        let byte = page.checked_mul(self.page_bytes)?;
        let row = self.row(pid, file, at, |m| byte >= m.offset && byte - m.offset < m.bytes);
        let whole = (self.recording.manifest.tier == Tier::Imported).then_some(MappedAs::Whole(file));
        self.map(pid, row.map(MappedAs::Row).or(whole)?)
    }

    /// What stands for a mapping, in this process.
    fn map(&mut self, pid: u32, what: MappedAs) -> Option<MapId> {
        if let Some(map) = self.maps.get(&(pid, what)) {
            return Some(*map);
        }
        let (file, address, first, pages, exec) = match what {
            MappedAs::Row(row) => {
                let m = self.recording.mappings.as_deref()?.get(row)?;
                let pages = m.bytes.div_ceil(self.page_bytes);
                (m.file, m.address / self.page_bytes, m.offset / self.page_bytes, pages, m.executable)
            }
            MappedAs::Whole(file) => (file, 0, 0, i64::MAX as u64 / self.page_bytes, false),
        };
        let open = self.open(pid, file)?;
        let map = MapId(self.maps.len() as u32);
        self.maps.insert((pid, what), map);
        self.setup.push(Op::Map { map, open, address, first, pages, exec });
        Some(map)
    }

    fn touch(&mut self, t: &Touch) -> Option<Op> {
        let read = |open: OpenId, page_bytes: u64| Op::Read {
            open,
            offset: t.first_page.saturating_mul(page_bytes),
            bytes: bytes(t, page_bytes),
        };
        if t.kind == TouchKind::Fault
            && let Some(map) = self.map_of(t.pid, t.file, t.first_page, t.at)
        {
            return Some(Op::Touch { map, page: t.first_page, write: false });
        }
        // A fault on a mapping that nobody saw reads at least its page.
        Some(read(self.open(t.pid, t.file)?, self.page_bytes))
    }
}

/// Bytes from the beginning of a touch's first page to its end, or to that of its call, where this is known and lies in it.
fn bytes(t: &Touch, page_bytes: u64) -> u64 {
    let first = t.first_page.saturating_mul(page_bytes);
    let all = u64::from(t.pages).saturating_mul(page_bytes);
    t.end.map(|end| end.saturating_sub(first)).filter(|bytes| (1..all).contains(bytes)).unwrap_or(all)
}

/// Adds a touch to the read of the same call that it goes on from.
fn goes_on(whole: &mut RecordedAccess, file: Option<FileId>, t: &Touch, page_bytes: u64) -> bool {
    let (Op::Read { offset, bytes: read, .. }, Some((of, first, pages))) = (&mut whole.op, &mut whole.needs)
    else {
        return false;
    };
    if Some(*of) != file || first.saturating_add(*pages) != t.first_page {
        return false;
    }
    *pages = pages.saturating_add(u64::from(t.pages));
    let end = t.first_page.saturating_mul(page_bytes).saturating_add(bytes(t, page_bytes));
    *read = end.saturating_sub(*offset);
    true
}

/// Blocks of a file system's metadata that were read together.
pub(super) struct MetadataRun {
    pub(super) at: u64,
    pub(super) tid: u32,
    pub(super) file: FileIdx,
    pub(super) first: u64,
    pub(super) pages: u64,
    /// When the last of them was added.
    until: u64,
}

/// A file system asks for the blocks beside the one it needs (ext4: 32 blocks of inodes), one by one, and they become one
/// request: each run of neighbours that a thread added without a pause is one read.
pub(super) fn metadata_runs<'a>(fills: impl Iterator<Item = &'a Fill>) -> Vec<MetadataRun> {
    let mut runs: Vec<MetadataRun> = Vec::new();
    for f in fills {
        let (at, pages) = (f.at.0, u64::from(f.pages));
        let goes_on = |run: &&mut MetadataRun| {
            let beside = run.file == f.file && run.first.saturating_add(run.pages) == f.first_page;
            run.tid == f.tid && beside && at.saturating_sub(run.until) <= PAUSE_NS
        };
        if let Some(run) = runs.last_mut().filter(goes_on) {
            (run.pages, run.until) = (run.pages.saturating_add(pages), at);
        } else {
            let (tid, file, first) = (f.tid, f.file, f.first_page);
            runs.push(MetadataRun { at, tid, file, first, pages, until: at });
        }
    }
    runs
}

/// What has to be done before the start, and the accesses in the window, in order of time. `around`: the usage of each
/// file, where pages that were mapped around a fault count as touched with it.
pub(super) fn of(
    recording: &Recording,
    ids: &HashMap<FileIdx, FileId>,
    window: Window,
    around: Option<&[Usage]>,
) -> (Vec<Op>, Vec<RecordedAccess>) {
    let mut handles = Handles::of(recording, ids);
    let mut out: Vec<RecordedAccess> = Vec::new();
    // The reads that calls began with. A call that waits for its pages piece by piece is one read.
    let mut calls: HashMap<(u32, Nanos), usize> = HashMap::new();
    let in_window = |t: &&Touch| window.holds(t.at);
    for t in recording.touches.iter().flatten().filter(in_window) {
        if t.kind == TouchKind::FaultAround {
            continue;
        }
        let before = t.call.and_then(|call| calls.get(&(t.tid, call)).copied());
        let whole = before.and_then(|n| out.get_mut(n));
        if whole.is_some_and(|whole| goes_on(whole, ids.get(&t.file).copied(), t, handles.page_bytes)) {
            continue;
        }
        if t.kind == TouchKind::Fault && (2..=MOST_AROUND).contains(&u64::from(t.pages)) {
            // Imported: a page of an image need not begin where one of the file does.
            let end = t.first_page.saturating_add(u64::from(t.pages));
            each_page(&mut handles, t, t.first_page..end, &mut out);
            continue;
        }
        if let Some(found) = found(&mut handles, t) {
            if let Some(call) = t.call {
                calls.insert((t.tid, call), out.len());
            }
            out.push(found);
        }
    }
    for (t, pages) in around.map(|usage| first_around(recording, usage, window)).unwrap_or_default() {
        each_page(&mut handles, t, pages, &mut out);
    }
    let metadata = recording.fills.iter().flatten().filter(|f| f.in_tree && f.cause == FillCause::Metadata);
    for run in metadata_runs(metadata.filter(|f| window.holds(f.at))) {
        if let Some(open) = handles.open(0, run.file) {
            let (offset, bytes) = (run.first, run.pages.saturating_mul(handles.page_bytes));
            let op = Op::Read { open, offset: offset.saturating_mul(handles.page_bytes), bytes };
            out.push(RecordedAccess { at: run.at, tid: run.tid, op, needs: None });
        }
    }
    advised::add(&mut handles, window, &mut out);
    out.sort_by_key(|found| found.at);
    (handles.setup, out)
}

fn found(handles: &mut Handles<'_>, t: &Touch) -> Option<RecordedAccess> {
    let file = *handles.ids.get(&t.file)?;
    let op = handles.touch(t)?;
    Some(RecordedAccess { at: t.at.0, tid: t.tid, op, needs: Some((file, t.first_page, u64::from(t.pages))) })
}

/// Each page is touched for itself.
fn each_page(handles: &mut Handles<'_>, t: &Touch, pages: Range, out: &mut Vec<RecordedAccess>) {
    let mut map = |page| handles.map_of(t.pid, t.file, page, t.at);
    let whole = map(pages.start).filter(|first| map(pages.end.saturating_sub(1)) == Some(*first));
    for page in pages {
        if let Some((map, file)) = whole.zip(handles.ids.get(&t.file)) {
            let op = Op::Touch { map, page, write: false };
            out.push(RecordedAccess { at: t.at.0, tid: t.tid, op, needs: Some((*file, page, 1)) });
        } else {
            let one = Touch { first_page: page, pages: 1, kind: TouchKind::Fault, ..*t };
            out.extend(found(handles, &one));
        }
    }
}

/// Pages that were mapped around a fault and may have been needed, which nothing had touched before.
fn first_around<'r>(recording: &'r Recording, usage: &[Usage], window: Window) -> Vec<(&'r Touch, Range)> {
    let mut all: Vec<&Touch> = recording.touches.iter().flatten().filter(|t| window.holds(t.at)).collect();
    // A fault comes before what is mapped around it.
    all.sort_by_key(|t| (t.at, t.kind == TouchKind::FaultAround));
    let mut seen: HashMap<FileIdx, LiveRuns> = HashMap::new();
    let mut out = Vec::new();
    for t in all {
        let end = t.first_page.saturating_add(u64::from(t.pages));
        let seen = seen.entry(t.file).or_default();
        if t.kind != TouchKind::FaultAround {
            seen.insert(&(t.first_page..end));
            continue;
        }
        let range = t.first_page..end.min(t.first_page.saturating_add(MOST_AROUND));
        let Some(used) = usage.get(t.file as usize) else { continue };
        let new = seen.holes(&range);
        out.extend(new.iter().flat_map(|hole| used.needed.within(hole)).map(|pages| (t, pages)));
        seen.insert(&range);
    }
    out
}
