use super::*;
use cold_model::sample::{PAGE, empty, kib, long};

#[test]
fn depth_rises_and_falls_with_requests() {
    let mut r = empty();
    let f = r.file("/a", 100 * PAGE);
    r.request(10, 5, f, 0..1);
    r.request(10, 10, f, 1..2);
    r.request(12, 3, f, 2..3).in_tree = false;
    let out: Vec<_> = queue_depth(&r).iter().map(|d| (d.at, d.own, d.others)).collect();
    let expected = [(10, 2, 0), (12, 2, 1), (15, 1, 0), (20, 0, 0)];
    assert_eq!(out, expected.map(|(at, own, others)| (long(at), own, others)));
}

#[test]
fn sizes_fall_into_powers_of_two_without_gaps() {
    let mut r = empty();
    let f = r.file("/a", 100 * PAGE);
    for pages in [1, 1, 4, 5] {
        r.request(10, 5, f, 0..pages);
    }
    r.request(10, 5, f, 0..1).in_tree = false;
    let out = request_sizes(&r);
    let short: Vec<_> = out.iter().map(|b| (b.from, b.requests, b.bytes)).collect();
    assert_eq!(short, [(kib(4), 2, kib(8)), (kib(8), 0, kib(0)), (kib(16), 2, kib(36))]);
    assert_eq!(out[2].below, kib(32));
}

#[test]
fn threads_come_in_order_of_their_first_wait() {
    let mut r = empty();
    r.stall(10, 5, StallCause::Read);
    r.stall(3, 5, StallCause::Lock).tid = 11;
    r.stall(20, 5, StallCause::Lookup);
    r.stall(1990, 5, StallCause::Lookup).woken = None;
    r.stalls.as_mut().unwrap()[3].ended = None;
    let out = stalls_by_thread(&r);
    let short: Vec<_> = out.iter().map(|t| (t.tid, t.waits.len(), t.storage)).collect();
    assert_eq!(short, [(11, 1, long(0)), (10, 3, long(20))]);
}

#[test]
fn bytes_so_far_count_each_page_once() {
    let mut r = empty();
    let f = r.file("/a", 100 * PAGE);
    r.fault(1, 1, f, 10, 8..16);
    r.fault(5, 1, f, 10, 8..18);
    let all = cumulative(&r, 1000);
    let last = all.last().unwrap();
    assert_eq!((last.at, last.needed, last.read), (long(5), kib(4), kib(40)));
    let thin = cumulative(&r, 2);
    assert!(thin.len() <= 2 && thin.last() == Some(last));
}
