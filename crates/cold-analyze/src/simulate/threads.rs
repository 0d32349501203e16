//! Threads as steps: accesses, what is computed between them, and who waits for whom.

use std::collections::{HashMap, HashSet};

use crate::clock::events::{Off, makers};
use crate::clock::spans::{self, Spans};
use crate::clock::waits::{self, Takes, Waits};
use crate::usage::Window;
use crate::waits::main_thread;
use cold_model::recording::{OffCpu, OffCpuReason, Recording};

use cold_sim::engine::{Event, Step, Task, TaskStart};

use super::WaitsKnown;
use super::accesses::RecordedAccess;

/// A thread while its steps are gathered.
struct Thread {
    began: u64,
    start: TaskStart,
    /// With their times; of one time, in the order in which they were added.
    steps: Vec<(u64, Step)>,
    /// When it did not run, or only because pages were missing.
    idle: Vec<(u64, u64)>,
}

struct Threads {
    of: HashMap<u32, Thread>,
    off: Off,
    events: u32,
}

/// The threads of the tree up to ready with their ids, the first one first.
pub(super) fn of(
    recording: &Recording,
    accesses: Vec<RecordedAccess>,
    window: Window,
    known: WaitsKnown,
) -> Vec<(u32, Task)> {
    let main = main_thread(recording);
    let mut threads = Threads { of: HashMap::new(), off: Off::of(recording), events: 0 };
    for t in recording.threads.iter().filter(|t| t.in_tree && t.began <= window.until) {
        threads.add(t.tid, t.began.0.max(window.start.0));
    }
    // Nobody saw these begin.
    for tid in accesses.iter().map(|found| found.tid).chain(main) {
        threads.add(tid, window.start.0);
    }
    let made = threads.made(recording, window);
    match known {
        WaitsKnown::All => threads.waits(recording, window, &made),
        WaitsKnown::Storage | WaitsKnown::None => threads.waits_for_storage(recording),
    }
    for found in accesses {
        threads.step(found.tid, found.at, Step::Access(found.op));
    }
    if window.ready
        && let Some(main) = main
    {
        threads.step(main, window.until.0, Step::Ready);
    }
    let mut reading = spans::reading(recording);
    let mut tids: Vec<u32> = threads.of.keys().copied().collect();
    tids.sort_unstable_by_key(|tid| (Some(*tid) != main, *tid));
    let each = tids.into_iter().filter_map(|tid| {
        let thread = threads.of.remove(&tid)?;
        Some((tid, thread.task(reading.remove(&tid).unwrap_or_default(), window.until.0, known)))
    });
    each.collect()
}

impl Threads {
    /// Something that a thread lets happen. It cannot have done so off the CPU: then it was an interrupt's work, or another
    /// thread's, and comes before that wait, so that nobody ever waits for himself.
    fn signal(&mut self, by: u32, at: u64) -> Event {
        self.events += 1;
        let event = Event(self.events);
        self.step(by, self.off.since(by, at).unwrap_or(at), Step::Signal(event));
        event
    }

    fn add(&mut self, tid: u32, began: u64) {
        let new = || Thread { began, start: TaskStart::AtOnce, steps: Vec::new(), idle: Vec::new() };
        self.of.entry(tid).or_insert_with(new);
    }

    fn step(&mut self, tid: u32, at: u64, step: Step) {
        if let Some(thread) = self.of.get_mut(&tid) {
            thread.steps.push((at, step));
        }
    }

    /// Each thread begins when its maker has come there. Answers with the intervals that said who that was.
    fn made(&mut self, recording: &Recording, window: Window) -> HashSet<(u32, u64)> {
        let mut said = HashSet::new();
        let mut maker: HashMap<u32, (u32, u64)> = HashMap::new();
        for o in recording.off_cpu.iter().flatten() {
            if o.reason == OffCpuReason::Runnable
                && let Some(waker) = o.waker
                && o.began <= window.until
                && !maker.contains_key(&o.tid)
            {
                maker.insert(o.tid, (waker, o.began.0));
                said.insert((o.tid, o.began.0));
            }
        }
        let threads = makers(recording, &self.off);
        let threads: Vec<_> = threads.filter(|(t, _)| t.in_tree && t.began <= window.until).collect();
        for (t, told) in threads {
            let made = maker.get(&t.tid).copied().or(told.map(|by| (by, t.began.0)));
            let Some((by, at)) = made.filter(|(by, _)| *by != t.tid && self.of.contains_key(by)) else {
                continue;
            };
            let event = self.signal(by, at);
            if let Some(thread) = self.of.get_mut(&t.tid) {
                (thread.start, thread.began) = (TaskStart::On(event), at);
            }
        }
        said
    }

    fn waits(&mut self, recording: &Recording, window: Window, made: &HashSet<(u32, u64)>) {
        let rules = Waits::of(recording);
        let in_window = |o: &&OffCpu| o.began <= window.until && o.ended >= window.start;
        for o in recording.off_cpu.iter().flatten().filter(in_window) {
            let Some(thread) = self.of.get_mut(&o.tid) else { continue };
            thread.idle.push((o.began.0, o.ended.0));
            if made.contains(&(o.tid, o.began.0)) {
                continue;
            }
            match rules.takes(o, |waker| self.of.contains_key(&waker)) {
                Takes::Nothing => {}
                Takes::Time(ns) => self.step(o.tid, o.began.0, Step::Sleep(ns)),
                Takes::Until(waker) => {
                    let event = self.signal(waker, waits::end(o));
                    self.step(o.tid, o.began.0, Step::Await(event));
                }
            }
        }
    }

    /// Waits that another disk changes; those for writing are none of them.
    fn waits_for_storage(&mut self, recording: &Recording) {
        let stalls = recording.stalls.iter().flatten();
        for s in stalls.filter(|s| s.cause.is_reading()) {
            if let (Some(thread), Some(until)) = (self.of.get_mut(&s.tid), s.woken.or(s.ended)) {
                thread.idle.push((s.began.0, until.0));
            }
        }
    }
}

impl Thread {
    fn task(mut self, reading: Spans, until: u64, known: WaitsKnown) -> Task {
        self.steps.sort_by_key(|(at, _)| *at);
        let idle = Spans::of(self.idle.into_iter().chain(reading.into_inner()).collect());
        let computed = |from: u64, to: u64| {
            let idle = idle.until(to).saturating_sub(idle.until(from));
            to.saturating_sub(from).saturating_sub(idle)
        };
        let mut steps = Vec::with_capacity(self.steps.len() * 2);
        let mut now = self.began;
        for (at, step) in self.steps.into_iter().filter(|(at, _)| *at <= until) {
            let ns = computed(now, at);
            // Where nothing tells computing from waiting for others, no processor is taken for it.
            let passes = if known == WaitsKnown::All { Step::Compute(ns) } else { Step::Sleep(ns) };
            steps.extend((ns > 0).then_some(passes));
            now = now.max(at);
            steps.push(step);
        }
        Task { start: self.start, steps }
    }
}
