//! What a request costs on the devices of the recording, fitted to its own requests.

use cold_model::recording::Recording;
use cold_model::{Bytes, Nanos};

use crate::usage::Window;
use crate::waits::union;

/// Fewer requests than this say nothing about a device.
const LEAST_REQUESTS: usize = 8;

/// Service time of one request alone, `per_request + bytes · per_byte`, and what the devices reached.
/// Nothing is promised that was not seen: beyond the largest request time grows as the bytes do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceCost {
    /// Time of a request of no bytes, in nanoseconds.
    pub per_request: f64,
    /// Time per byte, in nanoseconds.
    pub per_byte: f64,
    /// The largest request seen, in bytes.
    pub largest: f64,
    /// Bytes per second while at least one request was in flight: of all requests, or of the largest
    /// quarter of them, whichever is more.
    pub bandwidth: f64,
}

impl DeviceCost {
    /// Least-squares line through size and time (issue to completion) of the tree's requests; `None` with
    /// fewer than eight of them.
    pub fn of(recording: &Recording) -> Option<Self> {
        let window = Window::of(recording);
        let mut done: Vec<(Nanos, Nanos, f64)> = recording
            .device_reads
            .iter()
            .flatten()
            .filter(|r| r.in_tree && window.holds(r.queued))
            .filter_map(|r| Some((r.issued.unwrap_or(r.queued), r.completed?, f64::from(r.bytes))))
            .filter(|(from, to, _)| from < to)
            .collect();
        if done.len() < LEAST_REQUESTS {
            return None;
        }
        let n = done.len() as f64;
        let time = |d: &(Nanos, Nanos, f64)| (d.1.0 - d.0.0) as f64;
        let mean_bytes = done.iter().map(|d| d.2).sum::<f64>() / n;
        let mean_time = done.iter().map(time).sum::<f64>() / n;
        let var: f64 = done.iter().map(|d| (d.2 - mean_bytes).powi(2)).sum();
        let cov: f64 = done.iter().map(|d| (d.2 - mean_bytes) * (time(d) - mean_time)).sum();
        // A line that falls, or starts below nothing, is noise: then all is per request, or all per byte.
        let slope = if var > 0.0 { (cov / var).max(0.0) } else { 0.0 };
        let per_byte = slope.min(mean_time / mean_bytes.max(1.0));
        let reached = |requests: &[(Nanos, Nanos, f64)]| {
            let busy = union(requests.iter().map(|d| (d.0, d.1)));
            requests.iter().map(|d| d.2).sum::<f64>() / busy.as_secs().max(1e-9)
        };
        let all = reached(&done);
        done.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        Some(Self {
            per_request: (mean_time - per_byte * mean_bytes).max(0.0),
            per_byte,
            largest: done[0].2,
            bandwidth: all.max(reached(&done[..done.len().div_ceil(4)])),
        })
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
