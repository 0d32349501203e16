//! What a plan's reads cost a disk, wherever their blocks lie.

use cold_model::{DeviceModel, Nanos};
use cold_plan::Plan;
use cold_plan::plan::Step;
use cold_sim::disk::{Disk, Model};

/// The plan's reads in the order in which starts need them: the critical prefix first, whatever order the knobs chose
/// for the places of today.
pub fn by_need(plan: &Plan) -> Vec<Step> {
    let mut reads: Vec<Step> = plan.reads().copied().collect();
    reads.sort_by_key(|s| (!s.critical, s.need_ns, s.file, s.offset));
    reads
}

/// How long the device takes for such reads (first byte on it, bytes), asked for all at once in this order, with
/// nothing else to do. Longer ones than a request holds are cut; neighbours are not joined.
pub fn reading(runs: impl IntoIterator<Item = (u64, u64)>, device: &DeviceModel) -> Nanos {
    let runs: Vec<(u64, u64)> = runs.into_iter().collect();
    let end = runs.iter().map(|(at, bytes)| at.saturating_add(*bytes)).max().unwrap_or(0);
    let model = Model::measured(device);
    let most = model.request.bytes.max(1);
    let mut disk = Disk::new(model, end, 0);
    let mut done = 0;
    for (at, bytes) in runs {
        let mut from = 0;
        while from < bytes {
            let part = most.min(bytes - from);
            done = disk.submit(0, at.saturating_add(from), part).done_ns.max(done);
            from += part;
        }
    }
    Nanos(done)
}

#[cfg(test)]
mod tests {
    use cold_model::Dev;

    use super::*;

    fn disk(rotational: bool) -> DeviceModel {
        DeviceModel {
            dev: Dev::default(),
            name: "sdx".to_owned(),
            rotational,
            latency_ns: 8e6,
            ns_per_byte: 10.0,
            ns_per_byte_alone: None,
            depths: Vec::new(),
            readahead_cap: 1 << 20,
            measured_at: 0,
        }
    }

    #[test]
    fn heads_that_move_less_take_less() {
        let apart: Vec<_> = (0..100_u64).map(|n| (n * 10_000_000, 4096)).collect();
        let together: Vec<_> = (1..101_u64).map(|n| (n * 4096, 4096)).collect();
        let transfer = 100 * 4096 * 10;
        // 8 ms for each place, and the bytes.
        assert_eq!(reading(apart.clone(), &disk(true)).0, 99 * 8_000_000 + transfer);
        assert_eq!(reading(together, &disk(true)).0, 8_000_000 + transfer);
        assert_eq!(reading([], &disk(true)), Nanos(0));
    }

    #[test]
    fn without_heads_places_do_not_matter() {
        let apart: Vec<_> = (0..100_u64).map(|n| (n * 10_000_000, 4096)).collect();
        let together: Vec<_> = (0..100_u64).map(|n| (n * 4096, 4096)).collect();
        assert_eq!(reading(apart, &disk(false)), reading(together, &disk(false)));
    }
}
