//! The least time a start can take, whatever the order of its reads: they are counted in order of need, which
//! none beats, and a read that goes on where any earlier one ended costs no request of its own.

use std::collections::HashSet;

use cold_model::DeviceModel;
use cold_plan::Plan;
use cold_plan::plan::Bound;

use super::reads::Read;
use crate::knobs::depth;

pub(super) fn bound(plan: &Plan, reads: &[Read], device: &DeviceModel) -> Bound {
    let mut reads: Vec<&Read> = reads.iter().collect();
    reads.sort_by_key(|r| (r.need_ns, r.file, r.first));
    let recorded = match plan.learnt.cpu_ns {
        0 => plan.ranges.iter().map(|r| r.need_ns).max().unwrap_or(0),
        known => known,
    };
    // Recording slows a start down; a trial's warm starts were not recorded. Need times shrink alike.
    let warm = plan.trial.map_or(0, |t| t.warm_ns);
    let cpu = if warm > 0 { recorded.min(warm) } else { recorded };
    let (c, scale) = (cpu as f64, cpu as f64 / recorded.max(1) as f64);
    let request = request_ns(device);
    // The latency is the first request's; at depth 1 it is each one's.
    let mut arrived = if reads.is_empty() { 0.0 } else { (device.latency_ns - request).max(0.0) };
    let mut overlapped = c;
    let mut bytes = 0;
    let mut ends = HashSet::with_capacity(reads.len());
    for r in &reads {
        let goes_on = ends.contains(&(r.file, r.first));
        bytes += r.needed * 4096;
        arrived += r.needed as f64 * 4096.0 * device.ns_per_byte + if goes_on { 0.0 } else { request };
        overlapped = overlapped.max(arrived + c - (r.need_ns as f64 * scale).min(c));
        ends.insert((r.file, r.end));
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
