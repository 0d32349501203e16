//! What a launch by a plan takes before its helper exists.
//!
//! Somebody has to read the launcher and the plan first, and a start that is cold finds neither cached. On a fast disk
//! that decides whether a plan pays: a program of 19 MB of relocated data took 24.7 ms cold on a disk of 52 µs per read
//! and 1.1 GB/s, 29.6 ms by its plan, and the model without the launch said 18.3.

use cold_model::Nanos;
use cold_sim::disk::{Disk, Model};
use cold_sim::engine::Replay;

/// Bytes of the launcher (docs/concepts/replay.md), most of which a start touches.
const LAUNCHER: u64 = 880 << 10;
/// Single blocks that are waited for one after the other: the directory and the inode of the launcher, those of the plan, and
/// the first page of the program, which tells a script. The program's own directory and inode are in the recording.
const BLOCKS: u64 = 5;
/// Bytes of one.
const BLOCK: u64 = 4096;
/// Bytes of a plan for each step: the step, and its part of a file's entry and name.
const STEP: u64 = 64;
/// CPU time until the helper exists: 5 ms in cold starts (docs/concepts/replay.md) less the 1.5 ms in which that disk
/// reads the launcher and a plan.
const CPU_NS: u64 = 3_500_000;

/// From the launcher's exec to the helper's first step, on this disk. `window`: bytes that the kernel reads around a fault.
pub(super) fn before_helper(plan: &Replay, model: &Model, disk_bytes: u64, window: u64) -> Nanos {
    let mut disk = Disk::new(model.clone(), disk_bytes, 0);
    let mut now = 0;
    // The launcher is read by faults, one after another.
    let window = window.clamp(BLOCK, model.request.bytes.max(BLOCK));
    for at in (0..LAUNCHER).step_by(window as usize) {
        now = disk.submit(now, at, window.min(LAUNCHER - at)).done_ns;
    }
    // Nobody knows where these lie, nor the plan.
    for n in 1..=BLOCKS {
        now = disk.submit(now, disk_bytes / (2 * BLOCKS) * n, BLOCK).done_ns;
    }
    let bytes = (plan.steps.len() as u64).saturating_mul(STEP).clamp(BLOCK, model.request.bytes.max(BLOCK));
    now = disk.submit(now, disk_bytes / 2, bytes).done_ns;
    Nanos(now.saturating_add(CPU_NS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cold_sim::disk::Preset;
    use cold_sim::engine::{Blocks, Gate, PlanStep};

    use crate::simulate::OPENS;

    fn launch(preset: Preset, steps: usize, window: u64) -> f64 {
        let plan = Replay {
            steps: vec![PlanStep::LookUp { ns: 0, blocks: Blocks::default(), critical: false }; steps],
            blocks: Vec::new(),
            threads: 1,
            lookup_threads: 0,
            chunk_pages: 1,
            in_flight_pages: 0,
            gate: Gate::None,
            opens: OPENS,
        };
        before_helper(&plan, &preset.model(), 64 << 30, window).as_secs() * 1e3
    }

    #[test]
    fn it_is_what_the_launcher_computes_and_what_its_disk_takes_for_it() {
        const USUAL: u64 = 128 << 10;
        // No time for a request and none for a byte.
        assert!((launch(Preset::Fast, 100, USUAL) - 3.5).abs() < 0.01);
        // 0.1 ms for each of thirteen, and 0.93 MB at 500 MB/s: 3.2 ms.
        let sata = launch(Preset::SataSsd, 100, USUAL);
        assert!((sata - 6.66).abs() < 0.1, "{sata}");
        // Larger windows read the launcher at once.
        assert!((sata - launch(Preset::SataSsd, 100, 8 << 20) - 0.5).abs() < 0.15);
        // Seven places: a seek to each, half a turn; the bytes at 100 MB/s.
        let hdd = launch(Preset::Hdd, 100, USUAL);
        assert!((50.0..80.0).contains(&hdd), "{hdd}");
        assert!(launch(Preset::SataSsd, 10_000, USUAL) > sata, "a longer plan is read longer");
    }
}
