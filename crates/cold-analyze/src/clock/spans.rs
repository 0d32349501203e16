//! Times in which something else goes on than what a clock counts.

use std::collections::{BTreeMap, HashMap};

use cold_model::recording::{Recording, Stall, StallCause, TouchKind};

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

/// Where too few waits are recorded to tell: the median of 3000 faults at scattered places of a file, with nothing
/// computed between them (virtual machine, Linux 6.18; 3.7 to 7.6 µs).
const AFTER_A_WAIT_NS: u64 = 5_600;
/// So many waits in faults tell it for themselves.
const ENOUGH: usize = 200;
/// No more is left to do than a whole wait takes of CPU time, where it begins and where it ends.
const MOST_AFTER_NS: u64 = 25_000;

/// A request is made so soon behind the folios that it reads: longer spans belong to something else.
const SOON_NS: u64 = 5_000_000;

/// When each thread was on a CPU only because pages were missing: from the beginning of a fault until it waits, from the
/// first folio that it added until the request that reads them is issued, and a little behind each wait.
pub fn reading(recording: &Recording) -> HashMap<u32, Spans> {
    let mut all: HashMap<u32, Vec<(u64, u64)>> = HashMap::new();
    let touches = recording.touches.iter().flatten().filter(|t| t.kind == TouchKind::Fault);
    let faults = by_thread(touches.map(|t| (t.tid, t.at.0)));
    let waits = || recording.stalls.iter().flatten().filter(|s: &&Stall| s.cause.is_reading());
    for s in waits().filter(|s| s.cause == StallCause::Fault) {
        let began = faults.get(&s.tid).and_then(|f| last_before(f, s.began.0));
        let soon = began.filter(|began| s.began.0 - began < SOON_NS);
        all.entry(s.tid).or_default().extend(soon.map(|began| (began, s.began.0)));
    }
    let after = after_a_wait(waits(), &faults);
    for s in waits() {
        let Some(ran) = s.ended else { continue };
        let until = ran.0.saturating_add(after);
        // The next fault has a span of its own.
        let until = first_behind(&faults, s.tid, ran.0).map_or(until, |next| until.min(next));
        all.entry(s.tid).or_default().push((ran.0, until));
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

/// What a thread that waited for a page still does for it when it runs again, nanoseconds: the fault is tried a second
/// time, and the recorder writes down that the wait is over.
///
/// Nothing tells when a fault ends. But programs often touch the next page after next to no work: a quarter of the times
/// from running again to the next fault is taken for it, where the recording has enough of them. On the machine of
/// [`AFTER_A_WAIT_NS`] that gave 5.5 to 7.1 µs for starts of Firefox, Chromium, java and node with exact needs.
fn after_a_wait<'a>(waits: impl Iterator<Item = &'a Stall>, faults: &HashMap<u32, Vec<u64>>) -> u64 {
    let of_faults = waits.filter(|s| s.cause == StallCause::Fault);
    let gaps = of_faults.filter_map(|s| {
        let ran = s.ended?.0;
        first_behind(faults, s.tid, ran).map(|next| next - ran)
    });
    let gaps: Vec<f64> = gaps.map(|ns| ns as f64).collect();
    let quarter = (gaps.len() >= ENOUGH).then(|| cold_stats::quantile(&gaps, 0.25)).flatten();
    quarter.map_or(AFTER_A_WAIT_NS, |ns| (ns as u64).min(MOST_AFTER_NS))
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

fn first_behind(faults: &HashMap<u32, Vec<u64>>, tid: u32, at: u64) -> Option<u64> {
    let of = faults.get(&tid)?;
    of.get(of.partition_point(|t| *t < at)).copied()
}
