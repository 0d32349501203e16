//! What a request costs on the devices of the recording, fitted to its own requests.

use cold_model::recording::manifest::Device;
use cold_model::recording::{DeviceRead, Recording};
use cold_model::{Bytes, Dev, Nanos};
use cold_sim::disk::{Bounds, Model};

use crate::usage::Window;
use crate::waits::union;

/// Fewer requests than this say nothing about a device.
const LEAST_REQUESTS: usize = 8;
/// The largest request must be so many times the smallest: a line through one size has no slope.
const SPREAD: f64 = 4.0;

/// Service time of one request alone, `per_request + bytes · per_byte`, and what the devices reached.
/// Nothing is promised that was not seen: beyond the largest request time grows as the bytes do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceCost {
    /// Time of a request of no bytes, in nanoseconds.
    pub per_request: f64,
    /// Time per byte, in nanoseconds.
    pub per_byte: f64,
    /// The smallest request seen, in bytes.
    pub smallest: f64,
    /// The largest one, in bytes.
    pub largest: f64,
    /// Bytes per second while at least one request was in flight: of all requests, or of the largest
    /// quarter of them, whichever is more.
    pub bandwidth: f64,
    /// Requests worked on at the same time, where the devices were kept busy: their times alone, added up, over the
    /// time that it took; of the busy time in which that is most.
    pub at_once: f64,
}

impl DeviceCost {
    /// Least-squares line through size and time (issue to completion) of the tree's requests: of those that
    /// had their device to themselves, where enough of them differ in size; else of all, whose time then
    /// holds what others took. `None` with fewer than eight.
    pub fn of(recording: &Recording) -> Option<Self> {
        let done = requests(recording, |_| true);
        (done.len() >= LEAST_REQUESTS).then(|| Self::fitted(done))
    }

    /// The same of the requests to one disk, whole or in parts, however few they are: what a start takes on it hangs on
    /// them alone. `None` where there are none.
    pub fn of_disk(recording: &Recording, disk: Dev) -> Option<Self> {
        let of = |dev: Dev| recording.manifest.whole_disk(dev).unwrap_or(dev) == disk;
        let done = requests(recording, of);
        (!done.is_empty()).then(|| Self::fitted(done))
    }

    fn fitted(mut done: Vec<PricedRequest>) -> Self {
        let alone: Vec<PricedRequest> = done.iter().filter(|r| r.alone).copied().collect();
        let sizes = alone.iter().map(|r| r.bytes);
        let (least, most) = sizes.fold((f64::MAX, 0.0), |(a, b), n| (n.min(a), n.max(b)));
        let differ = alone.len() >= LEAST_REQUESTS && most >= SPREAD * least;
        let taken = if differ { &alone } else { &done };
        let (per_request, per_byte, largest) = line(taken);
        let smallest = taken.iter().map(|r| r.bytes).fold(largest, f64::min);
        let reached = |requests: &[PricedRequest]| {
            let busy = union(requests.iter().map(|r| (r.from, r.to)));
            requests.iter().map(|r| r.bytes).sum::<f64>() / busy.as_secs().max(1e-9)
        };
        let all = reached(&done);
        let at_once = at_once(&done, |bytes| per_request + per_byte * bytes);
        done.sort_by(|a, b| b.bytes.total_cmp(&a.bytes).then_with(|| a.from.cmp(&b.from)));
        let bandwidth = all.max(reached(&done[..done.len().div_ceil(4)]));
        Self { per_request, per_byte, smallest, largest, bandwidth, at_once }
    }

    /// Sizes differ so much that something is known of other sizes.
    pub fn knows_sizes(&self) -> bool {
        self.largest >= SPREAD * self.smallest
    }

    /// A disk to simulate: a request alone takes its time by the line, as many at once as were seen, and together they
    /// reach the bandwidth that was reached. `within`: what the device takes in one request; none is larger than any
    /// that was seen, as nothing tells what that would take.
    pub fn disk(&self, within: Bounds) -> Model {
        let alone = (self.per_byte > 0.0).then(|| 1e9 / self.per_byte);
        Model {
            latency_ns: self.per_request as u64,
            channel_bandwidth: alone.map(|b| b as u64),
            // What one request alone is given, several are. Without a line nothing tells time on the bus from the
            // rest of a request's time.
            bandwidth: alone.map(|alone| self.bandwidth.max(alone) as u64),
            channels: (self.at_once.round() as usize).max(1),
            request: Bounds { bytes: within.bytes.min(self.largest as u64), ..within },
            ..Model::default()
        }
    }

    /// Time of `requests` of one size, one after another, that bring `bytes` in all.
    pub fn one_by_one(&self, requests: u64, bytes: Bytes) -> Nanos {
        let size = bytes.0 as f64 / requests.max(1) as f64;
        let of = |size: f64| self.per_request + self.per_byte * size;
        let one = if size <= self.largest { of(size) } else { of(self.largest) * size / self.largest };
        Nanos::from_secs(one * requests as f64 / 1e9)
    }
    /// Time of `bytes` at the bandwidth reached, with the first request's latency before.
    pub fn streamed(&self, bytes: Bytes) -> Nanos {
        Nanos::from_secs(self.per_request / 1e9 + bytes.0 as f64 / self.bandwidth)
    }
}

/// What the devices take in one request that the tree read from (all of them, where none is told), the least of each;
/// what no device says as a plain one has it.
pub fn bounds(recording: &Recording) -> Bounds {
    bounds_of(recording, |_| true)
}

/// The same of the devices that `of` names.
pub fn bounds_of(recording: &Recording, of: impl Fn(&Device) -> bool) -> Bounds {
    let plain = Bounds::default();
    let read = |d: &&Device| recording.device_reads.iter().flatten().any(|r| r.in_tree && r.dev == d.dev);
    let all = &recording.manifest.devices;
    let named = || all.iter().filter(|d| of(d));
    let mut devices: Vec<&Device> = named().filter(read).collect();
    if devices.is_empty() {
        devices.extend(named());
    }
    let bytes = devices.iter().filter_map(|d| d.max_request.value()).map(|b| b.0);
    let segments = devices.iter().filter_map(|d| d.max_segments.value()).copied();
    Bounds {
        bytes: bytes.filter(|n| *n >= recording.page_bytes()).min().unwrap_or(plain.bytes),
        segments: segments.filter(|n| *n > 0).min().unwrap_or(plain.segments),
    }
}

/// A request of the tree, completed.
#[derive(Clone, Copy)]
struct PricedRequest {
    from: Nanos,
    to: Nanos,
    bytes: f64,
    /// No other was in the same device at any time of it.
    alone: bool,
    /// Number of the time without a pause in which its device was busy.
    busy: usize,
}

/// The tree's requests up to ready to the devices that `of` names.
fn requests(recording: &Recording, of: impl Fn(Dev) -> bool) -> Vec<PricedRequest> {
    let window = Window::of(recording);
    let times = |r: &DeviceRead| Some((r.issued.unwrap_or(r.queued), r.completed?));
    let reads = recording.device_reads.iter().flatten().filter(|r| of(r.dev));
    let mut all: Vec<_> = reads.filter_map(|r| Some((r, times(r)?))).collect();
    all.sort_by_key(|(r, (from, to))| (r.dev, *from, *to));
    let mut out = Vec::new();
    let (mut dev, mut busy, mut times) = (None, Nanos(0), 0);
    for (i, (r, (from, to))) in all.iter().enumerate() {
        if dev != Some(r.dev) {
            (dev, busy) = (Some(r.dev), Nanos(0));
        }
        times += usize::from(busy <= *from);
        let next = all.get(i + 1).filter(|(next, _)| next.dev == r.dev);
        let alone = busy <= *from && next.is_none_or(|(_, (next, _))| to <= next);
        busy = busy.max(*to);
        if r.in_tree && window.holds(r.queued) && from < to {
            out.push(PricedRequest { from: *from, to: *to, bytes: f64::from(r.bytes), alone, busy: times });
        }
    }
    out
}

/// [`DeviceCost::at_once`], where a request alone takes `alone` nanoseconds. Times with fewer requests than say
/// something count where there are no others. Ascending by their number.
fn at_once(requests: &[PricedRequest], alone: impl Fn(f64) -> f64) -> f64 {
    let over = |group: &[PricedRequest]| {
        let busy = union(group.iter().map(|r| (r.from, r.to)));
        group.iter().map(|r| alone(r.bytes)).sum::<f64>() / (busy.0 as f64).max(1.0)
    };
    let long = requests.chunk_by(|a, b| a.busy == b.busy).filter(|group| group.len() >= LEAST_REQUESTS);
    long.map(over).reduce(f64::max).unwrap_or_else(|| over(requests))
}

/// Nanoseconds per request and per byte, and the largest size.
fn line(requests: &[PricedRequest]) -> (f64, f64, f64) {
    let n = requests.len() as f64;
    let time = |r: &PricedRequest| (r.to.0 - r.from.0) as f64;
    let mean_bytes = requests.iter().map(|r| r.bytes).sum::<f64>() / n;
    let mean_time = requests.iter().map(time).sum::<f64>() / n;
    let var: f64 = requests.iter().map(|r| (r.bytes - mean_bytes).powi(2)).sum();
    let cov: f64 = requests.iter().map(|r| (r.bytes - mean_bytes) * (time(r) - mean_time)).sum();
    // A line that falls, or starts below nothing, is noise: then all is per request, or all per byte.
    let slope = if var > 0.0 { (cov / var).max(0.0) } else { 0.0 };
    let per_byte = slope.min(mean_time / mean_bytes.max(1.0));
    let largest = requests.iter().map(|r| r.bytes).fold(0.0, f64::max);
    ((mean_time - per_byte * mean_bytes).max(0.0), per_byte, largest)
}

#[cfg(test)]
mod tests;
