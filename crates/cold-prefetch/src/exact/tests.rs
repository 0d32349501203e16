use cold_model::Known;
use cold_model::io_model::AtDepth;
use cold_model::recording::{FillCause, OffCpuReason, Thread, TouchKind};
use cold_model::sample::{empty, ms};

use super::*;
use crate::sample::{flash, key, start};
use crate::{default_knobs, merge};

/// A cold start that needs these pages of `/usr/lib/f0`, computing 1 ms before each; around each `around` more were
/// mapped. Until ready it waits 1 ms for each page.
pub(crate) fn recorded(pages: &[u64], around: u64) -> Recording {
    let mut r = empty();
    let ready = 2 * pages.len() as u64 + 1;
    r.manifest.ready = Some(Known::Value(ms(ready)));
    r.manifest.exact_need = around == 0;
    // One for each thread of the helper: nobody waits for another's slice.
    r.manifest.machine.cpus = 8;
    r.threads.push(Thread { began: ms(0), tid: 10, pid: 10, name: "t".into(), in_tree: true, ended: None });
    let file = r.file("/usr/lib/f0", 1 << 30);
    (r.files[0].inode, r.files[0].mtime_ns) = (7, Some(1));
    for (n, page) in pages.iter().enumerate() {
        let at = 2 * n as u64 + 1;
        r.touch(at, file, *page..page + 1, TouchKind::Fault);
        if around > 0 {
            r.touch(at, file, page + 1..page + 1 + around, TouchKind::FaultAround);
        }
        r.fill(at, file, *page..page + 1 + around, FillCause::DemandFault);
        r.off_cpu(at, 1, 10, OffCpuReason::Storage);
    }
    r
}

/// What such a start teaches.
pub(crate) fn plan(pages: &[u64], around: u64) -> Plan {
    let certain = pages.iter().enumerate().map(|(n, page)| (0, *page, 1, n as u64 + 1));
    let mapped = pages.iter().enumerate().map(|(n, page)| (0, page + 1, around as u32, n as u64 + 1));
    let mut ranges: Vec<_> = certain.collect();
    let first_mapped = ranges.len();
    ranges.extend(mapped.filter(|range| range.2 > 0));
    let mut start = start(1, &ranges);
    start.exact = around == 0;
    start.ranges.iter_mut().skip(first_mapped).for_each(|range| range.around = true);
    merge(None, &key(), &start, 1)
}

/// One request at a time: `latency_us` each, and 10 ns (or less) for a byte.
pub(crate) fn disk(latency_us: f64, ns_per_byte: f64) -> DeviceModel {
    let iops = 1e9 / (latency_us * 1000.0 + 4096.0 * ns_per_byte);
    DeviceModel {
        latency_ns: latency_us * 1000.0,
        ns_per_byte,
        depths: vec![AtDepth { depth: 1, iops }],
        ..flash()
    }
}

/// Far apart, so that nothing between them is read along.
fn far(n: u64) -> Vec<u64> {
    (0..n).map(|n| n * 1000).collect()
}

fn worth(pages: &[u64], around: u64, device: &DeviceModel) -> Worth {
    Worth::of(&recorded(pages, around), None, &plan(pages, around), Some(device), &|_| None).unwrap()
}

#[test]
fn exact_needs_can_save_the_bytes_that_were_mapped_around_faults() {
    // 100 ns per byte: a page takes 0.41 ms, sixteen 6.55; the program computes 1 ms before each of 100.
    let dear = disk(10.0, 100.0);
    let got = worth(&far(100), 15, &dear);
    assert!(got.is_worth_an_exact_start(), "{got:?}");
    let near = |time: Nanos, ms: f64| assert!((time.as_secs() * 1e3 - ms).abs() < 0.05 * ms, "{got:?}");
    // The launcher's 0.9 MB, five blocks and the plan in thirteen requests, and 3.5 ms of computing.
    let launch = (901_120.0 + 5.0 * 4096.0) * 100e-6 + 1.0 + 3.5;
    near(got.with_doubt, launch + 100.0 * 6.56);
    near(got.without, launch + 101.0);
    // What is uncertain may all have been needed: then each page is waited for, which costs 10 µs of the processor.
    near(got.page_by_page, 101.0 + 1600.0 * (0.42 + 0.015));
}

#[test]
fn what_is_computed_comes_from_a_warm_start() {
    // 100 pages that come at once; 1 ms is computed before each in the cold start, half of that in the warm one.
    let (cold, plan, fast) = (recorded(&far(100), 15), plan(&far(100), 15), disk(0.001, 0.01));
    let mut warm = recorded(&far(100), 0);
    (warm.off_cpu, warm.fills) = (Some(Vec::new()), Some(Vec::new()));
    for (n, touch) in warm.touches.iter_mut().flatten().enumerate() {
        touch.at = ms(n as u64 / 2);
    }
    warm.manifest.ready = Some(Known::Value(ms(51)));
    let of = |warm| Worth::of(&cold, warm, &plan, Some(&fast), &|_| None).unwrap().without.as_secs() * 1e3;
    let (own, as_warm) = (of(None), of(Some(&warm)));
    assert!((101.0..107.0).contains(&own), "{own}");
    assert!((50.0..56.0).contains(&as_warm), "{as_warm}");
    // A start that had to read what it needed tells nothing: it is no warm one.
    let read = Recording { fills: cold.fills.clone(), ..warm.clone() };
    assert!((of(Some(&read)) - own).abs() < 0.001);
}

#[test]
fn where_requests_decide_exact_needs_save_nothing() {
    // 3 ms for a request, next to nothing for a byte: both plans have 100 requests.
    let got = worth(&far(100), 15, &disk(3000.0, 0.1));
    assert!(got.gain() < 0.02, "{got:?}");
    assert!(!got.is_worth_an_exact_start());
    // Nor where nothing is uncertain, or the program computes longer than it reads.
    assert!(worth(&far(100), 0, &disk(10.0, 100.0)).gain() < f64::EPSILON);
    assert!(!worth(&far(100), 15, &disk(10.0, 0.1)).is_worth_an_exact_start());
}

#[test]
fn no_start_is_made_that_takes_longer_than_a_minute() {
    // 1600 pages, 40 ms each.
    let got = worth(&far(100), 15, &disk(40_000.0, 10_000.0));
    assert!(got.gain() > CLEARLY && got.page_by_page > LONGEST, "{got:?}");
    assert!(!got.is_worth_an_exact_start());
}

#[test]
fn holes_are_read_along_where_requests_cost_more_than_their_pages() {
    // The program needs every second page of 2000 in one call after 1 ms. The disk takes no time, so its break-even is 0;
    // but the processor takes 4.5 µs for a request and 0.9 µs for a page: 1000 requests 5.4 ms, 2000 pages in few
    // requests 1.8.
    let mut r = recorded(&[0], 0);
    let pages: Vec<u64> = (0..1000).map(|n| 2 * n).collect();
    for page in &pages[1..] {
        r.touch(1, 0, *page..page + 1, TouchKind::Fault);
        r.fill(1, 0, *page..page + 1, FillCause::DemandFault);
    }
    let mut plan = plan(&pages, 0);
    plan.ranges.iter_mut().for_each(|range| range.need_ns = 0);
    let fast = disk(0.001, 0.01);
    assert_eq!(default_knobs(Some(&fast)).gap_bytes, 0);
    let knobs = knobs_by(&r, None, &plan, Some(&fast), &|_| None).unwrap();
    assert_eq!(knobs.gap_bytes, 4096);
    // Where it computes for a second first, nothing is clearly faster: the device's gap stays.
    for touch in r.touches.as_mut().unwrap() {
        touch.at = ms(1000);
    }
    r.off_cpu = None;
    r.off_cpu(1000, 1, 10, OffCpuReason::Storage);
    r.manifest.ready = Some(Known::Value(ms(1002)));
    let knobs = knobs_by(&r, None, &plan, Some(&fast), &|_| None).unwrap();
    assert_eq!(knobs.gap_bytes, 0);
}

#[test]
fn a_start_without_waits_decides_nothing() {
    let mut r = recorded(&far(10), 15);
    r.off_cpu = None;
    let got = Worth::of(&r, None, &plan(&far(10), 15), Some(&flash()), &|_| None);
    assert_eq!(got, Err(NotRehearsed::Waits));
    // And nothing tells what reads cost where nobody measured.
    let got = knobs_by(&recorded(&far(10), 0), None, &plan(&far(10), 0), None, &|_| None);
    assert_eq!(got, Err(NotRehearsed::Disk));
}

#[test]
fn between_the_gaps_that_the_tuner_tries_the_model_finds_the_best_one() {
    // 300 requests and 13 MB a second: a request is worth 36 KiB. Holes of 5 and 7 pages in turn: 50 requests with those
    // of 5 take 167 ms, 350 pages 109. With all holes 700 pages take 219 ms, without any 100 requests 333.
    let pages: Vec<u64> = (0..100).map(|n| n / 2 * 14 + n % 2 * 6).collect();
    let at = |depth| AtDepth { depth, iops: 300.0 };
    let device = DeviceModel {
        latency_ns: 1e6,
        ns_per_byte: 76.3,
        ns_per_byte_alone: None,
        depths: vec![at(1), at(32)],
        ..flash()
    };
    let plan = plan(&pages, 0);
    assert_eq!(knobs_for(&plan, Some(&device)).gap_bytes, 36 << 10);
    let knobs = knobs_by(&recorded(&pages, 0), None, &plan, Some(&device), &|_| None).unwrap();
    assert!((20 << 10..28 << 10).contains(&knobs.gap_bytes), "{knobs:?}");
}
