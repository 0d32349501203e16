//! What a time off the CPU takes by the clock.

use std::collections::HashSet;

use cold_model::recording::{OffCpu, OffCpuReason, Recording};

use super::spans::Spans;

/// What a wait takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: it was for storage, or for a CPU.
    Nothing,
    /// Until this thread has come to where it woke the one that waits.
    Until(u32),
    /// So many nanoseconds, whoever reads faster.
    Time(u64),
}

/// The rules, for the waits of one recording.
#[derive(Debug)]
pub struct Waits {
    /// Waits for storage that no prefetch removes, those for writing, by thread and beginning.
    writing: HashSet<(u32, u64)>,
    /// When any task waited for storage, but for writing.
    storage: Spans,
}

impl Waits {
    /// Those of a recording.
    pub fn of(recording: &Recording) -> Self {
        let stalls = recording.stalls.iter().flatten();
        let writing: HashSet<_> =
            stalls.filter(|s| s.cause.is_writing()).map(|s| (s.tid, s.began.0)).collect();
        let rows = recording.off_cpu.iter().flatten();
        let reads = |o: &&OffCpu| o.reason == OffCpuReason::Storage && !writing.contains(&(o.tid, o.began.0));
        let storage = Spans::of(rows.filter(reads).map(|o| (o.began.0, end(o))).collect());
        Self { writing, storage }
    }

    /// What this one takes; `is_task`: the thread belongs to the start.
    pub fn takes(&self, off: &OffCpu, is_task: impl Fn(u32) -> bool) -> Takes {
        let (from, to) = (off.began.0, end(off));
        match (off.reason, off.waker.filter(|waker| *waker != off.tid && is_task(*waker))) {
            (OffCpuReason::Storage, _) if self.writing.contains(&(off.tid, from)) => {
                Takes::Time(to.saturating_sub(from))
            }
            (OffCpuReason::Storage | OffCpuReason::Runnable, _) | (OffCpuReason::Lock, None) => {
                Takes::Nothing
            }
            (OffCpuReason::Event | OffCpuReason::Lock, Some(waker)) => Takes::Until(waker),
            (OffCpuReason::Event | OffCpuReason::Sleep | OffCpuReason::Other, _) => {
                Takes::Time(self.passed(from, to))
            }
        }
    }

    /// Time that passed while no task waited for storage, nanoseconds.
    pub fn passed(&self, from: u64, to: u64) -> u64 {
        let waited = self.storage.until(to).saturating_sub(self.storage.until(from));
        to.saturating_sub(from).saturating_sub(waited)
    }
}

/// When the wait itself was over.
pub fn end(off: &OffCpu) -> u64 {
    off.woken.unwrap_or(off.ended).0
}
