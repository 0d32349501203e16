//! Rates that a disk keeps, with bursts: token buckets.

use super::nanos;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests; a larger one counts once for each `of` bytes begun (EBS: 256 KiB).
    Requests {
        /// Bytes per count.
        of: u64,
    },
    /// Each byte counts.
    Bytes,
}

/// A rate that is kept, and what may come at once after a rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// What is counted.
    pub unit: Unit,
    /// How many per second.
    pub per_second: u64,
    /// How many at once when nothing has come for long.
    pub burst: u64,
}

/// A limit at work, as a virtual clock: the time at which it would be full again.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    limit: Limit,
    burst_ns: u64,
    full_at: u64,
}

impl Bucket {
    pub(super) fn new(limit: &Limit) -> Self {
        Self { limit: *limit, burst_ns: nanos(limit.burst, limit.per_second), full_at: 0 }
    }

    /// Takes what a request needs and says from when on it is there. Who needs more than a burst waits for the rest.
    pub(super) fn take(&mut self, now: u64, bytes: u64) -> u64 {
        let units = match self.limit.unit {
            Unit::Requests { of } => bytes.div_ceil(of.max(1)).max(1),
            Unit::Bytes => bytes,
        };
        let takes = nanos(units, self.limit.per_second);
        self.full_at = self.full_at.max(now).saturating_add(takes);
        now.max(self.full_at.saturating_sub(self.burst_ns))
    }
}
