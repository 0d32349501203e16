//! The least time a start can take on the plan's device, whatever the plan and the order of its reads.
//!
//! `max(C, max_i(A_i + r_i))`: C is the time to ready when nothing has to be read, taken from a trial's warm starts, which
//! no recorder slowed down; `r_i` is what is at least still to come when page i is there, and `A_i` when all pages with as
//! much to come behind them can have come at the earliest. So that it holds for every start,
//!
//! - only pages count that *every* start of the history needed, and none that was merely mapped around a fault;
//!   of files on one disk, the one that the plan was made for. Metadata does not count: it may be cached.
//! - `A_i` is the latency once, and then the greater of what the bytes take and what the requests take at the
//!   depth at which the device does most of them. What lies between two pages may be read along instead of asking twice,
//!   so the least over all ways of doing that is taken ([`Laid`]). Of a device that does several requests at
//!   a time, as many as were measured at a time cost none of these.
//! - `r_i` is, of a program of one thread, C less the recorded need time, because recording only adds to that. Of others
//!   it takes a recorded start ([`Latest`]): what one thread waits for need not hold up another. Without one nothing is
//!   known to come behind a page.
//!
//! A device that lets bursts through faster than its measured rates can be faster by the burst.

mod latest;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use cold_model::Dev;
use cold_model::{DeviceModel, Extent};
use cold_plan::Plan;
use cold_plan::plan::{Bound, FileKind, PAGE, PlanFile, Range};

use crate::learn::JOIN_NS;
pub use latest::Latest;

/// Pages that count.
struct BoundPiece<'a> {
    file: u32,
    of: &'a PlanFile,
    /// First byte, and the one behind the last.
    bytes: (u64, u64),
    /// What is at least still to come when they are there, nanoseconds; 0 where nobody knows.
    after_ns: u64,
}

/// Where the files of a plan lie on this machine.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// The places of a file on its disk; of a file that it does not know only the bytes count.
    pub extents: &'a dyn Fn(&Path) -> Option<Vec<Extent>>,
    /// The whole disk that a file lies on, by which devices are measured ([`DeviceModel::dev`]). The number that a file
    /// has (`st_dev`) is that of a partition, or on btrfs one that the kernel made up.
    pub disk: &'a dyn Fn(&Path) -> Option<Dev>,
}

/// The bound with the warm starts of the plan's trial; `None` without a measured device. `latest`: of a recorded start,
/// for programs of many threads.
pub fn bound(plan: &Plan, ground: Ground<'_>, latest: Option<&Latest>) -> Option<Bound> {
    bound_of_warm(plan, plan.trial.and_then(|t| t.warm_ns), ground, latest)
}

/// The same with warm starts that others have measured: `cpu_ns`, nanoseconds to ready; `None`: reading alone.
pub fn bound_of_warm(
    plan: &Plan,
    cpu_ns: Option<u64>,
    ground: Ground<'_>,
    latest: Option<&Latest>,
) -> Option<Bound> {
    let device = plan.device.as_ref()?;
    let mut places: HashMap<u32, Option<Vec<Extent>>> = HashMap::new();
    let mut laid = Laid::new(device);
    let computing = cpu_ns.unwrap_or(0);
    let mut least = computing as f64;
    for piece in pieces(plan, computing, ground, latest) {
        let (first, end) = piece.bytes;
        match places.entry(piece.file).or_insert_with(|| (ground.extents)(&piece.of.path)) {
            None => laid.bytes += end - first,
            // Pieces without a place (holes, packed into metadata) are no reads of their own.
            Some(list) => list.iter().for_each(|e| laid.add_part(e, first, end)),
        }
        least = least.max(laid.least_ns() + piece.after_ns as f64);
    }
    Some(Bound {
        cpu_ns,
        overlapped_ns: least as u64,
        serial_ns: (laid.least_ns() + computing as f64) as u64,
        bytes: laid.bytes,
        requests: u32::try_from(laid.runs.len()).unwrap_or(u32::MAX),
    })
}

/// What every start needed on the disk that decides, in the order in which it is needed.
fn pieces<'a>(
    plan: &'a Plan,
    computing: u64,
    ground: Ground<'_>,
    latest: Option<&Latest>,
) -> Vec<BoundPiece<'a>> {
    let deciding = deciding(plan, ground.disk);
    let mut out = Vec::new();
    for r in plan.ranges.iter().filter(|r| by_every_start(r, plan.learnt.starts)) {
        let file = plan.files.get(r.file as usize);
        let here = |f: &&PlanFile| f.kind == FileKind::Regular && deciding.contains(&f.identity.dev);
        let Some(of) = file.filter(here) else { continue };
        let first = r.first_page.saturating_mul(PAGE);
        let size = of.identity.size.next_multiple_of(PAGE);
        let end = first.saturating_add(u64::from(r.pages) * PAGE).min(size);
        let mut add = |bytes: (u64, u64), after_ns: Option<u64>| {
            if bytes.0 < bytes.1 {
                out.push(BoundPiece { file: r.file, of, bytes, after_ns: after_ns.unwrap_or(0) });
            }
        };
        match latest {
            // One range joins pages of about one time.
            _ if plan.learnt.one_thread => {
                let reached = r.need_ns.saturating_add(JOIN_NS);
                add((first, end), Some(computing.saturating_sub(reached)));
            }
            Some(latest) => latest.split(of, (first, end), computing, add),
            None => add((first, end), None),
        }
    }
    // What nobody knows of comes last.
    out.sort_by_key(|piece| std::cmp::Reverse(piece.after_ns));
    out
}

/// What a plan reads of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DevicePart {
    /// The device of the files (`st_dev`).
    pub dev: Dev,
    /// Ranges that lie there.
    pub ranges: u64,
    /// Bytes of these.
    pub bytes: u64,
}

impl DevicePart {
    /// What a range costs, in bytes of reading on: 0.1 ms of a disk of 1.3 GB/s, 1 ms of one of 125 MB/s.
    const RANGE_BYTES: u64 = 128 << 10;
    /// A device with less than one part in so many of what the first has to do decides nothing.
    const TELLS: u64 = 16;

    /// What it asks of a disk that nobody has measured, to be compared with another's.
    fn work(&self) -> u64 {
        self.ranges.saturating_mul(Self::RANGE_BYTES).saturating_add(self.bytes)
    }

    /// Nanoseconds that a device takes for it: each range a request, at the depth at which it does most of them.
    pub fn time_on(&self, device: &DeviceModel) -> f64 {
        let most = device.depths.iter().map(|d| d.iops).fold(0.0, f64::max);
        let request = if most > 0.0 { 1e9 / most } else { device.latency_ns };
        request * self.ranges as f64 + device.ns_per_byte * self.bytes as f64
    }
}

/// The devices that may decide how long the plan takes, those with most to do first.
pub fn parts(plan: &Plan) -> Vec<DevicePart> {
    let mut all: BTreeMap<Dev, DevicePart> = BTreeMap::new();
    for r in &plan.ranges {
        let file = plan.files.get(r.file as usize).filter(|f| f.kind == FileKind::Regular);
        if let Some(dev) = file.map(|f| f.identity.dev) {
            let part = all.entry(dev).or_insert(DevicePart { dev, ranges: 0, bytes: 0 });
            part.ranges += 1;
            part.bytes = part.bytes.saturating_add(u64::from(r.pages) * PAGE);
        }
    }
    let mut all: Vec<DevicePart> = all.into_values().collect();
    all.sort_by_key(|part| std::cmp::Reverse((part.work(), part.dev)));
    let least = all.first().map_or(0, |first| first.work() / DevicePart::TELLS);
    all.retain(|part| part.work() >= least);
    all
}

/// The devices (`st_dev`) on the disk that the plan was made for; where none of its files lies there (a disk of another
/// machine, numbers of another boot), the one that has most to do with the plan.
fn deciding(plan: &Plan, disk: &dyn Fn(&Path) -> Option<Dev>) -> BTreeSet<Dev> {
    let mut first: BTreeMap<Dev, &Path> = BTreeMap::new();
    for file in plan.files.iter().filter(|f| f.kind == FileKind::Regular) {
        first.entry(file.identity.dev).or_insert(&file.path);
    }
    let made_for = plan.device.as_ref().map(|device| device.dev);
    let own: BTreeSet<Dev> = first
        .into_iter()
        .filter(|(_, path)| made_for.is_some() && disk(path) == made_for)
        .map(|(dev, _)| dev)
        .collect();
    if own.is_empty() { parts(plan).first().map(|part| part.dev).into_iter().collect() } else { own }
}

/// All of the last 8 starts needed it, as far as there were so many.
fn by_every_start(r: &Range, starts: u32) -> bool {
    let known = 0xff_u8 >> (8 - starts.clamp(1, 8));
    !r.around && r.uses & known == known
}

/// Weights of bytes against requests, in steps of half an octave, and bytes alone.
const WEIGHTS: usize = 42;

/// Pages by their place on a device, and what they cost at the least.
///
/// Skipping a hole between two of them costs a request, reading it along its bytes; bytes and requests pass the
/// device beside each other. The least of `max(bytes, requests)` over all choices is at least, for every
/// weight w between 0 and 1, the sum of `min(w · bytes of the hole, (1 − w) · request)` over the holes, plus
/// the bytes of the pages times w: a choice for each hole alone. The greatest over some w is a bound (the dual
/// of a linear program, which falls short of the best choice by less than one hole).
struct Laid {
    ns_per_byte: f64,
    request_ns: f64,
    latency_ns: f64,
    /// Requests that are done at the same time.
    together: f64,
    /// First byte and the one behind the last; they neither overlap nor touch.
    runs: BTreeMap<u64, u64>,
    bytes: u64,
    weights: [f64; WEIGHTS],
    /// Per weight the sum over the holes.
    holes: [f64; WEIGHTS],
}

impl Laid {
    fn new(device: &DeviceModel) -> Self {
        let most = device.depths.iter().map(|d| d.iops).fold(0.0, f64::max);
        let request_ns = if most > 0.0 { 1e9 / most } else { 0.0 };
        let depth = device.depths.last().map_or(1, |d| d.depth.max(1));
        // With heads: half of the measured way to a place nearby is the wait for the platter, and more.
        // A place still nearer saves of the heads' way only. And they are at one place at a time.
        let (request_ns, together) =
            if device.rotational { (request_ns / 2.0, 1) } else { (request_ns, depth) };
        Self {
            ns_per_byte: device.ns_per_byte,
            request_ns,
            latency_ns: device.latency_ns,
            together: f64::from(together),
            runs: BTreeMap::new(),
            bytes: 0,
            weights: std::array::from_fn(weight),
            holes: [0.0; WEIGHTS],
        }
    }

    /// The part of bytes `first..end` of a file that lies in this piece of it.
    fn add_part(&mut self, e: &Extent, first: u64, end: u64) {
        let (from, to) = (first.max(e.logical), end.min(e.logical.saturating_add(e.bytes)));
        if from < to {
            let at = e.physical.saturating_add(from - e.logical);
            self.add(at, at.saturating_add(to - from));
        }
    }

    fn add(&mut self, first: u64, end: u64) {
        let met: Vec<(u64, u64)> =
            self.runs.range(..=end).rev().take_while(|(_, e)| **e >= first).map(|(s, e)| (*s, *e)).collect();
        let all = (met.last().map_or(first, |r| r.0.min(first)), met.first().map_or(end, |r| r.1.max(end)));
        let before = self.runs.range(..all.0).next_back().map(|(_, e)| *e);
        let after = self.runs.range(all.1..).next().map(|(s, _)| *s);
        // Neighbours as they were, backwards, and as they are.
        let mut right = after;
        for (s, e) in &met {
            self.hole(Some(*e), right, -1.0);
            right = Some(*s);
            self.runs.remove(s);
            self.bytes -= e - s;
        }
        self.hole(before, right, -1.0);
        self.hole(before, Some(all.0), 1.0);
        self.hole(Some(all.1), after, 1.0);
        self.runs.insert(all.0, all.1);
        self.bytes += all.1 - all.0;
    }

    /// Enters (or, with -1, takes out) what lies between two runs.
    fn hole(&mut self, from: Option<u64>, to: Option<u64>, sign: f64) {
        let Some(bytes) = to.zip(from).map(|(to, from)| to.saturating_sub(from)) else { return };
        let along = bytes as f64 * self.ns_per_byte;
        for (w, sum) in self.weights.iter().zip(&mut self.holes) {
            *sum += sign * (w * along).min((1.0 - w) * self.request_ns);
        }
    }

    /// When all of them can have come at the earliest.
    fn least_ns(&self) -> f64 {
        let bytes = self.bytes as f64 * self.ns_per_byte;
        let free = (self.together - 1.0) * self.request_ns;
        let all = self.weights.iter().zip(&self.holes);
        let least = all.map(|(w, holes)| w * bytes + holes - (1.0 - w) * free).fold(0.0, f64::max);
        if self.bytes == 0 { 0.0 } else { self.latency_ns + least }
    }
}

/// The n-th weight of bytes.
fn weight(n: usize) -> f64 {
    let odds = 2_f64.powf(n as f64 / 2.0 - 10.0);
    if n + 1 == WEIGHTS { 1.0 } else { odds / (1.0 + odds) }
}

#[cfg(test)]
mod tests;
