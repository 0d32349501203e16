//! The least time a start can take.

use cold_model::DeviceModel;
use cold_plan::Plan;
use cold_plan::plan::Bound;

use super::reads::Read;
use crate::knobs::depth;

pub(super) fn bound(plan: &Plan, reads: &[&Read], device: &DeviceModel) -> Bound {
    let cpu = match plan.learnt.cpu_ns {
        0 => plan.ranges.iter().map(|r| r.need_ns).max().unwrap_or(0),
        known => known,
    };
    let c = cpu as f64;
    let request = request_ns(device);
    // The latency is the first request's; at depth 1 it is each one's.
    let mut arrived = if reads.is_empty() { 0.0 } else { (device.latency_ns - request).max(0.0) };
    let mut overlapped = c;
    let mut bytes = 0;
    let mut before: Option<&Read> = None;
    for r in reads {
        let goes_on = before.is_some_and(|b| b.file == r.file && b.end == r.first);
        bytes += r.needed * 4096;
        arrived += r.needed as f64 * 4096.0 * device.ns_per_byte + if goes_on { 0.0 } else { request };
        overlapped = overlapped.max(arrived + c - (r.need_ns as f64).min(c));
        before = Some(r);
    }
    Bound {
        cpu_ns: cpu,
        overlapped_ns: overlapped as u64,
        serial_ns: (arrived + c) as u64,
        bytes,
        requests: u32::try_from(reads.len()).unwrap_or(u32::MAX),
    }
}

/// What a request costs beside its bytes, with as many in flight as a replay has.
fn request_ns(device: &DeviceModel) -> f64 {
    let at_depth = device.depths.iter().rev().find(|d| d.depth <= depth(device));
    match at_depth.filter(|d| d.iops > 0.0) {
        Some(d) => (1e9 / d.iops - 4096.0 * device.ns_per_byte).max(0.0),
        None => device.latency_ns,
    }
}
