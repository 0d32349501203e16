use cold_model::Known;
use cold_model::recording::manifest::Subject;
use cold_model::recording::{FillCause, OffCpu, OffCpuReason, Process, StallCause, Thread, TouchKind};
use cold_model::sample::{empty, ms, process};

use super::*;

/// Process 10 is made at 0 ms, executes at 1 ms and is ready at 201 ms.
fn recording() -> Recording {
    let mut r = empty();
    r.manifest.subject = Subject::Command;
    r.manifest.ready = Some(Known::Value(ms(201)));
    r.processes.clear();
    for (at, how) in [(0, Began::Fork), (1, Began::Exec)] {
        let row = process(10, "prog", None);
        r.processes.push(Process { began: ms(at), how, parent: 1, ..row });
    }
    thread(&mut r, 10, 0);
    r
}

fn thread(r: &mut Recording, tid: u32, at: u64) {
    let row = Thread { began: ms(at), tid, pid: 10, name: "prog".into(), in_tree: true, ended: None };
    r.threads.push(row);
}

fn clock(r: &mut Recording) -> DependencyClock {
    r.off_cpu.get_or_insert_default().sort_by_key(|o| o.began);
    DependencyClock::of(r, Window::of(r))
}

/// In whole milliseconds: behind each wait some µs count as reading.
fn need(clock: &DependencyClock, at: u64, tid: u32) -> u64 {
    (clock.need(ms(at), tid) + 500_000) / 1_000_000
}

#[test]
fn storage_and_missing_cpus_take_no_time_but_writing_and_sleep_do() {
    let mut r = recording();
    r.off_cpu(11, 20, 10, OffCpuReason::Storage);
    r.off_cpu(41, 20, 10, OffCpuReason::Runnable);
    r.off_cpu(71, 10, 10, OffCpuReason::Storage);
    r.stall(71, 10, StallCause::Write);
    r.off_cpu(91, 5, 10, OffCpuReason::Sleep);
    r.off_cpu(101, 10, 10, OffCpuReason::Lock);
    // The file system writes its journal.
    r.off_cpu(121, 10, 10, OffCpuReason::Storage);
    r.stall(121, 10, StallCause::Journal);
    let clock = clock(&mut r);
    let needs: Vec<u64> =
        [1, 11, 25, 31, 61, 81, 96, 111, 131].iter().map(|at| need(&clock, *at, 10)).collect();
    assert_eq!(needs, [0, 10, 10, 10, 20, 40, 55, 60, 80]);
    assert_eq!(clock.computing(), 150_000_000);
}

#[test]
fn who_is_woken_goes_on_when_the_waker_would_have_woken_it() {
    let mut r = recording();
    thread(&mut r, 11, 0);
    // The worker reads for 50 ms and wakes the first thread at 81.
    r.off_cpu(21, 50, 11, OffCpuReason::Storage);
    r.off_cpu(11, 70, 10, OffCpuReason::Event).waker = Some(11);
    // It waits for a worker that needs nothing: as long as that computes.
    r.off_cpu(101, 40, 10, OffCpuReason::Event).waker = Some(11);
    let clock = clock(&mut r);
    assert_eq!(need(&clock, 80, 11), 29);
    assert_eq!(need(&clock, 81, 10), 30);
    assert_eq!(need(&clock, 101, 10), 50);
    assert_eq!(need(&clock, 141, 10), 90);
}

#[test]
fn a_wait_that_is_over_before_it_begins_is_none() {
    let mut r = recording();
    thread(&mut r, 11, 0);
    r.off_cpu(11, 50, 11, OffCpuReason::Storage);
    r.off_cpu(31, 40, 10, OffCpuReason::Event).waker = Some(11);
    let clock = clock(&mut r);
    // Without its wait the worker wakes at 71 - 50, and the first thread comes at 31.
    assert_eq!(need(&clock, 71, 10), 30);
}

#[test]
fn timers_and_others_take_their_time_but_that_of_reading() {
    let mut r = recording();
    thread(&mut r, 11, 0);
    r.off_cpu(11, 100, 11, OffCpuReason::Event);
    r.off_cpu(51, 30, 10, OffCpuReason::Storage);
    // A waker that is no task of the start.
    r.off_cpu(121, 10, 10, OffCpuReason::Event).waker = Some(999);
    let clock = clock(&mut r);
    assert_eq!(need(&clock, 111, 11), 80);
    assert_eq!(need(&clock, 131, 10), 100);
}

/// The first thread is without a CPU for 100 ms. Thread 11 waits with a timeout of 50 ms, `change` does something to its
/// three waits or adds what happens between, and the first one waits for its end at 141. What the clock shows at 146.
fn joined_at(change: impl FnOnce(&mut Recording)) -> u64 {
    let mut r = recording();
    thread(&mut r, 11, 0);
    thread(&mut r, 12, 0);
    r.off_cpu(11, 100, 10, OffCpuReason::Runnable);
    for (at, took, waker) in [(11, 50, None), (62, 50, None), (113, 28, Some(10))] {
        let row = r.off_cpu(at, took, 11, OffCpuReason::Event);
        (row.system_call, row.waker) = (Some(202), waker);
    }
    r.off_cpu(141, 4, 10, OffCpuReason::Event).waker = Some(11);
    change(&mut r);
    need(&clock(&mut r), 146, 10)
}

#[test]
fn a_thread_that_only_looks_from_time_to_time_waits_for_who_wakes_it_at_last() {
    assert_eq!(joined_at(|_| {}), 45);
    // Pages that it had to read to look are no work of its own.
    let reads = |r: &mut Recording| {
        let rows = r.off_cpu.as_mut().unwrap();
        (rows[1].woken, rows[1].ended) = (Some(ms(59)), ms(59));
        let read = r.off_cpu(60, 2, 11, OffCpuReason::Storage);
        read.began = Nanos(ms(59).0 + 1);
        (read.woken, read.ended) = (Some(Nanos(ms(62).0 - 1)), Nanos(ms(62).0 - 1));
    };
    assert_eq!(joined_at(reads), 45);
}

#[test]
fn a_timeout_that_led_to_something_takes_its_time() {
    let row =
        |n: usize, change: fn(&mut OffCpu)| joined_at(move |r| change(&mut r.off_cpu.as_mut().unwrap()[n]));
    let wakes = |r: &mut Recording| r.off_cpu(100, 12, 12, OffCpuReason::Event).waker = Some(11);
    assert_eq!(joined_at(wakes), 117, "it woke another thread");
    // Rows: 0 is the first thread's, 1 to 3 are the waits.
    assert_eq!(row(2, |o| o.system_call = Some(7)), 117, "another system call");
    assert_eq!(row(2, |o| o.system_call = None), 117, "a system call that is not known");
    assert_eq!(row(2, |o| o.reason = OffCpuReason::Sleep), 117, "a sleep that it asked for");
    assert_eq!(row(2, |o| (o.woken, o.ended) = (Some(ms(110)), ms(110))), 117, "it ran for 3 ms");
    assert_eq!(row(3, |o| o.waker = None), 145, "nobody woke it: how long it had to wait is not known");
}

#[test]
fn a_new_task_begins_at_its_makers_clock() {
    let mut r = recording();
    r.off_cpu(11, 40, 10, OffCpuReason::Storage);
    // Made by the first thread, as only the table of threads says.
    thread(&mut r, 11, 61);
    // Made by that one after its own wait, first run 5 ms later.
    r.off_cpu(71, 20, 11, OffCpuReason::Storage);
    thread(&mut r, 12, 101);
    r.off_cpu(101, 5, 12, OffCpuReason::Runnable).waker = Some(11);
    let clock = clock(&mut r);
    assert_eq!(need(&clock, 61, 11), 20);
    assert_eq!((need(&clock, 101, 12), need(&clock, 106, 12), need(&clock, 116, 12)), (40, 40, 50));
}

#[test]
fn a_thread_id_that_is_used_again_is_another_task() {
    let mut r = recording();
    thread(&mut r, 11, 5);
    r.threads[1].ended = Some(ms(10));
    r.off_cpu(21, 60, 10, OffCpuReason::Storage);
    thread(&mut r, 11, 91);
    r.off_cpu(91, 1, 11, OffCpuReason::Runnable).waker = Some(10);
    let clock = clock(&mut r);
    assert_eq!((need(&clock, 9, 11), need(&clock, 50, 11), need(&clock, 102, 11)), (8, 9, 40));
}

#[test]
fn a_thread_that_waits_for_a_lock_after_its_end_is_no_other_one() {
    let mut r = recording();
    thread(&mut r, 11, 5);
    // It reads, then ends, and is taken down under a lock that the first thread waits for.
    r.off_cpu(11, 100, 11, OffCpuReason::Storage);
    r.threads[1].ended = Some(ms(120));
    r.off_cpu(121, 2, 11, OffCpuReason::Lock);
    r.off_cpu(21, 80, 10, OffCpuReason::Runnable);
    r.off_cpu(122, 4, 10, OffCpuReason::Event).waker = Some(11);
    let clock = clock(&mut r);
    // By the wall clock without all reading it would have ended at 19, the first thread is at 41 without its missing CPU.
    assert_eq!((need(&clock, 122, 11), need(&clock, 127, 10)), (19, 42));
}

#[test]
fn a_lock_takes_no_longer_than_it_did() {
    let locked = |reads: bool| {
        let mut r = recording();
        thread(&mut r, 11, 0);
        // Without a CPU the first thread comes to the lock 100 ms later than it would.
        r.off_cpu(11, 100, 10, OffCpuReason::Runnable);
        r.off_cpu(121, 10, 10, OffCpuReason::Lock).waker = Some(11);
        if reads {
            r.off_cpu(122, 8, 11, OffCpuReason::Storage);
        }
        need(&clock(&mut r), 141, 10)
    };
    assert_eq!(locked(false), 40, "whenever its holder would have released it");
    assert_eq!(locked(true), 132, "its holder read while it held it, and releases it 8 ms earlier without");
}

#[test]
fn what_the_kernel_does_because_pages_are_missing_is_reading() {
    let mut r = recording();
    r.touch(20, 0, 0..1, TouchKind::Fault);
    r.stall(23, 10, StallCause::Fault);
    r.off_cpu(23, 10, 10, OffCpuReason::Storage);
    // Read ahead without waiting: folios from 40, the request issued at 42. One more, of folios added before.
    r.fill(40, 0, 8..16, FillCause::ReadAhead);
    let one = r.request(41, 5, 0, 8..16);
    (one.queued, one.issued) = (ms(41), Some(ms(42)));
    let other = r.request(50, 5, 0, 16..17);
    (other.queued, other.issued) = (ms(50), Some(ms(51)));
    // A fault long before the wait.
    r.touch(60, 0, 20..21, TouchKind::Fault);
    r.stall(83, 10, StallCause::Fault);
    r.off_cpu(83, 10, 10, OffCpuReason::Storage);
    let clock = clock(&mut r);
    let needs: Vec<u64> = [20, 23, 33, 40, 42, 52, 83, 93].iter().map(|at| need(&clock, *at, 10)).collect();
    assert_eq!(needs, [19, 19, 19, 26, 26, 36, 67, 67]);
}

#[test]
fn without_the_table_it_is_the_wall_clock() {
    let mut r = recording();
    r.stall(11, 20, StallCause::Fault);
    r.off_cpu = None;
    let clock = clock(&mut r);
    assert_eq!((need(&clock, 101, 10), need(&clock, 101, 77)), (100, 100));
}

#[test]
fn made_up_tables_do_no_harm() {
    let mut r = recording();
    let far = r.off_cpu(300, 5, 10, OffCpuReason::Storage);
    (far.began, far.woken, far.ended) = (Nanos(u64::MAX - 1), Some(Nanos(0)), Nanos(u64::MAX));
    r.off_cpu(5, 10, 77, OffCpuReason::Event).waker = Some(77);
    r.off_cpu(6, 0, 10, OffCpuReason::Other).woken = Some(Nanos(0));
    let clock = clock(&mut r);
    let _ = (clock.need(Nanos(u64::MAX), 10), clock.need(Nanos(0), 77), clock.computing());
}

/// Behind a wait the fault is tried again. Programs that touch the next page at once show how long that takes.
#[test]
fn what_is_left_of_a_fault_behind_its_wait_is_reading() {
    let us = |at: u64| Nanos(ms(0).0 + at * 1000);
    let made = |waits: u64| {
        let mut r = recording();
        // Each fault waits 100 µs at once; three of four come 9 µs behind the wait before, the others 200.
        let mut at = 2_000;
        for n in 0..waits {
            r.touch(0, 0, n..n + 1, TouchKind::Fault).at = us(at);
            let stall = r.stall(0, 0, StallCause::Fault);
            (stall.began, stall.woken, stall.ended) = (us(at), Some(us(at + 100)), Some(us(at + 100)));
            let off = r.off_cpu(0, 0, 10, OffCpuReason::Storage);
            (off.began, off.woken, off.ended) = (us(at), Some(us(at + 100)), us(at + 100));
            at += 100 + if n % 4 == 3 { 200 } else { 9 };
        }
        let clock = clock(&mut r);
        clock.need(us(at), 10)
    };
    // 1 ms from the exec, then of each four waits 191 µs. The last one has no fault behind it.
    assert_eq!(made(400), 1_000_000 + 100 * 191_000);
    // Too few to tell: what was measured elsewhere counts.
    assert_eq!(made(4), 1_000_000 + 3 * (9_000 - 5_600) + 200_000 - 5_600);
}

/// A chain of workers, each woken by the one before when that has computed and read: whatever the reading takes, the
/// need times are those of the computing alone.
#[test]
fn need_times_do_not_depend_on_the_disk() {
    let needs = |reads: [u64; 4]| {
        let mut r = recording();
        let (mut at, mut out) = (1, Vec::new());
        for (n, read) in reads.iter().enumerate() {
            let tid = 11 + n as u32;
            thread(&mut r, tid, 1);
            let before = (n > 0).then(|| tid - 1);
            if let Some(before) = before {
                r.off_cpu(1, at - 1, tid, OffCpuReason::Event).waker = Some(before);
            }
            if *read > 0 {
                r.off_cpu(at + 2, *read, tid, OffCpuReason::Storage);
            }
            at += 2 + read + 3;
            out.push((at, tid));
        }
        let clock = clock(&mut r);
        out.into_iter().map(|(at, tid)| need(&clock, at, tid)).collect::<Vec<_>>()
    };
    assert_eq!(needs([0; 4]), [5, 10, 15, 20]);
    assert_eq!(needs([20, 3, 0, 70]), needs([0; 4]));
    assert_eq!(needs([1, 90, 40, 8]), needs([0; 4]));
}
