//! Why a start took as long as it did: each nanosecond from start to ready has exactly one reason.
//!
//! The path to ready is walked backwards, as a critical path is: from who made the start ready (`reached.rs`; where nobody
//! tells, from what ran last before ready); where a task waited
//! for another task of the start, on with that one from the moment when it ended the wait; where a task began, on with
//! the one that made it. So waits for others have the others' own reasons, the pieces follow each other without gap or
//! overlap, and their lengths sum to the time to ready.
//!
//! A piece in which a task ran is divided further (`running.rs`): work of the kernel for pages that were missing, calls
//! that resolve paths, the loader before a program's own code, and what is left, the program.

use std::collections::BTreeMap;

use cold_model::recording::{FileIdx, Recording};
use cold_model::{Known, Nanos};
use serde::Serialize;

use crate::usage::Window;

mod kind;
mod path;
mod reached;
mod running;

pub use kind::{Group, Kind};

/// A piece of the path to ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// When it began.
    pub from: Nanos,
    /// When the next one begins.
    pub to: Nanos,
    /// The task that it went through.
    pub tid: u32,
    /// Process of that task, as recorded.
    pub pid: u32,
    /// Why this time passed.
    pub kind: Kind,
    /// What was waited for, or looked for; `None`: it is no matter of a file, or it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileIdx>,
    /// Number of the system call that waited; `None`: none was in progress, or it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_call: Option<u32>,
}

impl Piece {
    /// How long it lasted.
    pub fn length(&self) -> Nanos {
        self.to.saturating_sub(self.from)
    }
}

/// The path of a start to ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reasons {
    /// Start of the command, or of the recording.
    pub start: Nanos,
    /// Ready, or the end of the recording.
    pub until: Nanos,
    /// In order of time, without gap or overlap, from `start` to `until`.
    pub pieces: Vec<Piece>,
}

impl Reasons {
    /// Those of a recording; unknown where it does not tell when tasks were off the CPU.
    pub fn of(recording: &Recording) -> Known<Self> {
        if recording.off_cpu.is_none() {
            let tier = recording.manifest.tier;
            return Known::unknown(format!("a recording of tier {tier} does not tell who waited for whom"));
        }
        if recording.threads.is_empty() {
            return Known::unknown("the recording tells of no thread");
        }
        let window = Window::of(recording);
        let mut pieces = path::of(recording, window);
        pieces.reverse();
        let pieces = running::divided(recording, &pieces);
        Known::Value(Self { start: window.start, until: window.until, pieces })
    }

    /// Start to ready: the sum of all pieces.
    pub fn total(&self) -> Nanos {
        self.until.saturating_sub(self.start)
    }

    /// The rest of the path from this moment on.
    #[must_use]
    pub fn since(&self, at: Nanos) -> Self {
        let at = at.clamp(self.start, self.until);
        let rest = self.pieces.iter().filter(|p| p.to > at);
        let pieces = rest.map(|p| Piece { from: p.from.max(at), ..*p }).collect();
        Self { start: at, until: self.until, pieces }
    }

    /// Time per kind; kinds that took none are left out.
    pub fn by_kind(&self) -> BTreeMap<Kind, Nanos> {
        let mut out = BTreeMap::new();
        for piece in &self.pieces {
            *out.entry(piece.kind).or_insert(Nanos(0)) += piece.length();
        }
        out
    }

    /// Time that some kinds took per file, longest first.
    pub fn files(&self, wanted: impl Fn(Kind) -> bool) -> Vec<(FileIdx, Nanos)> {
        let pieces = self.pieces.iter().filter(|p| wanted(p.kind));
        most(pieces.filter_map(|p| Some((p.file?, p.length()))))
    }

    /// Time per system call that waited (its number), longest first.
    pub fn calls(&self, wanted: impl Fn(Kind) -> bool) -> Vec<(u32, Nanos)> {
        let pieces = self.pieces.iter().filter(|p| wanted(p.kind));
        most(pieces.filter_map(|p| Some((p.system_call?, p.length()))))
    }

    /// Time per process that the path went through, longest first.
    pub fn processes(&self) -> Vec<(u32, Nanos)> {
        most(self.pieces.iter().map(|p| (p.pid, p.length())))
    }
}

/// Sums per key, largest first.
fn most<K: Ord + Copy>(all: impl Iterator<Item = (K, Nanos)>) -> Vec<(K, Nanos)> {
    let mut sums: BTreeMap<K, Nanos> = BTreeMap::new();
    for (key, time) in all {
        *sums.entry(key).or_insert(Nanos(0)) += time;
    }
    let mut out: Vec<_> = sums.into_iter().collect();
    out.sort_by_key(|(key, time)| (std::cmp::Reverse(*time), *key));
    out
}

#[cfg(test)]
mod tests;
