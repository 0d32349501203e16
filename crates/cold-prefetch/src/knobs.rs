//! The knobs to begin with, from what the device costs.

use cold_model::DeviceModel;
use cold_plan::Plan;
use cold_plan::plan::{Gate, Knobs, Order, PAGE};

use crate::compile::asked_for;

/// Most bytes per call where no device was measured: below every device's silent limit.
const SAFE_CHUNK: u32 = 128 << 10;
/// What is needed before is always waited for on a rotating disk: finding libraries takes lookups one after another.
const LEAST_HELD_US: u32 = 50_000;

/// Where a tuner begins, and what is used when nobody tunes.
///
/// - Gap: the device's break-even. Without a model 16 KiB, which cost nothing measurable on a fast disk.
/// - In flight: what the device reads in 2 ms, at least 1 MiB. More only gives the disk's scheduler a choice, and
///   it takes by place: with 16 MiB in flight `mq-deadline` read small files that `python3` needed 50 ms later
///   before the interpreter's own pages, which came 8 ms later by it.
/// - The program waits until what `exec` and the loader's first instructions touch is issued (0.5 ms of need):
///   libraries have to be found by one lookup after the other, which the helper does as well beside the program.
///   With 2 ms, `python3` began 2 to 4 ms later.
/// - Rotating disks: one thread, in one sweep over the disk, and the program waits until that is issued
///   ([`knobs_for`] says of which part): each of its own reads in between costs two seeks. `firefox-esr` on a test
///   disk took 7.7 s in sweeps of 200 ms of need, held back for the first 50 ms, and 4.6 s in one (3 rounds each).
/// - S is 2 where break-even is small (a page that one start of eight needs is then not worth reading), else 1.
pub fn default_knobs(device: Option<&DeviceModel>) -> Knobs {
    let Some(device) = device else {
        return Knobs {
            min_uses: 2,
            gap_bytes: 16 << 10,
            chunk_bytes: SAFE_CHUNK,
            in_flight_bytes: 4 << 20,
            threads: 2,
            order: Order::Need,
            window_us: 5_000,
            gate: Gate::Issued,
            critical_us: 2_000,
            metadata: true,
        };
    };
    let gap = device.break_even(depth(device)).min(1 << 20) as u32 & !4095;
    let per_2_ms = if device.ns_per_byte > 0.0 { 2e6 / device.ns_per_byte } else { f64::MAX };
    let in_flight = per_2_ms.clamp(f64::from(1 << 20), f64::from(16 << 20)) as u32 & !4095;
    let cap = u32::try_from(device.readahead_cap).unwrap_or(u32::MAX) & !4095;
    let chunk = cap.clamp(SAFE_CHUNK, 1 << 20).min(in_flight / 2);
    let common = Knobs {
        min_uses: if gap < 32 << 10 { 2 } else { 1 },
        gap_bytes: gap,
        chunk_bytes: chunk,
        in_flight_bytes: in_flight,
        threads: if device.latency_ns > 300_000.0 { 4 } else { 2 },
        order: Order::Need,
        window_us: 5_000,
        gate: Gate::Issued,
        critical_us: 500,
        metadata: true,
    };
    if device.rotational {
        Knobs { threads: 1, order: Order::Physical, window_us: u32::MAX, critical_us: u32::MAX, ..common }
    } else {
        common
    }
}

/// [`default_knobs`] for a plan.
///
/// - On a rotating disk the program waits for everything but what can be read, with a seek for each request, in the
///   time that the program computes before it needs the first of it.
/// - Where rates of requests and of bytes are kept beside each other, the gap is the one with which the plan is read
///   soonest ([`DeviceModel::keeps_a_rate_of_bytes`]).
pub fn knobs_for(plan: &Plan, device: Option<&DeviceModel>) -> Knobs {
    let knobs = default_knobs(device);
    match device {
        Some(device) if device.rotational => Knobs { critical_us: held_until(plan, &knobs, device), ..knobs },
        Some(device) if device.keeps_a_rate_of_bytes() => {
            Knobs { gap_bytes: soonest_gap(plan, &knobs, device), ..knobs }
        }
        _ => knobs,
    }
}

/// A smaller gap must save more than this part of the time: each request costs the processor something, too.
const SOONER: f64 = 0.02;

/// The gap, bytes, with which a disk that keeps a rate of requests and one of bytes has read the plan soonest.
/// Break-even is right where what requests and bytes take adds up; here a plan that is held up by its bytes alone reads
/// holes for nothing. `php` on a volume of 3000 requests and 125 MiB per second: 13.3 MiB in 106 ms with the break-even
/// of 36 KiB, whose requests take two thirds of that.
fn soonest_gap(plan: &Plan, knobs: &Knobs, device: &DeviceModel) -> u32 {
    let iops = device.iops(depth(device));
    if iops <= 0.0 {
        return knobs.gap_bytes;
    }
    let time_s = |gap_bytes: u32| {
        let mut asked = asked_for(plan, &Knobs { gap_bytes, ..*knobs }, device);
        asked.sort_by_key(|(need_ns, _)| *need_ns);
        time_by_rates(&asked, knobs.in_flight_bytes, iops, 1e9 / device.ns_per_byte)
    };
    let gaps = (0..=knobs.gap_bytes).rev().step_by(PAGE as usize);
    let mut best = (knobs.gap_bytes, time_s(knobs.gap_bytes));
    for gap in gaps.skip(1) {
        let time = time_s(gap);
        if time < best.1 * (1.0 - SOONER) {
            best = (gap, time);
        }
    }
    best.0
}

/// Seconds for reads (need, bytes) in their order, so many bytes in flight: of each such portion the longer of requests /
/// `iops` and bytes / `bandwidth` (per second). Not of all together: what one rate has left over while many small reads
/// keep the other busy, large ones later do not get back.
fn time_by_rates(asked: &[(u64, u64)], in_flight: u32, iops: f64, bandwidth: f64) -> f64 {
    let taken = |requests: u64, bytes: u64| (requests as f64 / iops).max(bytes as f64 / bandwidth);
    let (mut time, mut requests, mut bytes) = (0.0, 0, 0);
    for (_, read) in asked {
        (requests, bytes) = (requests + 1, bytes + read);
        if bytes >= u64::from(in_flight) {
            time += taken(requests, bytes);
            (requests, bytes) = (0, 0);
        }
    }
    time + taken(requests, bytes)
}

/// The need time, microseconds, up to which the program waits.
fn held_until(plan: &Plan, knobs: &Knobs, device: &DeviceModel) -> u32 {
    let mut asked = asked_for(plan, knobs, device);
    asked.sort_by_key(|(need_ns, _)| std::cmp::Reverse(*need_ns));
    let mut reading_ns = 0.0;
    let too_late = asked.into_iter().find(|(need_ns, bytes)| {
        reading_ns += device.latency_ns + *bytes as f64 * device.ns_per_byte;
        reading_ns > *need_ns as f64
    });
    let held = too_late.map_or(0, |(need_ns, _)| need_ns / 1000 + 1);
    u32::try_from(held).unwrap_or(u32::MAX).max(LEAST_HELD_US)
}

/// Break-even where no device was measured: that of a SATA SSD at depth 1.
const USUAL_GAP: u64 = 64 << 10;
/// Largest gap that is tried.
const MOST_GAP: u64 = 4 << 20;

/// Gaps worth a start on the disk, bytes: none, and about the device's break-even.
pub(crate) fn gaps(device: Option<&DeviceModel>) -> [u32; 4] {
    let even = even(device);
    [0, even / 2, even, even.saturating_mul(4)].map(whole_pages)
}

/// Gaps worth asking the model about, which takes milliseconds each: up to break-even in eighths of it, and one beyond.
pub(crate) fn finer_gaps(device: Option<&DeviceModel>) -> [u32; 10] {
    let even = even(device);
    std::array::from_fn(|n| if n == 9 { even.saturating_mul(4) } else { even * n as u64 / 8 })
        .map(whole_pages)
}

fn even(device: Option<&DeviceModel>) -> u64 {
    device.map_or(USUAL_GAP, |d| d.break_even(depth(d)).max(PAGE)).min(MOST_GAP)
}

fn whole_pages(gap: u64) -> u32 {
    gap.min(MOST_GAP) as u32 & !4095
}

/// The depth that a replay reaches: one request at a time gains nothing from depth on a rotating disk.
fn depth(device: &DeviceModel) -> u32 {
    if device.rotational { 1 } else { 32 }
}
