use cold_analyze::simulate::Simulated;
use cold_analyze::simulate::sweep::{Choice, Reader};
use cold_model::recording::{FillCause, LookupKind, OffCpuReason, Thread, TouchKind};
use cold_model::sample::{empty, ms};
use cold_model::{Known, Nanos};
use cold_plan::plan::Knobs;
use cold_sim::disk::Model;

use super::*;
use crate::{compile, merge, sample};

const MS: u64 = 1_000_000;
const PAGE: u64 = 4096;

const KNOBS: Knobs = Knobs { gate: Gate::Issued, ..sample::KNOBS };

/// A start without the plan, and with it.
struct Prediction {
    without: Simulated,
    with: Simulated,
    left_out: Bytes,
    untouched: Bytes,
}

/// Ready after 150 ms: computes 10 ms and waits 5 ms for a page of `/usr/lib/f0`, ten times.
fn recording() -> Recording {
    let mut r = empty();
    r.manifest.ready = Some(Known::Value(ms(150)));
    r.threads.push(Thread { began: ms(0), tid: 10, pid: 10, name: "t".into(), in_tree: true, ended: None });
    let file = r.file("/usr/lib/f0", 1 << 30);
    (r.files[0].inode, r.files[0].mtime_ns) = (7, Some(1));
    for (n, page) in pages().enumerate() {
        let at = 15 * n as u64 + 10;
        r.touch(at, file, page..page + 1, TouchKind::Read);
        r.fill(at, file, page..page + 1, FillCause::DemandFault);
        r.off_cpu(at, 5, 10, OffCpuReason::Storage);
    }
    r
}

/// Far from each other, in no order.
fn pages() -> impl Iterator<Item = u64> {
    (0..10).map(|n| n * 7 % 10 * 1000)
}

/// Reads each page 10 ms after the one before, and others of another file before all of them.
fn plan(others: u64) -> Plan {
    let own = pages().enumerate().map(|(n, page)| (0, page, 1, 10 * (n as u64 + 1)));
    let ranges: Vec<_> = (0..others).map(|n| (1, n * 1000, 1, 0)).chain(own).collect();
    let mut plan = merge(None, &sample::key(), &sample::start(2, &ranges), 1);
    compile(&mut plan, &KNOBS, None, &|_| None);
    plan
}

/// A request at a time, of 5 ms.
fn disk() -> Model {
    Model { latency_ns: 5 * MS, channels: 1, ..Model::default() }
}

/// Of that disk, before the helper exists: the launcher in seven reads, five blocks, the plan in one read, 3.5 ms of
/// computing. Milliseconds, rounded with what follows.
const LAUNCH: u64 = 13 * 5 + 4;

fn predicted(plan: &Plan, r: &Recording) -> Prediction {
    let mut start = Recorded::of(r).unwrap();
    let Asked { replay, left_out, untouched } = asked(plan, r, &mut start);
    let (disk, today) = (disk(), start.today());
    let simulated = |reader| {
        let choice = Choice { reader, ..today };
        start.simulate(&start.setting(&choice, &disk, Some(&replay)).unwrap()).unwrap()
    };
    Prediction { without: simulated(Reader::Kernel), with: simulated(Reader::Plan), left_out, untouched }
}

/// Milliseconds; reading costs some CPU time, well below one.
fn rounded(time: Nanos) -> u64 {
    (time.0 + MS / 2) / MS
}

#[test]
fn what_is_asked_for_in_time_is_not_waited_for() {
    let got = predicted(&plan(0), &recording());
    assert_eq!(rounded(got.without.time), 150);
    assert_eq!(rounded(got.with.time), LAUNCH + 100);
    assert_eq!(rounded(got.with.stall), 0);
    assert_eq!((got.without.requests, got.with.requests), (10, 10));
    assert_eq!((got.left_out, got.untouched, got.with.unused), (Bytes(0), Bytes(0), Bytes(0)));
}

#[test]
fn what_nothing_touches_is_read_all_the_same_and_is_in_the_way() {
    let got = predicted(&plan(20), &recording());
    assert_eq!((got.untouched, got.left_out), (Bytes(20 * PAGE), Bytes(0)));
    assert_eq!((got.with.requests, got.with.unused, got.without.requests), (30, Bytes(20 * PAGE), 10));
    // They take until 100 ms, the first page comes at 105; from then on computing is slower than reading.
    assert_eq!(rounded(got.with.time), LAUNCH + 105 + 9 * 10);
}

#[test]
fn a_file_of_the_recording_that_was_only_seen_is_read_from_its_own_disk() {
    let mut r = recording();
    let other = r.file("/usr/lib/f1", 1 << 30);
    (r.files[other as usize].inode, r.files[other as usize].mtime_ns) = (7, Some(1));
    let mut start = Recorded::of(&r).unwrap();
    let got = asked(&plan(3), &r, &mut start);
    assert_eq!((got.untouched, start.layout.files(), start.layout.disks()), (Bytes(3 * PAGE), 2, 1));
    // A second plan finds it there.
    asked(&plan(5), &r, &mut start);
    assert_eq!(start.layout.files(), 2);
    let ids: Vec<u32> = got
        .replay
        .steps
        .iter()
        .filter_map(|s| match s {
            PlanStep::Read { file, .. } => Some(file.0),
            PlanStep::LookUp { .. } => None,
        })
        .collect();
    assert_eq!(ids, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn files_that_changed_and_unknown_blocks_are_left_out() {
    let mut r = recording();
    r.files[0].size = Some(1 << 29);
    let got = predicted(&plan(0), &r);
    assert_eq!((got.left_out, got.with.requests), (Bytes(10 * PAGE), 10));
    assert_eq!(rounded(got.with.time), LAUNCH + 150);

    let mut r = recording();
    let device = r.file("/usr/lib/f1", 0);
    r.files[device as usize].kind = recording::FileKind::BlockDevice;
    r.fill(1, device, 1000..1002, FillCause::Metadata);
    let mut blocks = plan(3);
    let f1 = blocks.files.iter_mut().find(|f| f.path.ends_with("f1")).unwrap();
    f1.kind = FileKind::BlockDevice;
    // Of the blocks 0, 1000 and 2000 the recording knows nothing behind 1001.
    let mut start = Recorded::of(&r).unwrap();
    assert_eq!(asked(&blocks, &r, &mut start).left_out, Bytes(PAGE));
    r.files[device as usize].path = None;
    assert_eq!(asked(&blocks, &r, &mut Recorded::of(&r).unwrap()).left_out, Bytes(3 * PAGE));
}

#[test]
fn names_take_the_blocks_that_looking_them_up_read() {
    let mut r = recording();
    let device = r.file("/dev/sda1", 0);
    r.files[device as usize].kind = recording::FileKind::BlockDevice;
    // The program opens the file by a link: its directory, and after a pause three neighbouring blocks of inodes. Another
    // block is read between two calls, and another thread's read is none of its.
    let lookup = r.lookup(1, LookupKind::Open, "/lib/f0", 3);
    (lookup.ended, lookup.file) = (ms(5), Some(0));
    for (at, page) in [(2, 900), (4, 40), (4, 41), (4, 42), (6, 77)] {
        r.fill(at, device, page..page + 1, FillCause::Metadata);
    }
    r.fill(3, device, 5..6, FillCause::Metadata).tid = 11;
    let mut start = Recorded::of(&r).unwrap();
    let names = start.blocks_of_names(&r);
    assert_eq!(names.keys().collect::<Vec<_>>(), [Path::new("/lib/f0"), Path::new("/usr/lib/f0")]);
    let got = asked(&plan(0), &r, &mut start).replay;
    let read: Vec<_> = got.blocks.iter().map(|b| (b.first, b.pages)).collect();
    assert_eq!(read, [(900, 1), (40, 3)]);
    assert!(
        got.steps.iter().all(|s| matches!(s, PlanStep::Read { blocks: Blocks { from: 0, count: 2 }, .. }))
    );
    // The program finds these there and reads the others itself.
    let sent = predicted(&plan(0), &r).with.outcome.sent;
    let pages = sent.iter().filter(|s| start.is_metadata(s.of.0)).map(|s| s.bytes / PAGE);
    assert_eq!(pages.collect::<Vec<_>>(), [1, 3, 1, 1]);
}

#[test]
fn the_knobs_of_the_plan_are_those_of_the_helper() {
    let r = recording();
    let mut plan = plan(1);
    let of = |plan: &Plan| asked(plan, &r, &mut Recorded::of(&r).unwrap()).replay;
    plan.knobs = Knobs { threads: 4, in_flight_bytes: 9000, chunk_bytes: 8192, gate: Gate::Arrived, ..KNOBS };
    let got = of(&plan);
    assert_eq!((got.threads, got.in_flight_pages, got.chunk_pages), (4, 3, 2));
    assert_eq!((got.gate, got.opens, got.lookup_threads), (engine::Gate::Arrived, OPENS, 0));
    let step = Step { op: Op::Stat, critical: true, file: 0, offset: 0, bytes: 0, need_ns: 0 };
    plan.steps.splice(0..0, std::iter::repeat_n(step, 20));
    let got = of(&plan);
    assert_eq!(got.lookup_threads, 2);
    assert!(matches!(got.steps[0], PlanStep::LookUp { critical: true, .. }));
    // With blocks one thread suffices.
    plan.files[1].kind = FileKind::BlockDevice;
    assert_eq!(of(&plan).lookup_threads, 1);
    plan.knobs.threads = 0;
    assert_eq!(of(&plan).threads, 1);
}

#[test]
fn made_up_plans_do_no_harm() {
    let r = recording();
    let mut plan = plan(1);
    let f1 = plan.files.iter().position(|f| f.path.ends_with("f1")).unwrap();
    plan.files[f1].identity.size = u64::MAX;
    plan.files[f1].identity.dev = cold_model::Dev::new(u32::MAX, u32::MAX);
    let step =
        |file, offset| Step { op: Op::Read, critical: true, file, offset, bytes: u32::MAX, need_ns: 0 };
    plan.steps.extend([
        step(f1 as u32, 0),
        step(f1 as u32, u64::MAX - 4095),
        step(1 - f1 as u32, 1 << 30),
        step(u32::MAX, 7),
    ]);
    let got = predicted(&plan, &r);
    // One page of the second step is the file's last; behind the end of the other file there is nothing, and a file
    // that the plan does not have is no file.
    assert_eq!(got.left_out.0, 2 * u64::from(u32::MAX) - PAGE);
    assert!(got.with.bytes > got.without.bytes);
}
