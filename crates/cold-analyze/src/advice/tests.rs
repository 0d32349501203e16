use cold_model::layout::{FileLayout, Layouts, Section, Segment};
use cold_model::recording::{FillCause, LookupKind, Recording, TouchKind};
use cold_model::{Bytes, Known};

use super::*;
use crate::analyze;
use cold_model::sample::{PAGE, empty, kib, long, ms};

pub(super) fn advice(r: &Recording, layouts: &Layouts) -> Vec<Suggestion> {
    analyze(r, layouts).suggestions
}

pub(super) fn find<'a>(all: &'a [Suggestion], id: &str) -> Option<&'a Suggestion> {
    all.iter().find(|s| s.id.name() == id)
}

pub(super) fn ids(r: &Recording) -> Vec<&'static str> {
    advice(r, &Layouts::default()).into_iter().map(|s| s.id.name()).collect()
}

/// Twenty single faults far apart in one file, each 10 ms for `pages` around it; ready after a second.
pub(super) fn scattered(pages: u64) -> Recording {
    let mut r = empty();
    r.manifest.file_systems[0].read_ahead = Known::Value(Bytes(pages * PAGE));
    let f = r.file("/lib.so", 100_000 * PAGE);
    for i in 0..20 {
        let page = 2000 + i * 3000;
        r.fault(i * 20, 10, f, page, page - pages / 2..page + pages / 2);
    }
    r
}

#[test]
fn a_plan_saves_the_waits_less_one_stream_of_the_needed_bytes() {
    let all = advice(&scattered(32), &Layouts::default());
    let plan = find(&all, "prefetch_plan").unwrap();
    // 200 ms waited. All requests alike: 10 ms per request whatever its size; 20 x 128 KiB in 200 ms busy
    // is 12.5 MiB/s; 80 KiB needed: 10 ms + 6.25 ms.
    assert_eq!(plan.saves_time, Some(Nanos(183_750_000)));
    assert_eq!(plan.saves_bytes, Some(kib(20 * 124)));
    assert_eq!(plan.saves_requests, None); // as many pieces as there were requests
}

#[test]
fn a_start_that_hardly_waits_is_told_so_and_nothing_else() {
    let mut r = empty();
    let f = r.file("/a", 100 * PAGE);
    r.fault(1, 1, f, 10, 8..16);
    let all = advice(&r, &Layouts::default());
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].id.name(), all[0].saves_time), ("already_fine", Some(long(1))));
    // One that waits for what no rule knows gets no comfort and no advice.
    r.stall(100, 500, StallCause::OtherStorage);
    assert!(ids(&r).is_empty());
}

/// Requests of two sizes, so that the cost of a byte is seen: 1 ms and 1 ms per 128 KiB.
pub(super) fn priced(r: &mut Recording) {
    let f = r.file("/other", 10_000 * PAGE);
    for i in 0..10 {
        r.request(900, 2, f, i * 100..i * 100 + 32);
        r.request(900, 9, f, i * 1000..i * 1000 + 256);
    }
}

#[test]
fn scattered_code_wants_an_order() {
    let r = scattered(32);
    let mut layouts = Layouts::default();
    let bytes = 80_000 * PAGE;
    layouts.files.insert(
        0,
        FileLayout {
            segments: vec![Segment { offset: 0, bytes, address: 0, access: "r-x".to_string() }],
            sections: vec![Section { name: ".text".to_string(), offset: 0, bytes, address: 0 }],
            ..FileLayout::default()
        },
    );
    let all = advice(&r, &layouts);
    let s = find(&all, "order_code").unwrap();
    assert_eq!(s.saves_bytes, Some(kib(20 * 124)));
    assert_eq!(s.saves_time, Some(Nanos(200_000_000 / 32 * 31)));
    layouts.files.get_mut(&0).unwrap().sections[0].name = ".data".to_string();
    assert!(find(&advice(&r, &layouts), "order_code").is_none());
}

#[test]
fn plain_relocations_that_were_read_want_packing() {
    let mut r = empty();
    let f = r.file("/lib.so", 1000 * PAGE);
    r.fault(1, 20, f, 0, 0..48);
    let mut layouts = Layouts::default();
    let relocations = 48 * PAGE;
    layouts.files.insert(
        f,
        FileLayout {
            sections: vec![Section {
                name: ".rela.dyn".to_string(),
                offset: 0,
                bytes: relocations,
                address: 0,
            }],
            relative_relocations: relocations / 24,
            ..FileLayout::default()
        },
    );
    let all = advice(&r, &layouts);
    let s = find(&all, "relr").unwrap();
    assert_eq!(s.saves_bytes, Some(Bytes(relocations - relocations / 18)));
    assert!(s.saves_time.unwrap() > long(18) && s.saves_time.unwrap() < long(20));
    layouts.files.get_mut(&f).unwrap().relr = true;
    assert!(find(&advice(&r, &layouts), "relr").is_none());
}

#[test]
fn many_hardly_needed_libraries_are_a_pattern() {
    let mut r = empty();
    r.manifest.ready = Some(Known::Value(ms(1000)));
    for i in 0..5 {
        assert!(find(&advice(&r, &Layouts::default()), "fewer_libraries").is_none());
        let f = r.file(&format!("/l{i}.so"), 100 * PAGE);
        // Of two and more at once, the time passes once.
        r.fault(0, 10, f, 0, 0..32);
    }
    let all = advice(&r, &Layouts::default());
    let s = find(&all, "fewer_libraries").unwrap();
    assert_eq!((s.saves_bytes, s.saves_requests), (Some(kib(640)), Some(5)));
    assert_eq!((s.saves_time, s.files.len()), (Some(long(10)), 5));
}

#[test]
fn a_single_library_is_told_where_its_time_is_felt() {
    let with = |wait| {
        let mut r = empty();
        r.manifest.ready = Some(Known::Value(ms(1000)));
        let f = r.file("/opt/libbig.so", 1000 * PAGE);
        r.fault(5, wait, f, 0, 0..256);
        find(&advice(&r, &Layouts::default()), "fewer_libraries").cloned()
    };
    assert_eq!(with(15), None, "a hundredth and a half of the start");
    let told = with(60).unwrap();
    assert_eq!((told.saves_time, told.saves_bytes), (Some(long(60)), Some(kib(1024))));
    assert!(
        told.why
            .contains("Of 1 library only 4.00 KiB was needed before ready, but 1.00 MiB read: libbig.so (")
    );
}

#[test]
fn many_misses_of_a_search_path_are_told_others_not() {
    let mut r = empty();
    for i in 0..120 {
        r.lookup(i, LookupKind::Open, &format!("/w/x{i}.cpython-311-x86_64-linux-gnu.so"), -2);
        r.lookup(i, LookupKind::Open, &format!("/w/data{i}"), -2);
    }
    let all = advice(&r, &Layouts::default());
    let s = find(&all, "too_many_lookups").unwrap();
    assert!(s.what.contains("Python sys.path (120)"), "{}", s.what);
    assert_eq!(s.saves_time, Some(long(120)));
    r.lookups.as_mut().unwrap().retain(|l| l.path.as_ref().is_some_and(|p| p.contains("data")));
    assert!(find(&advice(&r, &Layouts::default()), "too_many_lookups").is_none());
}

#[test]
fn a_start_that_waits_for_inodes_gets_no_promise() {
    let mut r = empty();
    r.stall(1, 300, StallCause::Lookup);
    r.stall(400, 100, StallCause::Read);
    let all = advice(&r, &Layouts::default());
    let s = find(&all, "metadata_bound").unwrap();
    assert_eq!((s.saves_time, s.saves_bytes), (None, None));
    r.stall(500, 500, StallCause::Read);
    assert!(find(&advice(&r, &Layouts::default()), "metadata_bound").is_none());
}

#[test]
fn many_small_files_want_one() {
    let mut r = empty();
    for i in 0..60 {
        let f = r.file(&format!("/m{i}.py"), 3 * PAGE);
        r.touch(i * 10, f, 0..3, TouchKind::Read);
        r.fill(i * 10, f, 0..3, FillCause::BufferedRead);
        r.request(i * 10, 5, f, 0..3);
        r.stall(i * 10, 5, StallCause::Read).file = Some(f);
    }
    assert!(find(&advice(&r, &Layouts::default()), "pack_small_files").is_none());
    priced(&mut r);
    let all = advice(&r, &Layouts::default());
    let s = find(&all, "pack_small_files").unwrap();
    assert_eq!(s.saves_requests, Some(59));
    let saved = s.saves_time.unwrap();
    assert!(saved > long(290) && saved < long(300), "{saved}");
    assert!(s.why.starts_with("60 files"), "{}", s.why);
    // Nobody packs a configuration file.
    r.files[0].path = Some("/etc/a.conf".to_string());
    let all = advice(&r, &Layouts::default());
    assert!(find(&all, "pack_small_files").unwrap().why.starts_with("59 files"));
}
