//! How long a request takes on the modelled disk. Pure: times go in and come out.
//!
//! A request waits for one of n channels, then for `controller`, and if it does not begin where the
//! last one ended also for a seek and half a rotation; then its bytes pass the bus one request at a
//! time. Token buckets for requests and bytes delay its start, as cloud volumes do.

use serde::{Deserialize, Serialize};

/// Disks with typical figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// A 7200 rpm disk: about 8 ms per random request, 100 MB/s, one request at a time.
    Hdd,
    /// A SATA SSD: 0.1 ms, 500 MB/s, 32 at a time. The test disk itself adds up to 0.3 ms.
    SataSsd,
    /// A cloud volume: 0.7 ms, 3000 requests/s of at most 256 KiB, 125 MiB/s.
    Cloud,
    /// No delay added.
    Fast,
}

/// The figures of a disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Fixed time of each request in nanoseconds.
    pub controller_ns: u64,
    /// Time of the shortest seek in nanoseconds.
    pub seek_ns: u64,
    /// What a seek over the whole disk takes in addition; grows with the root of the distance.
    pub full_seek_ns: u64,
    /// Half a rotation in nanoseconds.
    pub rotation_ns: u64,
    /// Bytes per second that pass the bus; `None` for no limit.
    pub bandwidth: Option<u64>,
    /// Requests worked on at the same time.
    pub channels: usize,
    /// Requests per second (each 256 KiB begun counts as one); `None` for no limit.
    pub iops: Option<u64>,
    /// Bytes per second as a token bucket; `None` for no limit.
    pub bps: Option<u64>,
    /// Whether the kernel is told that the disk rotates.
    pub rotational: bool,
}

impl Preset {
    /// What it adds to a request's time, and what the kernel is told.
    pub fn model(self) -> Model {
        let plain = Model {
            controller_ns: 0,
            seek_ns: 0,
            full_seek_ns: 0,
            rotation_ns: 0,
            bandwidth: None,
            channels: 256,
            iops: None,
            bps: None,
            rotational: false,
        };
        match self {
            // The mean root of a random distance is 8/15, so the mean seek is 1 + 5.6 * 8/15 = 4 ms.
            Self::Hdd => Model {
                controller_ns: 50_000,
                seek_ns: 1_000_000,
                full_seek_ns: 5_600_000,
                rotation_ns: 4_170_000,
                bandwidth: Some(100_000_000),
                channels: 1,
                rotational: true,
                ..plain
            },
            Self::SataSsd => {
                Model { controller_ns: 100_000, bandwidth: Some(500_000_000), channels: 32, ..plain }
            }
            Self::Cloud => Model {
                controller_ns: 700_000,
                channels: 64,
                iops: Some(3000),
                bps: Some(125 << 20),
                ..plain
            },
            Self::Fast => plain,
        }
    }
}

/// What the model says about one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// When it is done, in the clock of its arrival.
    pub due_ns: u64,
    /// What it takes alone on an idle disk.
    pub alone_ns: u64,
}

/// A bucket that holds at most `burst` units and gains one every `interval` nanoseconds, as a virtual
/// clock: the time at which it would be full again.
#[derive(Debug)]
struct Bucket {
    per_second: u64,
    burst_ns: u64,
    full_at: u64,
}

impl Bucket {
    fn new(per_second: u64, burst: u64) -> Self {
        Self { per_second, burst_ns: nanos(burst, per_second), full_at: 0 }
    }
    /// Takes `units` and says from when on they are there.
    fn take(&mut self, now: u64, units: u64) -> u64 {
        self.full_at = self.full_at.max(now) + nanos(units, self.per_second);
        now.max(self.full_at.saturating_sub(self.burst_ns))
    }
}

/// The disk at work: which channels are busy until when, where the head stands.
#[derive(Debug)]
pub struct Scheduler {
    model: Model,
    size: u64,
    free_at: Vec<u64>,
    bus_free_at: u64,
    head: u64,
    iops: Option<Bucket>,
    bps: Option<Bucket>,
}

/// A request counts as one operation per so many bytes begun (EBS: 256 KiB).
const OPERATION: u64 = 256 << 10;

impl Scheduler {
    /// An idle disk of `size` bytes.
    pub fn new(model: Model, size: u64) -> Self {
        Self {
            size: size.max(1),
            free_at: vec![0; model.channels.max(1)],
            bus_free_at: 0,
            head: 0,
            // Bursts are short: 10 ms of requests, and one largest request of bytes.
            iops: model.iops.map(|n| Bucket::new(n, (n / 100).max(1))),
            bps: model.bps.map(|n| Bucket::new(n, 1 << 20)),
            model,
        }
    }

    /// A read or write that arrives at `now` (nanoseconds).
    pub fn transfer(&mut self, now: u64, offset: u64, len: u64) -> Service {
        let distance = offset.abs_diff(self.head);
        self.head = offset + len;
        let positioning = if distance == 0 {
            0
        } else {
            let share = (distance as f64 / self.size as f64).min(1.0).sqrt();
            self.model.seek_ns + (self.model.full_seek_ns as f64 * share) as u64 + self.model.rotation_ns
        };
        let latency = self.model.controller_ns + positioning;
        let on_bus = self.model.bandwidth.map_or(0, |b| nanos(len, b));
        let mut start = now;
        if let Some(bucket) = &mut self.iops {
            start = start.max(bucket.take(now, len.div_ceil(OPERATION).max(1)));
        }
        if let Some(bucket) = &mut self.bps {
            start = start.max(bucket.take(now, len));
        }
        let due_ns = match self.free_at.iter_mut().min() {
            Some(channel) => {
                let positioned = start.max(*channel) + latency;
                *channel = positioned.max(self.bus_free_at) + on_bus;
                *channel
            }
            None => start + latency + on_bus,
        };
        if on_bus > 0 {
            self.bus_free_at = due_ns;
        }
        Service { due_ns, alone_ns: latency + on_bus }
    }

    /// A flush that arrives at `now`: done when everything before it is.
    pub fn flush(&mut self, now: u64) -> Service {
        let idle = self.free_at.iter().copied().max().unwrap_or(0).max(now);
        Service { due_ns: idle + self.model.controller_ns, alone_ns: self.model.controller_ns }
    }
}

fn nanos(units: u64, per_second: u64) -> u64 {
    u64::try_from(u128::from(units) * 1_000_000_000 / u128::from(per_second.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotating_disk_reads_on_without_a_seek_and_one_at_a_time() {
        let mut d = Scheduler::new(Preset::Hdd.model(), 1 << 30);
        let first = d.transfer(0, 1 << 29, 1_000_000);
        // 0.05 + 1 + 5.6 * sqrt(0.5) + 4.17 ms, then 10 ms on the bus.
        assert_eq!(first.alone_ns / 10_000, (50 + 1000 + 3959 + 4170 + 10_000) / 10);
        let next = d.transfer(0, (1 << 29) + 1_000_000, 1_000_000);
        assert_eq!(next.alone_ns, 10_050_000);
        assert_eq!(next.due_ns, first.due_ns + 10_050_000);
    }

    #[test]
    fn channels_share_the_bus() {
        let mut d = Scheduler::new(Preset::SataSsd.model(), 1 << 30);
        let due: Vec<u64> = (0..3).map(|i| d.transfer(0, i << 20, 500_000).due_ns).collect();
        assert_eq!(due, [1_100_000, 2_100_000, 3_100_000]);
    }

    #[test]
    fn a_cloud_volume_keeps_its_rate_of_requests_and_of_bytes() {
        let mut d = Scheduler::new(Preset::Cloud.model(), 1 << 30);
        let last = (0..3000).map(|i| d.transfer(0, i * 8192, 4096).due_ns).max().expect("some");
        // 30 requests of burst, the others 1/3000 s apart.
        assert!((950_000_000..1_010_000_000).contains(&last), "{last}");
        let mut d = Scheduler::new(Preset::Cloud.model(), 1 << 30);
        let last = (0..125).map(|i| d.transfer(0, i << 20, 1 << 20).due_ns).max().expect("some");
        assert!((980_000_000..1_010_000_000).contains(&last), "{last}");
    }

    #[test]
    fn a_fast_disk_adds_nothing() {
        let mut d = Scheduler::new(Preset::Fast.model(), 1 << 30);
        assert_eq!(d.transfer(7, 4096, 4096), Service { due_ns: 7, alone_ns: 0 });
        assert_eq!(d.flush(9).due_ns, 9);
    }
}
