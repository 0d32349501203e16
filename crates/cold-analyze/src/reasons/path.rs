//! The critical path, from ready back to the start.

use std::collections::HashMap;

use cold_model::Nanos;
use cold_model::recording::{FileIdx, OffCpu, OffCpuReason, Recording};

use super::{Kind, Piece, reached};
use crate::clock::events::{Off, makers};
use crate::clock::waits::end;
use crate::join::stall_requests;
use crate::usage::Window;
use crate::waits::{main_thread, storage_waits};

/// One life of a thread id.
#[derive(Debug, Clone, Copy)]
struct Life {
    began: Nanos,
    ended: Option<Nanos>,
    pid: u32,
    maker: Option<u32>,
}

struct Walk<'r> {
    /// Times off the CPU per thread, by their beginning.
    off: HashMap<u32, Vec<&'r OffCpu>>,
    lives: HashMap<u32, Vec<Life>>,
    /// Kind and file of waits for storage, by thread and beginning.
    stalls: HashMap<(u32, Nanos), (Kind, Option<FileIdx>)>,
    start: Nanos,
    /// From ready backwards.
    pieces: Vec<Piece>,
}

/// The pieces from ready backwards. Those in which a task ran are of the kind [`Kind::Program`].
pub(super) fn of(recording: &Recording, window: Window) -> Vec<Piece> {
    let mut walk = Walk::new(recording, window);
    if let Some(by) = reached::by(recording, window) {
        walk.back_from(by.tid.or_else(|| walk.latest(window.until, |life| life.pid == by.pid)), window.until);
    }
    if walk.pieces.is_empty() {
        let main = main_thread(recording);
        let last = walk.latest(window.until, |_| true).map(|last| walk.prefer(main, last, window.until));
        if let Some(last) = last {
            walk.back(last, window.until);
        }
    }
    walk.pieces
}

impl<'r> Walk<'r> {
    fn new(recording: &'r Recording, window: Window) -> Self {
        let mut off: HashMap<u32, Vec<&OffCpu>> = HashMap::new();
        for o in recording.off_cpu.iter().flatten() {
            off.entry(o.tid).or_default().push(o);
        }
        for rows in off.values_mut() {
            rows.sort_by_key(|o| (o.began, o.ended));
        }
        let mut lives: HashMap<u32, Vec<Life>> = HashMap::new();
        for (t, maker) in makers(recording, &Off::of(recording)).filter(|(t, _)| t.in_tree) {
            let life = Life { began: t.began, ended: t.ended, pid: t.pid, maker };
            lives.entry(t.tid).or_default().push(life);
        }
        for rows in lives.values_mut() {
            rows.sort_by_key(|l| l.began);
        }
        let mut stalls = HashMap::new();
        for s in recording.stalls.iter().flatten() {
            stalls.insert((s.tid, s.began), (Kind::of_stall(s.cause), s.file));
        }
        for wait in storage_waits(recording, window, &stall_requests(recording)) {
            let kind = Kind::of_stall(wait.stall.cause);
            stalls.insert((wait.stall.tid, wait.stall.began), (kind, wait.file));
        }
        Self { off, lives, stalls, start: window.start, pieces: Vec::new() }
    }

    /// The life of a thread id at a time.
    fn life(&self, tid: u32, at: Nanos) -> Option<Life> {
        let lives = self.lives.get(&tid)?;
        let n = lives.partition_point(|l| l.began <= at);
        lives.get(n.saturating_sub(1)).copied()
    }

    /// The last time off the CPU that began before.
    fn off_before(&self, tid: u32, at: Nanos) -> Option<&'r OffCpu> {
        let rows = self.off.get(&tid)?;
        rows.get(rows.partition_point(|o| o.began < at).checked_sub(1)?).copied()
    }

    /// When the thread last ran, until then.
    fn ran_until(&self, tid: u32, life: &Life, at: Nanos) -> Nanos {
        let at = life.ended.map_or(at, |ended| ended.min(at));
        match self.off_before(tid, at) {
            Some(off) if off.ended >= at => off.began,
            _ => at,
        }
    }

    /// When this thread ran last, until then; `None`: there was none yet.
    fn ran(&self, tid: u32, until: Nanos) -> Option<(Nanos, Life)> {
        let life = self.life(tid, until).filter(|l| l.began <= until)?;
        Some((self.ran_until(tid, &life, until), life))
    }

    /// Of some threads the one that ran last, until then.
    fn latest(&self, until: Nanos, wanted: impl Fn(&Life) -> bool) -> Option<u32> {
        let ran = |tid: &u32| self.ran(*tid, until).filter(|(_, life)| wanted(life)).map(|(at, _)| at);
        let all = self.lives.keys().filter_map(|tid| Some((ran(tid)?, std::cmp::Reverse(*tid))));
        all.max().map(|(_, tid)| tid.0)
    }

    /// The first thread, where it ran as late as the last one.
    fn prefer(&self, main: Option<u32>, last: u32, until: Nanos) -> u32 {
        let at = |tid: u32| self.ran(tid, until).map(|(at, _)| at);
        main.filter(|main| at(*main).is_some() && at(*main) == at(last)).unwrap_or(last)
    }

    /// Back from the one that made the start ready. Where it waits already for what comes then, the moments until its
    /// readiness was seen are nobody's work.
    fn back_from(&mut self, by: Option<u32>, until: Nanos) {
        let Some((tid, (at, life))) = by.and_then(|tid| Some((tid, self.ran(tid, until)?))) else { return };
        let at = if life.ended.is_some_and(|ended| ended < until) { until } else { at };
        let at = self.piece(tid, life.pid, at, until, Kind::Outside);
        self.back(tid, at);
    }

    fn back(&mut self, last: u32, until: Nanos) {
        let (mut tid, mut at) = (last, until);
        // Who was gone on with since time last passed: two who wait for each other would never end.
        let mut met: Vec<u32> = Vec::new();
        while at > self.start {
            let Some(life) = self.life(tid, at) else {
                self.piece(tid, 0, self.start, at, Kind::Unknown);
                return;
            };
            let floor = life.began.max(self.start);
            if at <= floor {
                let known = |maker: &u32| !met.contains(maker) && self.lives.contains_key(maker);
                let Some(maker) = life.maker.filter(known) else {
                    // The supervisor made it: the start is not its own yet.
                    self.piece(tid, life.pid, self.start, at, Kind::Processes);
                    return;
                };
                met.push(tid);
                tid = maker;
                continue;
            }
            let before = at;
            // It had ended before: the kernel took it apart, then woke who waited for it.
            if let Some(ended) = life.ended.filter(|e| *e < at && *e >= floor) {
                at = self.piece(tid, life.pid, ended, at, Kind::Processes);
            }
            let Some(off) = self.off_before(tid, at).filter(|o| o.ended > floor) else {
                at = self.piece(tid, life.pid, floor, at, Kind::Program);
                met.clear();
                continue;
            };
            at = self.piece(tid, life.pid, off.ended.max(floor), at, Kind::Program);
            at = self.piece(tid, life.pid, Nanos(end(off)).max(floor), at, Kind::Runnable);
            if at < before {
                met.clear();
            }
            if let Some(waker) = self.waker(off, &met) {
                met.push(tid);
                tid = waker;
            } else {
                at = self.waited(off, life.pid, floor, at);
                met.clear();
            }
        }
    }

    /// The task of the start for which this one waited.
    fn waker(&self, off: &OffCpu, met: &[u32]) -> Option<u32> {
        let waits = matches!(off.reason, OffCpuReason::Event | OffCpuReason::Lock);
        let waker = off.waker.filter(|w| waits && *w != off.tid && !met.contains(w))?;
        self.lives.contains_key(&waker).then_some(waker)
    }

    fn waited(&mut self, off: &OffCpu, pid: u32, floor: Nanos, at: Nanos) -> Nanos {
        let stall = self.stalls.get(&(off.tid, off.began)).copied();
        let (kind, file) = match stall.filter(|_| off.reason == OffCpuReason::Storage) {
            Some((kind, file)) => (kind, file),
            None => (Kind::of_off_cpu(off.reason), None),
        };
        let from = self.piece(off.tid, pid, off.began.max(floor), at, kind);
        if let Some(piece) = self.pieces.last_mut().filter(|p| p.from == from && from < at) {
            (piece.file, piece.system_call) = (file, off.system_call);
        }
        from
    }

    /// Adds a piece, unless it is empty; where it begins.
    fn piece(&mut self, tid: u32, pid: u32, from: Nanos, to: Nanos, kind: Kind) -> Nanos {
        let from = from.max(self.start).min(to);
        if from < to {
            self.pieces.push(Piece { from, to, tid, pid, kind, file: None, system_call: None });
        }
        from
    }
}
