use super::*;
use cold_model::sample::{PAGE, empty, long, ms};

#[test]
fn overlapping_waits_count_once_in_the_union() {
    let of = |list: &[(u64, u64)]| union(list.iter().map(|&(a, b)| (Nanos(a), Nanos(b))));
    assert_eq!(of(&[]), Nanos(0));
    assert_eq!(of(&[(5, 9), (0, 3), (2, 4), (6, 7), (9, 10)]), Nanos(9));
}

#[test]
fn waits_end_at_ready_and_locks_are_none() {
    let mut r = empty();
    let f = r.file("/a", 100 * PAGE);
    r.request(10, 5, f, 0..8);
    r.stall(10, 5, StallCause::Read); // its request tells the file
    r.stall(20, 5, StallCause::Lock);
    r.stall(990, 50, StallCause::Lookup); // 10 ms of it before ready
    r.stall(1100, 50, StallCause::Lookup);
    let waits = storage_waits(&r, Window::of(&r), &crate::stall_requests(&r));
    assert_eq!(waits.len(), 2);
    assert_eq!((waits[0].file, waits[0].length()), (Some(f), long(5)));
    assert!(!waits[0].unattributed() && waits[1].unattributed());
    assert_eq!((waits[1].to, waits[1].length()), (ms(1000), long(10)));
    assert_eq!(by_cause(&waits)[&StallCause::Lookup], long(10));
}
