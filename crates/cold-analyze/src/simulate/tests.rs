use cold_model::recording::Mapping;

use super::*;
use crate::sample::{Build, PAGE, empty, kib, ms};
use crate::usage::replay;

fn simulated(r: &Recording) -> ReadAround {
    read_around(r, &replay(r), None).unwrap()
}

/// Faults on pages 100 and 300 of a file, the window in force 128 KiB around them.
fn two_faults() -> Recording {
    let mut r = empty();
    let f = r.file("/a", 1000 * PAGE);
    r.fault(1, 1, f, 100, 84..116);
    r.fault(3, 1, f, 300, 284..316);
    r
}

#[test]
fn the_present_window_reproduces_the_recording_and_others_scale() {
    let out = simulated(&two_faults());
    assert!(out.exact);
    assert_eq!((out.present.bytes, out.recorded, out.present_window), (kib(256), kib(256), kib(128)));
    let short: Vec<_> = out.others.iter().map(|s| (s.bytes, s.requests, s.faults)).collect();
    // 2 MiB around page 100 starts at page 0 and ends at 512: it holds page 300 too.
    assert_eq!(
        short,
        [(kib(32), 2, 2), (kib(64), 2, 2), (kib(128), 2, 2), (kib(256), 2, 2), (kib(2048), 2, 1),]
    );
}

#[test]
fn executable_mappings_of_new_kernels_read_forward() {
    let mut r = two_faults();
    let mapping = |file, pages: Range| Mapping {
        at: ms(0),
        pid: 10,
        address: 0,
        bytes: (pages.end - pages.start) * PAGE,
        offset: pages.start * PAGE,
        file,
        executable: true,
    };
    r.mappings = Some(vec![mapping(0, 0..1000)]);
    // Page 330 lies within the forward window of 300, not within the centred one.
    r.fault(5, 1, 0, 330, 316..346);
    assert_eq!(simulated(&r).present.faults, 3);
    r.manifest.machine.kernel = "6.18.44".to_string();
    assert_eq!(simulated(&r).present.faults, 2);
}

#[test]
fn pages_that_came_otherwise_are_not_read_again() {
    let mut r = two_faults();
    r.fill(2, 0, 290..300, FillCause::Advice);
    let out = simulated(&r);
    assert_eq!((out.present.bytes, out.present.requests), (kib(256 - 40), 3));
    assert!(!reads_forward("6.15.9") && reads_forward("7.0") && !reads_forward("what"));
}
