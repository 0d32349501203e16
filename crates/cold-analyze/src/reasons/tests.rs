use cold_model::Known;
use cold_model::recording::manifest::{ReachedBy, Subject};
use cold_model::recording::tables::Began;
use cold_model::recording::{Lookup, LookupKind, OffCpuReason, Process, StallCause, Thread};
use cold_model::sample::{empty, ms, process};
use proptest::prelude::*;

use super::*;

/// Process 10 is made at 0 ms, executes at 1 ms and is ready at 201 ms; its other threads are 11 and 12.
fn recording() -> Recording {
    let mut r = empty();
    r.manifest.subject = Subject::Command;
    r.manifest.start = ms(0);
    r.manifest.ready = Some(Known::Value(ms(201)));
    r.processes.clear();
    r.threads.clear();
    for (at, how) in [(0, Began::Fork), (1, Began::Exec)] {
        let row = process(10, "prog", None);
        r.processes.push(Process { began: ms(at), how, parent: 1, ended: None, ..row });
    }
    thread(&mut r, 10, 0);
    r.off_cpu = Some(Vec::new());
    r
}

fn thread(r: &mut Recording, tid: u32, at: u64) {
    r.threads.push(Thread { began: ms(at), tid, pid: 10, name: "prog".into(), in_tree: true, ended: None });
}

fn reasons(r: &mut Recording) -> Reasons {
    r.off_cpu.get_or_insert_default().sort_by_key(|o| o.began);
    Reasons::of(r).value().cloned().expect("times off the CPU are known")
}

/// Kind and length in whole milliseconds of each piece: behind a wait some µs are the kernel's.
fn told(reasons: &Reasons) -> Vec<(Kind, u64)> {
    let all = reasons.pieces.iter().map(|p| (p.kind, (p.length().0 + 500_000) / 1_000_000));
    all.filter(|(_, ms)| *ms > 0).collect()
}

fn is_whole(reasons: &Reasons) -> bool {
    let mut at = reasons.start;
    for piece in &reasons.pieces {
        if piece.from != at || piece.to <= piece.from {
            return false;
        }
        at = piece.to;
    }
    at == reasons.until && reasons.by_kind().values().copied().sum::<Nanos>() == reasons.total()
}

#[test]
fn a_thread_alone_has_its_own_reasons() {
    let mut r = recording();
    r.off_cpu(11, 20, 10, OffCpuReason::Storage);
    r.stall(11, 20, StallCause::Fault);
    r.off_cpu(51, 30, 10, OffCpuReason::Runnable);
    r.off_cpu(101, 40, 10, OffCpuReason::Sleep);
    r.off_cpu(161, 10, 10, OffCpuReason::Event);
    let reasons = reasons(&mut r);
    assert!(is_whole(&reasons), "{reasons:?}");
    let told = told(&reasons);
    let sum = |kind| told.iter().filter(|(k, _)| *k == kind).map(|(_, ms)| ms).sum::<u64>();
    assert_eq!(sum(Kind::Processes), 1);
    assert_eq!(sum(Kind::Runnable), 30);
    assert_eq!(sum(Kind::Sleep), 40);
    assert_eq!(sum(Kind::Outside), 10);
    assert_eq!(sum(Kind::Program), 100);
    assert_eq!(sum(Kind::DiskFault) + sum(Kind::DiskOther), 20);
}

#[test]
fn a_wait_for_another_thread_has_that_threads_reasons() {
    let mut r = recording();
    thread(&mut r, 11, 0);
    // The worker sleeps for 50 ms and wakes the first thread at 81.
    r.off_cpu(21, 50, 11, OffCpuReason::Sleep);
    r.off_cpu(11, 70, 10, OffCpuReason::Event).waker = Some(11);
    let reasons = reasons(&mut r);
    assert!(is_whole(&reasons), "{reasons:?}");
    let pieces: Vec<_> =
        reasons.pieces.iter().map(|p| (p.tid, p.kind, (p.to.0 - ms(0).0) / 1_000_000)).collect();
    assert_eq!(
        pieces.iter().rev().take(3).copied().collect::<Vec<_>>(),
        [(10, Kind::Program, 201), (11, Kind::Program, 81), (11, Kind::Sleep, 71)]
    );
    assert_eq!(reasons.by_kind().get(&Kind::Outside), None, "no wait is for something unknown");
}

#[test]
fn two_who_wake_each_other_at_one_time_end() {
    let mut r = recording();
    thread(&mut r, 11, 0);
    r.off_cpu(11, 70, 10, OffCpuReason::Event).waker = Some(11);
    r.off_cpu(11, 70, 11, OffCpuReason::Event).waker = Some(10);
    assert!(is_whole(&reasons(&mut r)));
}

#[test]
fn a_lookup_in_vain_is_told_from_one_that_finds() {
    let mut r = recording();
    let lookup = |at: u64, result| Lookup {
        at: ms(at),
        ended: ms(at + 5),
        pid: 10,
        tid: 10,
        kind: LookupKind::Open,
        path: None,
        result,
        flags: 0,
        file: None,
        root: None,
        stack: None,
    };
    r.lookups = Some(vec![lookup(11, -2), lookup(21, 3), lookup(31, -2)]);
    let reasons = reasons(&mut r);
    assert!(is_whole(&reasons));
    assert_eq!(reasons.by_kind()[&Kind::LookupMissed], Nanos(10_000_000));
    assert_eq!(reasons.by_kind()[&Kind::Lookup], Nanos(5_000_000));
}

#[test]
fn without_times_off_the_cpu_the_reasons_are_unknown() {
    let mut r = recording();
    r.off_cpu = None;
    assert!(Reasons::of(&r).value().is_none());
}

/// Process 20, a child of the first thread, made at 5 ms, sleeps from 10 to 150 ms and makes the start ready; the first
/// process computes all the while.
fn with_a_helper() -> Recording {
    let mut r = recording();
    for (at, how) in [(5, Began::Fork), (6, Began::Exec)] {
        let row = process(20, "helper", None);
        r.processes.push(Process { began: ms(at), how, parent: 10, ended: None, ..row });
    }
    let row =
        |tid, at| Thread { tid, pid: 20, began: ms(at), name: "helper".into(), in_tree: true, ended: None };
    r.threads.extend([row(20, 5), row(21, 7)]);
    r.off_cpu(5, 1, 20, OffCpuReason::Runnable).waker = Some(10);
    r.off_cpu(10, 140, 20, OffCpuReason::Sleep);
    r.off_cpu(7, 300, 21, OffCpuReason::Event);
    r
}

#[test]
fn the_path_ends_at_who_made_the_start_ready_and_not_at_who_was_busy() {
    let mut r = with_a_helper();
    let sleeps = |r: &mut Recording| {
        let reasons = reasons(r);
        assert!(is_whole(&reasons), "{reasons:?}");
        reasons.by_kind().get(&Kind::Sleep).copied().unwrap_or_default()
    };
    assert_eq!(sleeps(&mut r), Nanos(0), "nobody tells: the first process was at work");
    for tid in [Some(20), None] {
        r.manifest.reached_by = Some(ReachedBy { pid: 20, tid });
        assert_eq!(sleeps(&mut r), Nanos(140_000_000), "{tid:?}: its thread 21 was waiting");
    }
    r.manifest.reached_by = Some(ReachedBy { pid: 99, tid: None });
    assert_eq!(sleeps(&mut r), Nanos(0), "of whom nothing was recorded");
}

#[test]
fn a_file_or_a_socket_that_is_waited_for_was_made_by_whom_its_lookup_names() {
    let mut r = with_a_helper();
    r.manifest.directory = "/srv".into();
    let by = |r: &Recording| reached::by(r, Window::of(r));
    r.manifest.ready_means = "file:run/pid".into();
    assert_eq!(by(&r), None);
    let mut look = |at, path: &str, result, tid| {
        let row = r.lookup(at, LookupKind::Open, path, result);
        (row.pid, row.tid) = (20, tid);
    };
    look(100, "/srv/run/pid", -2, 20);
    look(120, "/srv/other", 3, 20);
    look(160, "/srv/run/pid", 3, 21);
    look(170, "/srv/run/pid", 3, 20);
    assert_eq!(by(&r), Some(ReachedBy { pid: 20, tid: Some(21) }), "the first that found it");
    r.manifest.ready_means = "unix:/srv/other".into();
    assert_eq!(by(&r), Some(ReachedBy { pid: 20, tid: Some(20) }));
    r.manifest.ready_means = "exit of the tree".into();
    assert_eq!(by(&r), None);
}

#[test]
fn the_moments_until_a_server_is_seen_to_listen_are_nobodys_work() {
    let mut r = with_a_helper();
    r.manifest.reached_by = Some(ReachedBy { pid: 20, tid: None });
    r.off_cpu(199, 100, 20, OffCpuReason::Event).waker = Some(10);
    let reasons = reasons(&mut r);
    assert!(is_whole(&reasons), "{reasons:?}");
    let last = reasons.pieces.last().expect("a piece");
    assert_eq!((last.kind, last.tid, last.length()), (Kind::Outside, 20, Nanos(2_000_000)));
    assert_eq!(reasons.by_kind()[&Kind::Sleep], Nanos(140_000_000));
}

proptest! {
    /// Whatever times off the CPU and wakers a recording tells of, each nanosecond has one reason.
    #[test]
    fn the_pieces_are_the_whole_and_so_are_those_of_a_part(
        rows in prop::collection::vec((0u64..220, 1u64..60, 10u32..14, 0usize..5, prop::option::of(9u32..15)), 0..60),
        threads in prop::collection::vec((10u32..14, 0u64..200), 0..6),
        at in 0u64..220,
    ) {
        const REASONS: [OffCpuReason; 5] = [
            OffCpuReason::Storage, OffCpuReason::Lock, OffCpuReason::Event, OffCpuReason::Sleep, OffCpuReason::Runnable,
        ];
        let mut r = recording();
        for (tid, at) in threads {
            thread(&mut r, tid, at);
        }
        for (at, length, tid, reason, waker) in rows {
            r.off_cpu(at, length, tid, REASONS[reason]).waker = waker;
        }
        let reasons = reasons(&mut r);
        prop_assert!(is_whole(&reasons), "{:?}", reasons);
        let rest = reasons.since(ms(at));
        prop_assert!(is_whole(&rest) && rest.until == reasons.until, "{:?}", rest);
        prop_assert_eq!(rest.start, ms(at).clamp(reasons.start, reasons.until));
    }
}
