use cold_model::DeviceModel;
use cold_model::io_model::AtDepth;
use cold_testbed::disk::{Preset as OnTestbed, Scheduler};
use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;
const GIB: u64 = 1 << 30;

fn disk(model: Model) -> Disk {
    Disk::new(model, GIB, 1)
}

/// Times at which requests are done that all arrive at 0.
fn done(model: Model, requests: &[(u64, u64)]) -> Vec<u64> {
    let mut disk = disk(model);
    requests.iter().map(|(at, bytes)| disk.submit(0, *at, *bytes).done_ns).collect()
}

#[test]
fn channels_work_at_the_same_time_and_share_the_bus() {
    let model = Model {
        latency_ns: MS,
        bandwidth: Some(1_000_000_000),
        channels: 2,
        way_ns: 500,
        ..Model::default()
    };
    let requests = [(0, MS), (0, MS), (0, MS)];
    // First bytes at 1, 1 and (when the first channel is free) 3 ms; 1 ms each on the bus.
    assert_eq!(done(model.clone(), &requests), [2 * MS + 500, 3 * MS + 500, 4 * MS + 500]);
    // A way on which 2 MiB take 3 ms more occupies nothing either.
    let copied = Model { bandwidth: None, ..model.behind(100, 3 * MS / 2) };
    assert_eq!(done(copied, &[(0, 2 << 20), (0, 0), (0, 0)]), [4 * MS + 600, MS + 600, 2 * MS + 600]);
}

#[test]
fn flash_of_a_phone_does_what_its_data_sheet_says() {
    let model = Preset::Ufs.model();
    let last = |requests: &[(u64, u64)]| *done(model.clone(), requests).last().unwrap() as f64 / 1e9;
    let scattered: Vec<(u64, u64)> = (0..8000).map(|n| (n * 7919 % 9000 * 4096, 4096)).collect();
    assert!((8000.0 / last(&scattered) / 100_000.0 - 1.0).abs() < 0.03, "{}", last(&scattered));
    let long: Vec<(u64, u64)> = (0..500).map(|n| (n << 19, 1 << 19)).collect();
    let bandwidth = f64::from(500 << 19) / last(&long);
    assert!((bandwidth / 2.1e9 - 1.0).abs() < 0.03, "{bandwidth}");
}

#[test]
fn a_channel_is_slower_than_the_bus_that_four_fill() {
    let model = Model {
        channel_bandwidth: Some(250_000_000),
        bandwidth: Some(1_000_000_000),
        channels: 4,
        ..Model::default()
    };
    assert_eq!(done(model.clone(), &[(0, MS)]), [4 * MS]);
    assert_eq!(done(model, &[(0, MS); 5]), [4 * MS, 4 * MS, 4 * MS, 4 * MS, 8 * MS]);
}

#[test]
fn a_full_bucket_lets_its_burst_through_and_then_its_rate() {
    let limit = Limit { unit: Unit::Requests { of: 4096 }, per_second: 1000, burst: 3 };
    let model = Model { limits: vec![limit], ..Model::default() };
    assert_eq!(done(model.clone(), &[(0, 4096); 5]), [0, 0, 0, MS, 2 * MS]);
    // A larger request counts for each piece begun, and what rested for long has its burst again.
    let mut disk = disk(model);
    assert_eq!(disk.submit(0, 0, 4097 + 4096).done_ns, 0);
    assert_eq!(disk.submit(0, 0, 1).done_ns, MS);
    let later: Vec<u64> = (0..4).map(|_| disk.submit(100 * MS, 0, 1).done_ns).collect();
    assert_eq!(later, [100 * MS, 100 * MS, 100 * MS, 101 * MS]);
}

#[test]
fn heads_take_the_time_of_their_distance() {
    let heads = Heads {
        cylinders: 100.0,
        within: 1.0,
        split: 50.0,
        short: (1e6, 1e5),
        long: (2e6, 1e4),
        rotation_ns: 4 * MS,
        passes: true,
    };
    let model = Model { heads: Some(heads), bandwidth: Some(100_000_000), channels: 1, ..Model::default() };
    let alone = |from: u64, to: u64| {
        let mut disk = disk(model.clone());
        disk.submit(0, from, 0);
        disk.submit(0, to, 0).alone_ns
    };
    let cylinder = GIB.div_ceil(100);
    assert_eq!(alone(cylinder, cylinder), 0, "reading on");
    assert_eq!(alone(2 * cylinder, 2 * cylinder - 4096), 4 * MS, "in the cylinder, backward: a turn's half");
    assert_eq!(alone(4096, 8192), 40_960, "forward: what lies between passes the head");
    let far = |d: f64| (d / 100.0 * GIB as f64) as u64;
    assert_eq!(alone(0, far(25.0)), MS + 500_000 + 4 * MS);
    assert_eq!(alone(far(80.0), 0), 2 * MS + 799_999 + 4 * MS);
}

#[test]
fn jitter_comes_from_the_seed_and_keeps_the_median() {
    let model = Model { latency_ns: MS, jitter: 0.3, ..Model::default() };
    let times = |seed| {
        let mut disk = Disk::new(model.clone(), GIB, seed);
        (0..1001).map(|_| disk.submit(0, 0, 4096).alone_ns).collect::<Vec<_>>()
    };
    assert_eq!(times(7), times(7));
    assert_ne!(times(7), times(8));
    let median = cold_stats::median_u64(times(7)).expect("some");
    assert!(median.abs_diff(MS) < MS / 20, "{median}");
}

#[test]
fn a_measured_device_gives_its_own_figures_back() {
    let at = |depth, iops| AtDepth { depth, iops };
    let device = DeviceModel {
        dev: cold_model::Dev { major: 7, minor: 0 },
        name: "loop0".to_owned(),
        rotational: false,
        latency_ns: 900_000.0,
        ns_per_byte: 7.6,
        ns_per_byte_alone: None,
        depths: vec![at(1, 1070.0), at(4, 2900.0), at(32, 3000.0)],
        readahead_cap: 512 << 10,
        measured_at: 0,
    };
    let model = Model::measured(&device);
    let one = disk(model.clone()).submit(0, 4096, 4096).done_ns;
    assert!(one.abs_diff(900_000 + 31_129) < 100, "{one}");
    // So many requests in a second, however many wait.
    let all = done(model.clone(), &vec![(0, 4096); 3000]);
    assert!(all[2999].abs_diff(1_000 * MS) < 10 * MS, "{}", all[2999]);
    // Long ones at the measured bandwidth.
    let long = done(model, &[(0, 1 << 20); 100]);
    assert!(long[99].abs_diff(797 * MS) < 10 * MS, "{}", long[99]);

    // A virtual disk that takes 0.8 ns for a byte of several reads, and 1.4 for one alone.
    let fast = DeviceModel { ns_per_byte: 0.8, ns_per_byte_alone: Some(1.4), ..device.clone() };
    let alone = disk(Model::measured(&fast)).submit(0, 1 << 20, 131_072).alone_ns;
    assert!(alone.abs_diff(900_000 + 183_501) < 100, "{alone}");
    // A volume of which only the rate is limited: one read alone takes no more, many the measured bandwidth.
    let volume = Model::measured(&DeviceModel { ns_per_byte_alone: Some(0.1), ..device.clone() });
    let alone = disk(volume.clone()).submit(0, 1 << 20, 131_072).alone_ns;
    assert!(alone.abs_diff(900_000 + 13_107) < 100, "{alone}");
    let long = done(volume, &[(0, 1 << 20); 100]);
    assert!(long[99].abs_diff(790 * MS) < 10 * MS, "{}", long[99]);

    // Behind large reads, which take all of the bytes' rate, small ones pass at once that its requests would have been:
    // 3000 a second for the 8.2 ms of a burst. Without a rate of bytes each waits for its turn.
    let behind = |alone| {
        let mut disk = disk(Model::measured(&DeviceModel { ns_per_byte_alone: alone, ..device.clone() }));
        let large = (0..8).map(|n| disk.submit(0, n << 20, 1 << 20).done_ns).max().unwrap_or(0);
        let small: Vec<u64> = (0..20).map(|n| disk.submit(large, n << 30, 4096).done_ns - large).collect();
        small[19] - small[0]
    };
    let (rate, bus) = (behind(Some(0.1)), behind(None));
    assert!(rate < MS && bus.abs_diff(19 * MS / 3) < MS, "{rate} and {bus}");

    let heads = Model::measured(&DeviceModel { rotational: true, latency_ns: 8e6, ..device });
    let mut disk = disk(heads);
    assert_eq!(disk.submit(0, 8192, 4096).alone_ns / 1000, 8031);
    assert_eq!(disk.submit(0, 12288, 4096).alone_ns / 1000, 31, "reading on needs no way");
}

#[test]
fn names_lead_to_presets_and_no_two_are_the_same() {
    for preset in Preset::ALL {
        assert_eq!(Preset::named(preset.name()), Some(preset));
        assert!(!preset.source().is_empty());
        let row = format!("| `{}` |", preset.name());
        assert!(include_str!("../../../../docs/concepts/simulation.md").contains(&row), "{row}");
    }
    assert_eq!(Preset::named("floppy"), None);
}

#[test]
fn the_disks_of_1993_take_what_was_measured_then() {
    let model = Preset::Laptop1993.model();
    let mut disk = disk(model.clone());
    let random = disk.submit(0, GIB / 2, 4096).alone_ns;
    let next = disk.submit(0, GIB / 2 + 4096, 4096).alone_ns;
    assert!(random.abs_diff(20_450_000) < 100_000 && next.abs_diff(6_580_000) < 100_000, "{random} {next}");
    // 13.4 ms is the mean seek that Ruemmler and Wilkes give for a third of the cylinders.
    let third =
        Preset::Hp97560.model().heads.map(|h| h.way_ns(0, GIB / 3, GIB, |_| u64::MAX) - h.rotation_ns);
    assert!(third.is_some_and(|ns| ns.abs_diff(13_400_000) < 200_000), "{third:?}");
}

proptest! {
    /// The test disk's scheduler was written for itself and serves real requests: where it has a figure, the times
    /// are its times, to the nanosecond.
    #[test]
    fn the_test_disks_presets_are_the_test_disks(
        which in 0_usize..4,
        requests in prop::collection::vec((0_u64..2 * MS, 0_u64..GIB / 4096, 1_u64..200), 1..200),
    ) {
        let (mine, its) = [
            (Preset::Hdd, OnTestbed::Hdd),
            (Preset::SataSsd, OnTestbed::SataSsd),
            (Preset::Cloud, OnTestbed::Cloud),
            (Preset::Fast, OnTestbed::Fast),
        ][which];
        let mut mine = disk(mine.model());
        let mut its = Scheduler::new(its.model(), GIB);
        let mut now = 0;
        for (later, page, pages) in requests {
            now += later;
            let is = mine.submit(now, page * 4096, pages * 4096);
            let should = its.transfer(now, page * 4096, pages * 4096);
            prop_assert_eq!((is.done_ns, is.alone_ns), (should.due_ns, should.alone_ns));
        }
    }

    /// No disk is done before a request has arrived, nor faster than its slowest part allows.
    #[test]
    fn nothing_is_faster_than_its_parts(
        which in 0..Preset::ALL.len(),
        requests in prop::collection::vec((0_u64..MS, 0_u64..GIB, 1_u64..1 << 20), 1..100),
    ) {
        let model = Preset::ALL[which].model();
        let mut disk = disk(model.clone());
        let (mut now, mut bytes, mut last) = (0, 0, 0);
        for (later, at, n) in requests {
            now += later;
            let service = disk.submit(now, at, n);
            prop_assert!(service.done_ns >= now + service.alone_ns);
            bytes += n;
            last = last.max(service.done_ns);
        }
        prop_assert!(last >= model.bandwidth.map_or(0, |b| nanos(bytes, b)) .saturating_sub(100));
    }
}
