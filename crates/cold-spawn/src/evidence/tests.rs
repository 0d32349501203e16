use cold_model::Nanos;
use cold_model::recording::{File, FileKind, Lookup, LookupKind, PathFrom, Recording, Touch, TouchKind};

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
        dev: cold_model::recording::tables::Dev::default(),
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
