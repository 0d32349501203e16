use cold_model::recording::Mapping;

use super::*;
use crate::usage::replay;
use cold_model::sample::{PAGE, empty, kib, long, ms};

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
        [
            (kib(32), 2, 2),
            (kib(64), 2, 2),
            (kib(128), 2, 2),
            (kib(256), 2, 2),
            (kib(512), 2, 2),
            (kib(1024), 2, 2),
            // Around page 100 it starts at page 0, so the second reads only what lies beyond page 255.
            (kib(428 * 4), 2, 2),
            (kib(2048), 2, 1),
        ]
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
}

/// Programs map memory files, too: nothing was read of those, whatever their window may be.
#[test]
fn files_without_a_window_do_not_spoil_the_rest() {
    let mut r = two_faults();
    let f = r.file("/dev/shm/x", 1000 * PAGE);
    r.files[f as usize].dev = cold_model::Dev::new(0, 99);
    r.touch(2, f, 5..6, TouchKind::Fault);
    let out = simulated(&r);
    assert_eq!((out.present.bytes, out.recorded), (kib(256), kib(256)));
    r.manifest.file_systems.clear();
    assert_eq!(read_around(&r, &replay(&r), None), None);
}

/// A window of 512 KiB in requests of 128 KiB, 1 ms each, one after another.
fn timed(r: &mut Recording) -> Nanos {
    r.manifest.file_systems[0].read_ahead = cold_model::Known::Value(kib(512));
    r.manifest.devices[0].max_request = cold_model::Known::Value(kib(128));
    let cost = DeviceCost { per_request: 1e6, per_byte: 0.0, largest: 1e9, bandwidth: 131_072e3 };
    read_around(r, &replay(r), Some(&cost)).unwrap().present.waits.unwrap()
}

/// The kernel asks for a window in ascending order, and the page that is waited for lies in its middle.
#[test]
fn a_page_waits_for_the_requests_before_it() {
    // The third of four.
    assert_eq!(timed(&mut two_faults()), long(6));
}

#[test]
fn what_is_under_way_is_waited_for_and_delays_what_comes_after() {
    let mut r = empty();
    let f = r.file("/a", 1000 * PAGE);
    r.fault(1, 3, f, 100, 36..164);
    assert_eq!(timed(&mut r), long(3));
    // The fourth request is done 1 ms later.
    r.touch(4, f, 150..151, TouchKind::Fault);
    assert_eq!(timed(&mut r), long(4));
    // Mapped around a fault: not waited for.
    r.touches.as_mut().unwrap()[1].kind = TouchKind::FaultAround;
    assert_eq!(timed(&mut r), long(3));
    // Another fault at once: the device is busy with the fourth for that millisecond.
    r.fault(4, 1, f, 300, 236..364);
    assert_eq!(timed(&mut r), long(3 + 1 + 3));
    // Where the program works for 1 ms before, nothing is in the way.
    r.touches.as_mut().unwrap()[2].at = ms(5);
    r.stalls.as_mut().unwrap()[1].began = ms(5);
    r.stalls.as_mut().unwrap()[1].ended = Some(ms(6));
    assert_eq!(timed(&mut r), long(3 + 3));
}
