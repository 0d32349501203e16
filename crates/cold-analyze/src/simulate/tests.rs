mod advice;
mod disks;
mod observed;
mod warm;

use cold_model::recording::tables::Began;
use cold_model::recording::{
    Advice, FileKind, FillCause, LookupKind, Mapping, OffCpuReason, Process, Recording, Resident, StallCause,
    Thread, TouchKind,
};
use cold_model::sample::{empty, ms, process};
use cold_model::{Bytes, Known, Nanos};

use super::*;
use cold_sim::disk::{Disk, Model};
use cold_sim::engine::{Costs, Input, Kind, Machine, Outcome, run};
use cold_sim::op::{MapAdvice, MapId, Op, OpenId, Pattern};
use cold_sim::{Cache, Paging};

const MS: u64 = 1_000_000;

/// In whole milliseconds: behind each recorded wait some µs count as reading.
fn whole_ms(out: &Outcome) -> u64 {
    (out.time_ns + MS / 2) / MS
}

/// `prog`, pid 10, ready after 100 ms, with a file of 100 pages mapped from its third page on.
fn recording() -> Recording {
    let mut r = empty();
    r.manifest.ready = Some(Known::Value(ms(100)));
    thread(&mut r, 10, 10, 0);
    let file = r.file("/data", 100 * 4096);
    let row = Mapping {
        at: ms(1),
        pid: 10,
        address: 0x7f00_0000_2000,
        bytes: 90 * 4096,
        offset: 2 * 4096,
        file,
        executable: false,
    };
    r.mappings.get_or_insert_default().push(row);
    r
}

fn thread(r: &mut Recording, tid: u32, pid: u32, at: u64) {
    r.threads.push(Thread { began: ms(at), tid, pid, name: "t".into(), in_tree: true, ended: None });
}

/// Simulated on a disk whose reads take `latency` ms each, on as many processors as are wanted.
fn simulated(start: &Recorded, latency: u64) -> Outcome {
    let mut cache =
        Cache::new(Policy::Nothing, Paging::default(), &start.files(Policy::Nothing, Windows::Usual));
    for (file, first, pages) in &start.cached {
        cache.preload(*file, *first, *pages);
    }
    let model = Model { latency_ns: latency * MS, ..Model::default() };
    let mut disks = vec![Disk::new(model, 1 << 40, 0); start.layout.disks().max(1)];
    let machine = Machine { processors: 8, costs: Costs::NONE };
    let input = Input { tasks: &start.tasks, replay: None, layout: &start.layout };
    run(&input, &machine, &mut cache, &mut disks).unwrap()
}

fn faults(r: &mut Recording, at: u64, page: u64, waited: u64, tid: u32) {
    let touch = r.touch(at, 0, page..page + 1, TouchKind::Fault);
    touch.tid = tid;
    r.fill(at, 0, page..page + 1, FillCause::DemandFault).tid = tid;
    r.off_cpu(at, waited, tid, OffCpuReason::Storage);
}

#[test]
fn the_recorded_disk_is_taken_out_and_another_put_in() {
    let mut r = recording();
    faults(&mut r, 10, 5, 20, 10);
    faults(&mut r, 40, 50, 30, 10);
    let start = Recorded::of(&r).unwrap();
    assert_eq!(start.needed_pages(), 2);
    for (latency, ready) in [(0, 50), (7, 64)] {
        let out = simulated(&start, latency);
        assert_eq!((out.time_ns / MS, out.sent.len()), (ready, 2));
        assert_eq!(out.path.of(Kind::Computing), 50 * MS);
    }
}

#[test]
fn who_waited_for_a_thread_waits_for_it_whatever_that_waits_for() {
    let mut r = recording();
    thread(&mut r, 11, 10, 5);
    // The worker is made at 5, reads from 20 to 40, and wakes the first thread at 50, which waits from 10 on.
    r.off_cpu(5, 1, 11, OffCpuReason::Runnable).waker = Some(10);
    r.off_cpu(10, 40, 10, OffCpuReason::Event).waker = Some(11);
    faults(&mut r, 20, 7, 20, 11);
    r.off_cpu.as_mut().unwrap().sort_by_key(|o| o.began);
    let start = Recorded::of(&r).unwrap();
    // The worker computes from 6 to 20 and from 40 to 50, the first thread from 50 to 100.
    for (latency, ready) in [(0, 5 + 14 + 10 + 50), (3, 5 + 14 + 3 + 10 + 50)] {
        assert_eq!(simulated(&start, latency).time_ns / MS, ready);
    }
}

#[test]
fn timers_take_their_time_but_that_of_reading_and_writing_takes_all() {
    let mut r = recording();
    thread(&mut r, 11, 10, 0);
    r.off_cpu(10, 30, 10, OffCpuReason::Event);
    faults(&mut r, 15, 7, 10, 11);
    let written = r.off_cpu(60, 10, 10, OffCpuReason::Storage);
    written.system_call = Some(74);
    r.stall(60, 10, cold_model::recording::StallCause::Write);
    r.off_cpu.as_mut().unwrap().sort_by_key(|o| o.began);
    let start = Recorded::of(&r).unwrap();
    assert_eq!(simulated(&start, 0).time_ns / MS, 90);
}

#[test]
fn pages_that_nothing_brought_in_were_there() {
    let mut r = recording();
    r.touch(10, 0, 20..21, TouchKind::Fault);
    r.touch(20, 0, 30..33, TouchKind::Read);
    // A stranger's.
    r.fill(15, 0, 31..32, FillCause::ReadAhead).in_tree = false;
    faults(&mut r, 40, 50, 5, 10);
    let start = Recorded::of(&r).unwrap();
    let mut cached = start.cached.clone();
    cached.sort_unstable_by_key(|c| c.1);
    assert_eq!(cached, [(FileId(0), 20, 1), (FileId(0), 30, 3)]);
    let out = simulated(&start, 1);
    assert_eq!((out.sent.len(), start.needed_pages()), (1, 5));
}

#[test]
fn what_others_kept_cached_is_not_read_by_a_window_though_nothing_needs_it() {
    let mut r = recording();
    faults(&mut r, 40, 50, 5, 10);
    let read = |r: &Recording| {
        let start = Recorded::of(r).unwrap();
        let disk = Model::default();
        start.simulate(&start.setting(&start.today(), &disk, None).unwrap()).unwrap().bytes.0 / 4096
    };
    let row = |first_page, pages| Resident { file: 0, first_page, pages };
    r.residency = Some(vec![]);
    assert_eq!(read(&r), 32, "a window of 128 KiB");
    // Eight pages in the middle of what is read after the one that is needed; far away what no window reaches.
    r.residency = Some(vec![row(52, 8), row(1 << 30, u32::MAX)]);
    assert_eq!(read(&r), 24);
    assert_eq!(Recorded::of(&r).unwrap().cached, [(FileId(0), 52, 8)]);
    // One that the start brought in was not there when it was needed.
    r.fill(41, 0, 52..54, FillCause::ReadAround);
    assert_eq!(Recorded::of(&r).unwrap().cached, [(FileId(0), 54, 6)]);
}

#[test]
fn a_child_touches_through_its_parents_mapping_and_pages_count_from_it() {
    let mut r = recording();
    let fork = process(20, "child", None);
    r.processes.push(Process { began: ms(5), how: Began::Fork, parent: 10, ..fork });
    thread(&mut r, 20, 20, 5);
    let touch = r.touch(30, 0, 9..10, TouchKind::Fault);
    (touch.pid, touch.tid) = (20, 20);
    // Outside of every mapping: it needs the page all the same.
    r.touch(40, 0, 99..100, TouchKind::Fault);
    let start = Recorded::of(&r).unwrap();
    let ops = |task: usize| {
        let steps = start.tasks[task].steps.iter();
        steps.filter_map(|s| if let Step::Access(op) = s { Some(*op) } else { None }).collect::<Vec<_>>()
    };
    assert_eq!(ops(1), [Op::Touch { map: cold_sim::op::MapId(0), page: 9, write: false }]);
    let Some(Op::Map { address, first, pages, exec, .. }) =
        ops(0).iter().find(|o| matches!(o, Op::Map { .. })).copied()
    else {
        panic!("{:?}", ops(0));
    };
    assert_eq!((address, first, pages, exec), (0x7f00_0000_2000 / 4096, 2, 90, false));
    assert!(ops(0).iter().any(|o| matches!(o, Op::Read { offset, bytes: 4096, .. } if *offset == 99 * 4096)));
}

#[test]
fn metadata_is_read_block_by_block() {
    let mut r = recording();
    let device = r.file("/dev/sda", 0);
    r.files[device as usize].kind = FileKind::BlockDevice;
    r.fill(10, device, 500..501, FillCause::Metadata);
    r.touch(20, 0, 5..6, TouchKind::Fault);
    let start = Recorded::of(&r).unwrap();
    let advised = |s: &Step| matches!(s, Step::Access(Op::AdviseOpen { pattern: Pattern::Random, .. }));
    assert!(start.tasks[0].steps.iter().any(advised));
    let out = simulated(&start, 1);
    assert_eq!((out.sent.len(), out.bytes(), start.needed_pages()), (1, 4096, 1));
}

#[test]
fn metadata_asked_for_together_is_one_read_and_no_policy_reads_more_of_it() {
    let mut r = recording();
    let device = r.file("/dev/sda", 0);
    r.files[device as usize].kind = FileKind::BlockDevice;
    // Four blocks at once, then a neighbour after a wait, and one elsewhere.
    for (us, block) in
        [(10_000, 500), (10_002, 501), (10_004, 502), (10_006, 503), (20_000, 504), (20_002, 900)]
    {
        r.fill(0, device, block..block + 1, FillCause::Metadata).at = Nanos(ms(0).0 + us * 1000);
    }
    r.touch(30, 0, 5..6, TouchKind::Fault);
    let start = Recorded::of(&r).unwrap();
    let out = simulated(&start, 1);
    assert_eq!(out.sent.iter().map(|s| s.bytes / 4096).collect::<Vec<_>>(), [4, 1, 1]);
    let of = |policy| sweep::Choice { policy, ..start.today() };
    let all = [of(Policy::Whole), of(Policy::Windows), of(Policy::FreeBsd)];
    let rows = start.sweep(&all, &Model::default(), None, &[], |_| {}).unwrap();
    assert!(rows.iter().all(|row| row.read == Bytes(6 * 4096)), "{rows:?}");
}

#[test]
fn files_lie_where_requests_showed_them() {
    let mut r = recording();
    faults(&mut r, 10, 20, 5, 10);
    faults(&mut r, 20, 60, 5, 10);
    r.request(10, 5, 0, 20..22).sector = 8000;
    r.request(20, 5, 0, 60..61).sector = 90_000;
    let start = Recorded::of(&r).unwrap();
    let places: Vec<u64> = simulated(&start, 1).sent.iter().map(|s| s.offset).collect();
    assert_eq!(places, [8000 * 512, 90_000 * 512]);
}

#[test]
fn the_window_is_the_recordings_or_another_and_folios_follow_the_policy() {
    let mut r = recording();
    faults(&mut r, 10, 20, 5, 10);
    r.manifest.machine.kernel = "6.18.1".into();
    let start = Recorded::of(&r).unwrap();
    assert_eq!(start.policy, Policy::Linux(LinuxVersion::V6_18));
    let file = start.files(start.policy, Windows::Usual)[0];
    assert_eq!((file.window_pages, file.io_pages, file.bytes, file.large_folios), (32, 320, 409_600, true));
    assert_eq!(start.files(start.policy, Windows::Of(Bytes(8192)))[0].window_pages, 2);
    assert!(!start.files(Policy::Windows, Windows::Usual)[0].large_folios);
    r.manifest.file_systems[0].options = "rw,data=journal".into();
    assert!(!Recorded::of(&r).unwrap().files(start.policy, Windows::Usual)[0].large_folios);
}

#[test]
fn what_cannot_be_simulated_says_why() {
    let r = recording();
    assert_eq!(Recorded::of(&r).unwrap_err(), NotSimulated::NoTouches);
    assert_eq!(Recorded::of(&Recording { touches: None, ..r }).unwrap_err(), NotSimulated::Unseen);
}

/// The worker waits for a page from 20 to 40 ms; the first thread, which waits for it from 10 to 50, waits for pages
/// from 60 to 80. How much of it is known is taken away step by step.
#[test]
fn without_the_times_off_the_cpu_only_own_waits_for_storage_change() {
    let mut r = recording();
    thread(&mut r, 11, 10, 5);
    r.off_cpu(5, 1, 11, OffCpuReason::Runnable).waker = Some(10);
    r.off_cpu(10, 40, 10, OffCpuReason::Event).waker = Some(11);
    for (at, page, tid) in [(20, 7, 11), (60, 50, 10)] {
        faults(&mut r, at, page, 20, tid);
        r.stall(at, 20, StallCause::Fault).tid = tid;
    }
    r.stall(85, 5, StallCause::Write);
    r.stall(92, 3, StallCause::Lock);
    r.off_cpu.as_mut().unwrap().sort_by_key(|o| o.began);
    let of = |r: &Recording, latency| {
        let start = Recorded::of(r).unwrap();
        let out = simulated(&start, latency);
        (start.waits_known, whole_ms(&out), out.sent.len())
    };
    // Nothing tells of the write here, so it counts as computing.
    // The worker runs from 6 to 20 and from 40 to 50.
    let all = 5 + 14 + 10 + 10 + 20;
    assert_eq!([of(&r, 0), of(&r, 3)], [(WaitsKnown::All, all, 2), (WaitsKnown::All, all + 6, 2)]);
    r.off_cpu = None;
    assert_eq!([of(&r, 0), of(&r, 3)], [(WaitsKnown::Storage, 80, 2), (WaitsKnown::Storage, 83, 2)]);
    r.stalls = None;
    assert_eq!([of(&r, 0), of(&r, 3)], [(WaitsKnown::None, 100, 2), (WaitsKnown::None, 103, 2)]);
}

/// As many threads as a browser has wait for most of their time: they take no processor.
#[test]
fn threads_of_which_nothing_is_known_are_not_in_each_others_way() {
    let mut r = recording();
    for tid in 11..50 {
        thread(&mut r, tid, 10, 0);
        r.touch(90, 0, 30..31, TouchKind::Fault).tid = tid;
    }
    r.off_cpu = None;
    let start = Recorded::of(&r).unwrap();
    assert_eq!(simulated(&start, 0).time_ns / MS, 100);
}

#[test]
fn made_up_tables_do_no_harm() {
    let mut r = recording();
    faults(&mut r, 10, 20, 5, 10);
    let odd = r.off_cpu(20, 5, 10, OffCpuReason::Event);
    (odd.waker, odd.ended, odd.woken) = (Some(10), Nanos(0), Some(Nanos(u64::MAX)));
    r.off_cpu(30, 5, 99, OffCpuReason::Event).waker = Some(10);
    r.touch(40, 77, 1..2, TouchKind::Fault);
    r.touch(50, 0, u64::MAX - 3..u64::MAX, TouchKind::Read);
    r.request(10, 5, 0, 1..2).sector = u64::MAX;
    r.transfers.as_mut().unwrap()[0].first_page = u64::MAX;
    r.mappings.as_mut().unwrap()[0].bytes = u64::MAX;
    let start = Recorded::of(&r).unwrap();
    let _ = simulated(&start, 1);
    r.touches.as_mut().unwrap()[0].pages = u32::MAX;
    assert!(matches!(Recorded::of(&r).unwrap_err(), NotSimulated::TooLarge(_)));
}

#[test]
fn a_read_ends_where_its_call_did() {
    let mut r = recording();
    // Ten bytes; two pieces of a call that ends within the second; one whose end is not in its pages.
    for (at, pages, call, end) in
        [(10, 20..21, 9, 20 * 4096 + 10), (12, 30..32, 11, 33 * 4096 + 1), (13, 32..34, 11, 33 * 4096 + 1)]
    {
        let touch = r.touch(at, 0, pages, TouchKind::Read);
        (touch.call, touch.end) = (Some(ms(call)), Some(end));
    }
    r.touch(20, 0, 40..41, TouchKind::Read).end = Some(3);
    let start = Recorded::of(&r).unwrap();
    let reads = start.tasks[0].steps.iter().filter_map(|s| match s {
        Step::Access(Op::Read { offset, bytes, .. }) => Some((*offset, *bytes)),
        _ => None,
    });
    let expected = [(20 * 4096, 10), (30 * 4096, 3 * 4096 + 1), (40 * 4096, 4096)];
    assert_eq!(reads.collect::<Vec<_>>(), expected);
    assert_eq!(start.needed_pages(), 6, "all pages are needed");
}

#[test]
fn the_pieces_of_one_call_are_one_read() {
    let mut r = recording();
    // A call that waited for three pages one by one, then another call that goes on from there.
    for (at, page, call) in [(10, 20, 9), (12, 21, 9), (14, 22, 9), (20, 23, 19)] {
        r.touch(at, 0, page..page + 1, TouchKind::Read).call = Some(ms(call));
        r.fill(at, 0, page..page + 1, FillCause::BufferedRead);
    }
    let start = Recorded::of(&r).unwrap();
    let reads = start.tasks[0].steps.iter().filter_map(|s| match s {
        Step::Access(Op::Read { offset, bytes, .. }) => Some((offset / 4096, bytes / 4096)),
        _ => None,
    });
    assert_eq!(reads.collect::<Vec<_>>(), [(20, 3), (23, 1)]);
    assert_eq!(start.needed_pages(), 4);
    assert_eq!(simulated(&start, 1).sent.len(), 2);
}

/// A start on a file system with a window of 128 KiB, page by page over 800 pages of a file.
fn in_order() -> Recorded {
    let mut r = recording();
    let big = r.file("/big", 4096 * 1000);
    let mapped = r.mappings.as_ref().unwrap()[0].clone();
    let row = Mapping { file: big, offset: 0, bytes: 4096 * 1000, address: 0x7e00_0000_0000, ..mapped };
    r.mappings.as_mut().unwrap().push(row);
    for page in 0..80 {
        r.touch(10 + page, big, page * 10..page * 10 + 1, TouchKind::Fault);
        r.fill(10 + page, big, page * 10..page * 10 + 1, FillCause::DemandFault);
    }
    Recorded::of(&r).unwrap()
}

#[test]
fn the_advice_is_the_smallest_change_that_gives_nearly_as_much_as_the_best() {
    use super::sweep::{Choice, Reader};
    let start = in_order();
    assert_eq!(start.window(), Some(Bytes(128 << 10)));
    let windows = |kib: &[u64]| -> Vec<Choice> {
        let own = start.today();
        kib.iter().map(|k| Choice { windows: Windows::Of(Bytes(k << 10)), ..own }).collect()
    };
    let disk = |latency| Model { latency_ns: latency * MS, ..Model::default() };
    let rows = |kib: &[u64], latency| start.sweep(&windows(kib), &disk(latency), None, &[], |_| {}).unwrap();
    // Requests of 20 ms: the larger the window, the better; 1 MiB gives nearly what 4 MiB does.
    let slow = rows(&[64, 128, 1024, 4096], 20);
    assert_eq!(slow.len(), 4, "today's window in other words is no other setting");
    assert!(
        slow[0].choice == start.today() && slow[1..].windows(2).all(|w| w[0].time <= w[1].time),
        "{slow:?}"
    );
    let advice = start.advice(&slow).unwrap();
    assert_eq!((advice.window, advice.instead_of), (Bytes(1 << 20), Bytes(128 << 10)));
    let time = |window| slow.iter().find(|r| r.choice.windows == window).unwrap().time;
    assert_eq!(advice.saves, slow[0].time - time(Windows::Of(Bytes(1 << 20))));
    // Requests that take nothing: no window is worth a word. Neither is what was not tried.
    assert_eq!(start.advice(&rows(&[64, 1024], 0)), None);
    assert_eq!(start.advice(&rows(&[], 20)), None);
    // A helper that knows reads the needed pages and no others.
    let exact = Choice { reader: Reader::Exact, ..start.today() };
    let told = start.sweep(&[exact], &disk(1), None, &[FileId(0)], |_| {}).unwrap();
    let part = told[1].part.unwrap();
    assert_eq!((told[1].read, told[1].unused, part.read), (Bytes(80 * 4096), Bytes(0), Bytes(80 * 4096)));
    assert!(told[1].ratio < 1.0 && told[1].time < told[0].time, "{told:?}");
}

#[test]
fn a_simulated_start_is_drawn_as_a_recording_of_its_reads_and_waits() {
    let mut r = recording();
    faults(&mut r, 10, 5, 20, 10);
    faults(&mut r, 40, 50, 30, 10);
    let start = Recorded::of(&r).unwrap();
    let disk = Model { latency_ns: 7 * MS, ..Model::default() };
    let choice = sweep::Choice { policy: Policy::Nothing, ..start.today() };
    let simulated = start.simulate(&start.setting(&choice, &disk, None).unwrap()).unwrap();
    let drawn = start.as_recording(&r, &simulated, "note".into());
    let at = |ns: Nanos| (ns.0 - r.manifest.start.0) / MS;
    let touches: Vec<_> = drawn.touches.iter().flatten().map(|t| (at(t.at), t.first_page)).collect();
    // Computed up to 10; 7 ms of the disk and some µs of waking; then the 10 between the recorded waits.
    assert_eq!(touches, [(10, 5), (27, 50)]);
    let waits: Vec<_> =
        drawn.stalls.iter().flatten().map(|s| (s.page, at(s.began), s.woken.map(at))).collect();
    assert_eq!(waits, [(Some(5), 10, Some(17)), (Some(50), 27, Some(34))]);
    assert_eq!(drawn.device_reads.as_ref().map(Vec::len), Some(2));
    assert_eq!(drawn.fills.iter().flatten().map(|f| f.first_page).collect::<Vec<_>>(), [5, 50]);
    assert_eq!(drawn.manifest.notes, ["note"]);
}

#[test]
fn pages_that_there_is_no_room_for_are_read_again() {
    let mut r = empty();
    let file = r.file("/data", 400 * 4096);
    r.manifest.ready = Some(Known::Value(ms(1000)));
    for n in 0..800 {
        r.touch(10 + n, file, n % 400..n % 400 + 1, TouchKind::Read);
    }
    r.fill(5, file, 0..400, FillCause::BufferedRead);
    let mut start = Recorded::of(&r).unwrap();
    let choice = sweep::Choice { policy: Policy::Nothing, ..start.today() };
    let row = |start: &Recorded| start.sweep(&[choice], &Model::default(), None, &[], |_| {}).unwrap()[1];
    let none = Again::default();
    assert_eq!((row(&start).read, row(&start).again), (Bytes(400 * 4096), none));
    start.memory = Some(Bytes(500 * 4096));
    assert_eq!(row(&start).again, none);
    // Each page goes before it is read again.
    start.memory = Some(Bytes(200 * 4096));
    let all = Again { pages: 400, bytes: Bytes(400 * 4096) };
    assert_eq!((row(&start).read, row(&start).again, row(&start).unused), (Bytes(800 * 4096), all, Bytes(0)));
    // What was recorded had the room that it had.
    assert_eq!(start.as_recorded(&[], &Model::default()).unwrap().again, none);
}

#[test]
fn files_of_any_size_are_simulated_but_not_read_whole() {
    let mut r = recording();
    for bytes in [u64::MAX, 1 << 50] {
        let file = r.file("/huge", bytes);
        r.touch(20, file, 5..6, TouchKind::Fault);
        r.fill(20, file, 5..6, FillCause::DemandFault);
    }
    let start = Recorded::of(&r).unwrap();
    let of = |policy| sweep::Choice { policy, ..start.today() };
    let rows =
        start.sweep(&[of(Policy::Whole), of(Policy::Nothing)], &Model::default(), None, &[], |_| {}).unwrap();
    assert_eq!(rows.iter().map(|r| r.choice.policy).collect::<Vec<_>>(), [start.policy, Policy::Nothing]);
    assert_eq!(rows[1].read, Bytes(2 * 4096));
}

#[test]
fn a_thread_was_made_by_one_that_ran_and_nobody_waits_for_himself() {
    let mut r = recording();
    thread(&mut r, 11, 10, 5);
    // While the first thread waits for it, the second one makes a third, and waits for that. Only the tables of threads
    // say so: they name the process.
    r.off_cpu(5, 1, 11, OffCpuReason::Runnable).waker = Some(10);
    r.off_cpu(10, 80, 10, OffCpuReason::Event).waker = Some(11);
    thread(&mut r, 12, 10, 20);
    r.off_cpu(30, 20, 11, OffCpuReason::Event).waker = Some(12);
    r.touch(25, 0, 7..8, TouchKind::Fault).tid = 12;
    r.off_cpu.as_mut().unwrap().sort_by_key(|o| o.began);
    let start = Recorded::of(&r).unwrap();
    // The second one computes from 6 to 20, the third one from 20 to 50; then the second one to 90, the first one to 100.
    assert_eq!(whole_ms(&simulated(&start, 0)), 5 + 14 + 30 + 40 + 10);
    // Woken by a thread that waits for the woken one itself: an interrupt did that.
    r.off_cpu(40, 45, 12, OffCpuReason::Event).waker = Some(10);
    r.off_cpu.as_mut().unwrap().sort_by_key(|o| o.began);
    let start = Recorded::of(&r).unwrap();
    assert!(simulated(&start, 0).time_ns > 0);
}
