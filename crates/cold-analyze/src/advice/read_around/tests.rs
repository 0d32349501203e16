use cold_model::Known;
use cold_model::layout::Layouts;
use cold_model::recording::{FileIdx, Mapping, Recording, TouchKind};
use cold_model::sample::{PAGE, empty, kib, long, ms};

use super::*;
use crate::advice::tests::{advice, find, ids, priced};
use crate::simulate::Recorded;
use crate::usage::replay;

/// Of every file all is mapped. Of waits only those for storage are known.
fn mapped(r: &mut Recording) {
    r.off_cpu = None;
    for (file, f) in r.files.iter().enumerate() {
        let row = Mapping {
            at: ms(0),
            pid: 10,
            address: (file as u64 + 1) << 40,
            bytes: f.size.unwrap(),
            offset: 0,
            file: file as FileIdx,
            executable: false,
        };
        r.mappings.get_or_insert_default().push(row);
    }
}

fn window(r: &mut Recording, bytes: Bytes) {
    r.manifest.file_systems[0].read_ahead = Known::Value(bytes);
}

/// Faults on pages 100 and 300 of a file, the window in force 128 KiB around them, 10 ms each.
fn two_faults() -> Recording {
    let mut r = empty();
    let f = r.file("/a", 1000 * PAGE);
    r.fault(10, 10, f, 100, 84..116);
    r.fault(30, 10, f, 300, 284..316);
    mapped(&mut r);
    r
}

/// Bytes and requests, then whole milliseconds of waiting.
fn tried(r: &Recording, windows: &[u64]) -> Vec<(Bytes, u64, u64)> {
    let start = Recorded::at_most(r, &replay(r)).unwrap();
    let disk = Model { latency_ns: 10_000_000, ..Model::default() };
    let windows: Vec<Bytes> = windows.iter().map(|n| kib(*n)).collect();
    let all = simulated(&start, &disk, &windows);
    all.into_iter().flatten().map(|s| (s.bytes, s.requests, s.waits.0 / 1_000_000)).collect()
}

#[test]
fn the_present_window_reproduces_the_recording_and_others_scale() {
    assert_eq!(
        tried(&two_faults(), &[16, 512, 1024, 2048]),
        [
            (kib(256), 2, 20),
            (kib(32), 2, 20),
            (kib(1024), 2, 20),
            // Around page 100 it starts at page 0, so the second reads only what lies beyond page 255.
            (kib(428 * 4), 2, 20),
            // And here it ends at page 512 and holds page 300 too; no request has more than 1280 KiB.
            (kib(2048), 2, 10),
        ]
    );
}

#[test]
fn what_is_mapped_around_a_fault_counts_where_it_may_have_been_needed() {
    let mut r = two_faults();
    // Mapped with page 100: pages that its window brought.
    r.touch(20, 0, 96..104, TouchKind::FaultAround);
    let all = tried(&r, &[8]);
    assert_eq!(all[0], (kib(256), 2, 20));
    // With the page before each: page 99 comes with page 100; of the others the first brings two, the rest one.
    assert_eq!(all[1], (kib(3 * 8 + 5 * 4), 8, 80));
}

/// Programs map memory files, too: nothing was read of those, whatever their window may be.
#[test]
fn files_in_memory_have_no_window_and_are_not_read() {
    let mut r = two_faults();
    let f = r.file("/dev/shm/x", 1000 * PAGE);
    r.files[f as usize].dev = Dev::new(0, 99);
    r.touch(20, f, 5..6, TouchKind::Fault);
    assert_eq!(tried(&r, &[])[0], (kib(256), 2, 20));
    priced(&mut r);
    window(&mut r, kib(16));
    // What was read says otherwise than the window.
    assert!(ids(&r).iter().all(|id| !id.contains("read_a")), "{:?}", ids(&r));
}

#[test]
fn a_huge_window_is_told_from_the_price_of_its_bytes() {
    let mut r = empty();
    window(&mut r, Bytes(8 << 20));
    r.manifest.devices[0].max_request = Known::Value(Bytes(16 << 20));
    r.manifest.devices[0].max_segments = Known::Value(4096);
    let f = r.file("/lib.so", 100_000 * PAGE);
    for i in 0..10 {
        let page = 2000 + i * 5000;
        // 8 MiB: 1 ms + 64 ms.
        r.fault(i * 70, 65, f, page, page - 1024..page + 1024);
    }
    mapped(&mut r);
    priced(&mut r);
    let all = advice(&r, &Layouts::default());
    let s = find(&all, "huge_read_ahead").unwrap();
    assert!(s.what.contains("to 32 instead of 8192"), "{}", s.what);
    assert_eq!(s.saves_bytes, Some(Bytes(10 * ((8 << 20) - (32 << 10)))));
    let saved = s.saves_time.unwrap();
    // Each fault 65 ms now, 1 ms + 32/128 ms then; no more is saved than was waited.
    assert!(saved >= long(635) && saved <= long(650), "{saved}");
    let same = "reads 80.0 MiB in 10 requests where 80.0 MiB in 10 requests were recorded";
    assert!(s.estimate.contains(same), "{}", s.estimate);
    assert!(s.estimate.contains("waits for other threads are taken as they were recorded"), "{}", s.estimate);
    assert!(find(&all, "advise_random").is_some());
    // A start that waited for another reason half of the time that faults are said to take: half is promised.
    r.stalls.as_mut().unwrap().truncate(5);
    let all = advice(&r, &Layouts::default());
    let saved = find(&all, "huge_read_ahead").and_then(|s| s.saves_time);
    assert!(saved.is_none_or(|saved| saved <= long(325)), "{saved:?}");
}

#[test]
fn neighbours_faulted_one_by_one_want_a_larger_window() {
    let mut r = empty();
    window(&mut r, kib(4));
    let f = r.file("/lib.so", 64 * PAGE);
    for page in 0..64 {
        r.fault(page * 10, 1, f, page, page..page + 1);
    }
    mapped(&mut r);
    // All requests were of one page: nothing tells what a larger one would cost.
    assert!(ids(&r).is_empty(), "{:?}", advice(&r, &Layouts::default()));
    priced(&mut r);
    let all = advice(&r, &Layouts::default());
    let s = find(&all, "larger_read_around").unwrap();
    // After the first window the kernel reads ahead, and nobody waits: the smallest one is as good as any.
    assert!(s.what.contains("to 32 instead of 4"), "{}", s.what);
    assert_eq!((s.saves_requests, s.saves_bytes), (Some(64 - 8), None));
    // Nearly all of it was needed, page by page.
    assert_eq!(find(&all, "advise_whole").unwrap().saves_requests, Some(63));
}

/// To learn exact needs the recorder turns reading ahead off. That is no window to be advised against.
#[test]
fn what_the_recorder_set_is_compared_with_nothing() {
    let mut r = empty();
    window(&mut r, kib(4));
    let f = r.file("/lib.so", 64 * PAGE);
    for page in 0..64 {
        r.fault(page * 10, 1, f, page, page..page + 1);
    }
    mapped(&mut r);
    priced(&mut r);
    let told =
        |r: &Recording| find(&advice(r, &Layouts::default()), "larger_read_around").map(|s| s.what.clone());
    assert!(told(&r).is_some_and(|what| what.contains("instead of 4")));
    for d in &mut r.manifest.devices {
        d.usual_read_ahead = Some(kib(32));
    }
    // The usual window does as well as any, and nobody is told to leave one of 4 KiB.
    assert_eq!(told(&r), None);
    assert!(!ids(&r).iter().any(|id| id.contains("read_a")), "{:?}", ids(&r));
}

#[test]
fn without_a_known_window_there_is_no_other() {
    let mut r = empty();
    let f = r.file("/lib.so", 100_000 * PAGE);
    for i in 0..20 {
        let page = 2000 + i * 3000;
        r.fault(i * 20, 10, f, page, page - 1024..page + 1024);
    }
    mapped(&mut r);
    priced(&mut r);
    let told = |r: &Recording| ids(r).iter().any(|id| id.contains("read_a"));
    window(&mut r, Bytes(8 << 20));
    assert!(told(&r));
    window(&mut r, kib(128)); // what was read says otherwise
    assert!(!told(&r));
    r.manifest.file_systems[0].read_ahead = Known::default();
    assert!(!told(&r));
}

/// On a quick device the bytes read in vain cost no time; they are said without a promise.
#[test]
fn a_window_that_only_saves_bytes_promises_no_time() {
    let mut r = empty();
    window(&mut r, Bytes(1 << 20));
    let f = r.file("/lib.so", 100_000 * PAGE);
    for i in 0..10 {
        let page = 2000 + i * 5000;
        r.fault(i * 70, 10, f, page, page - 128..page + 128);
    }
    // A request takes 10 ms, whatever its size.
    let other = r.file("/other", 10_000 * PAGE);
    for i in 0..10 {
        r.request(900, 10, other, i * 100..i * 100 + 32);
    }
    mapped(&mut r);
    let all = advice(&r, &Layouts::default());
    let s = find(&all, "huge_read_ahead").unwrap();
    assert_eq!((s.saves_time, s.saves_bytes), (None, Some(Bytes(10 * ((1 << 20) - (32 << 10))))));
    assert!(s.estimate.contains("no time is promised"), "{}", s.estimate);
}
