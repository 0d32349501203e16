//! When the replay's reads would have come: the program's own time, what it waited so far, and a device
//! that serves one request after another.

use cold_model::recording::{FileIdx, Recording, StallCause};
use cold_model::{Bytes, Nanos};

use crate::cost::DeviceCost;
use crate::usage::Window;
use cold_model::pages::Range;

/// The recorded waits of faults, merged and in order.
pub(super) fn fault_waits(recording: &Recording) -> Vec<(Nanos, Nanos)> {
    let window = Window::of(recording);
    let stalls = recording.stalls.iter().flatten().filter(|s| s.cause == StallCause::Fault);
    let mut all: Vec<_> =
        stalls.filter_map(|s| window.clip(s.began, s.woken.or(s.ended))).filter(|(a, b)| a < b).collect();
    all.sort_unstable();
    let mut out: Vec<(Nanos, Nanos)> = Vec::new();
    for (from, to) in all {
        match out.last_mut().filter(|last| from <= last.1) {
            Some(last) => last.1 = last.1.max(to),
            None => out.push((from, to)),
        }
    }
    out
}

/// A request under way.
struct Flight {
    file: FileIdx,
    pages: Range,
    done: Nanos,
}

pub(super) struct Clock<'a> {
    cost: &'a DeviceCost,
    recorded: &'a [(Nanos, Nanos)],
    /// Of the recorded waits, those wholly before now, and their sum.
    passed: (usize, Nanos),
    now: Nanos,
    waited: Nanos,
    /// The device has served all that was asked.
    free: Nanos,
    flights: Vec<Flight>,
}

impl<'a> Clock<'a> {
    pub(super) fn new(cost: &'a DeviceCost, recorded: &'a [(Nanos, Nanos)]) -> Self {
        let (zero, flights) = (Nanos(0), Vec::new());
        Self { cost, recorded, passed: (0, zero), now: zero, waited: zero, free: zero, flights }
    }

    pub(super) fn waited(&self) -> Nanos {
        self.waited
    }

    /// To a recorded moment: the recorded waits before it make room for the replayed ones.
    pub(super) fn advance(&mut self, at: Nanos) {
        while let Some((from, to)) = self.recorded.get(self.passed.0).filter(|w| w.1 <= at) {
            self.passed = (self.passed.0 + 1, self.passed.1 + to.saturating_sub(*from));
        }
        let within = self.recorded.get(self.passed.0).map_or(Nanos(0), |w| at.saturating_sub(w.0));
        let own = at.saturating_sub(self.passed.1 + within);
        self.now = self.now.max(own + self.waited);
        let now = self.now;
        self.flights.retain(|f| f.done > now);
    }

    /// Queues one request.
    pub(super) fn read(&mut self, file: FileIdx, pages: Range, bytes: Bytes) {
        let start = self.free.max(self.now);
        self.free = start + Nanos::from_secs(bytes.0 as f64 / self.cost.bandwidth);
        self.flights.push(Flight { file, pages, done: start + self.cost.one_by_one(1, bytes) });
    }

    /// The program needs the page: where it is still under way, it waits.
    pub(super) fn need(&mut self, file: FileIdx, page: u64) {
        let comes = self.flights.iter().filter(|f| f.file == file && f.pages.contains(&page));
        if let Some(done) = comes.map(|f| f.done).max() {
            self.waited += done.saturating_sub(self.now);
            self.now = self.now.max(done);
        }
    }
}
