//! Which process a thread belonged to at a moment: Windows uses numbers again.

use std::collections::HashMap;

use super::Thread;

/// Threads by id, each id's in the order in which they were seen.
#[derive(Debug, Default)]
pub(super) struct Threads {
    rows: Vec<Thread>,
    by_tid: HashMap<u32, Vec<usize>>,
}

impl Threads {
    /// A thread begins; `began` is `None` where it was there before the trace.
    pub(super) fn begin(&mut self, tid: u32, pid: u32, began: Option<i64>) {
        let rows = self.by_tid.entry(tid).or_default();
        let known = rows.last().and_then(|row| self.rows.get(*row));
        // Told again: at the trace's beginning for one that was seen to begin.
        if known.is_some_and(|t| t.pid == pid && t.ended.is_none()) {
            return;
        }
        rows.push(self.rows.len());
        self.rows.push(Thread { tid, pid, began, ended: None });
    }

    /// A thread ends. One that was never seen was there before the trace.
    pub(super) fn end(&mut self, tid: u32, pid: u32, at: i64) {
        self.begin(tid, pid, None);
        let last = self.by_tid.get(&tid).and_then(|rows| rows.last());
        if let Some(thread) = last.and_then(|row| self.rows.get_mut(*row)) {
            thread.ended = Some(at);
        }
    }

    /// Process of thread `tid` at that time: of the last that had begun, else of the first that was told later.
    pub(super) fn process(&self, tid: u32, at: i64) -> Option<u32> {
        let rows = self.by_tid.get(&tid)?;
        let of = |row: &usize| self.rows.get(*row);
        let begun = rows.iter().rev().filter_map(of).find(|t| t.began.is_none_or(|began| began <= at));
        begun.or_else(|| rows.first().and_then(of)).map(|t| t.pid)
    }

    pub(super) fn into_rows(self) -> Vec<Thread> {
        self.rows
    }
}
