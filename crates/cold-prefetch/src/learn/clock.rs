//! Time with the waits taken out.
//!
//! Definition: need time of an event of thread T at time t = (t − exec) − |W|, where W is the union, between
//! the exec and t, of the waits for storage of T's **line**: of T itself; of its process' first thread before
//! T began; of the parent's first thread before the process began, and so on upwards; and of all descendants
//! of T's process that had ended by t, because their parent most likely waited for them (`sh -c`, `git`).
//! Waits for locks count, since they are waits for somebody who reads; waits for writing do not, since no
//! prefetch removes them. For a chain of single-threaded processes this is exact. A thread that waits for
//! another *thread's* read without a lock of the kernel's keeps that wait: its needs come out too late by it.

use std::collections::HashMap;

use cold_analyze::Window;
use cold_analyze::waits::main_thread;
use cold_model::Nanos;
use cold_model::recording::tables::Began;
use cold_model::recording::{Recording, StallCause};

type Interval = (u64, u64);

/// Disjoint intervals with the total before each.
#[derive(Debug, Clone, Default)]
struct Line {
    intervals: Vec<Interval>,
    before: Vec<u64>,
}

impl Line {
    fn of(mut all: Vec<Interval>) -> Self {
        all.sort_unstable();
        let mut out = Self::default();
        let mut total = 0;
        for (from, to) in all {
            match out.intervals.last_mut() {
                Some(last) if from <= last.1 => {
                    total += to.saturating_sub(last.1);
                    last.1 = last.1.max(to);
                }
                _ => {
                    out.before.push(total);
                    out.intervals.push((from, to));
                    total += to - from;
                }
            }
        }
        out
    }
    fn until(&self, at: u64) -> u64 {
        let n = self.intervals.partition_point(|i| i.0 < at);
        match n.checked_sub(1) {
            Some(i) => self.before[i] + self.intervals[i].1.min(at) - self.intervals[i].0,
            None => 0,
        }
    }
}

/// A process over all its images.
#[derive(Debug, Clone, Copy)]
struct Life {
    began: u64,
    parent: u32,
    ended: Option<u64>,
}

/// Converts points in time to need times.
#[derive(Debug)]
pub(super) struct Clock {
    exec: u64,
    until: u64,
    main: Option<u32>,
    /// Per thread: until when each line is the right one, ascending, and the line.
    lines: HashMap<u32, Vec<(u64, Line)>>,
}

/// Ends of descendants that are told apart; later ones count from the last of these on.
const MOST_ENDS: usize = 256;

impl Clock {
    pub(super) fn of(recording: &Recording, window: Window) -> Self {
        let main = main_thread(recording);
        let exec = recording
            .processes
            .iter()
            .filter(|p| p.how == Began::Exec && Some(p.pid) == main && window.holds(p.began))
            .map(|p| p.began.0)
            .min()
            .unwrap_or(window.start.0);
        let mut clock = Self { exec, until: window.until.0, main, lines: HashMap::new() };
        let stalls = Stalls::of(recording, exec, window);
        let mut tids: Vec<u32> = stalls.pid_of.keys().copied().collect();
        tids.extend(stalls.lives.keys().copied());
        tids.sort_unstable();
        tids.dedup();
        for tid in tids {
            let lines = stalls.lines(tid);
            clock.lines.insert(tid, lines);
        }
        clock
    }

    /// When it would have happened without waits, nanoseconds from the exec.
    pub(super) fn need(&self, at: Nanos, tid: u32) -> u64 {
        let waited = self.lines.get(&tid).map_or(0, |lines| {
            let i = lines.partition_point(|(until, _)| *until <= at.0);
            lines.get(i).or(lines.last()).map_or(0, |(_, line)| line.until(at.0))
        });
        at.0.saturating_sub(self.exec).saturating_sub(waited)
    }

    /// The exec to ready, without the waits of the first thread's line.
    pub(super) fn computing(&self) -> u64 {
        self.need(Nanos(self.until), self.main.unwrap_or(0))
    }

    /// Nanoseconds from the exec to ready, waits included.
    pub(super) fn window_ns(&self) -> u64 {
        self.until.saturating_sub(self.exec)
    }

    /// The command's exec.
    pub(super) fn exec(&self) -> Nanos {
        Nanos(self.exec)
    }

    /// The point lies before ready.
    pub(super) fn before_ready(&self, at: Nanos) -> bool {
        at.0 <= self.until
    }
}

/// Waits and kinship of the tree's tasks.
struct Stalls {
    of: HashMap<u32, Vec<Interval>>,
    pid_of: HashMap<u32, (u32, u64)>,
    lives: HashMap<u32, Life>,
    threads_of: HashMap<u32, Vec<u32>>,
    children: HashMap<u32, Vec<u32>>,
}

impl Stalls {
    fn of(recording: &Recording, exec: u64, window: Window) -> Self {
        let mut of: HashMap<u32, Vec<Interval>> = HashMap::new();
        for s in recording.stalls.iter().flatten().filter(|s| s.cause != StallCause::Write) {
            if let Some((from, to)) = window.clip(s.began, s.woken.or(s.ended))
                && to.0 > exec
            {
                of.entry(s.tid).or_default().push((from.0.max(exec), to.0));
            }
        }
        let mut lives: HashMap<u32, Life> = HashMap::new();
        for p in recording.processes.iter().filter(|p| p.in_tree) {
            let (began, ended) = (p.began.0, p.ended.map(|t| t.0));
            lives
                .entry(p.pid)
                .and_modify(|l| {
                    // An image that an exec replaced "ended" there; the last one tells.
                    if began >= l.began {
                        l.ended = ended;
                    }
                    l.began = l.began.min(began);
                })
                .or_insert(Life { began, parent: p.parent, ended });
        }
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for (pid, life) in &lives {
            children.entry(life.parent).or_default().push(*pid);
        }
        let mut pid_of = HashMap::new();
        let mut threads_of: HashMap<u32, Vec<u32>> = HashMap::new();
        for t in recording.threads.iter().filter(|t| t.in_tree) {
            pid_of.insert(t.tid, (t.pid, t.began.0));
            threads_of.entry(t.pid).or_default().push(t.tid);
        }
        Self { of, pid_of, lives, threads_of, children }
    }

    /// The waits of a thread's line, in pieces: each holds until the next descendant has ended.
    fn lines(&self, tid: u32) -> Vec<(u64, Line)> {
        let (pid, thread_began) = self.pid_of.get(&tid).copied().unwrap_or((tid, 0));
        let mut own = Vec::new();
        self.up_to(tid, u64::MAX, &mut own);
        if tid != pid {
            self.up_to(pid, thread_began, &mut own);
        }
        let mut at = pid;
        // Bounded: a damaged recording may make a process its own ancestor.
        for _ in 0..64 {
            let Some(life) = self.lives.get(&at) else { break };
            self.up_to(life.parent, life.began, &mut own);
            at = life.parent;
        }
        let mut ended = self.ended_descendants(pid);
        ended.sort_unstable();
        let mut pieces = Vec::new();
        for (n, (end, child)) in ended.into_iter().enumerate() {
            if n < MOST_ENDS {
                pieces.push((end, Line::of(own.clone())));
            }
            for thread in self.threads_of.get(&child).into_iter().flatten() {
                self.up_to(*thread, u64::MAX, &mut own);
            }
        }
        pieces.push((u64::MAX, Line::of(own)));
        pieces
    }

    fn up_to(&self, tid: u32, at: u64, out: &mut Vec<Interval>) {
        let all = self.of.get(&tid).into_iter().flatten();
        out.extend(all.filter(|i| i.0 < at).map(|i| (i.0, i.1.min(at))));
    }

    /// End and pid of each descendant that ended.
    fn ended_descendants(&self, pid: u32) -> Vec<(u64, u32)> {
        let mut out = Vec::new();
        let mut seen = vec![pid];
        let mut next = 0;
        while let Some(&at) = seen.get(next) {
            next += 1;
            for &child in self.children.get(&at).into_iter().flatten() {
                if !seen.contains(&child) {
                    seen.push(child);
                    out.extend(self.lives.get(&child).and_then(|l| l.ended).map(|end| (end, child)));
                }
            }
        }
        out
    }
}
