//! Times in which something else goes on than what a clock counts.

use std::collections::{BTreeMap, HashMap};

use cold_model::recording::{Recording, StallCause, TouchKind};

/// Disjoint spans of time with the total before each.
#[derive(Debug, Default)]
pub struct Spans {
    spans: Vec<(u64, u64)>,
    before: Vec<u64>,
}

impl Spans {
    /// From spans in any order, which may overlap.
    pub fn of(mut all: Vec<(u64, u64)>) -> Self {
        all.retain(|(from, to)| from < to);
        all.sort_unstable();
        let mut out = Self::default();
        let mut total = 0;
        for (from, to) in all {
            match out.spans.last_mut() {
                Some(last) if from <= last.1 => {
                    total += to.saturating_sub(last.1);
                    last.1 = last.1.max(to);
                }
                _ => {
                    out.before.push(total);
                    out.spans.push((from, to));
                    total += to - from;
                }
            }
        }
        out
    }

    /// Begin and end of each, in order.
    pub fn into_inner(self) -> Vec<(u64, u64)> {
        self.spans
    }

    /// How much of the time until then they cover, nanoseconds.
    pub fn until(&self, at: u64) -> u64 {
        let n = self.spans.partition_point(|s| s.0 < at);
        match n.checked_sub(1).and_then(|i| Some((self.before.get(i)?, self.spans.get(i)?))) {
            Some((before, (from, to))) => before + (*to).min(at).saturating_sub(*from),
            None => 0,
        }
    }
}

/// A request is made so soon behind the folios that it reads: longer spans belong to something else.
const SOON_NS: u64 = 5_000_000;

/// When each thread was on a CPU only because pages were missing: from the beginning of a fault until it waits, and
/// from the first folio that it added until the request that reads them is issued.
pub fn reading(recording: &Recording) -> HashMap<u32, Spans> {
    let mut all: HashMap<u32, Vec<(u64, u64)>> = HashMap::new();
    let touches = recording.touches.iter().flatten().filter(|t| t.kind == TouchKind::Fault);
    let faults = by_thread(touches.map(|t| (t.tid, t.at.0)));
    for s in recording.stalls.iter().flatten().filter(|s| s.cause == StallCause::Fault) {
        let began = faults.get(&s.tid).and_then(|f| last_before(f, s.began.0));
        let soon = began.filter(|began| s.began.0 - began < SOON_NS);
        all.entry(s.tid).or_default().extend(soon.map(|began| (began, s.began.0)));
    }
    let fills = by_thread(recording.fills.iter().flatten().filter(|f| f.in_tree).map(|f| (f.tid, f.at.0)));
    // A request's folios were added behind the request before it.
    let mut issued: BTreeMap<u32, u64> = BTreeMap::new();
    for d in recording.device_reads.iter().flatten().filter(|d| d.in_tree) {
        let Some(end) = d.issued else { continue };
        let before = issued.insert(d.tid, end.0).unwrap_or(0);
        let from = before.max(d.queued.0.saturating_sub(SOON_NS));
        let first = fills.get(&d.tid).and_then(|f| f.get(f.partition_point(|at| *at < from)).copied());
        all.entry(d.tid).or_default().extend(first.filter(|at| *at <= d.queued.0).map(|at| (at, end.0)));
    }
    all.into_iter().map(|(tid, spans)| (tid, Spans::of(spans))).collect()
}

/// Ascending times of each thread.
fn by_thread(all: impl Iterator<Item = (u32, u64)>) -> HashMap<u32, Vec<u64>> {
    let mut out: HashMap<u32, Vec<u64>> = HashMap::new();
    for (tid, at) in all {
        out.entry(tid).or_default().push(at);
    }
    for times in out.values_mut() {
        times.sort_unstable();
    }
    out
}

fn last_before(ascending: &[u64], at: u64) -> Option<u64> {
    ascending.partition_point(|t| *t <= at).checked_sub(1).and_then(|n| ascending.get(n).copied())
}
