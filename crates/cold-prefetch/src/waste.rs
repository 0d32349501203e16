//! What a prefetched start got out of its plan: a recording of it, against the plan.
//!
//! Per file, in whole pages: *planned* = in the steps; *prefetched* = of these, brought into the cache by
//! readahead calls; *used* and *unused* = prefetched and needed until ready, or not; *late* = planned, but needed
//! before it was there: before it was asked for, or while it was on its way; *missing* = needed, read from
//! storage on demand, and not planned. Metadata of the file systems counts as prefetched only, because no tier
//! sees its use.

mod file;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cold_analyze::{Window, replay, stall_requests, waits};
use cold_model::pages::Runs;
use cold_model::recording::{FileIdx, FileKind as RecordedKind, Recording};
use cold_model::{Bytes, Nanos, path_text};
use cold_plan::Plan;
use cold_plan::plan::FileKind;
use serde::{Deserialize, Serialize};

use file::Facts;

/// Bytes of one file, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amounts {
    /// In the steps.
    pub planned: Bytes,
    /// Brought by readahead calls.
    pub prefetched: Bytes,
    /// Of these, needed until ready; pages mapped around a fault count as needed.
    pub used: Bytes,
    /// Of these, not needed.
    pub unused: Bytes,
    /// Planned, and needed before they were there.
    pub late: Bytes,
    /// Of `late`, those that were on their way.
    pub in_flight: Bytes,
    /// Time that tasks waited for late pages.
    #[serde(rename = "late_wait_ns")]
    pub late_wait: Nanos,
    /// Needed for certain, read on demand, not planned.
    pub missing: Bytes,
    /// Time that tasks waited for missing pages.
    #[serde(rename = "missing_wait_ns")]
    pub missing_wait: Nanos,
}

/// One file's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileWaste {
    /// Absolute path: as the recording has it, else as the plan does.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// It is in the plan.
    #[serde(rename = "in_plan")]
    pub planned: bool,
    /// It is a file system's metadata.
    pub metadata: bool,
    /// What became of its pages, in bytes of whole pages.
    pub amounts: Amounts,
}

/// What became of a plan in one start. In JSON: docs/formats/plan-json.md, `replay`; kept beside the plan, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waste {
    /// Files with any amount, the longest waits first, then the most unused bytes.
    pub files: Vec<FileWaste>,
    /// Sums over `files`.
    pub total: Amounts,
    /// Reads in the plan.
    pub steps: u32,
    /// Bytes that these reads ask for.
    pub step_bytes: Bytes,
    /// Requests that brought prefetched pages from the devices; `None` at tiers that see none.
    pub requests: Option<u32>,
    /// Bytes of these requests.
    pub request_bytes: Option<Bytes>,
}

/// Compares a recording of a prefetched start with its plan. `None` where the recording sees neither fills nor
/// touches. `launcher`: files that the launcher needs and not the program; no plan can bring them in time.
pub fn waste(plan: &Plan, recording: &Recording, launcher: &[PathBuf]) -> Option<Waste> {
    recording.fills.as_ref()?;
    recording.touches.as_ref()?;
    let usage = replay(recording);
    let page = recording.page_bytes();
    let planned = planned_pages(plan, page);
    let index: HashMap<&Path, usize> =
        plan.files.iter().enumerate().map(|(i, f)| (f.path.as_path(), i)).collect();
    let all = Facts::of(recording);
    let waited = waited_by_page(recording);
    let empty = Runs::default();
    let mut files = Vec::new();
    let mut total = Amounts::default();
    for (i, row) in recording.files.iter().enumerate() {
        let Some(path) = row.place() else { continue };
        let metadata = row.kind == RecordedKind::BlockDevice;
        let file = index.get(path.as_path()).copied().filter(|&n| {
            let f = &plan.files[n];
            metadata && f.kind == FileKind::BlockDevice
                || f.kind == FileKind::Regular && f.identity.inode == row.inode
        });
        if file.is_none() && launcher.contains(&path) {
            continue;
        }
        let pages = file.map_or(&empty, |n| &planned[n]);
        let Some(used) = usage.get(i) else { continue };
        let waits = waited.get(&(i as FileIdx)).map_or(&[][..], Vec::as_slice);
        let amounts = all.amounts(i as FileIdx, pages, used, waits, metadata);
        if amounts == Amounts::default() {
            continue;
        }
        total.add(&amounts);
        files.push(FileWaste { path, planned: file.is_some(), metadata, amounts });
    }
    // Files that the start did not come near.
    for (f, pages) in plan.files.iter().zip(&planned).filter(|(_, p)| !p.is_empty()) {
        if !files.iter().any(|w| w.planned && w.path == f.path) {
            let amounts = Amounts { planned: bytes(pages.pages(), page), ..Amounts::default() };
            total.add(&amounts);
            let metadata = f.kind == FileKind::BlockDevice;
            files.push(FileWaste { path: f.path.clone(), planned: true, metadata, amounts });
        }
    }
    files.sort_by(|a, b| {
        let key = |w: &FileWaste| (w.amounts.late_wait + w.amounts.missing_wait, w.amounts.unused);
        key(b).cmp(&key(a)).then_with(|| a.path.cmp(&b.path))
    });
    let (requests, request_bytes) = all.requests(recording).unzip();
    Some(Waste {
        files,
        total,
        steps: plan.reads().count() as u32,
        step_bytes: Bytes(plan.read_bytes()),
        requests,
        request_bytes,
    })
}

/// What a start did not need of the files that its plan reads, whether they came by the plan or were there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unneeded {
    /// In the steps, without metadata, whose use nobody sees.
    pub planned: Bytes,
    /// Of these, not needed until ready; pages mapped around a fault count as needed, so it is at least as much.
    pub unneeded: Bytes,
}

/// Compares a recording of any start, warm ones included, with the plan. `None` where it sees no touches.
pub fn unneeded(plan: &Plan, recording: &Recording) -> Option<Unneeded> {
    recording.touches.as_ref()?;
    let usage = replay(recording);
    let page = recording.page_bytes();
    let rows = recording.files.iter().zip(&usage);
    let needed: HashMap<(PathBuf, u64), &Runs> = rows
        .filter(|(row, _)| row.kind != RecordedKind::BlockDevice)
        .filter_map(|(row, usage)| Some(((row.place()?, row.inode), &usage.needed)))
        .collect();
    let mut sums = Unneeded::default();
    let files = plan.files.iter().zip(planned_pages(plan, page));
    for (file, planned) in files.filter(|(file, _)| file.kind == FileKind::Regular) {
        let of = needed.get(&(file.path.clone(), file.identity.inode));
        let left = of.map_or(planned.pages(), |needed| planned.minus(needed).pages());
        sums.planned += bytes(planned.pages(), page);
        sums.unneeded += bytes(left, page);
    }
    Some(sums)
}

impl Amounts {
    fn add(&mut self, o: &Self) {
        self.planned += o.planned;
        self.prefetched += o.prefetched;
        self.used += o.used;
        self.unused += o.unused;
        self.late += o.late;
        self.in_flight += o.in_flight;
        self.late_wait += o.late_wait;
        self.missing += o.missing;
        self.missing_wait += o.missing_wait;
    }
}

fn bytes(pages: u64, page: u64) -> Bytes {
    Bytes(pages.saturating_mul(page))
}

/// Per file of the plan the pages of its read steps, as the recording counts pages: of `page` bytes.
fn planned_pages(plan: &Plan, page: u64) -> Vec<Runs> {
    let mut of = vec![Vec::new(); plan.files.len()];
    for s in plan.reads() {
        if let Some(list) = of.get_mut(s.file as usize) {
            let end = s.offset.saturating_add(u64::from(s.bytes)).div_ceil(page);
            list.push(s.offset / page..end);
        }
    }
    of.into_iter().map(Runs::of).collect()
}

/// Per file the waits for storage until ready whose page is known: begin, page, length.
fn waited_by_page(recording: &Recording) -> HashMap<FileIdx, Vec<(Nanos, u64, Nanos)>> {
    let mut out: HashMap<FileIdx, Vec<(Nanos, u64, Nanos)>> = HashMap::new();
    for w in waits::storage_waits(recording, Window::of(recording), &stall_requests(recording)) {
        if let (Some(file), Some(page)) = (w.stall.file, w.stall.page) {
            out.entry(file).or_default().push((w.from, page, w.length()));
        }
    }
    out
}

#[cfg(test)]
mod tests;
