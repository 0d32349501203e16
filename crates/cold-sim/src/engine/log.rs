//! What each task's time went to, as intervals; and the chain of intervals that the end hung on.

use super::outcome::{Kind, Times};

/// A stretch of a task's life that was not computing.
#[derive(Debug, Clone, Copy)]
struct Interval {
    from: u64,
    to: u64,
    kind: Kind,
    /// Who ended it, of [`Kind::Tasks`].
    by: usize,
}

/// A task's life.
#[derive(Debug, Clone, Default)]
pub(super) struct Life {
    /// When it began, and who began it.
    began: Option<(u64, Option<usize>)>,
    ended: Option<u64>,
    since: u64,
    kind: Option<Kind>,
    times: Times,
    intervals: Vec<Interval>,
    pub(super) waits: u64,
}

impl Life {
    pub(super) fn begin(&mut self, now: u64, by: Option<usize>, kind: Kind) {
        self.began = Some((now, by));
        (self.since, self.kind) = (now, Some(kind));
    }

    /// What it did up to now ends, ended by task `by` if it waited for one; it goes on with `kind`.
    pub(super) fn turn(&mut self, now: u64, kind: Kind, by: usize) {
        self.close(now, by);
        self.kind = Some(kind);
    }

    /// It has ended, or the simulation has.
    pub(super) fn end(&mut self, now: u64) {
        self.close(now, usize::MAX);
        if self.began.is_some() && self.ended.is_none() {
            self.ended = Some(now);
        }
        self.kind = None;
    }

    fn close(&mut self, now: u64, by: usize) {
        let Some(kind) = self.kind else { return };
        if now > self.since {
            self.times.add(kind, now - self.since);
            if kind != Kind::Computing {
                self.intervals.push(Interval { from: self.since, to: now, kind, by });
            }
        }
        self.since = now;
    }

    /// It waits for storage.
    pub(super) fn waits_for_storage(&self) -> bool {
        self.kind.is_some_and(Kind::is_storage)
    }

    /// Since when it does what it does.
    pub(super) fn since(&self) -> u64 {
        self.since
    }

    pub(super) fn lived(&self) -> Option<(u64, u64)> {
        self.began.map(|(from, _)| (from, self.ended.unwrap_or(from)))
    }

    pub(super) fn times(&self) -> Times {
        self.times
    }
}

/// The chain back from what `task` did at `now`. A task that waited for another leads to that one at the time of
/// its signal, a task's beginning to who began it.
pub(super) fn path(lives: &[Life], task: usize, now: u64) -> Times {
    let mut path = Times::default();
    let (mut task, mut at) = (task, now);
    while let Some(life) = lives.get(task) {
        let Some((began, by)) = life.began else { break };
        let before = life.intervals.partition_point(|i| i.to <= at);
        let last = before.checked_sub(1).and_then(|n| life.intervals.get(n));
        let computed_from = last.map_or(began, |i| i.to);
        path.add(Kind::Computing, at.saturating_sub(computed_from));
        at = computed_from;
        match last {
            Some(i) if i.kind == Kind::Tasks => task = i.by,
            Some(i) => {
                path.add(i.kind, i.to - i.from);
                at = i.from;
            }
            None => match by {
                Some(parent) => task = parent,
                None => break,
            },
        }
    }
    path
}
