//! What a time off the CPU takes by the clock.

use std::collections::{HashMap, HashSet};

use cold_model::recording::{OffCpu, OffCpuReason, Recording};

use super::looks;
use super::spans::Spans;

/// What a wait takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: it was for storage, or for a CPU, or it went on until a later one ended (`looks`).
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
    /// The same of each thread.
    of_thread: HashMap<u32, Spans>,
    /// Waits that only a later one ended, by thread and beginning.
    looks: HashSet<(u32, u64)>,
}

impl Waits {
    /// Those of a recording.
    pub fn of(recording: &Recording) -> Self {
        let stalls = recording.stalls.iter().flatten();
        let writing: HashSet<_> =
            stalls.filter(|s| s.cause.is_writing()).map(|s| (s.tid, s.began.0)).collect();
        let rows = recording.off_cpu.iter().flatten();
        let reads = |o: &&OffCpu| o.reason == OffCpuReason::Storage && !writing.contains(&(o.tid, o.began.0));
        let mut all = Vec::new();
        let mut each: HashMap<u32, Vec<(u64, u64)>> = HashMap::new();
        for o in rows.filter(reads) {
            all.push((o.began.0, end(o)));
            each.entry(o.tid).or_default().push((o.began.0, end(o)));
        }
        let of_thread = each.into_iter().map(|(tid, spans)| (tid, Spans::of(spans))).collect();
        Self { writing, storage: Spans::of(all), of_thread, looks: looks::of(recording) }
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
            (OffCpuReason::Event, Some(waker)) => Takes::Until(waker),
            (OffCpuReason::Lock, Some(waker)) if self.read(waker, from, to) => Takes::Until(waker),
            // A lock puts nobody before anybody: who comes earlier does not find it taken. So it takes no longer than it
            // did, whatever its holder had waited for before it took it.
            (OffCpuReason::Lock, Some(_)) => Takes::Time(self.passed(from, to)),
            (OffCpuReason::Event, None) if self.looks.contains(&(off.tid, from)) => Takes::Nothing,
            (OffCpuReason::Event | OffCpuReason::Sleep | OffCpuReason::Other, _) => {
                Takes::Time(self.passed(from, to))
            }
        }
    }

    /// Whether a thread waited for storage meanwhile.
    fn read(&self, tid: u32, from: u64, to: u64) -> bool {
        self.of_thread.get(&tid).is_some_and(|spans| spans.until(to) > spans.until(from))
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
