//! The knobs to begin with, from what the device costs.

use cold_model::DeviceModel;
use cold_plan::plan::{Gate, Knobs, Order};

/// Most bytes per call where no device was measured: below every device's silent limit.
const SAFE_CHUNK: u32 = 128 << 10;

/// Where a tuner begins, and what is used when nobody tunes.
///
/// - Gap: the device's break-even. Without a model 16 KiB, which cost nothing measurable on a fast disk.
/// - In flight: what the device reads in 2 ms, at least 1 MiB. More only gives the disk's scheduler a choice, and
///   it takes by place: with 16 MiB in flight `mq-deadline` read small files that `python3` needed 50 ms later
///   before the interpreter's own pages, which came 8 ms later by it.
/// - The program waits until what `exec` and the loader's first instructions touch is issued (0.5 ms of need):
///   libraries have to be found by one lookup after the other, which the helper does as well beside the program.
///   With 2 ms, `python3` began 2 to 4 ms later.
/// - Rotating disks: one thread, by place within 200 ms; the program waits until its first 50 ms are issued,
///   because each of its own reads in between costs two seeks.
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
        Knobs { threads: 1, order: Order::Physical, window_us: 200_000, critical_us: 50_000, ..common }
    } else {
        common
    }
}

/// The depth that a replay reaches: one request at a time gains nothing from depth on a rotating disk.
pub(crate) fn depth(device: &DeviceModel) -> u32 {
    if device.rotational { 1 } else { 32 }
}
