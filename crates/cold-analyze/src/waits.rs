//! Lengths of waits: sums, unions, and what each is charged to.

use std::collections::{BTreeMap, HashMap};

use cold_model::Nanos;
use cold_model::recording::manifest::{Subject, Tier};
use cold_model::recording::{FileIdx, Recording, RequestIdx, Stall, StallCause};

use crate::usage::Window;

/// A wait for storage inside the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait<'a> {
    /// The whole stall, as the recording has it.
    pub stall: &'a Stall,
    /// Index of that row.
    pub index: usize,
    /// Begin, not before the start.
    pub from: Nanos,
    /// End, not after ready.
    pub to: Nanos,
    /// The request it waited for, where found.
    pub request: Option<RequestIdx>,
    /// The file it is charged to: its own, else the one whose pages that request carried.
    pub file: Option<FileIdx>,
}

impl Wait<'_> {
    /// How much of the stall lies within the window.
    pub fn length(&self) -> Nanos {
        self.to.saturating_sub(self.from)
    }
    /// Neither file, lookup nor request is known.
    pub fn unattributed(&self) -> bool {
        self.file.is_none() && self.request.is_none() && self.stall.lookup.is_none()
    }
}

/// The waits for storage in the window: all stalls but those for locks and for what is not known.
pub fn storage_waits<'a>(
    recording: &'a Recording,
    window: Window,
    requests: &[Option<RequestIdx>],
) -> Vec<Wait<'a>> {
    let mut carried: HashMap<RequestIdx, FileIdx> = HashMap::new();
    for t in recording.transfers.iter().flatten() {
        if let Some(file) = t.file {
            carried.entry(t.request).or_insert(file);
        }
    }
    let known = |f: &FileIdx| (*f as usize) < recording.files.len();
    recording
        .stalls
        .iter()
        .flatten()
        .enumerate()
        .filter(|(_, s)| s.cause.is_storage())
        .filter_map(|(index, stall)| {
            let (from, to) = window.clip(stall.began, stall.woken.or(stall.ended))?;
            let request = requests.get(index).copied().flatten();
            let by_request = request.and_then(|r| carried.get(&r).copied());
            let file = stall.file.or(by_request).filter(known);
            Some(Wait { stall, index, from, to, request, file })
        })
        .collect()
}

/// Time covered by at least one of the intervals.
pub fn union(intervals: impl Iterator<Item = (Nanos, Nanos)>) -> Nanos {
    let mut all: Vec<_> = intervals.collect();
    all.sort_unstable();
    let (mut total, mut until) = (Nanos(0), Nanos(0));
    for (from, to) in all {
        total += to.saturating_sub(from.max(until));
        until = until.max(to);
    }
    total
}

/// Sum of lengths.
pub fn sum<'a>(waits: impl Iterator<Item = &'a Wait<'a>>) -> Nanos {
    waits.map(Wait::length).sum()
}

/// The first thread of the first process: the command's, or the one that was attached to.
pub fn main_thread(recording: &Recording) -> Option<u32> {
    let first = first_process(recording)?;
    if recording.manifest.tier == Tier::Imported {
        // On Windows no thread has its process' number.
        let own = recording.threads.iter().filter(|t| t.in_tree && t.pid == first);
        return own.min_by_key(|t| t.began).map(|t| t.tid);
    }
    Some(first)
}

/// The process that was started or followed; `None` for a whole machine.
pub(crate) fn first_process(recording: &Recording) -> Option<u32> {
    match recording.manifest.subject {
        Subject::Process { pid } => Some(pid),
        Subject::Machine => None,
        Subject::Command => {
            recording.processes.iter().filter(|p| p.in_tree).min_by_key(|p| p.began).map(|p| p.pid)
        }
    }
}

/// Waits per cause.
pub fn by_cause(waits: &[Wait<'_>]) -> BTreeMap<StallCause, Nanos> {
    let mut out = BTreeMap::new();
    for w in waits {
        *out.entry(w.stall.cause).or_insert(Nanos(0)) += w.length();
    }
    out
}

#[cfg(test)]
mod tests;
