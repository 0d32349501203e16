use std::path::Path;

use cold_model::Dev;
use cold_model::recording::manifest::{FileSystem, Tier};
use cold_model::recording::tables::Began;
use cold_model::recording::{
    File, FileKind as Kind, FillCause, LookupKind, Mapping, OffCpuReason, PathFrom, Process, StallCause,
    Thread,
};
use cold_model::sample::{DISK, empty, ms};
use cold_model::{Bytes, FileId, Known, Nanos};

use super::*;

/// Process 10 is started at 0 ms, executes file 0 at 1 ms and is ready at 101 ms. Tier A, warm.
pub(super) fn recording() -> Recording {
    let mut r = empty();
    let m = &mut r.manifest;
    m.ready = Some(Known::Value(ms(101)));
    m.started_at = "2026-11-21T10:00:00Z".into();
    m.state.wanted = "warm".into();
    m.exact_need = true;
    m.fault_around = Known::Value(Bytes(4096));
    r.processes.clear();
    process(&mut r, 10, 1, 0, Began::Fork, None);
    process(&mut r, 10, 1, 1, Began::Exec, None);
    file(&mut r, "/usr/bin/prog", 100);
    r.processes[1].executable = Some(0);
    r
}

fn process(r: &mut Recording, pid: u32, parent: u32, at: u64, how: Began, ended: Option<u64>) {
    let process = cold_model::sample::process(pid, "prog", None);
    r.processes.push(Process { began: ms(at), how, parent, ended: ended.map(ms), ..process });
    thread(r, pid, pid, at);
}

fn thread(r: &mut Recording, tid: u32, pid: u32, at: u64) {
    r.threads.push(Thread { began: ms(at), tid, pid, name: "prog".into(), in_tree: true, ended: None });
}

pub(super) fn file(r: &mut Recording, path: &str, pages: u64) -> u32 {
    let n = r.file(path, pages * 4096 - 5);
    let row = &mut r.files[n as usize];
    (row.mtime_ns, row.build_id) = (Some(1), Some("00ff10".into()));
    n
}

pub(super) fn touch(
    r: &mut Recording,
    at: u64,
    tid: u32,
    file: u32,
    pages: std::ops::Range<u64>,
    kind: TouchKind,
) {
    let row = r.touch(at, file, pages, kind);
    (row.pid, row.tid) = (tid, tid);
}

fn waits(r: &mut Recording, from: u64, to: u64, tid: u32, cause: StallCause) {
    let row = r.stall(from, to - from, cause);
    (row.pid, row.tid) = (tid, tid);
    r.off_cpu(from, to - from, tid, OffCpuReason::Storage).system_call = Some(0);
}

pub(super) fn lookup(
    r: &mut Recording,
    at: u64,
    kind: LookupKind,
    path: &str,
    result: i64,
    file: Option<u32>,
) {
    r.lookup(at, kind, path, result).file = file;
}

/// Path, first page, pages, need in ms, around.
fn learnt(r: &Recording) -> Vec<(String, u64, u32, u64, bool)> {
    let s = observe(r, &With::default()).expect("teaches");
    assert!(s.ranges.is_sorted_by_key(|r| r.need_ns) && s.files.is_sorted_by_key(|f| f.need_ns));
    let path = |n: u32| s.files[n as usize].path.display().to_string();
    // Whole milliseconds: behind each wait some µs count as reading.
    let whole = |ns: u64| (ns + 500_000) / 1_000_000;
    s.ranges.iter().map(|r| (path(r.file), r.first_page, r.pages, whole(r.need_ns), r.around)).collect()
}

fn needs(r: &Recording) -> Vec<u64> {
    learnt(r).iter().map(|l| l.3).collect()
}

#[test]
fn waits_of_the_needing_line_are_taken_out() {
    let mut r = recording();
    // The main thread waits from 2 to 22 ms; its worker, begun at 30, from 40 to 50.
    waits(&mut r, 2, 22, 10, StallCause::Fault);
    thread(&mut r, 11, 10, 30);
    waits(&mut r, 40, 50, 11, StallCause::Read);
    waits(&mut r, 60, 70, 10, StallCause::Write);
    touch(&mut r, 2, 10, 0, 0..1, TouchKind::Fault);
    touch(&mut r, 25, 10, 0, 10..11, TouchKind::Fault);
    touch(&mut r, 55, 11, 0, 20..21, TouchKind::Fault);
    // The main thread did not wait for its worker's read, as far as anybody can see; writing stays.
    touch(&mut r, 81, 10, 0, 30..31, TouchKind::Fault);
    assert_eq!(needs(&r), [1, 4, 24, 60]);
    let s = observe(&r, &With::default()).expect("teaches");
    assert_eq!((s.ready_ns, (s.computing_ns + 500_000) / 1_000_000), (101_000_000, 80));
}

#[test]
fn a_childs_needs_follow_its_parents_and_the_parent_waits_for_it() {
    let mut r = recording();
    waits(&mut r, 2, 12, 10, StallCause::Exec);
    process(&mut r, 20, 10, 15, Began::Fork, Some(60));
    waits(&mut r, 20, 40, 20, StallCause::Read);
    thread(&mut r, 21, 20, 18);
    waits(&mut r, 30, 50, 21, StallCause::Fault);
    let child = r.off_cpu(57, 3, 10, OffCpuReason::Event);
    child.waker = Some(20);
    touch(&mut r, 18, 20, 0, 0..1, TouchKind::Fault);
    touch(&mut r, 45, 20, 0, 10..11, TouchKind::Fault);
    touch(&mut r, 55, 10, 0, 20..21, TouchKind::Fault);
    touch(&mut r, 71, 10, 0, 30..31, TouchKind::Fault);
    // 18-1-10; 45-1-10-20; before the wait for the child 55-1-10. That would not have been one, for without its wait
    // the child ends at 60-1-10-20, and the parent asks at 57-1-10: 71-1-10-3.
    assert_eq!(needs(&r), [7, 14, 44, 57]);
}

#[test]
fn adjacent_pages_of_one_time_are_one_range_and_each_page_has_its_first_need() {
    let mut r = recording();
    touch(&mut r, 10, 10, 0, 5..6, TouchKind::Fault);
    touch(&mut r, 11, 10, 0, 6..8, TouchKind::Read);
    touch(&mut r, 40, 10, 0, 0..12, TouchKind::Read);
    // Beyond the end, and after ready.
    touch(&mut r, 50, 10, 0, 98..140, TouchKind::Read);
    touch(&mut r, 150, 10, 0, 60..61, TouchKind::Fault);
    let path = || "/usr/bin/prog".to_owned();
    let want = [
        (path(), 5, 3, 9, false),
        (path(), 0, 5, 39, false),
        (path(), 8, 4, 39, false),
        (path(), 98, 2, 49, false),
    ];
    assert_eq!(learnt(&r), want);
}

#[test]
fn pages_mapped_around_a_fault_are_marked_unless_they_were_touched() {
    let mut r = recording();
    r.manifest.exact_need = false;
    touch(&mut r, 10, 10, 0, 5..6, TouchKind::Fault);
    touch(&mut r, 10, 10, 0, 0..16, TouchKind::FaultAround);
    let all = learnt(&r);
    assert_eq!(
        all.iter().map(|l| (l.1, l.2, l.4)).collect::<Vec<_>>(),
        [(0, 5, true), (5, 1, false), (6, 10, true)]
    );
    assert!(!observe(&r, &With::default()).expect("teaches").exact);
}

#[test]
fn exactness_by_reading_nothing_ahead_holds_for_cold_starts_only() {
    let mut r = recording();
    touch(&mut r, 10, 10, 0, 5..6, TouchKind::Fault);
    r.manifest.fault_around = Known::unknown("no debugfs");
    assert!(!observe(&r, &With::default()).expect("teaches").exact);
    r.manifest.state.wanted = "cold".into();
    let s = observe(&r, &With::default()).expect("teaches");
    assert!(s.exact && !s.proved_cold && s.missing.contains(&Unseen::Coldness), "{s:?}");
}

#[test]
fn a_start_is_proved_cold_when_little_of_what_it_needs_stayed_cached() {
    let proved = |absent: Option<(u64, u64)>| {
        let mut r = recording();
        r.manifest.state.wanted = "cold".into();
        // A large file of which 20 pages are needed.
        r.manifest.state.checked = Bytes(1 << 30);
        touch(&mut r, 10, 10, 0, 0..20, TouchKind::Read);
        r.manifest.state.residual = absent.map(|(bytes, unknown)| {
            let (bytes, unknown_bytes) = (Bytes(bytes * 4096), Bytes(unknown * 4096));
            Known::Value(cold_model::bench::Residual { bytes, unknown_bytes, ..Default::default() })
        });
        observe(&r, &With::default()).expect("teaches").proved_cold
    };
    assert!(proved(Some((0, 0))) && proved(Some((1, 1))));
    assert!(!proved(Some((2, 1))) && !proved(Some((0, 3))) && !proved(None));
}

#[test]
fn another_thread_or_process_until_ready_is_seen() {
    let one = |change: &dyn Fn(&mut Recording)| {
        let mut r = recording();
        touch(&mut r, 10, 10, 0, 0..1, TouchKind::Fault);
        change(&mut r);
        observe(&r, &With::default()).expect("teaches").one_thread
    };
    assert!(one(&|_| ()));
    assert!(!one(&|r| thread(r, 11, 10, 50)));
    assert!(!one(&|r| process(r, 20, 10, 15, Began::Fork, Some(60))));
    assert!(one(&|r| thread(r, 11, 10, 150)), "after ready");
}

/// A file that the start read from storage and wrote in place (a database) is known by its inode from then on.
#[test]
fn what_the_start_reads_and_writes_in_place_is_learnt() {
    let mut r = recording();
    let names = ["/srv/in place", "/srv/made new"];
    for name in names {
        let n = file(&mut r, name, 100);
        r.files[n as usize].mtime_ns = Some(1_795_255_200_000_000_001);
        touch(&mut r, 20, 10, n, 3..4, TouchKind::Read);
        let cause = if name == names[0] { FillCause::BufferedRead } else { FillCause::Write };
        r.fill(20, n, 3..4, cause);
    }
    let start = observe(&r, &With::default()).expect("teaches");
    let learnt = |name: &str| start.files.iter().find(|f| f.path == Path::new(name));
    assert_eq!(learnt(names[0]).map(|f| f.identity.mtime_ns), Some(cold_plan::identity::WRITTEN_IN_PLACE));
    assert_eq!(learnt(names[1]), None);
    assert_eq!((start.needed(), start.readable()), (2, 1));
    assert_eq!(start.left_out, [(LeftOut::Made, 1)].into());
}

type Change = fn(&mut File);

#[test]
fn what_a_later_start_cannot_use_is_not_learnt() {
    let mut r = recording();
    let bad: [(&str, Change); 12] = [
        ("/home/u/written", |f| f.mtime_ns = Some(1_795_255_200_000_000_001)),
        ("/home/u/deleted", |f| f.deleted = true),
        ("/run/user/0/x", |f| f.file_system = "tmpfs".into()),
        ("/mnt/nfs/x", |f| f.file_system = "nfs4".into()),
        ("/mnt/fuse/x", |f| f.file_system = "fuse.sshfs".into()),
        ("memfd:x", |f| f.kind = Kind::Memory),
        ("pipe:[5]", |f| f.kind = Kind::Other),
        ("/usr/lib/lost", |f| f.path_from = PathFrom::Unknown),
        ("/usr/lib/empty", |f| f.size = Some(0)),
        ("/usr/../lib/up", |_| ()),
        ("/var/lib/coldstart/plans/p", |_| ()),
        ("/blind/x", |f| f.dev = Dev::new(0, 99)),
    ];
    r.manifest.file_systems.push(FileSystem {
        dev: Dev::new(0, 99),
        kind: "ext4".into(),
        mounted_at: "/blind".into(),
        source: String::new(),
        options: String::new(),
        read_ahead: Known::default(),
        blind: Some("direct access".into()),
    });
    for (path, change) in bad {
        let n = file(&mut r, path, 4);
        change(&mut r.files[n as usize]);
        touch(&mut r, 10, 10, n, 0..2, TouchKind::Read);
        lookup(&mut r, 10, LookupKind::Stat, path, 0, Some(n));
    }
    touch(&mut r, 5, 10, 0, 0..1, TouchKind::Fault);
    let store = [std::path::PathBuf::from("/var/lib/coldstart")];
    let s = observe(&r, &With { excluded: &store, ..With::default() }).expect("teaches");
    let names: Vec<_> = s.files.iter().map(|f| f.path.display().to_string()).collect();
    assert_eq!(s.ranges.len(), 1, "{names:?}");
    // Their names: of files that are there, those may be looked up.
    assert_eq!(names, ["/usr/bin/prog", "/usr/lib/lost", "/usr/lib/empty"]);
    // The two that are no regular files are not counted.
    let why = [(LeftOut::Made, 2), (LeftOut::NoDevice, 4), (LeftOut::OurOwn, 1), (LeftOut::Unnamed, 3)];
    assert_eq!((s.left_out.clone(), s.needed(), s.readable()), (why.into(), 11, 1));
    let f = &s.files[0];
    assert_eq!(
        (f.identity.inode, f.identity.size, &f.identity.build_id[..4]),
        (100, 409_595, &[0, 255, 16, 0][..])
    );
}

#[test]
fn before_the_exec_only_the_kernels_reading_of_the_program_counts() {
    let mut r = recording();
    let launcher = file(&mut r, "/usr/bin/cold", 50);
    let ld = file(&mut r, "/lib/ld.so", 50);
    r.mappings.get_or_insert_default().push(Mapping {
        at: ms(0),
        pid: 10,
        address: 0,
        bytes: 4096,
        offset: 0,
        file: ld,
        executable: true,
    });
    touch(&mut r, 0, 10, launcher, 3..4, TouchKind::Fault);
    touch(&mut r, 0, 10, 0, 0..1, TouchKind::Read);
    touch(&mut r, 0, 10, ld, 2..3, TouchKind::Fault);
    let got: Vec<_> = learnt(&r).into_iter().map(|l| (l.0, l.1, l.3)).collect();
    assert_eq!(got, [("/usr/bin/prog".to_owned(), 0, 0), ("/lib/ld.so".to_owned(), 2, 0)]);
}

#[test]
fn pages_of_64_kib_become_those_of_plans_up_to_the_end_of_the_file() {
    let mut r = recording();
    r.manifest.state.wanted = "cold".into();
    (r.manifest.page_bytes, r.manifest.fault_around) = (64 << 10, Known::Value(Bytes(64 << 10)));
    // 100 pages of 4096 bytes are 6.25 of 64 KiB.
    touch(&mut r, 10, 10, 0, 1..3, TouchKind::Fault);
    touch(&mut r, 20, 10, 0, 6..7, TouchKind::Fault);
    let device = file(&mut r, "/dev/sda1", 1);
    r.files[device as usize].kind = Kind::BlockDevice;
    // The known inode's page is 706 / 16 = 44; what was read with it holds others. 46 lies 32 blocks further.
    for pages in [44..46, 46..47] {
        let request = r.request(4, 1, device, pages.clone());
        (request.metadata, request.readahead) = (true, true);
        r.fill(4, device, pages, FillCause::Metadata);
    }
    let with = With { inode_page: Some(|_| Some((DISK, 706))), ..With::default() };
    let s = observe(&r, &with).expect("teaches");
    assert!(s.exact, "a window of one page");
    let of = |kind| {
        let here = s.ranges.iter().filter(|r| s.files[r.file as usize].kind == kind);
        here.map(|r| (r.first_page, r.pages)).collect::<Vec<_>>()
    };
    assert_eq!(of(FileKind::Regular), [(16, 32), (96, 4)]);
    assert_eq!(of(FileKind::BlockDevice), [(44 * 16, 16), (46 * 16, 16)]);
}

/// An observation twice as slow as the start, with nothing in it.
fn unobserved() -> observed::ObservedStart {
    observed::ObservedStart { duration: Nanos(200_000_000), ..cold_model::sample::observed(vec![]) }
}

#[test]
fn the_loader_of_an_executed_file_is_looked_up_first() {
    let mut r = recording();
    touch(&mut r, 5, 10, 0, 0..4, TouchKind::Fault);
    lookup(&mut r, 3, LookupKind::Stat, "/etc/late", 0, None);
    let with = With {
        interpreter: Some(|path| {
            vec!["/lib64/ld.so".into(), Path::new("/of").join(path.file_name().expect("a name"))]
        }),
        ..With::default()
    };
    let s = observe(&r, &with).expect("teaches");
    let names: Vec<(&Path, u64)> = s.files.iter().map(|f| (f.path.as_path(), f.need_ns)).collect();
    assert_eq!(names[..2], [(Path::new("/lib64/ld.so"), 0), (Path::new("/of/prog"), 0)], "{names:?}");
    assert!(names.contains(&(Path::new("/etc/late"), 2_000_000)), "{names:?}");
}

#[test]
fn lower_tiers_say_what_they_miss_and_take_small_opened_files_whole() {
    let mut r = recording();
    r.manifest.tier = Tier::D;
    (r.lookups, r.stalls, r.fills) = (None, None, None);
    touch(&mut r, 20, 10, 0, 0..1, TouchKind::Fault);
    let opened = |path: &str, size: u64, at: u64| observed::ObservedFile {
        path: path.into(),
        id: FileId { dev: 0x800, ino: 77 },
        size: Bytes(size),
        mtime_ns: 1,
        how: observed::How { opened: true, ..observed::How::default() },
        first: Nanos(at * 1_000_000),
        elsewhere: false,
        gone: false,
    };
    let seen = observed::ObservedStart {
        files: vec![
            opened("/usr/bin/prog", 4096, 1),
            opened("/usr/lib/large", 129 << 10, 2),
            opened("/usr/lib/small.py", 9000, 3),
            opened("/proc/cpuinfo", 100, 4),
            observed::ObservedFile { gone: true, ..opened("/tmp/x", 100, 4) },
        ],
        ..unobserved()
    };
    let s = observe(&r, &With { opened: Some(&seen), ..With::default() }).expect("teaches");
    let all: Vec<_> =
        s.ranges.iter().map(|r| (s.files[r.file as usize].path.as_path(), r.pages, r.around)).collect();
    assert_eq!(all, [(Path::new("/usr/lib/small.py"), 3, true), (Path::new("/usr/bin/prog"), 1, false)]);
    assert_eq!(s.files[0].identity.dev, DISK);
    assert_eq!(s.files[0].need_ns, 1_500_000);
    assert_eq!(s.sees, Sees { pages: false, lookups: false, metadata: false });
    assert!(s.missing.iter().any(|m| matches!(m, Unseen::Reads { opened: true, .. })), "{:?}", s.missing);
    assert!(s.missing.iter().any(|m| matches!(m, Unseen::Lookups(_))));
}

#[test]
fn recordings_that_teach_nothing_say_why() {
    let r = recording();
    assert_eq!(observe(&r, &With::default()), Err(TeachesNothing::Nothing));
    let change = |f: &dyn Fn(&mut Recording)| {
        let mut r = recording();
        f(&mut r);
        observe(&r, &With::default()).expect_err("nothing")
    };
    assert_eq!(change(&|r| r.manifest.subject = Subject::Machine), TeachesNothing::NotACommand);
    assert_eq!(change(&|r| r.manifest.page_bytes = 2048), TeachesNothing::PageSize(2048));
    assert_eq!(change(&|r| r.touches = None), TeachesNothing::NoTouches);
    assert!(matches!(change(&|r| r.manifest.ready = None), TeachesNothing::NeverReady(_)));
}

#[test]
fn lost_events_make_a_start_add_and_never_remove() {
    let mut r = recording();
    touch(&mut r, 20, 10, 0, 0..1, TouchKind::Fault);
    r.manifest.lost.insert("filemap".into(), 3);
    let s = observe(&r, &With::default()).expect("teaches");
    assert_eq!(s.sees, Sees { pages: false, lookups: false, metadata: false });
    assert!(s.faults[0].contains("3 events were lost"));
}

#[test]
fn made_up_starts_of_real_shape_are_learnt_whole() {
    for r in [cold_recording::sample::small(), cold_recording::sample::firefox_like(20_000, 7)] {
        let s = observe(&r, &With::default()).expect("teaches");
        let usage = cold_analyze::replay(&r);
        let needed: u64 = r
            .files
            .iter()
            .zip(&usage)
            .filter(|(f, _)| f.kind == Kind::Regular && f.path.is_some() && !f.deleted && f.size > Some(0))
            .map(|(_, u)| u.needed.minus(&u.written).pages())
            .sum();
        let regular = |r: &&Range| s.files[r.file as usize].kind == FileKind::Regular;
        let learnt: u64 = s.ranges.iter().filter(regular).map(|r| u64::from(r.pages)).sum();
        assert_eq!(learnt, needed);
        assert!(s.ranges.iter().all(|r| r.need_ns <= s.ready_ns));
    }
}

#[test]
fn a_start_without_some_files_needs_what_is_left_as_before() {
    let start = crate::sample::start(3, &[(0, 1, 2, 5), (1, 3, 4, 6), (2, 5, 6, 7), (1, 9, 1, 8)]);
    let left = start.clone().without(&|file| file.path.ends_with("f1"));
    let of = |start: &StartNeeds| {
        let name = |r: &Range| start.files[r.file as usize].path.clone();
        start.ranges.iter().map(|r| (name(r), r.first_page, r.pages, r.need_ns)).collect::<Vec<_>>()
    };
    let wanted: Vec<_> = of(&start).into_iter().filter(|(path, ..)| !path.ends_with("f1")).collect();
    assert_eq!((left.files.len(), of(&left)), (2, wanted));
    assert!(start.without(&|_| true).ranges.is_empty());
}

#[test]
fn what_one_start_has_shown_is_not_missing_and_faults_are_told_of_each() {
    let s = |missing: &[Unseen], fault: &str| {
        let (missing, faults) = (missing.to_vec(), vec![fault.to_owned()]);
        StartNeeds { missing, faults, ..crate::sample::start(1, &[]) }
    };
    let (one, two) = ([Unseen::Metadata, Unseen::Exactness], [Unseen::Exactness, Unseen::Coldness]);
    let told = not_shown(&[s(&one, "a"), s(&two, "b")]);
    assert_eq!(told, ["a".to_owned(), "b".to_owned(), Unseen::Exactness.to_string()]);
    assert_eq!(not_shown(&[]), Vec::<String>::new());
}
