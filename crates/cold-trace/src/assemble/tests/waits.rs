//! Stalls, lookups, requests, stacks.

use cold_model::Nanos;
use cold_model::recording::{LookupKind, OffCpuReason, StallCause};

use super::*;

#[test]
fn a_read_waits_for_the_pages_it_gets_next_and_a_lookup_for_what_it_filled_last() {
    let (data, dir, bin) = (id(5), id(6), id(7));
    let read = call_context(10, libc::SYS_read, data, 0);
    let open = call_context(50, libc::SYS_openat, NOWHERE, 0);
    let exec = call_context(80, libc::SYS_execve, NOWHERE, 0);
    let r = run(&[
        named(data, 100, "data"),
        file_of(dir, 4096, 0o040_755, 0, crate::raw::FILE_FULL, &["etc"], NOWHERE),
        named(bin, 10, "bin"),
        pages(9, 20, read, data, 0, 9),
        stall(40, read, 25, 39, 3),
        pages(9, 41, read, data, 4, 9),
        add(55, open, dir, 2, 0),
        stall(60, open, 56, 59, 3),
        Call { path: Some("/etc/x"), result: -2, ..Call::new(libc::SYS_openat, 50, 61) }.record(),
        stall(90, exec, 85, 89, 3),
        pages(9, 91, exec, bin, 0, 0),
        stack(58, 50, &[0x10, 0x20]),
    ]);
    let rows = r.stalls.as_ref().expect("a table");
    let of = |n: usize| (rows[n].cause, rows[n].file.map(|f| path(&r, f)), rows[n].page);
    assert_eq!(of(0), (StallCause::Read, Some("/data".to_owned()), Some(4)));
    assert_eq!(of(1), (StallCause::Lookup, Some("/etc".to_owned()), Some(2)));
    assert_eq!(of(2), (StallCause::Exec, Some("/bin".to_owned()), Some(0)));
    assert_eq!((rows[0].began, rows[0].woken, rows[0].ended), (Nanos(25), Some(Nanos(39)), Some(Nanos(40))));
    assert_eq!(rows[1].lookup, Some(0));
    assert_eq!(rows[0].system_call, Some(libc::SYS_read as u32));
    let lookups = r.lookups.as_ref().expect("a table");
    assert_eq!((lookups[0].result, lookups[0].path.as_deref()), (-2, Some("/etc/x")));
    assert_eq!((lookups[0].stack, rows[1].stack, rows[0].stack), (Some(0), Some(0), None));
}

#[test]
fn faults_locks_and_vfork() {
    let f = id(5);
    let fault = fault_context(10, f, 3);
    let r = run(&[
        named(f, 10, "lib"),
        stall(20, fault, 12, 19, 3),
        stall(30, fault, 25, 0, 0),
        stall(40, call_context(31, libc::SYS_clone, NOWHERE, 0), 32, 39, 2),
        stall(50, call_context(45, libc::SYS_io_uring_enter, NOWHERE, 0), 46, 49, 3),
    ]);
    let rows = r.stalls.as_ref().expect("a table");
    let causes: Vec<StallCause> = rows.iter().map(|s| s.cause).collect();
    assert_eq!(causes, [StallCause::Fault, StallCause::Other, StallCause::OtherStorage]);
    assert_eq!((rows[0].page, rows[0].system_call, rows[1].woken), (Some(3), None, None));
    assert_eq!(rows[2].file, None, "unknown stays unknown");
}

#[test]
fn every_time_without_a_cpu_has_its_reason_and_who_ended_it() {
    use OffCpuReason::{Event, Other, Runnable, Sleep, Storage};
    let woken = crate::raw::STALL_WOKEN;
    let r = run(&[
        named(id(5), 10, "lib"),
        stall(20, fault_context(10, id(5), 3), 12, 19, 3),
        off(31, (25, 30), libc::SYS_futex, woken, 77),
        off(41, (35, 40), libc::SYS_clock_nanosleep, woken, 0),
        off(51, (45, 0), -1, crate::raw::OFF_RUNNABLE, 0),
        off(61, (55, 54), -1, woken, 0),
        stall(70, call_context(62, libc::SYS_clone, NOWHERE, 0), 63, 69, 2),
    ]);
    let rows = r.off_cpu.expect("a table");
    let reasons: Vec<_> = rows.iter().map(|o| o.reason).collect();
    assert_eq!(reasons, [Storage, Event, Sleep, Runnable, Other, Event]);
    let (futex, preempted) = (&rows[1], &rows[3]);
    assert_eq!((futex.began, futex.woken, futex.ended), (Nanos(25), Some(Nanos(30)), Nanos(31)));
    assert_eq!((futex.system_call, futex.waker), (Some(libc::SYS_futex as u32), Some(77)));
    assert_eq!((rows[2].waker, preempted.woken, preempted.system_call), (None, None, None));
    assert_eq!(rows[4].woken, Some(Nanos(55)), "another CPU's clock");
    assert_eq!(r.stalls.expect("a table").len(), 1, "a wait for a child is none for storage");
}

#[test]
fn a_rename_has_two_paths_and_what_the_kernel_waited_for() {
    use crate::waiting::{KernelFunction, Waiting};
    let function = |start, what| KernelFunction { start, end: start + 0x100, what };
    let functions = vec![function(0x1000, Waiting::Journal), function(0x3000, Waiting::Lock)];
    let rename = call_context(10, libc::SYS_renameat, NOWHERE, 0);
    let sync = call_context(50, libc::SYS_fsync, id(5), 0);
    let path = |path| Call { path: Some(path), ..Call::new(libc::SYS_renameat, 10, 45) }.record();
    let mut facts = facts();
    facts.push(Fact::KernelFunctions(functions));
    let events = [
        named(id(5), 1, "data"),
        kernel_stack(21, 20, &[0x9000, 0x1010]),
        stall(25, rename, 20, 24, 3),
        kernel_stack(31, 30, &[0x3010]),
        stall(35, rename, 30, 34, 2),
        kernel_stack(37, 36, &[0x9000]),
        stall(40, rename, 36, 39, 2),
        path("/d/new.tmp"),
        path("/d/new"),
        stall(60, sync, 51, 59, 3),
    ];
    let r = assemble(log(&facts, &events), &mut InnermostOnly, &mut Cached(Vec::new(), None));
    let rows = r.stalls.as_ref().expect("a table");
    let said: Vec<_> = rows.iter().map(|s| (s.cause, s.lookup, s.file.is_some(), s.page)).collect();
    assert_eq!(
        said,
        [
            (StallCause::Journal, Some(1), false, None),
            (StallCause::Lock, Some(1), false, None),
            (StallCause::Other, Some(1), false, None),
            (StallCause::Write, None, true, None),
        ],
        "the new path is where a rename waits; a sync waits for no page that is known"
    );
    let lookups: Vec<_> = r.lookups.iter().flatten().map(|l| (l.kind, l.path.as_deref())).collect();
    let change = LookupKind::Change;
    assert_eq!(lookups, [(change, Some("/d/new.tmp")), (change, Some("/d/new"))]);
}

#[test]
fn lookups_have_absolute_paths_where_the_base_is_known() {
    let (dir, f) = (id(6), id(7));
    let call =
        |began, number, base, path| Call { base, path, ..Call::new(number, began, began + 1) }.record();
    let list = Call { file: dir, result: 48, ..Call::new(libc::SYS_getdents64, 60, 61) }.record();
    let by_descriptor = Call { file: f, path: Some(""), ..Call::new(libc::SYS_statx, 70, 71) }.record();
    let empty = Call { path: Some(""), result: -2, ..Call::new(libc::SYS_statx, 80, 81) }.record();
    let r = run(&[
        file_of(dir, 4096, 0o040_755, 0, crate::raw::FILE_FULL, &["app", "opt"], NOWHERE),
        named(f, 1, "f"),
        call(10, libc::SYS_openat, NOWHERE, Some("/abs")),
        call(20, libc::SYS_openat, dir, Some("lib/x.so")),
        call(30, libc::SYS_faccessat, NOWHERE, Some("rel")),
        call(40, libc::SYS_readlinkat, dir, None),
        call(50, libc::SYS_execve, dir, Some("/bin/x")),
        list,
        by_descriptor,
        empty,
    ]);
    let rows = r.lookups.as_ref().expect("a table").iter();
    let rows: Vec<(LookupKind, Option<&str>)> = rows.map(|l| (l.kind, l.path.as_deref())).collect();
    assert_eq!(
        rows,
        [
            (LookupKind::Open, Some("/abs")),
            (LookupKind::Open, Some("/opt/app/lib/x.so")),
            (LookupKind::Access, Some("rel")),
            (LookupKind::Readlink, None),
            (LookupKind::Exec, Some("/bin/x")),
            (LookupKind::List, Some("/opt/app")),
            (LookupKind::Stat, Some("")),
        ],
        "fstat resolves no path; an empty path without AT_EMPTY_PATH is one that is not found"
    );
    let flags: Vec<u32> = r.lookups.iter().flatten().map(|l| l.flags).collect();
    assert_eq!((flags[0], flags[2]), (0o2_000_000, 0), "only an open has flags");
}

#[test]
fn calls_that_ask_for_pages() {
    let f = id(5);
    let fadvise = Call { file: f, args: [3, 4096, 8192, 3, 0, 0], ..Call::new(libc::SYS_fadvise64, 10, 15) };
    let nothing = Call { args: [0x7000, 4096, 4, 0, 0, 0], ..Call::new(libc::SYS_madvise, 20, 21) };
    let populate =
        Call { file: f, args: [0, 65536, 1, 0x8002, 3, 12288], ..Call::new(libc::SYS_mmap, 30, 35) };
    let r = run(&[named(f, 100, "f"), fadvise.record(), nothing.record(), populate.record()]);
    let rows = r.advice.as_ref().expect("a table").iter();
    let rows: Vec<(&str, u64, u64)> = rows.map(|a| (a.call.as_str(), a.offset, a.bytes)).collect();
    assert_eq!(rows, [("fadvise:WILLNEED", 4096, 8192), ("mmap:POPULATE", 12288, 65536)]);
    assert_eq!(r.advice.iter().flatten().map(|a| a.address).collect::<Vec<_>>(), [None, Some(0)]);
}

#[test]
fn requests_are_sorted_by_queueing_and_keep_their_transfers() {
    let (a, b) = (id(5), id(6));
    let late = request(50, 2, 10, 8, &[(a, 0, 8192), (a, 2, 4096), (b, 7, 4096), (NOWHERE, 0, 512)]);
    let r = run(&[
        named(a, 10, "a"),
        named(b, 10, "b"),
        request(30, 1, 20, 800, &[(b, 0, 4096)]),
        request(31, 1, 20, 800, &[(b, 0, 4096)]), // requeued
        late,
        done(60, 2, 4096),
        done(70, 2, 0),
        done(80, 9, 0), // of a request that was not seen
    ]);
    let reads = r.device_reads.as_ref().expect("a table");
    let times: Vec<_> =
        reads.iter().map(|d| (d.queued.0, d.issued.map(|n| n.0), d.completed.map(|n| n.0))).collect();
    assert_eq!(times, [(10, Some(50), Some(70)), (20, Some(30), None)]);
    assert_eq!((reads[0].sector, reads[0].bytes, reads[0].dev), (8, 16896, dev(1)));
    let rows: Vec<_> =
        r.transfers.iter().flatten().map(|t| (t.request, t.file, t.first_page, t.pages)).collect();
    assert_eq!(rows, [(0, Some(0), 0, 3), (0, Some(1), 7, 1), (0, None, 0, 1), (1, Some(1), 0, 1)]);
}

#[test]
fn what_a_short_read_left_of_a_request_is_no_request_of_its_own() {
    let f = id(5);
    let r = run(&[
        named(f, 10, "f"),
        request(20, 1, 15, 800, &[(f, 0, 12288)]),
        done(30, 1, 8192),
        request(40, 1, 15, 808, &[(f, 1, 8192)]),
        done(50, 1, 0),
        // The same memory serves another request.
        request(60, 1, 55, 816, &[(f, 9, 4096)]),
        done(70, 1, 0),
    ]);
    let reads = r.device_reads.iter().flatten();
    let reads: Vec<_> = reads.map(|d| (d.sector, d.bytes, d.completed.map(|n| n.0))).collect();
    assert_eq!(reads, [(800, 12288, Some(50)), (816, 4096, Some(70))]);
    let pages: Vec<_> = r.transfers.iter().flatten().map(|t| (t.request, t.first_page, t.pages)).collect();
    assert_eq!(pages, [(0, 0, 3), (1, 9, 1)]);
}
