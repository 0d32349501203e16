use cold_model::recording::TouchKind::{Fault, FaultAround, Read};

use super::*;
use cold_model::sample::{PAGE, empty, ms};

#[test]
fn needed_read_unused_and_cached_are_told_apart() {
    let mut r = empty();
    let f = r.file("/a", 100 * PAGE);
    r.fault(1, 1, f, 10, 8..16);
    r.touch(3, f, 20..22, Read); // cached before
    r.fill(4, f, 30..34, FillCause::Write);
    r.touch(5, f, 30..31, Read); // written by the tree: neither read nor cached
    r.fill(6, f, 40..42, FillCause::ReadAhead).in_tree = false;
    r.touch(7, f, 41..42, Read);
    let u = &replay(&r)[0];
    assert_eq!(u.needed.pages(), 1 + 2 + 1 + 1);
    assert_eq!(u.read, Runs::one(8..16));
    assert_eq!(u.unused().pages(), 7);
    assert_eq!(u.cached(), Runs::one(20..22));
    assert_eq!(u.by_others, Runs::one(40..42));
    assert_eq!(u.causes[&FillCause::ReadAround], 7);
    assert_eq!(u.contradicted, 0);
}

#[test]
fn pages_behind_the_end_of_the_file_do_not_count() {
    let mut r = empty();
    let f = r.file("/a", 2 * PAGE + 1);
    r.fill(1, f, 0..16, FillCause::ReadAhead);
    r.touch(2, f, 0..8, Read);
    let u = &replay(&r)[0];
    assert_eq!((u.read.pages(), u.needed.pages()), (3, 3));
}

#[test]
fn a_second_fill_is_a_refill_and_counts_once_as_read() {
    let mut r = empty();
    let f = r.file("/a", 100 * PAGE);
    r.fill(1, f, 0..4, FillCause::ReadAhead);
    r.evict(2, f, 0..4);
    r.fill(3, f, 2..6, FillCause::ReadAhead);
    let u = &replay(&r)[0];
    assert_eq!((u.read.pages(), u.refilled), (6, 2));
}

#[test]
fn around_a_fault_only_pages_that_were_there_count_as_perhaps_needed() {
    let mut r = empty();
    let f = r.file("/a", 100 * PAGE);
    r.fault(1, 1, f, 10, 8..16);
    r.touch(3, f, 0..16, FaultAround); // 0..8 never filled: holes, in a cold start
    r.fill(5, f, 20..24, FillCause::ReadAround);
    r.touch(4, f, 18..22, FaultAround); // 20..22 filled only later: were not there
    let u = &replay(&r)[0];
    assert_eq!(u.exact, Runs::one(10..11));
    assert_eq!(u.upper.runs(), [8..10, 11..16]);
    // Part of the file is seen to have been cached: then unfilled pages around may have been there too.
    r.touch(6, f, 50..51, Fault);
    assert_eq!(replay(&r)[0].upper.runs(), [0..10, 11..16, 18..20]);
    // The same in a start that was not meant to be cold.
    r.touches.as_mut().unwrap().pop();
    r.manifest.state.wanted = "warm".into();
    assert_eq!(replay(&r)[0].upper.runs(), [0..10, 11..16, 18..20]);
}

#[test]
fn a_touch_of_a_page_that_was_absent_and_never_came_contradicts() {
    let mut r = empty();
    let f = r.file("/a", 100 * PAGE);
    r.evict(1, f, 5..6);
    r.touch(2, f, 5..6, Fault);
    assert_eq!(replay(&r)[0].contradicted, 1);
    // It came, but only after the thread had gone on to its next touch.
    r.touch(3, f, 50..51, Fault);
    r.fill(4, f, 5..6, FillCause::DemandFault);
    assert_eq!(replay(&r)[0].contradicted, 1);
    // It came in time.
    r.fills.as_mut().unwrap()[0].at = Nanos(ms(2).0 + 5);
    assert_eq!(replay(&r)[0].contradicted, 0);
    // A read reports success: the page must have been there before.
    r.touches.as_mut().unwrap()[0].kind = Read;
    assert_eq!(replay(&r)[0].contradicted, 1);
}

#[test]
fn only_what_happens_up_to_ready_counts() {
    let mut r = empty();
    let f = r.file("/a", 100 * PAGE);
    r.fill(999, f, 0..1, FillCause::ReadAhead);
    r.fill(1001, f, 1..2, FillCause::ReadAhead);
    r.touch(1002, f, 1..2, Read);
    let u = &replay(&r)[0];
    assert_eq!((u.read.pages(), u.needed.pages()), (1, 0));
    r.manifest.ready = None;
    let u = &replay(&r)[0];
    assert_eq!((u.read.pages(), u.needed.pages()), (2, 1));
}

/// Of a deleted file nobody could see in the end which of the pages around a fault were there.
#[test]
fn pages_around_a_fault_of_a_deleted_file_are_not_called_cached() {
    let mut r = empty();
    r.manifest.state.wanted = "as found".into();
    let f = r.file("/a", 16 * PAGE);
    r.fault(1, 1, f, 0, 0..1);
    r.touch(2, f, 1..16, FaultAround);
    assert_eq!(replay(&r)[0].cached().pages(), 15, "it was looked at: they were there");
    r.files[f as usize].deleted = true;
    let u = &replay(&r)[0];
    assert_eq!((u.cached().pages(), u.needed.pages()), (0, 16), "perhaps needed, all the same");
}
