use cold_model::recording::StallCause;

use super::*;
use cold_model::sample::{PAGE, empty};

#[test]
fn a_stall_names_the_request_that_carried_its_page_while_it_waited() {
    let mut r = empty();
    let (f, g) = (r.file("/a", 1000 * PAGE), r.file("/b", 1000 * PAGE));
    r.request(0, 5, f, 0..32); // long over
    r.request(10, 10, f, 0..32);
    r.request(10, 5, g, 0..32);
    r.request(12, 20, f, 32..64);
    let s = r.stall(11, 9, StallCause::Fault);
    (s.file, s.page) = (Some(f), Some(31));
    let s = r.stall(12, 20, StallCause::Fault);
    (s.file, s.page) = (Some(f), Some(40));
    let s = r.stall(12, 20, StallCause::Fault);
    (s.file, s.page) = (Some(f), Some(99)); // nobody carried it
    let s = r.stall(11, 5, StallCause::Read);
    s.file = Some(g); // page unknown
    r.stall(11, 5, StallCause::Lookup); // only the thread is known
    r.stall(100, 5, StallCause::Lookup); // nothing in flight
    r.stall(11, 5, StallCause::Lock);
    assert_eq!(stall_requests(&r), [Some(1), Some(3), None, Some(2), Some(2), None, None]);
}

#[test]
fn a_request_without_an_end_is_still_found() {
    let mut r = empty();
    let f = r.file("/a", 1000 * PAGE);
    r.request(10, 1, f, 0..32).completed = None;
    let s = r.stall(11, 9, StallCause::Fault);
    (s.file, s.page) = (Some(f), Some(3));
    s.woken = None;
    assert_eq!(stall_requests(&r), [Some(0)]);
}
