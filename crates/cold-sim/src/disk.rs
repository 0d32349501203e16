//! A disk as figures, and at work: when a request that arrives now is done.
//!
//! A request is let in by every limit of rate, waits for one of the channels, then for its first byte (and, on a
//! disk with heads, for the way there); then its bytes pass the channel, and one request at a time the bus that
//! all channels share. Requests are served in the order in which they arrive: no device reorders its queue here,
//! and nobody's requests go before another's.
//!
//! Everything is arithmetic on given times, so the same requests give the same times on any machine.

mod heads;
pub(crate) mod layout;
mod limit;
mod preset;
#[cfg(test)]
mod tests;

use cold_model::DeviceModel;
use cold_stats::Pcg;

pub use heads::Heads;
pub use layout::Layout;
pub use limit::{Limit, Unit};
pub use preset::Preset;

use limit::Bucket;

/// Bytes that pass a measured rate at once: nobody measured them, so no more than a large request. Requests that keep a
/// rate of their own beside it pass at once as many as would in the time of these bytes: were it one at a time, a volume
/// would lose the rest of that rate behind each large read (docs/benchmarks/prefetch.md, "Which gap on cloud").
const MEASURED_BURST: u64 = 1 << 20;
/// No measurement has more requests at a time.
const MOST_CHANNELS: u32 = 4096;

/// The figures of a disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Time of each request before its first byte, besides the way of heads, nanoseconds. It occupies a channel.
    pub latency_ns: u64,
    /// What the way to the device and back adds to each request (layers below the block layer, a network),
    /// nanoseconds. It occupies nothing.
    pub way_ns: u64,
    /// And to each MiB of it (what is copied on the way), nanoseconds.
    pub way_ns_per_mib: u64,
    /// Moving heads, where it has them.
    pub heads: Option<Heads>,
    /// Bytes per second of one channel; `None` where only the bus is a limit.
    pub channel_bandwidth: Option<u64>,
    /// Bytes per second of all channels together, one request at a time; `None` for no limit.
    pub bandwidth: Option<u64>,
    /// Requests worked on at the same time, at least 1.
    pub channels: usize,
    /// Rates that are kept, each with its burst.
    pub limits: Vec<Limit>,
    /// Requests that may be under way, waiting ones included; who submits one more sleeps (`nr_requests`).
    pub queue: usize,
    /// What one request holds: larger ones are cut before they are sent.
    pub request: Bounds,
    /// Deviation of the logarithm of the time before the first byte, whose median stays; 0 for none.
    pub jitter: f64,
}

/// What one request holds at most, each at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes (`max_sectors_kb`).
    pub bytes: u64,
    /// Pieces of memory, each in one run (`max_segments`). A large folio is one, and two single pages are.
    pub segments: u32,
}

impl Default for Bounds {
    /// Those of a Linux device that says nothing itself: 1280 KiB (`BLK_DEF_MAX_SECTORS_CAP` of 5.10 to 6.12) in 128
    /// segments (`BLK_MAX_SEGMENTS`). Drivers of `NVMe` (127 before Linux 6.3) and of most eMMC say about the same.
    fn default() -> Self {
        Self { bytes: 1280 << 10, segments: 128 }
    }
}

impl Default for Model {
    /// A disk without any delay, with the limits of a plain Linux device and 128 requests.
    fn default() -> Self {
        Self {
            latency_ns: 0,
            way_ns: 0,
            way_ns_per_mib: 0,
            heads: None,
            channel_bandwidth: None,
            bandwidth: None,
            channels: 256,
            limits: Vec::new(),
            queue: 128,
            request: Bounds::default(),
            jitter: 0.0,
        }
    }
}

impl Model {
    /// What `cold probe device` measured: latency and time per byte as they are, as many channels as requests were
    /// measured at a time, and no more requests per second than at the best depth. A disk with heads has one, and
    /// its latency is that of places near each other, whatever their distance. Where a byte costs a read alone far less
    /// than one of several, no bus is full but a rate is kept.
    pub fn measured(device: &DeviceModel) -> Self {
        let per_second = |ns_per_byte: f64| (ns_per_byte > 0.0).then(|| (1e9 / ns_per_byte) as u64);
        let most = device.depths.iter().map(|d| d.iops).fold(0.0, f64::max);
        let depth = device.depths.iter().map(|d| d.depth).max().unwrap_or(1).max(1);
        let together = per_second(device.ns_per_byte);
        let is_rate = device.keeps_a_rate_of_bytes();
        let burst_s = if is_rate { MEASURED_BURST as f64 * device.ns_per_byte / 1e9 } else { 0.0 };
        let burst = ((most * burst_s) as u64).max(1);
        let rate = Limit { unit: Unit::Requests { of: u64::MAX }, per_second: most as u64, burst };
        let rate = (most >= 1.0 && !device.rotational).then_some(rate);
        let bytes = together.filter(|_| is_rate).map(|per_second| Limit {
            unit: Unit::Bytes,
            per_second,
            burst: MEASURED_BURST,
        });
        let heads = device.rotational.then(|| Heads::constant(device.latency_ns.max(0.0) as u64));
        Self {
            latency_ns: if heads.is_some() { 0 } else { device.latency_ns.max(0.0) as u64 },
            channel_bandwidth: device.ns_per_byte_alone.and_then(per_second),
            bandwidth: together.filter(|_| !is_rate),
            channels: if device.rotational { 1 } else { depth.min(MOST_CHANNELS) as usize },
            heads,
            limits: rate.into_iter().chain(bytes).collect(),
            ..Self::default()
        }
    }

    /// The same disk behind a longer way: so much for each request, and for each MiB of it. Nanoseconds.
    #[must_use]
    pub fn behind(self, way_ns: u64, way_ns_per_mib: u64) -> Self {
        Self {
            way_ns: self.way_ns.saturating_add(way_ns),
            way_ns_per_mib: self.way_ns_per_mib.saturating_add(way_ns_per_mib),
            ..self
        }
    }
}

/// When a request is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// When it is done, in the clock of its arrival, nanoseconds.
    pub done_ns: u64,
    /// What it takes alone on an idle disk whose heads stand where they do now, nanoseconds.
    pub alone_ns: u64,
}

/// A disk at work: which channels are busy until when, where the heads stand, what its limits still let in.
#[derive(Debug, Clone)]
pub struct Disk {
    model: Model,
    bytes: u64,
    free_at: Vec<u64>,
    bus_free_at: u64,
    /// Where the last request ended.
    head: u64,
    buckets: Vec<Bucket>,
    jitter: Pcg,
}

impl Disk {
    /// An idle disk of so many bytes. The seed is that of its jitter, where it has some.
    pub fn new(model: Model, bytes: u64, seed: u64) -> Self {
        Self {
            bytes: bytes.max(1),
            free_at: vec![0; model.channels.max(1)],
            bus_free_at: 0,
            head: 0,
            buckets: model.limits.iter().map(Bucket::new).collect(),
            jitter: Pcg::new(seed, 0),
            model,
        }
    }

    /// The figures that it was made with.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// A read of `bytes` at `offset` arrives at `now` (nanoseconds, never before the last one). Requests
    /// are whole: who sends them has cut them to [`Model::request`].
    pub fn submit(&mut self, now: u64, offset: u64, bytes: u64) -> Service {
        let latency = self.positioned(offset, bytes);
        let in_channel = self.model.channel_bandwidth.map_or(0, |b| nanos(bytes, b));
        let on_bus = self.model.bandwidth.map_or(0, |b| nanos(bytes, b));
        let let_in = self.buckets.iter_mut().map(|b| b.take(now, bytes)).fold(now, u64::max);
        let mut done = let_in;
        // `new` made at least one.
        if let Some(channel) = self.free_at.iter_mut().min() {
            let first_byte = let_in.max(*channel).saturating_add(latency);
            done = first_byte.saturating_add(in_channel);
            if on_bus > 0 {
                self.bus_free_at = first_byte.max(self.bus_free_at).saturating_add(on_bus);
                done = done.max(self.bus_free_at);
            }
            *channel = done;
        }
        let copied = (u128::from(self.model.way_ns_per_mib) * u128::from(bytes)) >> 20;
        let way = self.model.way_ns.saturating_add(u64::try_from(copied).unwrap_or(u64::MAX));
        Service {
            done_ns: done.saturating_add(way),
            alone_ns: latency.saturating_add(in_channel.max(on_bus)).saturating_add(way),
        }
    }

    /// The time before the first byte; the heads stand behind the last one then.
    fn positioned(&mut self, offset: u64, bytes: u64) -> u64 {
        let way = self.model.heads.as_ref().map_or(0, |heads| {
            let passing = |gap| self.model.bandwidth.map_or(0, |b| nanos(gap, b));
            heads.way_ns(self.head, offset, self.bytes, passing)
        });
        self.head = offset.saturating_add(bytes);
        let latency = self.model.latency_ns.saturating_add(way);
        if self.model.jitter > 0.0 {
            (latency as f64 * (self.model.jitter * self.jitter.normal()).exp()) as u64
        } else {
            latency
        }
    }
}

/// Time of `units` at a rate, in nanoseconds.
fn nanos(units: u64, per_second: u64) -> u64 {
    let ns = u128::from(units) * 1_000_000_000 / u128::from(per_second.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}
