//! Series over time that pictures and exports draw. Times count from the start.

use std::collections::{BTreeMap, HashMap};

use cold_model::recording::{FillCause, Recording, StallCause, TouchKind};
use cold_model::{Bytes, Nanos};
use serde::Serialize;

use crate::usage::{Window, end_page, page_bytes};
use cold_model::pages::{LiveRuns, Range};

/// Requests in the devices (and their queues) from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Depth {
    /// From this moment to that of the next point.
    pub at: Nanos,
    /// Of the tree.
    pub own: u32,
    /// Of other processes, or of nobody who is known.
    pub others: u32,
}

/// Requests in flight over the whole recording, a point per change; one never completed stays in flight.
pub fn queue_depth(recording: &Recording) -> Vec<Depth> {
    let window = Window::of(recording);
    let mut steps: Vec<(Nanos, bool, i32)> = Vec::new();
    for r in recording.device_reads.iter().flatten() {
        steps.push((window.since_start(r.queued), r.in_tree, 1));
        if let Some(done) = r.completed {
            steps.push((window.since_start(done.max(r.queued)), r.in_tree, -1));
        }
    }
    steps.sort_unstable_by_key(|s| (s.0, -s.2));
    let (mut own, mut others) = (0i32, 0i32);
    let mut out: Vec<Depth> = Vec::new();
    for (at, in_tree, step) in steps {
        *(if in_tree { &mut own } else { &mut others }) += step;
        let depth = Depth { at, own: own.max(0) as u32, others: others.max(0) as u32 };
        match out.last_mut() {
            Some(last) if last.at == at => *last = depth,
            _ => out.push(depth),
        }
    }
    out
}

/// Requests of one power of two of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeBucket {
    /// Sizes from this one (a power of two) …
    pub from: Bytes,
    /// … to below this one.
    pub below: Bytes,
    /// Requests of the tree in the window.
    pub requests: u64,
    /// Sum of the sizes of these requests.
    pub bytes: Bytes,
}

/// Sizes of the tree's requests up to ready, from the smallest to the largest that occurs, empty buckets
/// between them included.
pub fn request_sizes(recording: &Recording) -> Vec<SizeBucket> {
    let window = Window::of(recording);
    let mut buckets: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for r in recording.device_reads.iter().flatten() {
        if r.in_tree && r.bytes > 0 && window.holds(r.queued) {
            let b = buckets.entry(r.bytes.ilog2()).or_default();
            *b = (b.0 + 1, b.1 + u64::from(r.bytes));
        }
    }
    let (Some(first), Some(last)) = (buckets.keys().next(), buckets.keys().next_back()) else {
        return Vec::new();
    };
    (*first..=*last)
        .map(|log| {
            let (requests, bytes) = buckets.get(&log).copied().unwrap_or_default();
            SizeBucket { from: Bytes(1 << log), below: Bytes(1 << (log + 1)), requests, bytes: Bytes(bytes) }
        })
        .collect()
}

/// One wait of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// When the thread left the CPU.
    pub from: Nanos,
    /// When it was woken, else when it ran again; the recording's end where neither was seen.
    pub to: Nanos,
    /// For what; locks included.
    pub cause: StallCause,
    /// Its row in the table of stalls.
    pub stall: u32,
}

/// The waits of one thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadWaits {
    /// Process that the thread belongs to.
    pub pid: u32,
    /// Thread id, as [`cold_model::recording::Thread::tid`].
    pub tid: u32,
    /// Name, where known.
    pub name: String,
    /// In order of time, over the whole recording.
    pub waits: Vec<Waiting>,
    /// Sum of those for storage.
    pub storage: Nanos,
}

/// Stalls per thread, over the whole recording; threads in order of their first wait.
pub fn stalls_by_thread(recording: &Recording) -> Vec<ThreadWaits> {
    let window = Window::of(recording);
    let end = recording.manifest.end.max(window.until);
    let names: HashMap<u32, &str> = recording.threads.iter().map(|t| (t.tid, t.name.as_str())).collect();
    let mut threads: BTreeMap<(u32, u32), ThreadWaits> = BTreeMap::new();
    for (i, s) in recording.stalls.iter().flatten().enumerate() {
        let from = window.since_start(s.began);
        let to = window.since_start(s.woken.or(s.ended).unwrap_or(end)).max(from);
        let thread = threads.entry((s.pid, s.tid)).or_insert_with(|| ThreadWaits {
            pid: s.pid,
            tid: s.tid,
            name: names.get(&s.tid).unwrap_or(&"").to_string(),
            waits: Vec::new(),
            storage: Nanos(0),
        });
        thread.waits.push(Waiting { from, to, cause: s.cause, stall: i as u32 });
        if s.cause.is_storage() {
            thread.storage += to - from;
        }
    }
    let mut out: Vec<_> = threads.into_values().collect();
    for t in &mut out {
        t.waits.sort_unstable_by_key(|w| (w.from, w.stall));
    }
    out.sort_by_key(|t| (t.waits.first().map(|w| w.from), t.pid, t.tid));
    out
}

/// Bytes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// The moment up to which is counted.
    pub at: Nanos,
    /// Touched for certain, each page once.
    pub needed: Bytes,
    /// Filled by the tree, each page once, written pages excepted.
    pub read: Bytes,
}

/// Needed and read bytes over the whole recording, thinned out to at most `points` (the last one kept).
pub fn cumulative(recording: &Recording, points: usize) -> Vec<Progress> {
    let (window, page) = (Window::of(recording), page_bytes(recording));
    let mut events: Vec<(Nanos, bool, u32, Range)> = Vec::new();
    let range = |file: u32, first: u64, pages: u32| {
        let end = recording.files.get(file as usize).map_or(0, |f| end_page(f, page));
        first.min(end)..first.saturating_add(u64::from(pages)).min(end)
    };
    for t in recording.touches.iter().flatten().filter(|t| t.kind != TouchKind::FaultAround) {
        events.push((t.at, false, t.file, range(t.file, t.first_page, t.pages)));
    }
    for f in recording.fills.iter().flatten().filter(|f| f.in_tree && f.cause != FillCause::Write) {
        events.push((f.at, true, f.file, range(f.file, f.first_page, f.pages)));
    }
    events.sort_by_key(|e| e.0);
    let mut seen: HashMap<(bool, u32), LiveRuns> = HashMap::new();
    let (mut needed, mut read) = (0u64, 0u64);
    let mut out: Vec<Progress> = Vec::new();
    let every = events.len().div_ceil(points.max(1)).max(1);
    let last = events.len().saturating_sub(1);
    for (i, (at, is_fill, file, range)) in events.into_iter().enumerate() {
        let known = seen.entry((is_fill, file)).or_default();
        let new: u64 = known.holes(&range).iter().map(|r| r.end - r.start).sum();
        known.insert(&range);
        let total = if is_fill { &mut read } else { &mut needed };
        *total = total.saturating_add(new.saturating_mul(page));
        if (i + 1) % every == 0 || i == last {
            out.push(Progress { at: window.since_start(at), needed: Bytes(needed), read: Bytes(read) });
        }
    }
    out
}

#[cfg(test)]
mod tests;
