use std::collections::BTreeMap;

use cold_model::recording::StallCause;

use super::*;
use crate::etl::{ImagePayload, Phase, ProcessPayload as EtlProcess, ThreadPayload as EtlThread};
use crate::evidence::{Builder, Named, RawFault, RawRead, System, Wanted};

const APP: &str = "\\Device\\HarddiskVolume1\\app.exe";
const LIBRARY: &str = "\\Device\\HarddiskVolume1\\library.dll";

fn read(tid: Option<u32>, began: i64, completed: i64, bytes: u32, file: Named<'_>) -> RawRead<'_> {
    RawRead {
        began: Some(began),
        completed,
        disk: 2,
        offset: Some(began.cast_unsigned().saturating_mul(512)),
        bytes,
        file,
        tid,
        pid: None,
    }
}

fn fault(tid: u32, began: i64, ended: i64, offset: u64, bytes: u32, file: Named<'_>) -> RawFault<'_> {
    RawFault { began, ended, offset, bytes, file, tid, pid: None }
}

/// `app.exe` begins at 100 and ends at 9000, its child at 500 and 8000. Others fault and read beside them.
fn start() -> Evidence {
    let mut b = Builder::default();
    let process = |phase, pid, parent, image: &str| EtlProcess {
        phase,
        pid,
        parent,
        session: 1,
        status: 3,
        image: image.to_owned(),
        command: format!("{image} --go"),
    };
    b.volume("\\Device\\HarddiskVolume1\\", "C:\\");
    b.process(0, &process(Phase::Before, 4, 0, "other.exe"));
    b.thread(0, &EtlThread { phase: Phase::Before, pid: 4, tid: 40 });
    b.process(100, &process(Phase::Start, 10, 4, "app.exe"));
    b.thread(110, &EtlThread { phase: Phase::Start, pid: 10, tid: 101 });
    b.image(
        120,
        &ImagePayload { phase: Phase::Start, pid: 10, base: 0x40_0000, size: 0x9000, name: APP.to_owned() },
    );
    b.process(500, &process(Phase::Start, 11, 10, "child.exe"));
    b.thread(510, &EtlThread { phase: Phase::Start, pid: 11, tid: 111 });
    b.name(0, 77, "\\Device\\HarddiskVolume1\\$Mft");
    b.name(0, 78, "\\Device\\HarddiskVolume1\\never-used");
    // One request for one fault, whose cluster begins within a page; the last page of a file is short.
    b.read(read(Some(101), 210, 290, 0x4000, Named::Path(APP)));
    b.fault(fault(101, 200, 300, 0x1400, 0x4000, Named::Path(APP)));
    // Two requests for one, complete in the other order.
    b.read(read(Some(111), 620, 640, 0x2000, Named::Path(LIBRARY)));
    b.read(read(Some(111), 610, 650, 0x6000, Named::Path(LIBRARY)));
    b.fault(fault(111, 600, 700, 0x1_0000, 0x8000, Named::Path(LIBRARY)));
    // A read through the cache: nothing tells its place. Others' of the same file at the same time.
    b.read(read(Some(101), 800, 900, 0x1_0000, Named::Path(LIBRARY)));
    b.read(read(Some(40), 250, 280, 0x4000, Named::Path(APP)));
    b.fault(fault(40, 240, 290, 0x5000, 0x4000, Named::Path(APP)));
    b.read(read(Some(101), 950, 980, 4096, Named::Object(77)));
    b.read(read(None, 990, 999, 512, Named::Unknown));
    b.process(8000, &process(Phase::End, 11, 10, "child.exe"));
    b.process(9000, &process(Phase::End, 10, 4, "app.exe"));
    let system = System { build: Some(9200), processors: Some(8), started: Some(132_404_548_206_236_167) };
    b.finish(system, 10_000, BTreeMap::from([("events".to_owned(), 5)]))
}

fn made() -> Recording {
    let evidence = start();
    let tree = Tree::choose(&evidence, Some(&Wanted::Name("app".to_owned()))).unwrap();
    recording(&evidence, &tree, "1.2.3", "a.etl")
}

#[test]
fn a_recording_of_it_keeps_the_rules_of_the_format_and_comes_back() {
    let made = made();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.cold");
    cold_recording::write(&path, &made).unwrap();
    assert_eq!(cold_recording::read(&path).unwrap(), made);
}

#[test]
fn faults_are_stalls_and_clusters_and_requests_have_their_place_where_it_is_proved() {
    let r = made();
    let path = |file: u32| r.files[file as usize].path.clone().unwrap();
    let m = &r.manifest;
    assert_eq!(
        (m.tier, m.start, m.end, &m.ready),
        (Tier::Imported, Nanos(100), Nanos(10_000), &Some(Known::Value(Nanos(9000))))
    );
    assert_eq!(m.started_at, "2020-07-29T00:07:00Z");
    assert_eq!(m.lost_events(), 5);
    let names: Vec<String> = (0..r.files.len() as u32).map(path).collect();
    assert_eq!(names, ["C:/app.exe", "C:/$Mft", "C:/library.dll"], "and none that no row names");
    let processes: Vec<_> = r.processes.iter().map(|p| (p.name.as_str(), p.in_tree, p.status)).collect();
    assert_eq!(
        processes,
        [("other.exe", false, None), ("app.exe", true, Some(3 << 8)), ("child.exe", true, Some(3 << 8))]
    );
    assert_eq!(r.processes[1].executable, Some(0));

    let touches: Vec<_> =
        r.touches.iter().flatten().map(|t| (t.at.0, path(t.file), t.first_page, t.pages, t.kind)).collect();
    let around = TouchKind::FaultAround;
    assert_eq!(
        touches,
        [(200, "C:/app.exe".to_owned(), 1, 5, around), (600, "C:/library.dll".to_owned(), 16, 8, around)]
    );
    let stalls: Vec<_> = r.stalls.iter().flatten().map(|s| (s.began.0, s.woken, s.tid, s.cause)).collect();
    let cause = StallCause::Fault;
    assert_eq!(stalls, [(200, Some(Nanos(300)), 101, cause), (600, Some(Nanos(700)), 111, cause)]);

    let reads = r.device_reads.as_ref().unwrap();
    let places: Vec<_> = r
        .transfers
        .iter()
        .flatten()
        .map(|t| (reads[t.request as usize].queued.0, path(t.file.unwrap()), t.first_page, t.pages))
        .collect();
    let (app, library) = ("C:/app.exe".to_owned(), "C:/library.dll".to_owned());
    assert_eq!(
        places,
        [(210, app.clone(), 1, 5), (250, app, 5, 4), (610, library.clone(), 16, 6), (620, library, 22, 2)]
    );
    let own: Vec<_> = reads.iter().map(|r| (r.queued.0, r.in_tree, r.metadata, r.file.map(path))).collect();
    let file = |name: &str| Some(name.to_owned());
    assert_eq!(
        own,
        [
            (210, true, false, file("C:/app.exe")),
            (250, false, false, file("C:/app.exe")),
            (610, true, false, file("C:/library.dll")),
            (620, true, false, file("C:/library.dll")),
            (800, true, false, file("C:/library.dll")),
            (950, true, true, file("C:/$Mft")),
            (990, false, false, None),
        ]
    );
    assert!(m.notes.iter().any(|n| n.contains("1 disk read it is not told who asked")));
}

#[test]
fn what_was_there_before_the_trace_is_followed_and_not_started() {
    let evidence = start();
    let tree = Tree::choose(&evidence, Some(&Wanted::Pid(4))).unwrap();
    let r = recording(&evidence, &tree, "1", "a.etl");
    assert_eq!(r.manifest.subject, Subject::Process { pid: 4 });
    assert_eq!((r.manifest.ready.clone(), r.manifest.ended_by), (None, Some(EndedBy::Duration)));
    // All that it made is its tree.
    assert_eq!(r.processes.iter().filter(|p| p.in_tree).count(), 3);
}

#[test]
fn ntfs_own_files_are_metadata() {
    for (name, is) in [
        ("C:/$Mft", true),
        ("/Device/HarddiskVolume2/$Extend/$UsnJrnl:$J", true),
        ("C:/$Recycle.Bin/x", false),
        ("C:/a/$Mft", false),
        ("/Windows/$x", false),
        ("", false),
    ] {
        assert_eq!(is_metadata(name), is, "{name}");
    }
}

#[test]
fn damaged_numbers_stay_in_the_format() {
    let mut b = Builder::default();
    let process = EtlProcess {
        phase: Phase::Start,
        pid: 1,
        parent: 1,
        session: 0,
        status: -1,
        image: "x".to_owned(),
        command: String::new(),
    };
    b.process(i64::MIN, &process);
    b.thread(i64::MAX, &EtlThread { phase: Phase::Start, pid: 1, tid: 1 });
    for value in [0, u64::MAX, i64::MAX as u64] {
        b.image(
            5,
            &ImagePayload { phase: Phase::Start, pid: 1, base: value, size: value, name: "\\x".to_owned() },
        );
        b.fault(fault(1, i64::MIN, i64::MAX, value, u32::MAX, Named::Path("\\x")));
        b.fault(fault(1, i64::MAX, i64::MIN, value, 0, Named::Path("\\x")));
        b.read(RawRead {
            offset: Some(value),
            ..read(Some(1), i64::MAX, i64::MIN, u32::MAX, Named::Path("\\x"))
        });
    }
    let evidence = b.finish(System::default(), i64::MAX, BTreeMap::new());
    let tree = Tree::choose(&evidence, None).unwrap();
    let dir = tempfile::tempdir().unwrap();
    cold_recording::write(&dir.path().join("a.cold"), &recording(&evidence, &tree, "1", "x")).unwrap();
}
