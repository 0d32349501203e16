use cold_model::Known;
use cold_model::io_model::AtDepth;
use cold_model::recording::{FillCause, OffCpuReason, Recording, Thread, TouchKind};
use cold_model::sample::{empty, ms};
use cold_plan::plan::Trial;
use proptest::prelude::*;

use super::*;
use crate::merge::merge;
use crate::sample::{key, rotating, start};

const MS: f64 = 1e6;

/// 1 ms before the first byte, 100 MB/s, 1000 requests a second, 4 at a time.
fn disk() -> DeviceModel {
    let at = |depth, iops| AtDepth { depth, iops };
    DeviceModel {
        rotational: false,
        latency_ns: MS,
        ns_per_byte: 10.0,
        ns_per_byte_alone: None,
        depths: vec![at(1, 500.0), at(2, 1000.0), at(4, 900.0)],
        ..rotating()
    }
}

/// Of one start whose warm time is 100 ms, with files that lie one behind the other, 1 GiB each.
fn plan(device: DeviceModel, files: u32, ranges: &[(u32, u64, u32, u64)]) -> Plan {
    let mut plan = merge(None, &key(), &start(files, ranges), 1);
    plan.device = Some(device);
    plan.trial = Some(Trial {
        at: 1,
        pairs: 6,
        plain_ns: 1,
        prefetched_ns: 1,
        warm_ns: Some(100_000_000),
        ratio: 1.0,
        low: 1.0,
        high: 1.0,
    });
    plan
}

fn lies(path: &Path) -> Option<Vec<Extent>> {
    let number: u64 = path.to_str()?.strip_prefix("/usr/lib/f")?.parse().ok()?;
    Some(vec![Extent { logical: 0, physical: number << 30, bytes: 1 << 30 }])
}

/// Nobody knows the disks.
const GROUND: Ground<'static> = Ground { extents: &lies, disk: &|_| None };

fn bound_of(plan: &Plan) -> Bound {
    bound(plan, GROUND, None).expect("a device")
}

#[track_caller]
fn close(got: u64, want: f64) {
    assert!((got as f64 - want).abs() < 0.01 * want + 10.0, "{got}, not {want}");
}

#[test]
fn bytes_take_what_they_take_whatever_the_order() {
    // 1 MiB at 10 ns per byte is 10.49 ms, and 1 ms before; the other one is needed 5 ms before the end.
    let ranges = [(0, 0, 256, 0), (0, 256, 256, 95)];
    let one = f64::from(1 << 20) * 10.0;
    let b = bound_of(&plan(disk(), 1, &ranges));
    assert_eq!((b.cpu_ns, b.bytes, b.requests), (Some(100_000_000), 2 << 20, 1));
    // The first MiB is needed at once: all that is computed comes behind it (but for the joining of ranges).
    close(b.overlapped_ns, 100.0 * MS - 1.0 * MS + 1.0 * MS + one);
    close(b.serial_ns, 100.0 * MS + 1.0 * MS + 2.0 * one);
    // Another thread may go on meanwhile: then nothing is certain but the longer of the two.
    let mut threads = plan(disk(), 1, &ranges);
    threads.learnt.one_thread = false;
    assert_eq!(bound_of(&threads).overlapped_ns, 100_000_000);
    // Without a warm start it is not known how long it computes; reading takes its time all the same.
    threads.trial = None;
    let b = bound_of(&threads);
    assert_eq!((b.cpu_ns, b.overlapped_ns), (None, b.serial_ns));
    close(b.serial_ns, MS + 2.0 * one);
}

#[test]
fn warm_starts_that_others_measured_count_in_place_of_the_trials() {
    let p = plan(disk(), 1, &[(0, 0, 256, 0), (0, 256, 256, 95)]);
    let of = |warm: Option<u64>| bound_of_warm(&p, warm, GROUND, None).expect("a device");
    assert_eq!(of(Some(100_000_000)), bound_of(&p));
    // 200 ms of computing, of which all but the joining of ranges comes behind the first MiB.
    let slow = of(Some(200_000_000));
    assert_eq!(slow.cpu_ns, Some(200_000_000));
    close(slow.overlapped_ns, 200.0 * MS - 1.0 * MS + 1.0 * MS + f64::from(1 << 20) * 10.0);
    // Nothing known of computing: reading alone, although the plan has a trial.
    let reading = of(None);
    assert_eq!((reading.cpu_ns, reading.overlapped_ns), (None, reading.serial_ns));
}

#[test]
fn far_pages_take_requests_and_near_ones_are_read_through() {
    let pages = |step: u64| (0..11).map(|n| (0, n * step, 1, 0)).collect::<Vec<_>>();
    let reading = |device, step| bound_of(&plan(device, 1, &pages(step))).serial_ns - 100_000_000;
    // 78 MiB apart: 11 requests at the best depth (1 ms each), 4 of which come together, and the latency.
    close(reading(disk(), 20_000), 8.0 * MS);
    // 4 pages apart: bridging 6 of the 10 holes leaves 5 requests, 1 ms, and 35 pages, 1.43 ms; bridging 5
    // leaves 6 requests, 2 ms. A part of a hole would be better still: 1.37 ms.
    let near = reading(disk(), 5);
    assert!((2.3e6..2.434e6).contains(&(near as f64)), "{near}");
    // Side by side: bytes only.
    close(reading(disk(), 1), MS + 11.0 * 40_960.0);
    // With heads one at a time, and a short way costs half of a usual one: 8.06 ms.
    let far = reading(rotating(), 20_000);
    close(far, 8.0 * MS + 10.0 * 1e9 / 124.0 / 2.0);
}

#[test]
fn what_some_start_did_not_need_or_another_device_has_does_not_count() {
    let of = |change: &dyn Fn(&mut Plan)| {
        let mut p = plan(disk(), 3, &[(0, 0, 10, 0), (1, 0, 8, 0), (2, 0, 4, 0)]);
        change(&mut p);
        bound_of(&p).bytes / 4096
    };
    assert_eq!(of(&|_| ()), 22);
    assert_eq!(of(&|p| p.ranges[1].around = true), 14);
    assert_eq!(of(&|p| p.files[2].identity.dev.minor += 1), 18);
    assert_eq!(of(&|p| p.files[2].kind = FileKind::BlockDevice), 18);
    assert_eq!(of(&|p| p.files[0].identity.size = 5000), 14);
    // Used in two of three starts.
    let twice = of(&|p| {
        p.learnt.starts = 3;
        p.ranges.iter_mut().for_each(|r| r.uses = 0b111);
        p.ranges[1].uses = 0b110;
    });
    assert_eq!(twice, 14);
    let none = plan(disk(), 1, &[]);
    assert_eq!(bound_of(&none).overlapped_ns, 100_000_000);
    assert_eq!(bound(&Plan { device: None, ..none }, GROUND, None), None);
}

#[test]
fn files_without_a_known_place_count_by_their_bytes() {
    let p = plan(disk(), 1, &[(0, 0, 10, 0), (0, 10_000, 10, 0)]);
    let nowhere = bound(&p, Ground { extents: &|_| None, ..GROUND }, None).expect("a device");
    assert_eq!((nowhere.bytes, nowhere.requests), (20 * 4096, 0));
    close(nowhere.serial_ns, 101.0 * MS + 20.0 * 40_960.0);
    // A hole in the file is read from nowhere.
    let holed = |_: &Path| Some(vec![Extent { logical: 4096, physical: 0, bytes: 4096 }]);
    assert_eq!(bound(&p, Ground { extents: &holed, ..GROUND }, None).expect("a device").bytes, 4096);
}

/// Ready after 205 ms. The first thread computes 10 ms, reads 1 MiB of `/usr/lib/f0`, which takes 105 ms, and computes 90.
/// The second one needs another MiB after 20 ms, and nobody waits for it.
fn threads() -> Recording {
    let mut r = empty();
    r.manifest.ready = Some(Known::Value(ms(205)));
    for (tid, began) in [(10, 0), (11, 1)] {
        let name = "t".into();
        r.threads.push(Thread { began: ms(began), tid, pid: 10, name, in_tree: true, ended: None });
    }
    let file = r.file("/usr/lib/f0", 1 << 30);
    r.touch(10, file, 0..256, TouchKind::Read);
    r.touch(21, file, 256..512, TouchKind::Read).tid = 11;
    r.fill(10, file, 0..512, FillCause::DemandFault);
    r.off_cpu(10, 105, 10, OffCpuReason::Storage);
    r
}

#[test]
fn of_many_threads_only_what_ready_hangs_on_counts() {
    let r = threads();
    let latest = Latest::of(&r, None).expect("waits");
    let of = |ranges: &[(u32, u64, u32, u64)], latest| {
        let mut p = plan(disk(), 1, ranges);
        p.learnt.one_thread = false;
        bound(&p, GROUND, latest).expect("a device").overlapped_ns
    };
    // 90 ms are computed behind the first MiB, whenever the plan thinks that it is needed.
    let one = f64::from(1 << 20) * 10.0;
    close(of(&[(0, 0, 256, 99)], Some(&latest)), 90.0 * MS + 1.0 * MS + one);
    assert_eq!(of(&[(0, 0, 256, 0)], None), 100_000_000);
    // The second thread's may come at any time, and so may pages that this start did not need.
    close(of(&[(0, 0, 512, 0)], Some(&latest)), 90.0 * MS + 1.0 * MS + one);
    close(of(&[(0, 0, 256, 0), (1, 0, 256, 0)], Some(&latest)), 90.0 * MS + 1.0 * MS + one);
    // Of a range that goes on behind it the part that is needed counts.
    close(of(&[(0, 16, 496, 0)], Some(&latest)), 90.0 * MS + 1.0 * MS + one * 240.0 / 256.0);
    // Of a file that has changed nothing is known, nor where waits were not recorded.
    let mut changed = threads();
    changed.files[0].size = Some(1 << 29);
    assert_eq!(of(&[(0, 0, 256, 0)], Latest::of(&changed, None).as_ref()), 100_000_000);
    let untold = Recording { off_cpu: None, ..threads() };
    assert_eq!(Latest::of(&untold, None), None);
}

/// The start of [`threads`] as a program of 100 ms does it now: a cold one with exact needs that computes 90 ms more, all
/// of it before its first MiB, and a warm one. Of that MiB the warm one has no page, as they were mapped around others;
/// page 1000 it needs after 4 ms.
fn cold_and_warm() -> (Recording, Recording) {
    let mut cold = threads();
    cold.manifest.exact_need = true;
    cold.manifest.ready = Some(Known::Value(ms(295)));
    for touch in cold.touches.iter_mut().flatten() {
        touch.at += cold_model::Nanos(90_000_000);
    }
    for fill in cold.fills.iter_mut().flatten() {
        fill.at += cold_model::Nanos(90_000_000);
    }
    cold.off_cpu = Some(Vec::new());
    cold.off_cpu(100, 105, 10, OffCpuReason::Storage);
    let mut warm = threads();
    warm.manifest.ready = Some(Known::Value(ms(100)));
    (warm.touches, warm.fills, warm.off_cpu) = (Some(Vec::new()), Some(Vec::new()), Some(Vec::new()));
    cold.touch(210, 0, 1000..1001, TouchKind::Fault);
    warm.touch(4, 0, 1000..1001, TouchKind::Fault);
    (cold, warm)
}

#[test]
fn a_warm_start_tells_what_comes_behind_pages_that_are_needed_before_those_it_knows() {
    let (cold, warm) = cold_and_warm();
    let of = |ranges: &[(u32, u64, u32, u64)], latest: Option<Latest>| {
        let mut p = plan(disk(), 1, ranges);
        p.learnt.one_thread = false;
        bound(&p, GROUND, latest.as_ref()).expect("a device").overlapped_ns
    };
    let one = f64::from(1 << 20) * 10.0;
    let first: &[_] = &[(0, 0, 256, 0)];
    // 90 ms are left by the cold start alone, and it computed 90 too many, perhaps behind this page.
    assert_eq!(of(first, Latest::of(&cold, None)), 100_000_000);
    let both = Latest::of(&cold, Some(&warm)).expect("waits");
    assert!(both.hears_warm());
    let near = |got: u64, want: f64| assert!((got as f64 - want).abs() < 0.1 * MS, "{got}, not {want}");
    near(of(first, Some(both.clone())), 96.0 * MS + 1.0 * MS + one);
    // Of pages that nobody saw to be needed nothing is known.
    assert_eq!(of(&[(0, 2000, 256, 0)], Some(both)), 100_000_000);
    // Where the cold start needs page 1000 before the MiB as well, the warm one may have meant that.
    let mut before = cold.clone();
    before.touch(2, 0, 1000..1001, TouchKind::Fault);
    before.touches.as_mut().expect("touches").sort_by_key(|touch| touch.at);
    assert_eq!(of(first, Latest::of(&before, Some(&warm))), 100_000_000);
    let unheard = |cold: &Recording, warm: &Recording| {
        let latest = Latest::of(cold, Some(warm)).expect("waits");
        assert!(!latest.hears_warm());
    };
    let mut around = cold.clone();
    around.manifest.exact_need = false;
    unheard(&around, &warm);
    let mut other = warm.clone();
    other.manifest.command.push("--other".into());
    unheard(&cold, &other);
    unheard(&cold, &Recording { off_cpu: None, ..warm });
}

#[test]
fn what_a_recorded_start_computes_less_than_others_is_behind_no_page() {
    let mut p = plan(disk(), 1, &[(0, 0, 256, 0)]);
    p.learnt.one_thread = false;
    let latest = Latest::of(&threads(), None).expect("waits");
    let bound = bound_of_warm(&p, Some(150_000_000), GROUND, Some(&latest)).expect("a device");
    // The recorded one computed 100 ms, 90 of them behind its first MiB; the other 50 may be before it.
    assert_eq!(bound.overlapped_ns, 150_000_000);
}

/// The least of `max(bytes, requests)` by trying all ways.
fn tried(runs: &BTreeMap<u64, u64>, d: &DeviceModel, together: f64, request: f64) -> f64 {
    let all: Vec<(u64, u64)> = runs.iter().map(|(s, e)| (*s, *e)).collect();
    let holes: Vec<f64> = all.windows(2).map(|w| (w[1].0 - w[0].1) as f64).collect();
    let bytes: f64 = all.iter().map(|(s, e)| (e - s) as f64).sum();
    let way = |bridged: u32| {
        let (mut bytes, mut requests) = (bytes, 1.0);
        for (n, hole) in holes.iter().enumerate() {
            if bridged >> n & 1 == 1 { bytes += hole } else { requests += 1.0 }
        }
        (bytes * d.ns_per_byte).max((requests - together) * request)
    };
    d.latency_ns + (0..1_u32 << holes.len()).map(way).fold(f64::INFINITY, f64::min)
}

proptest! {
    #[test]
    fn no_choice_of_requests_beats_it(
        pieces in proptest::collection::vec((0..400_u64, 1..20_u64), 1..10),
        ns_per_byte in 0.1..20.0_f64,
    ) {
        let device = DeviceModel { ns_per_byte, ..disk() };
        let mut laid = Laid::new(&device);
        let (mut pages, mut last) = (std::collections::BTreeSet::new(), 0.0);
        for (first, n) in pieces {
            laid.add(first * 4096, (first + n) * 4096);
            pages.extend(first..first + n);
            prop_assert_eq!(laid.bytes, pages.len() as u64 * 4096);
            let least = laid.least_ns();
            prop_assert!(least >= last - 1.0, "more pages never take less");
            last = least;
        }
        prop_assert!(laid.runs.iter().zip(laid.runs.iter().skip(1)).all(|(a, b)| a.1 < b.0));
        let best = tried(&laid.runs, &device, laid.together, laid.request_ns);
        prop_assert!(last <= best + 1.0, "{last} and {best} can be had");
        // Nor is it far below: less than one hole, and what the steps of the weights lose.
        let hole = 400.0 * 4096.0 * ns_per_byte;
        prop_assert!(last >= 0.9 * (best - hole.min(laid.request_ns)), "{last} of {best}");
    }
}

#[test]
fn of_two_devices_the_one_counts_that_the_plan_was_made_for_and_before_that_the_one_with_more_to_do() {
    let mut plan = crate::exact::tests::plan(&[0, 1000, 2000], 0);
    let (one, two) = (plan.files[0].identity.dev, Dev::new(99, 0));
    let mut file = plan.files[0].clone();
    (file.path, file.identity.dev) = ("/other".into(), two);
    plan.files.push(file);
    let long = Range { file: 1, first_page: 0, pages: 256, ..plan.ranges[0] };
    plan.ranges.push(long);
    // A megabyte in one piece is more than three pages, and three requests.
    let told: Vec<_> = parts(&plan).iter().map(|p| (p.dev, p.ranges, p.bytes)).collect();
    assert_eq!(told, [(two, 1, 1 << 20), (one, 3, 3 * PAGE)]);
    let nowhere = |_: &Path| None;
    assert_eq!(deciding(&plan, &nowhere), [two].into());
    // Of a disk that takes 10 ms for each they are 30 ms; the other one takes 1.1 ms for its megabyte.
    let (slow, fast) = (crate::exact::tests::disk(10_000.0, 1.0), crate::exact::tests::disk(50.0, 1.0));
    let [other, own] = [parts(&plan)[0].time_on(&fast), parts(&plan)[1].time_on(&slow)];
    assert!((1.0e6..1.2e6).contains(&other) && (3.0e7..3.1e7).contains(&own), "{other} {own}");
    // It was measured as the whole disk, of which the file has the number of a partition.
    let whole = Dev::new(8, 0);
    plan.device = Some(DeviceModel { dev: whole, ..disk() });
    let disk = |path: &Path| Some(if path == Path::new("/other") { Dev::new(8, 16) } else { whole });
    assert_eq!(deciding(&plan, &disk), [one].into(), "the plan is made for it");
    assert_eq!(deciding(&plan, &nowhere), [two].into(), "not here: by what there is to do");
    // What hardly reads anything decides nothing.
    plan.ranges[3].pages = 20_000;
    assert_eq!(parts(&plan).len(), 1);
}
