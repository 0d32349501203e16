//! The dependency clock: when something would happen if no page had to be read.
//!
//! A recorded start is computing and waiting. The clock of a task runs while the task is on a CPU, and of its waits only
//! those count that no page can shorten:
//!
//! - **storage** and locks of nobody known: the clock stands still. So it does while the task runs only because pages
//!   are missing: from the beginning of a fault until it waits, and while the kernel adds folios and makes requests.
//! - **event** (pipe, socket, futex, poll, a child's end), ended by another task: both clocks meet. It goes on
//!   at the later of its own clock when it began to wait and of the other task's clock when that one woke it. If the
//!   other would have been earlier without its own waits, so is this one. The same for a **lock** whose holder waited for
//!   storage meanwhile; any other takes the time that passed.
//! - ended by a **timer or from outside** (network, another program), and asked-for **sleep**: the time that passed, but
//!   not that in which any task of the start waited for storage: a timer that was set before such a wait would not have
//!   been seen to end without it. Nothing, where the thread found nothing to do and waited on until a task woke it
//!   (`looks`). Waiting for **writing**, by itself or by the file system's journal, takes its time
//!   as well, for no plan removes it.
//! - **runnable**: nothing. The clock has as many CPUs as it wants.
//! - A new task begins at the clock of the task that made it.
//!
//! So a start gives the same need times whatever disk it was recorded on. Measured with Firefox (14 processes, 108
//! threads, 5,400 pages of /usr): docs/concepts/dependency-clock.md.

use std::collections::HashMap;

use cold_model::Nanos;
use cold_model::recording::tables::Began;
use cold_model::recording::{OffCpuReason, Recording};

use crate::usage::Window;
use crate::waits::main_thread;

pub mod events;
mod looks;
pub mod spans;
#[cfg(test)]
mod tests;
pub mod waits;

use events::{TaskEvent, TaskEventKind};
use spans::Spans;
use waits::{Takes, Waits};

/// From here on a task's clock shows this, and runs or stands.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    at: u64,
    clock: u64,
    runs: bool,
}

/// One task, over all who had its thread id.
#[derive(Debug, Default)]
struct ClockTask {
    /// Sorted by their time in the recording.
    anchors: Vec<Anchor>,
    /// What the clock shows when it runs again.
    woken: u64,
    ended: bool,
    /// When it ran only because pages were missing.
    reading: Spans,
}

impl ClockTask {
    fn clock(&self, at: u64) -> Option<u64> {
        let n = self.anchors.partition_point(|a| a.at <= at);
        let anchor = self.anchors.get(n.saturating_sub(1))?;
        if !anchor.runs || at <= anchor.at {
            return Some(anchor.clock);
        }
        let read = self.reading.until(at).saturating_sub(self.reading.until(anchor.at));
        Some(anchor.clock.saturating_add((at - anchor.at).saturating_sub(read)))
    }

    fn set(&mut self, at: u64, clock: u64, runs: bool) {
        self.anchors.push(Anchor { at, clock, runs });
    }
}

/// Converts points in time of a recording to need times.
#[derive(Debug)]
pub struct DependencyClock {
    exec: u64,
    until: u64,
    main: Option<u32>,
    start: u64,
    tasks: HashMap<u32, ClockTask>,
    waits: Waits,
    /// What the first process' clock shows at the exec.
    zero: u64,
}

impl DependencyClock {
    /// The clock of the start that was recorded. Without the table of times off the CPU (tiers C and D) it is the wall
    /// clock.
    pub fn of(recording: &Recording, window: Window) -> Self {
        let main = main_thread(recording);
        let exec = recording
            .processes
            .iter()
            .filter(|p| p.how == Began::Exec && Some(p.pid) == main && window.holds(p.began))
            .map(|p| p.began.0)
            .min()
            .unwrap_or(window.start.0);
        let mut clock = Self {
            exec,
            until: window.until.0,
            main,
            start: window.start.0,
            tasks: HashMap::new(),
            waits: Waits::of(recording),
            zero: 0,
        };
        if recording.off_cpu.is_some() {
            for (tid, reading) in spans::reading(recording) {
                clock.tasks.entry(tid).or_default().reading = reading;
            }
        }
        for event in events::of(recording) {
            clock.pass(recording, &event);
        }
        clock.zero = main.map_or(0, |main| clock.shows(main, exec));
        clock
    }

    /// When it would have happened if nothing had to be read, nanoseconds from the exec.
    pub fn need(&self, at: Nanos, tid: u32) -> u64 {
        self.shows(tid, at.0).saturating_sub(self.zero)
    }

    /// The exec to ready by the first process' clock, nanoseconds.
    pub fn computing(&self) -> u64 {
        self.need(Nanos(self.until), self.main.unwrap_or(0))
    }

    /// The exec to ready as it was, nanoseconds.
    pub fn window_ns(&self) -> u64 {
        self.until.saturating_sub(self.exec)
    }

    /// The command's exec.
    pub fn exec(&self) -> Nanos {
        Nanos(self.exec)
    }

    /// The point lies before ready.
    pub fn before_ready(&self, at: Nanos) -> bool {
        at.0 <= self.until
    }

    fn shows(&self, tid: u32, at: u64) -> u64 {
        self.tasks.get(&tid).and_then(|t| t.clock(at)).unwrap_or_else(|| self.waits.passed(self.start, at))
    }

    fn pass(&mut self, recording: &Recording, event: &TaskEvent) {
        let (at, tid) = (event.at, event.tid);
        let rows = recording.off_cpu.as_deref().unwrap_or_default();
        match event.kind {
            TaskEventKind::Born { maker } => {
                let known = self.tasks.get(&tid).is_some_and(|t| !t.anchors.is_empty() && !t.ended);
                if !known {
                    self.born(at, tid, maker);
                }
            }
            TaskEventKind::Off(row) => {
                let Some(off) = rows.get(row) else { return };
                // A thread that has ended still waits for locks while it is taken down; then its clock goes on. Another one
                // of its id is made first.
                let made = off.reason == OffCpuReason::Runnable && off.waker.is_some();
                if self.tasks.get(&tid).is_none_or(|t| t.anchors.is_empty() || t.ended && made) {
                    self.born(at, tid, off.waker);
                }
                let Some(task) = self.tasks.get_mut(&tid) else { return };
                let clock = task.clock(at).unwrap_or_default();
                task.set(at, clock, false);
                task.woken = clock;
            }
            TaskEventKind::Woken(row) => {
                let Some(off) = rows.get(row) else { return };
                let own = self.shows(tid, at);
                let is_task = |waker| self.tasks.get(&waker).is_some_and(|t| !t.anchors.is_empty());
                let woken = match self.waits.takes(off, is_task) {
                    Takes::Nothing => own,
                    Takes::Until(waker) => own.max(self.shows(waker, at)),
                    Takes::Time(ns) => own.saturating_add(ns),
                };
                if let Some(task) = self.tasks.get_mut(&tid) {
                    task.woken = woken;
                }
            }
            TaskEventKind::On => {
                if let Some(task) = self.tasks.get_mut(&tid) {
                    task.set(at, task.woken, true);
                }
            }
            TaskEventKind::Ended => {
                let clock = self.shows(tid, at);
                let task = self.tasks.entry(tid).or_default();
                task.set(at, clock, false);
                task.ended = true;
            }
        }
    }

    fn born(&mut self, at: u64, tid: u32, maker: Option<u32>) {
        let clock = maker.map_or_else(|| self.waits.passed(self.start, at), |maker| self.shows(maker, at));
        let task = self.tasks.entry(tid).or_default();
        task.set(at, clock, true);
        (task.woken, task.ended) = (clock, false);
    }
}
