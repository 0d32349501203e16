//! What a launch by a plan takes before its helper exists.
//!
//! Somebody has to read the launcher and the plan first, and a start that is cold finds neither cached. On a fast disk
//! that decides whether a plan pays: a program of 19 MB of relocated data took 24.7 ms cold on a disk of 52 µs per read
//! and 1.1 GB/s, 29.6 ms by its plan, and the model without the launch said 18.3.

use cold_model::Nanos;
use cold_sim::disk::{Disk, Model};
use cold_sim::engine::Replay;

/// Bytes of the launcher (docs/concepts/replay.md).
const LAUNCHER: u64 = 800 << 10;
/// It is read by faults and their read-around, at the usual window, one after another.
const WINDOW: u64 = 128 << 10;
/// Bytes of a plan for each step: the step, and its part of a file's entry and name.
const STEP: u64 = 64;
/// CPU time until the helper exists: 5 ms in cold starts (docs/concepts/replay.md) less the 1.5 ms in which that disk
/// reads the launcher and a plan.
const CPU_NS: u64 = 3_500_000;

/// From the launcher's exec to the helper's first step, on this disk.
pub(super) fn before_helper(plan: &Replay, model: &Model, disk_bytes: u64) -> Nanos {
    let mut disk = Disk::new(model.clone(), disk_bytes, 0);
    let mut now = 0;
    for at in (0..LAUNCHER).step_by(WINDOW as usize) {
        now = disk.submit(now, at, WINDOW.min(LAUNCHER - at)).done_ns;
    }
    // Nobody knows where the plan lies.
    let bytes = (plan.steps.len() as u64).saturating_mul(STEP).clamp(4096, model.request.bytes.max(4096));
    now = disk.submit(now, disk_bytes / 2, bytes).done_ns;
    Nanos(now.saturating_add(CPU_NS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cold_sim::disk::Preset;
    use cold_sim::engine::{Gate, PlanStep};

    use crate::simulate::OPENS;

    fn launch(preset: Preset, steps: usize) -> f64 {
        let plan = Replay {
            steps: vec![PlanStep::LookUp { ns: 0, critical: false }; steps],
            threads: 1,
            lookup_threads: 0,
            chunk_pages: 1,
            in_flight_pages: 0,
            gate: Gate::None,
            opens: OPENS,
        };
        before_helper(&plan, &preset.model(), 64 << 30).as_secs() * 1e3
    }

    #[test]
    fn it_is_what_the_launcher_computes_and_what_its_disk_takes_for_eight_reads() {
        // No time for a request and none for a byte.
        assert!((launch(Preset::Fast, 100) - 3.5).abs() < 0.01);
        // 0.1 ms for each of eight, and 0.8 MB at 500 MB/s: 2.4 ms.
        let sata = launch(Preset::SataSsd, 100);
        assert!((sata - 5.95).abs() < 0.1, "{sata}");
        // Two places: a seek to each, half a turn; the bytes at 100 MB/s.
        let hdd = launch(Preset::Hdd, 100);
        assert!((20.0..35.0).contains(&hdd), "{hdd}");
        assert!(launch(Preset::SataSsd, 10_000) > sata, "a longer plan is read longer");
    }
}
