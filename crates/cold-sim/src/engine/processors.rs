//! Who runs where: the task that had least CPU time, as Linux' fair scheduler chooses.
//!
//! Neither plain queue would do. Under first come, first served, a helper that wakes for microseconds to send one
//! more request would wait behind a program that computes for 100 ms; in turns of a fixed slice it would wait for the
//! slice. Linux lets who has slept run at once, and so does this:
//!
//! - Each task has a clock of CPU time. One that wakes is set back to at most a slice behind the least clock of those
//!   that run or could; a new one to that clock.
//! - A task runs until it waits, or until one that could run is a slice behind it.

use std::collections::BTreeSet;

/// Slice of one processor; it grows with the logarithm of their number, up to 8 (`sysctl_sched_base_slice` of
/// Linux 6.6 to 6.12).
const BASE_SLICE_NS: u64 = 750_000;

/// A task on a processor.
#[derive(Debug, Clone, Copy)]
struct Running {
    task: usize,
    since: u64,
    until: u64,
}

/// Processors and those who want one.
#[derive(Debug)]
pub(super) struct Processors {
    slots: Vec<Option<Running>>,
    /// By clock, then in the order in which they came.
    ready: BTreeSet<(u64, u64, usize)>,
    clocks: Vec<u64>,
    /// Where each task ran last.
    last: Vec<usize>,
    /// What is left of each task's stretch of computing.
    left: Vec<u64>,
    least: u64,
    arrivals: u64,
    slice: u64,
    /// When somebody has to leave, and from which slot.
    leave: Option<(u64, usize)>,
}

impl Processors {
    pub(super) fn new(processors: usize, tasks: usize) -> Self {
        let slice = BASE_SLICE_NS * u64::from(1 + processors.clamp(1, 8).ilog2());
        Self {
            // More than tasks are never used.
            slots: vec![None; processors.min(tasks).max(1)],
            ready: BTreeSet::new(),
            clocks: vec![0; tasks],
            last: vec![0; tasks],
            left: vec![0; tasks],
            // So that a clock can be set back by a slice from the beginning on.
            least: slice,
            arrivals: 0,
            slice,
            leave: None,
        }
    }

    /// A task wants to compute for so long; `new`: it has just begun. Says where it runs at once, if it does: where it ran
    /// last, or on the first processor that nobody has.
    pub(super) fn wants(&mut self, now: u64, task: usize, ns: u64, new: bool) -> Option<usize> {
        self.settle(now);
        self.update_least();
        let earliest = if new { self.least } else { self.least.saturating_sub(self.slice) };
        self.clocks[task] = self.clocks[task].max(earliest);
        self.left[task] = ns;
        let last = Some(self.last[task]).filter(|slot| self.slots[*slot].is_none());
        let free = last.or_else(|| self.slots.iter().position(Option::is_none));
        match free {
            Some(slot) => {
                self.slots[slot] = Some(Running { task, since: now, until: now.saturating_add(ns) });
                self.last[task] = slot;
            }
            None => self.queue(task),
        }
        self.plan(now);
        free
    }

    /// The task in a slot goes on computing for so long, without a pause.
    pub(super) fn goes_on(&mut self, now: u64, slot: usize, ns: u64) {
        if let Some(running) = self.slots.get_mut(slot).and_then(Option::as_mut) {
            running.until = now.saturating_add(ns);
        }
    }

    /// The task in a slot waits, or has ended. Says who runs there now.
    pub(super) fn leaves(&mut self, now: u64, slot: usize) -> Option<usize> {
        self.settle(now);
        self.slots[slot] = None;
        let next = self.dispatch(now, slot);
        self.plan(now);
        next
    }

    /// The task in a slot has had its share. Says who had to leave, and who runs there now.
    pub(super) fn swap(&mut self, now: u64, slot: usize) -> Option<(usize, usize)> {
        self.settle(now);
        let out = self.slots[slot].take()?;
        self.left[out.task] = out.until.saturating_sub(now);
        let next = self.dispatch(now, slot);
        self.queue(out.task);
        self.plan(now);
        next.map(|next| (out.task, next))
    }

    /// When the next stretch ends, and in which slot.
    pub(super) fn next_end(&self) -> Option<(u64, usize)> {
        let ends = self.slots.iter().enumerate().filter_map(|(i, s)| s.map(|s| (s.until, i)));
        ends.min()
    }

    /// When somebody has had his share, and in which slot.
    pub(super) fn next_swap(&self) -> Option<(u64, usize)> {
        self.leave
    }

    /// The next thing that happens in another slot than this one.
    pub(super) fn next_beside(&self, slot: usize) -> u64 {
        let others = self.slots.iter().enumerate().filter(|(i, _)| *i != slot);
        let end = others.filter_map(|(_, s)| s.map(|s| s.until)).min().unwrap_or(u64::MAX);
        end.min(self.leave.map_or(u64::MAX, |l| l.0))
    }

    /// Who runs in a slot.
    pub(super) fn task_in(&self, slot: usize) -> Option<usize> {
        self.slots.get(slot).copied().flatten().map(|r| r.task)
    }

    fn queue(&mut self, task: usize) {
        self.arrivals += 1;
        self.ready.insert((self.clocks[task], self.arrivals, task));
    }

    fn dispatch(&mut self, now: u64, slot: usize) -> Option<usize> {
        let (_, _, task) = self.ready.pop_first()?;
        let until = now.saturating_add(self.left[task]);
        self.slots[slot] = Some(Running { task, since: now, until });
        self.last[task] = slot;
        Some(task)
    }

    /// Brings the clocks of those who run up to now.
    fn settle(&mut self, now: u64) {
        for running in self.slots.iter_mut().flatten() {
            let clock = &mut self.clocks[running.task];
            *clock = clock.saturating_add(now.saturating_sub(running.since));
            running.since = now;
        }
    }

    /// The least clock of those who run or could; it never goes back.
    fn update_least(&mut self) {
        let running = self.slots.iter().flatten().map(|r| self.clocks[r.task]).min();
        let ready = self.ready.first().map(|r| r.0);
        if let Some(least) = running.into_iter().chain(ready).min() {
            self.least = self.least.max(least);
        }
    }

    /// When the one with most CPU time has to leave for the one with least.
    fn plan(&mut self, now: u64) {
        let most = self.slots.iter().enumerate();
        let most = most.filter_map(|(i, s)| s.map(|s| (self.clocks[s.task], i))).max();
        self.leave = match (self.ready.first(), most) {
            (Some((least, ..)), Some((most, slot))) => {
                // At the end of all time nobody leaves for another.
                let gap = least.saturating_add(self.slice).saturating_sub(most);
                now.checked_add(gap).filter(|at| *at < u64::MAX).map(|at| (at, slot))
            }
            _ => None,
        };
    }
}
