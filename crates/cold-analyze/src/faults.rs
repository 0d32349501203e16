//! What other read-around windows would have read: a small replay of the mapped faults.
//!
//! The model: a fault on a missing page reads its window, which lies around the page (half before it), or
//! from it on for executable mappings of Linux 6.17 and later; pages that are there are skipped, each hole is
//! a request, split at the device's limit; nothing goes beyond the file. Pages that came in other ways
//! (reads, advice, other processes, cached before) are there from the beginning. Time: the program's own
//! time is the recorded one without the waits of faults; one device serves the requests in order, each page
//! is there when its request is done, and what was read in vain delays what comes after it. Not modelled:
//! other reads on that device, the count of mapped misses, large folios, read-ahead markers, limits of the
//! mapping.
//!
//! Measured, windows of 8 MiB recorded, 128 KiB predicted, on three starts: node 537 requests where 545 were
//! seen, Firefox 2189 where about 2390 were (8 % too few), java 485 where about 445 were (9 % too many). Times
//! are a bound, not a promise: java's start waited half as long with the smaller window, and the replay
//! (44 ms, where 61 ms were recorded) did not tell so much.

use std::collections::HashMap;

use cold_model::kernel::code_is_read_forward;
use cold_model::recording::{FileIdx, FillCause, Recording, TouchKind};
use cold_model::{Bytes, Nanos};
use serde::Serialize;

use crate::cost::DeviceCost;
use crate::usage::{Usage, Window, end_page, page_bytes};
use cold_model::pages::{LiveRuns, Range, Runs};

mod clock;
use clock::{Clock, fault_waits};

/// Windows that are tried, in bytes.
pub const WINDOWS: [u64; 8] =
    [16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20];
/// The kernel maps around a fault within one page table at most.
const MOST_AROUND: u64 = 512;
/// Linux' limit of a request where the device's is not known (`BLK_DEF_MAX_SECTORS`).
pub(crate) const MAX_REQUEST: u64 = 1280 << 10;

/// One window's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Simulated {
    /// The window; `None`: each file system's present one.
    pub window: Option<Bytes>,
    /// Bytes read for faults.
    pub bytes: Bytes,
    /// Requests for them.
    pub requests: u64,
    /// Faults that read.
    pub faults: u64,
    /// Time the program waited for its pages; `None` without a device cost.
    pub waits: Option<Nanos>,
}

/// All windows, and how far the model can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadAround {
    /// With the windows in force.
    pub present: Simulated,
    /// With each of [`WINDOWS`].
    pub others: Vec<Simulated>,
    /// What the recorded faults really read.
    pub recorded: Bytes,
    /// The largest window in force.
    pub present_window: Bytes,
    /// Faults were exact. Else pages mapped around a fault are taken as needed, which makes small windows
    /// look worse than they are.
    pub exact: bool,
}

/// Replays the mapped faults up to ready, of files whose file system has a known window: one in memory
/// reads nothing around. `None`: no such faults, or no fills.
pub fn read_around(recording: &Recording, usage: &[Usage], cost: Option<&DeviceCost>) -> Option<ReadAround> {
    recording.fills.as_ref()?;
    let windows: HashMap<_, _> = recording
        .manifest
        .file_systems
        .iter()
        .filter_map(|fs| Some((fs.dev, fs.read_ahead.value()?.0)))
        .collect();
    let window = |file: FileIdx| windows.get(&recording.files.get(file as usize)?.dev).copied();
    let replay = Faults::of(recording, usage, |file| window(file).is_some());
    let present: HashMap<FileIdx, u64> =
        replay.touches.iter().filter_map(|t| Some((t.file, window(t.file)?))).collect();
    let largest = present.values().copied().max()?;
    Some(ReadAround {
        present: replay.run(None, |file| present.get(&file).copied().unwrap_or(largest), cost),
        others: WINDOWS.iter().map(|&w| replay.run(Some(Bytes(w)), |_| w, cost)).collect(),
        recorded: replay.recorded,
        present_window: Bytes(largest),
        exact: replay.exact,
    })
}

/// The first touch of pages.
struct First {
    at: Nanos,
    file: FileIdx,
    pages: Range,
    /// Mapped around a fault: nothing waits for those that are still under way.
    around: bool,
}

struct Faults {
    page: u64,
    max_request: u64,
    /// First touches of pages in order.
    touches: Vec<First>,
    /// Pages there from the beginning.
    there: HashMap<FileIdx, LiveRuns>,
    ends: Vec<u64>,
    /// Pages of mappings whose faults read forward only.
    forward: HashMap<FileIdx, Runs>,
    recorded: Bytes,
    waits: Vec<(Nanos, Nanos)>,
    exact: bool,
}

impl Faults {
    fn of(recording: &Recording, usage: &[Usage], wanted: impl Fn(FileIdx) -> bool) -> Self {
        let (window, page) = (Window::of(recording), page_bytes(recording));
        let ends: Vec<u64> = recording.files.iter().map(|f| end_page(f, page)).collect();
        let (mut there, recorded) = filled_otherwise(recording, usage, &ends);
        let mut touches = Vec::new();
        let mut seen: HashMap<FileIdx, LiveRuns> = HashMap::new();
        let mut exact = true;
        let mut all: Vec<_> =
            recording.touches.iter().flatten().filter(|t| window.holds(t.at) && wanted(t.file)).collect();
        all.sort_by_key(|t| t.at);
        for t in all {
            let Some(&end) = ends.get(t.file as usize) else { continue };
            let last = t.first_page.saturating_add(u64::from(t.pages)).min(end);
            let range = t.first_page..last;
            let around = t.kind == TouchKind::FaultAround;
            if t.kind == TouchKind::Read {
                there.entry(t.file).or_default().insert(&range);
                continue;
            }
            exact &= !around;
            // Only what may have been needed: of a range around a fault, the pages that were there.
            let needed = usage.get(t.file as usize).map(|u| &u.needed);
            let range = range.start..range.end.min(range.start.saturating_add(MOST_AROUND));
            let seen = seen.entry(t.file).or_default();
            for hole in seen.holes(&range) {
                let first = |pages| First { at: t.at, file: t.file, pages, around };
                touches.extend(needed.iter().flat_map(|n| n.within(&hole)).map(first));
            }
            seen.insert(&range);
        }
        let limits = recording.manifest.devices.iter().filter_map(|d| d.max_request.value());
        let max_request = limits.map(|b| b.0).filter(|n| *n >= page).min().unwrap_or(MAX_REQUEST);
        let forward = if code_is_read_forward(&recording.manifest.machine.kernel) {
            executable_pages(recording, page)
        } else {
            HashMap::new()
        };
        let waits = fault_waits(recording);
        Self { page, max_request, touches, there, ends, forward, recorded, waits, exact }
    }

    fn run(
        &self,
        window: Option<Bytes>,
        bytes_of: impl Fn(FileIdx) -> u64,
        cost: Option<&DeviceCost>,
    ) -> Simulated {
        let mut there = self.there.clone();
        let mut out = Simulated { window, bytes: Bytes(0), requests: 0, faults: 0, waits: None };
        let mut clock = cost.map(|c| Clock::new(c, &self.waits));
        for touch in &self.touches {
            let file = touch.file;
            if let Some(clock) = &mut clock {
                clock.advance(touch.at);
                if !touch.around {
                    clock.need(file, touch.pages.start);
                }
            }
            let cached = there.entry(file).or_default();
            let pages = (bytes_of(file) / self.page).max(1);
            while let Some(page) = cached.holes(&touch.pages).first().map(|h| h.start) {
                let around = self.window(file, page, pages);
                out.faults += 1;
                for hole in cached.holes(&around) {
                    self.read(&mut out, &mut clock, file, &hole);
                }
                if let Some(clock) = &mut clock {
                    clock.need(file, page);
                }
                cached.insert(&around);
            }
        }
        out.waits = clock.map(|c| c.waited());
        out
    }

    /// Counts and queues the requests of a hole.
    fn read(&self, out: &mut Simulated, clock: &mut Option<Clock<'_>>, file: FileIdx, hole: &Range) {
        let most = (self.max_request / self.page).max(1);
        let mut start = hole.start;
        while start < hole.end {
            let pages = start..hole.end.min(start.saturating_add(most));
            start = pages.end;
            let bytes = Bytes((pages.end - pages.start).saturating_mul(self.page));
            out.bytes = Bytes(out.bytes.0.saturating_add(bytes.0));
            out.requests += 1;
            if let Some(clock) = clock {
                clock.read(file, pages, bytes);
            }
        }
    }

    fn window(&self, file: FileIdx, page: u64, pages: u64) -> Range {
        let end = self.ends.get(file as usize).copied().unwrap_or(u64::MAX);
        let forward = self.forward.get(&file).is_some_and(|f| f.contains(page));
        let start = if forward { page } else { page.saturating_sub(pages / 2) };
        start..start.saturating_add(pages).min(end).max(page.saturating_add(1))
    }
}

/// Pages that did not come by mapped faults, and the bytes of those that did.
fn filled_otherwise(
    recording: &Recording,
    usage: &[Usage],
    ends: &[u64],
) -> (HashMap<FileIdx, LiveRuns>, Bytes) {
    let mut there: HashMap<FileIdx, LiveRuns> = HashMap::new();
    for (i, u) in usage.iter().enumerate() {
        let set = there.entry(i as FileIdx).or_default();
        for r in u.cached().runs().iter().chain(u.by_others.runs()) {
            set.insert(r);
        }
    }
    for f in recording.fills.iter().flatten().filter(|f| f.in_tree) {
        let end = ends.get(f.file as usize).copied().unwrap_or(0);
        if !matches!(f.cause, FillCause::DemandFault | FillCause::ReadAround) {
            let range = f.first_page..f.first_page.saturating_add(u64::from(f.pages)).min(end);
            there.entry(f.file).or_default().insert(&range);
        }
    }
    let causes = usage.iter().flat_map(|u| &u.causes);
    let by_faults = causes.filter(|(c, _)| matches!(c, FillCause::DemandFault | FillCause::ReadAround));
    let pages = by_faults.fold(0u64, |sum, (_, n)| sum.saturating_add(*n));
    (there, Bytes(pages.saturating_mul(page_bytes(recording))))
}

fn executable_pages(recording: &Recording, page: u64) -> HashMap<FileIdx, Runs> {
    let mut ranges: HashMap<FileIdx, Vec<Range>> = HashMap::new();
    for m in recording.mappings.iter().flatten().filter(|m| m.executable) {
        let pages = m.offset / page..m.offset.saturating_add(m.bytes).div_ceil(page);
        ranges.entry(m.file).or_default().push(pages);
    }
    ranges.into_iter().map(|(file, r)| (file, Runs::of(r))).collect()
}

#[cfg(test)]
mod tests;
