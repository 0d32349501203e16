//! What a block device's reads cost, as a short measurement found it.

use serde::{Deserialize, Serialize};

use crate::Dev;

/// A piece of a file that lies in one piece on its file system's device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// First byte in the file.
    pub logical: u64,
    /// First byte on the device.
    pub physical: u64,
    /// Length in bytes, the same in the file and on the device.
    pub bytes: u64,
}

/// Reads per second at one number of requests in flight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AtDepth {
    /// Requests of 4 KiB in flight, at scattered places.
    pub depth: u32,
    /// Requests per second.
    pub iops: f64,
}

/// A device's cost of reading: `t(n bytes, one at a time, scattered) = latency + n * ns_per_byte`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceModel {
    /// The whole device.
    pub dev: Dev,
    /// Its name below `/sys/block`, and its model where it has one.
    pub name: String,
    /// It has moving heads: the kernel calls it rotational, and a scattered read takes as long as heads take to
    /// move. Virtual disks are often called rotational and are not.
    pub rotational: bool,
    /// Time of one scattered read before its first byte, nanoseconds.
    pub latency_ns: f64,
    /// Time per byte of a long read, nanoseconds (10.0 is 100 MB/s).
    pub ns_per_byte: f64,
    /// Time per byte of a read that has the device to itself, into pages that lie apart as those of the page cache do,
    /// nanoseconds. More than `ns_per_byte` where several at a time share the work, less where only a rate is kept.
    /// `None`: not measured, as on disks with heads, or not kept, as in plans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_byte_alone: Option<f64>,
    /// What requests in flight gain. Ascending depth, at least depth 1.
    pub depths: Vec<AtDepth>,
    /// Bytes that one `readahead` call really delivers on it, found by experiment.
    pub readahead_cap: u64,
    /// When it was measured, seconds since 1970.
    pub measured_at: u64,
}

impl DeviceModel {
    /// Megabytes per second of a long read.
    pub fn mb_per_second(&self) -> f64 {
        1e3 / self.ns_per_byte.max(1e-9)
    }

    /// Whether it keeps a rate of bytes, as cloud volumes do: a byte costs a read alone far less than one of several,
    /// so no bus is full. Requests have a rate of their own then, and the two do not add up.
    pub fn keeps_a_rate_of_bytes(&self) -> bool {
        self.ns_per_byte_alone.is_some_and(|alone| alone < self.ns_per_byte / 2.0)
    }

    /// Requests per second at the greatest measured depth up to `depth`; 0 where none was measured.
    pub fn iops(&self, depth: u32) -> f64 {
        self.depths.iter().rev().find(|d| d.depth <= depth).map_or(0.0, |d| d.iops)
    }

    /// Bytes that are cheaper to read along than to skip with one more request, with `depth` requests in
    /// flight: cost of a request at that depth divided by the cost of a byte.
    pub fn break_even(&self, depth: u32) -> u64 {
        let iops = self.iops(depth);
        // A request of 4 KiB contains the time of its own bytes.
        let request = if iops > 0.0 { 1e9 / iops - 4096.0 * self.ns_per_byte } else { self.latency_ns };
        if self.ns_per_byte > 0.0 { (request.max(0.0) / self.ns_per_byte) as u64 } else { 0 }
    }
}
