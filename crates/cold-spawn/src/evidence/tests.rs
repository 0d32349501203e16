use cold_model::Nanos;
use cold_model::recording::tables::Began;
use cold_model::recording::{
    File, FileKind, Lookup, LookupKind, PathFrom, Process, Recording, Touch, TouchKind,
};
use cold_sys::spawn::Timing;

use super::*;

pub(crate) fn lookup(kind: LookupKind, path: &str, result: i64, flags: u32) -> Lookup {
    Lookup {
        at: Nanos(0),
        ended: Nanos(1000),
        pid: 7,
        tid: 7,
        kind,
        path: Some(path.into()),
        result,
        flags,
        file: None,
        root: None,
        stack: None,
    }
}

fn recorded(lookups: Vec<Lookup>) -> Recording {
    Recording { lookups: Some(lookups), ..Recording::default() }
}

/// A program that looks for a free `log.N.txt` by stat and creates it, with other lookups in between.
fn namer(taken: u64) -> Vec<Lookup> {
    let mut all = vec![lookup(LookupKind::Open, "/lib/libc.so.6", 3, 0)];
    for n in 0..taken {
        all.push(lookup(LookupKind::Stat, &format!("/var/x/log.{n}.txt"), 0, 0));
        all.push(lookup(LookupKind::Access, "/etc/ld.so.preload", -2, 0));
    }
    all.push(lookup(LookupKind::Stat, &format!("/var/x/log.{taken}.txt"), -2, 0));
    all.push(lookup(LookupKind::Open, &format!("/var/x/log.{taken}.txt"), 3, 0o301));
    all
}

#[test]
fn a_search_for_a_free_name_is_found_with_its_template() {
    let e = of(&recorded(namer(40)), |_| true);
    let [scan] = &e.scans[..] else { panic!("{:?}", e.scans) };
    assert_eq!(scan.template(), "/var/x/log.{n}.txt");
    assert_eq!((scan.first, scan.last, scan.length(), scan.end), (0, 40, 41, End::Created));
    assert_eq!((scan.lookups, scan.ns), (42, 42_000));
    assert_eq!((e.lookups, e.misses), (83, 41));
    assert_eq!(e.missed_in["/etc"].amount, 40);
}

#[test]
fn exclusive_creation_that_fails_is_a_taken_name() {
    let mut all: Vec<Lookup> =
        (1..6).map(|n| lookup(LookupKind::Open, &format!("/t/a.~{n}~"), -17, 0o301)).collect();
    all.push(lookup(LookupKind::Open, "/t/a.~6~", 3, 0o301));
    let e = of(&recorded(all), |_| true);
    let [scan] = &e.scans[..] else { panic!("{:?}", e.scans) };
    assert_eq!((scan.template().as_str(), scan.length(), scan.end), ("/t/a.~{n}~", 6, End::Created));
    assert_eq!(e.misses, 0, "a taken name is no failed lookup");
}

#[test]
fn numbered_libraries_and_unordered_numbers_are_no_run() {
    let names = ["/l/libz.so.1", "/l/libz.so.2", "/l/python3.11", "/l/python3.13", "/p/9", "/p/7", "/p/3"];
    let all = names.iter().map(|n| lookup(LookupKind::Open, n, 3, 0)).collect();
    assert_eq!(of(&recorded(all), |_| true).scans, []);
    let long = format!("/p/{}", "9".repeat(40));
    assert_eq!(of(&recorded(vec![lookup(LookupKind::Stat, &long, 0, 0)]), |_| true).scans, []);
}

#[test]
fn listed_directories_and_files_read_from_their_start_are_told() {
    let file = |path: &str, size| File {
        dev: cold_model::Dev::default(),
        inode: 1,
        generation: 0,
        kind: FileKind::Regular,
        path: Some(path.into()),
        path_from: PathFrom::OpenFile,
        deleted: false,
        file_system: "ext4".into(),
        size: Some(size),
        mtime_ns: None,
        build_id: None,
    };
    let read = |file, first_page, pages| Touch {
        at: Nanos(0),
        pid: 7,
        tid: 7,
        file,
        first_page,
        pages,
        kind: TouchKind::Read,
        major: None,
        ip: None,
        stack: None,
        call: None,
        end: None,
    };
    let mut r = recorded(vec![
        lookup(LookupKind::List, "/spool", 4096, 0),
        lookup(LookupKind::List, "/spool", 200, 0),
        lookup(LookupKind::List, "/spool", 0, 0),
    ]);
    r.manifest.page_bytes = 4096;
    r.files = vec![file("/whole", 10_000), file("/part", 10_000), file("/tail", 10_000)];
    r.touches = Some(vec![read(0, 0, 1), read(0, 1, 4), read(1, 0, 1), read(1, 2, 1), read(2, 1, 2)]);
    let e = of(&r, |_| true);
    assert_eq!(e.listed["/spool"], Spent { amount: 4296, ns: 3000, stack: None });
    assert_eq!(
        e.read_from_start.iter().map(|(p, s)| (p.as_str(), s.amount)).collect::<Vec<_>>(),
        [("/part", 4096), ("/whole", 10_000)]
    );
    assert_eq!(e.lookups, 0, "listing resolves no path");
}

/// Two starts of spawner 5 (pids 10 and 20), the second with a child.
fn group() -> (Seen, Vec<Timing>) {
    let image = |began, how, pid, parent, ended| Process {
        began: Nanos(began),
        how,
        pid,
        parent,
        name: "x".into(),
        executable: None,
        arguments: None,
        in_tree: true,
        ended: Some(Nanos(ended)),
        status: Some(0),
    };
    let by =
        |pid, at, kind| Lookup { at: Nanos(at), pid, ended: Nanos(at + 50), ..lookup(kind, "/bin/x", 0, 0) };
    let calls = |pid, calls| ProcessCalls {
        pid,
        name: "read".into(),
        calls: Calls { calls, bytes: 10 * calls, ns: 100 * calls },
    };
    let recording = Recording {
        processes: vec![
            image(110, Began::Fork, 10, 5, 200),
            image(200, Began::Exec, 10, 5, 900),
            image(1010, Began::Fork, 20, 5, 1100),
            image(1100, Began::Exec, 20, 5, 1800),
            image(1300, Began::Fork, 21, 20, 1400),
        ],
        lookups: Some(vec![
            by(10, 150, LookupKind::Exec),
            by(20, 1050, LookupKind::Exec),
            by(21, 1310, LookupKind::Stat),
        ]),
        ..Recording::default()
    };
    let timing = |began, ended| Timing {
        program: 0,
        began: Nanos(began),
        created: Nanos(began),
        ended: Nanos(ended),
        status: 0,
        user: Nanos(0),
        system: Nanos(0),
        minor_faults: 0,
        major_faults: 0,
    };
    (
        Seen { recording, calls: vec![calls(10, 3), calls(20, 4), calls(21, 5)] },
        vec![timing(100, 1000), timing(1000, 2000)],
    )
}

#[test]
fn every_start_of_a_group_has_what_its_own_processes_did() {
    let (seen, timings) = group();
    let [first, second] = &per_start(&seen, &timings, 5).expect("whole")[..] else { panic!("two starts") };
    assert_eq!(first.stages, Some(Stages { create: 50, exec: 50, run: 700, exit: 100 }));
    assert_eq!((first.wall_ns, first.lookups, second.lookups), (900, 1, 2));
    assert_eq!(first.calls["read"], Calls { calls: 3, bytes: 30, ns: 300 });
    assert_eq!(second.calls["read"], Calls { calls: 9, bytes: 90, ns: 900 }, "its child's too");
}

#[test]
fn a_group_with_gaps_is_none() {
    let (mut seen, timings) = group();
    assert!(
        per_start(&seen, &timings[..1], 5).is_err_and(|why| why.starts_with("2 starts were recorded of 1"))
    );
    seen.recording.manifest.lost.insert("stacks".into(), 9);
    assert!(per_start(&seen, &timings, 5).is_ok(), "stacks are no counts");
    seen.recording.manifest.lost.insert("lookups".into(), 7);
    assert!(per_start(&seen, &timings, 5).is_err_and(|why| why.starts_with("7 events were lost")));
}
