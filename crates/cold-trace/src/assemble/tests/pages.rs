//! Touches, fills and their causes, windows, tier B.

use cold_model::recording::FillCause;
use cold_model::recording::manifest::Tier;

use super::*;

#[test]
fn retries_of_one_fault_are_one_touch_and_its_own_window_page_is_no_second() {
    let f = id(5);
    let c = fault_context(10, f, 20);
    let r = run(&[
        named(f, 100, "lib"),
        pages(7, 11, c, f, 20, 20),
        pages(7, 30, c, f, 20, 20),
        // After the wait the page is mapped with its neighbours.
        pages(8, 31, c, f, 19, 22),
        // The same page again, but in another fault (it was thrown away meanwhile).
        pages(7, 51, fault_context(50, f, 20), f, 20, 20),
    ]);
    assert_eq!(
        touches(&r),
        [
            (11, "/lib".to_owned(), 20, 1, TouchKind::Fault),
            (31, "/lib".to_owned(), 19, 1, TouchKind::FaultAround),
            (31, "/lib".to_owned(), 21, 2, TouchKind::FaultAround),
            (51, "/lib".to_owned(), 20, 1, TouchKind::Fault),
        ]
    );
    assert!(r.touches.iter().flatten().all(|t| t.ip == Some(0x40_1000) && t.pid == PID));
}

#[test]
fn a_window_holds_only_what_was_cached() {
    let f = id(5);
    let c = |at| fault_context(at, f, 0);
    let events = [
        named(f, 10, "lib"),
        add(5, c(4), f, 0, 1), // pages 0 and 1 come
        add(6, c(4), f, 4, 0), // page 4 comes,
        delete(7, f, 4, 0),    // and goes again
        pages(8, 10, c(10), f, 0, 15),
        add(20, c(20), f, 2, 0), // page 2 comes only later
        delete(30, f, 8, 0),     // page 8 was there all the time
    ];
    // 3 is there in the end, 5 to 7 are not; the file has 10 pages.
    let r = run_on(&events, vec![(5, vec![(0, 4), (9, 1)])]);
    let around: Vec<(u64, u32)> = touches(&r).iter().map(|t| (t.2, t.3)).collect();
    assert_eq!(around, [(0, 1), (1, 1), (3, 1), (8, 2)], "0 is the fault's own");
    // Without a look at the cache afterwards, nothing is held against a page that never came.
    let r = run(&events);
    let around: Vec<(u64, u32)> = touches(&r).iter().map(|t| (t.2, t.3)).collect();
    assert_eq!(around, [(0, 1), (1, 1), (3, 1), (5, 5)]);
}

#[test]
fn with_fault_around_off_every_mapped_page_is_exact() {
    let f = id(5);
    let r = run(&[named(f, 10, "lib"), pages(8, 10, fault_context(10, NOWHERE, 0), f, 7, 7)]);
    assert_eq!(touches(&r), [(10, "/lib".to_owned(), 7, 1, TouchKind::Fault)]);
}

#[test]
fn a_read_that_comes_back_for_more_is_counted_once_and_ends_with_the_file() {
    let f = id(5);
    let c = call_context(10, libc::SYS_read, f, 0);
    let mut events = vec![named(f, 40, "data")];
    // 256 KiB are asked for; 15 pages come each time, the rest is asked for again.
    for (n, first) in [0, 15, 30].into_iter().enumerate() {
        events.push(pages(9, 20 + n as u64, c, f, first, 63));
    }
    events.push(pages(9, 40, call_context(39, libc::SYS_read, f, 40), f, 2, 3));
    let rows: Vec<(u64, u64, u32)> = touches(&run(&events)).iter().map(|t| (t.0, t.2, t.3)).collect();
    assert_eq!(rows, [(20, 0, 15), (21, 15, 15), (22, 30, 10), (40, 2, 2)]);
}

/// Folios come in runs; each is a row, and only the one that holds the faulting page was waited for.
#[test]
fn a_run_of_folios_is_a_row_each_with_a_cause_of_its_own() {
    let f = id(5);
    let r = run(&[named(f, 100, "lib"), add_run(12, fault_context(10, f, 20), f, 16, 1, 3)]);
    let rows: Vec<_> = r.fills.iter().flatten().map(|row| (row.first_page, row.pages, row.cause)).collect();
    let around = FillCause::ReadAround;
    assert_eq!(rows, [(16, 2, around), (18, 2, around), (20, 2, FillCause::DemandFault), (22, 2, around)]);
    // What a damaged log claims is bounded.
    let r = run(&[named(f, 100, "lib"), add_run(12, fault_context(10, f, 20), f, 16, 0, u32::MAX)]);
    assert_eq!(r.fills.map(|fills| fills.len()), Some(64));
}

/// Where read-ahead brings nothing, the kernel makes the page of a read by itself and tells of no success:
/// what the read filled at its position was read all the same.
#[test]
fn a_read_that_made_its_page_itself_is_a_touch() {
    let f = id(5);
    let c = |at, page| call_context(at, libc::SYS_pread64, f, page);
    let r = run(&[
        named(f, 40, "data"),
        // The first page is made, then the read goes on behind it.
        add(11, c(10, 4), f, 4, 0),
        add(12, c(10, 4), f, 5, 0),
        pages(9, 13, c(10, 4), f, 5, 6),
        // Nothing but the one page.
        add(21, c(20, 9), f, 9, 0),
        // Told of as usual, and read ahead.
        add_run(31, c(30, 20), f, 20, 0, 3),
        pages(9, 32, c(30, 20), f, 20, 20),
        // The position is now behind the read, where more is read ahead.
        add(33, c(30, 21), f, 21, 2),
    ]);
    let rows: Vec<(u64, u64, u32)> = touches(&r).iter().map(|t| (t.0, t.2, t.3)).collect();
    assert_eq!(rows, [(13, 4, 1), (13, 5, 2), (21, 9, 1), (32, 20, 1)]);
}

/// A batch whose last folio is still on its way is copied without an event, up to that folio: seen on a slow disk, where
/// a program that read a file from end to end was told to need 84% of it.
#[test]
fn what_a_read_copied_before_its_first_event_is_a_touch() {
    let f = id(5);
    let c = |at, page| call_context(at, libc::SYS_read, f, page);
    let r = run(&[
        named(f, 2000, "data"),
        pages(9, 11, c(10, 0), f, 0, 255),
        // The call begins at page 256; what it waited for is the folio at 384.
        pages(9, 21, c(20, 256), f, 384, 511),
        // Later events of a call stand at the position of what comes next.
        pages(9, 22, c(20, 512), f, 448, 511),
        // A call of which the position was not found out, and one on another file.
        pages(9, 31, call_context(30, libc::SYS_sendfile, f, crate::raw::NO_PAGE), f, 600, 700),
        pages(9, 41, call_context(40, libc::SYS_read, id(6), 0), f, 800, 801),
    ]);
    let rows: Vec<(u64, u64, u32)> = touches(&r).iter().map(|t| (t.0, t.2, t.3)).collect();
    assert_eq!(
        rows,
        [(11, 0, 256), (21, 256, 128), (21, 384, 64), (22, 448, 64), (31, 600, 101), (41, 800, 2)]
    );
}

/// A pipe takes 16 pages; seen on btrfs: page 26 of the second round was still being read.
#[test]
fn what_a_round_of_sendfile_copied_before_its_event_is_a_touch() {
    let (f, c) = (id(5), call_context(10, libc::SYS_sendfile, id(5), 10));
    let r = run(&[
        named(f, 2000, "data"),
        pages(9, 11, c, f, 12, 25),
        pages(9, 12, c, f, 27, 41),
        pages(9, 13, c, f, 42, 42),
        pages(9, 14, c, f, 43, 49),
        // The next call.
        pages(9, 21, call_context(20, libc::SYS_sendfile, f, 90), f, 90, 99),
    ]);
    let rows: Vec<(u64, u64, u32)> = touches(&r).iter().map(|t| (t.0, t.2, t.3)).collect();
    assert_eq!(
        rows,
        [(11, 10, 2), (11, 12, 14), (12, 26, 1), (12, 27, 15), (13, 42, 1), (14, 43, 7), (21, 90, 10)]
    );
}

/// From byte 3529 of page 970 into a pipe with room for 16 parts of pages: 17 pages were looked for, 62007 bytes taken.
#[test]
fn what_sendfile_looked_for_and_did_not_take_is_no_touch() {
    let (f, c) = (id(5), |at| call_context(at, libc::SYS_sendfile, id(5), 970));
    let end = |began, result| {
        let (args, position) = ([4, 3, 0, 131_072, 0, 0], 970 * 4096 + 3529);
        let call = Call::new(libc::SYS_sendfile, began, began + 2);
        Call { file: f, args, position, result, ..call }.record()
    };
    let r = run(&[
        named(f, 2000, "data"),
        pages(9, 11, c(10), f, 970, 986),
        end(10, 62_007),
        pages(9, 21, c(20), f, 970, 986),
        end(20, 62_008),
        // Nothing is known of what it returned.
        pages(9, 31, c(30), f, 970, 986),
        end(30, -4),
    ]);
    let rows: Vec<(u64, u64, u32)> = touches(&r).iter().map(|t| (t.0, t.2, t.3)).collect();
    assert_eq!(rows, [(11, 970, 16), (21, 970, 17), (31, 970, 17)]);
}

#[test]
fn causes_of_fills() {
    let (lib, data, meta) = (id(5), id(6), id(7));
    let fault = fault_context(10, lib, 20);
    let read = call_context(30, libc::SYS_read, data, 0);
    let events = [
        named(lib, 100, "lib"),
        named(data, 100, "data"),
        file_of(meta, 0, 0o060_600, 8 << 20, crate::raw::FILE_BDEV, &[], NOWHERE),
        pages(7, 11, fault, lib, 20, 20),
        add(12, fault, lib, 16, 2), // 16 to 19
        add(13, fault, lib, 20, 2),
        add(31, read, data, 0, 0),
        add(32, read, data, 3, 0),
        add(33, read, data, 4, 2),
        add(34, read, meta, 900, 0),
        // The range of the read is told at its success, after its fills.
        pages(9, 40, read, data, 0, 3),
        add(50, call_context(49, libc::SYS_fadvise64, NOWHERE, 0), data, 50, 0),
        Body::new().context(Context { kind: 0, ..read }).id(data).u64(60).u32(0).u32(0).by(10, 60, 9, 9, 2),
    ];
    let r = run(&events);
    let causes: Vec<(u64, FillCause)> = r.fills.iter().flatten().map(|f| (f.first_page, f.cause)).collect();
    assert_eq!(
        causes,
        [
            (16, FillCause::ReadAround),
            (20, FillCause::DemandFault),
            (0, FillCause::BufferedRead),
            (3, FillCause::BufferedRead),
            (4, FillCause::ReadAhead),
            (900, FillCause::Metadata),
            (50, FillCause::Advice),
            (60, FillCause::Other),
        ]
    );
    let fills = r.fills.as_ref().expect("a table");
    assert_eq!((fills[0].pages, fills[2].pages), (4, 1));
    assert_eq!(
        fills.iter().map(|f| f.in_tree).collect::<Vec<_>>(),
        [true, true, true, true, true, true, true, false]
    );
}

/// A write of part of a page reads the page first, where it is not new: a device brought it.
#[test]
fn pages_that_a_write_had_to_read_are_reads() {
    let f = id(5);
    let c = call_context(10, libc::SYS_pwrite64, f, 0);
    let r = run(&[named(f, 100, "data"), add_run(12, c, f, 4, 0, 3), request(13, 1, 13, 8, &[(f, 5, 8192)])]);
    let rows: Vec<_> = r.fills.iter().flatten().map(|row| (row.first_page, row.pages, row.cause)).collect();
    let (read, new) = (FillCause::BufferedRead, FillCause::Write);
    assert_eq!(rows, [(4, 1, new), (5, 1, read), (6, 1, read), (7, 1, new)]);
    assert_eq!(
        touches(&r),
        [(12, "/data".to_owned(), 5, 1, TouchKind::Read), (12, "/data".to_owned(), 6, 1, TouchKind::Read)]
    );
}

/// Direct reads bring memory that is no file's; the call in which they were waited for has the file.
#[test]
fn direct_reads_have_the_file_of_their_call() {
    let (f, other) = (id(5), id(6));
    let c = |at, page| call_context(at, libc::SYS_read, f, page);
    let r = run(&[
        named(f, 100, "data"),
        named(other, 100, "other"),
        request_in(10, 11, 1, (11, 8), &[(NOWHERE, 0, 8 * 4096)]),
        request_in(10, 12, 2, (12, 800), &[(NOWHERE, 0, 4096)]),
        stall(20, c(10, 16), 13, 19, 3),
        // Compressed: the call filled pages, whatever memory the device wrote to.
        add(31, c(30, 40), f, 40, 0),
        request_in(30, 32, 3, (32, 8000), &[(NOWHERE, 0, 4096)]),
        stall(40, c(30, 40), 33, 39, 3),
        // Not waited for.
        request_in(50, 52, 4, (52, 80_000), &[(NOWHERE, 0, 4096)]),
    ]);
    let rows: Vec<_> =
        r.transfers.iter().flatten().map(|t| (t.file.map(|f| path(&r, f)), t.first_page, t.pages)).collect();
    let data = Some("/data".to_owned());
    assert_eq!(rows, [(data.clone(), 16, 8), (data, 24, 1), (None, 0, 1), (None, 0, 1)]);
}

/// Populated pages may be needed, from the moment on when they are there.
#[test]
fn what_was_asked_for_may_be_needed_once_it_has_come() {
    let f = id(5);
    let mut c = fault_context(10, f, 20);
    c.syscall = libc::SYS_mlock as i32;
    let r = run(&[named(f, 100, "lib"), pages(7, 11, c, f, 20, 20), add(12, c, f, 20, 0)]);
    assert_eq!(touches(&r), [(12, "/lib".to_owned(), 20, 1, TouchKind::FaultAround)]);
}

/// Perf records of the side-band: process, address, bytes, offset, inode.
pub(super) fn perf_map(at: u64, pid: u32, address: u64, bytes: u64, offset: u64, inode: u64) -> Vec<u8> {
    let path = Body::new().bytes(b"/lib\0");
    let body = Body::new().u32(pid).u32(pid).u64(address).u64(bytes).u64(offset).u32(8).u32(1);
    let body = body.u64(inode).u64(0).u32(5).u32(2).bytes(&path_bytes(path));
    perf_record(10, 0, &body, at, pid)
}

/// `struct cold_area`.
fn area(at: u64, pid: u32, place: (u64, u64), file: (Id, u64), prot: u32, state: u32) -> Vec<u8> {
    let body = Body::new().id(file.0).u64(place.0).u64(place.1).u64(file.1).u32(prot).u32(state);
    body.by(23, at, pid, pid, IN_TREE)
}

/// Rows as (time, process, first page of the address, pages, page in the file, may be executed).
fn mapped(r: &Recording, inode: u64) -> Vec<(u64, u32, u64, u64, u64, bool)> {
    let rows = r.mappings.as_ref().expect("a table").iter();
    rows.filter(|m| r.files[m.file as usize].inode == inode)
        .map(|m| (m.at.0, m.pid, m.address >> 12, m.bytes >> 12, m.offset >> 12, m.executable))
        .collect()
}

#[test]
fn bpf_records_tell_mappings_protections_and_new_images() {
    const CHILD: u32 = PID + 1;
    let (lib, other) = (id(5), id(6));
    let (protected, image) = (crate::raw::AREA_PROTECTED, crate::raw::AREA_IMAGE);
    let events = [
        task(2, 5, SUPERVISOR, PID, PID, "x"),
        // Four pages, the last of them not whole; the second gets another protection, memory of no file is none of a row.
        area(10, PID, (0x5_0000, 0x3001), (lib, 0x2000), 5, image),
        area(11, PID, (0x9_0000, 0x1000), (NOWHERE, 0), 3, 0),
        area(12, PID, (0x5_1000, 0x10), (NOWHERE, 0), 1, protected),
        area(13, PID, (0x9_0000, 0x1000), (NOWHERE, 0), 5, protected),
        // A child has the same until its exec, which leaves nothing.
        task(2, 20, PID, CHILD, CHILD, "x"),
        area(21, CHILD, (0x5_2000, 0x1000), (NOWHERE, 0), 3, protected),
        area(30, CHILD, (0x7_0000, 0x1000), (other, 0), 5, image),
        area(31, CHILD, (0x5_0000, 0x4000), (NOWHERE, 0), 1, protected),
        area(32, PID, (0x5_3000, 0x1000), (NOWHERE, 0), 1, protected),
    ];
    let mut facts = facts();
    let none = assemble(log(&facts, &events), &mut InnermostOnly, &mut Cached(Vec::new(), None));
    assert!(none.mappings.is_none(), "where perf records have to tell them they are unknown without these");
    facts.push(Fact::AreasByBpf);
    let r = assemble(log(&facts, &events), &mut InnermostOnly, &mut Cached(Vec::new(), None));
    let expected = [
        (10, PID, 0x50, 4, 2, true),
        (12, PID, 0x51, 1, 3, false),
        (21, CHILD, 0x52, 1, 4, false),
        (32, PID, 0x53, 1, 5, false),
    ];
    assert_eq!(mapped(&r, 5), expected);
    assert_eq!(mapped(&r, 6), [(30, CHILD, 0x70, 1, 0, true)]);
}

fn path_bytes(body: Body) -> Vec<u8> {
    body.record(0, 0)[24..].to_vec()
}

fn perf_record(kind: u32, misc: u16, body: &Body, at: u64, pid: u32) -> Vec<u8> {
    let body = path_bytes(body.clone());
    let head = Body::new().u32(kind).u16(misc).u16((8 + body.len() + 32) as u16);
    let trailer = Body::new().u32(pid).u32(pid).u64(at).u64(0).u64(77);
    [path_bytes(head), body, path_bytes(trailer)].concat()
}

#[test]
fn tier_b_turns_addresses_into_pages_by_the_mapping_of_that_time() {
    let mut facts = facts();
    if let Fact::Manifest(m) = &mut facts[0] {
        m.tier = Tier::B;
    }
    let described = blocks::PerfEvent { id: 77, class: blocks::PerfClass::SideBand, sample_type: 0 };
    facts.push(Fact::PerfEvents(vec![described]));
    let (lib, other) = (id(5), id(6));
    let page_fault = |at, address: u64| Body::new().u64(address).u64(0x11).u32(4).u32(0).record(17, at);
    let read = Call {
        result: 5000,
        file: other,
        position: 4096,
        args: [3, 0, 65536, 0, 0, 0],
        ..Call::new(libc::SYS_read, 60, 70)
    };
    let context = |at| fault_context(at, NOWHERE, 0);
    let mut log = log(
        &facts,
        &[
            named(lib, 100, "lib"),
            named(other, 100, "other"),
            task(2, 5, SUPERVISOR, PID, PID, "x"),
            page_fault(20, 0x5_3000),
            add(21, context(20), lib, 0x13, 0),
            add(22, context(20), lib, 0x14, 0),
            stall(25, context(20), 23, 24, 3),
            page_fault(40, 0x5_3000),
            page_fault(41, 0x9_0000),
            read.record(),
        ],
    );
    log.push((blocks::PERF, perf_map(10, PID, 0x5_0000, 0x10000, 0x1_0000, 5)));
    log.push((blocks::PERF, perf_map(30, PID, 0x5_0000, 0x10000, 0, 6)));
    let r = assemble(log, &mut InnermostOnly, &mut Cached(Vec::new(), None));
    let rows: Vec<(u64, String, u64, u32)> = touches(&r).into_iter().map(|t| (t.0, t.1, t.2, t.3)).collect();
    assert_eq!(
        rows,
        [
            (20, "/lib".to_owned(), 0x13, 1),
            (40, "/other".to_owned(), 3, 1),
            // 5000 bytes from 4096 on: pages 1 and 2.
            (70, "/other".to_owned(), 1, 2),
        ]
    );
    let causes: Vec<FillCause> = r.fills.iter().flatten().map(|f| f.cause).collect();
    assert_eq!(causes, [FillCause::DemandFault, FillCause::ReadAround]);
    let stall = r.stalls.as_ref().expect("a table")[0];
    assert_eq!((path(&r, stall.file.expect("known")), stall.page), ("/lib".to_owned(), Some(0x13)));
    assert_eq!(r.mappings.as_ref().map(Vec::len), Some(2));
}

/// Tier B sees reads by their calls. A fast device answers a direct read before the task waits; the request alone tells
/// that nothing went through the cache.
#[test]
fn tier_b_tells_a_direct_read_that_did_not_wait() {
    let mut facts = facts();
    if let Fact::Manifest(m) = &mut facts[0] {
        m.tier = Tier::B;
    }
    let f = id(5);
    let read = |began, ended, position| Call {
        result: 8192,
        file: f,
        position,
        args: [3, 0, 8192, 0, 0, 0],
        ..Call::new(libc::SYS_read, began, ended)
    };
    let log = log(
        &facts,
        &[
            named(f, 100, "data"),
            request_in(60, 65, 1, (65, 8), &[(NOWHERE, 0, 8192)]),
            read(60, 70, 4096).record(),
            read(80, 90, 16384).record(),
        ],
    );
    let r = assemble(log, &mut InnermostOnly, &mut Cached(Vec::new(), None));
    assert_eq!(touches(&r), [(90, "/data".to_owned(), 4, 2, TouchKind::Read)]);
    let rows: Vec<_> =
        r.transfers.iter().flatten().map(|t| (t.file.map(|f| path(&r, f)), t.first_page)).collect();
    assert_eq!(rows, [(Some("/data".to_owned()), 1)]);
}

/// A call ends where it asked to. Its first event tells that; in later ones the position has moved on by pages.
#[test]
fn reads_tell_at_which_byte_they_end() {
    let f = id(5);
    let read = |at, page| call_context(at, libc::SYS_read, f, page);
    let get = |at, context, pages, end| pages_at(9, at, context, f, pages, end);
    let r = run(&[
        named(f, 10, "data"),
        get(11, read(10, 0), (0, 0), 10),
        get(21, read(20, 2), (2, 5), 5 * 4096 + 5),
        get(22, read(20, 2), (4, 5), 9 * 4096),
        get(31, read(30, 8), (8, 200), 1 << 40),
        get(41, call_context(40, libc::SYS_pread64, f, 3), (3, 3), 4 * 4096),
        // Its third argument is a number of buffers, that of the next a position that is not known.
        get(51, call_context(50, libc::SYS_readv, f, 0), (0, 0), 2),
        get(61, read(60, 1), (1, 1), 0),
    ]);
    let ends: Vec<_> = r.touches.iter().flatten().map(|t| (t.at.0, t.first_page, t.end)).collect();
    let whole = Some(5 * 4096 + 5);
    assert_eq!(
        ends,
        [
            (11, 0, Some(10)),
            (21, 2, whole),
            (22, 4, whole),
            (31, 8, Some(10 * 4096)),
            (41, 3, Some(4 * 4096)),
            (51, 0, None),
            (61, 1, None),
        ]
    );
}
