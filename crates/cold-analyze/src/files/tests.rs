use cold_model::layout::{FileLayout, Layouts, Segment};
use cold_model::recording::{FileKind, FillCause, LookupKind, StallCause, TouchKind};

use super::*;
use cold_model::sample::{PAGE, empty, kib, long, process};

#[test]
fn the_strongest_use_tells_how_a_file_was_reached() {
    let mut r = empty();
    let names = ["/bin/p", "/lib.so", "/data", "/dir", "/bdev", "/theirs", "/idle"];
    for name in names {
        r.file(name, 100 * PAGE);
    }
    r.processes.push(process(11, "p", Some(0)));
    r.touch(1, 0, 0..1, TouchKind::Read);
    r.touch(1, 1, 0..1, TouchKind::Read);
    r.touch(2, 1, 0..1, TouchKind::Fault);
    r.touch(1, 2, 0..1, TouchKind::Read);
    r.lookup(1, LookupKind::Stat, "/dir", 0).file = Some(3);
    r.fill(1, 4, 0..1, FillCause::Metadata);
    r.fill(1, 5, 0..1, FillCause::ReadAhead).in_tree = false;
    let out = files(&Context::new(&r, &Layouts::default()));
    let mut found: Vec<_> = out.iter().map(|f| (f.path.as_str(), f.reached)).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("/bdev", Reached::LookedUp),
            ("/bin/p", Reached::Executed),
            ("/data", Reached::Read),
            ("/dir", Reached::LookedUp),
            ("/lib.so", Reached::Mapped),
            ("/theirs", Reached::ByOthers),
        ]
    );
}

#[test]
fn figures_of_a_file_and_the_costliest_first() {
    let mut r = empty();
    let (a, b) = (r.file("/a", 1000 * PAGE), r.file("/b", 1000 * PAGE));
    r.fault(1, 2, a, 10, 8..16);
    r.fault(4, 9, b, 20, 16..32);
    r.touch(20, b, 30..31, TouchKind::Fault);
    r.request(5, 1, b, 40..41).in_tree = false;
    let out = files(&Context::new(&r, &Layouts::default()));
    assert_eq!((out[0].path.as_str(), out[1].path.as_str()), ("/b", "/a"));
    let f = &out[0];
    assert_eq!((f.needed, f.read, f.unused, f.cached), (kib(8), kib(64), kib(56), kib(0)));
    assert_eq!((f.requests, f.stalls, f.stall, f.fragments), (1, 1, long(9), 2));
    assert_eq!(f.first_use, Some(long(4)));
    assert_eq!(f.causes[&FillCause::DemandFault], kib(4));
}

#[test]
fn metadata_is_neither_needed_nor_unused() {
    let mut r = empty();
    let (m, d) = (r.file("/dev/sda", 1 << 30), r.file("/dir", 4096));
    r.files[0].kind = FileKind::BlockDevice;
    r.files[1].kind = FileKind::Directory;
    r.fill(1, m, 7..9, FillCause::Metadata);
    r.fill(1, d, 0..1, FillCause::BufferedRead);
    r.fill(1, m, 9..10, FillCause::Other);
    r.stall(1, 1, StallCause::Lookup);
    let out = files(&Context::new(&r, &Layouts::default()));
    assert_eq!(out.iter().map(|f| f.read).sum::<Bytes>(), kib(16));
    assert!(out.iter().all(|f| f.unused == Bytes(0) && f.needed == Bytes(0)));
}

#[test]
fn a_library_of_which_only_headers_were_touched_is_hardly_needed() {
    let mut r = empty();
    let (lib, well, small) =
        (r.file("/l.so.1", 500 * PAGE), r.file("/w.so", 500 * PAGE), r.file("/s.so", PAGE));
    r.fault(1, 1, lib, 0, 0..100);
    r.fault(3, 1, well, 0, 0..32);
    r.touch(5, well, 1..20, TouchKind::Fault);
    r.fault(7, 1, small, 0, 0..1);
    let mut layouts = Layouts::default();
    let code = Segment { offset: 10 * PAGE, bytes: 90 * PAGE, address: 0, access: "r-x".to_string() };
    layouts.files.insert(lib, FileLayout { segments: vec![code], ..FileLayout::default() });
    let cx = Context::new(&r, &layouts);
    let mut out = files(&cx);
    let found = hardly_needed(&cx, &mut out);
    assert_eq!(found.len(), 1);
    let f = &out[found[0]];
    assert_eq!(f.path, "/l.so.1");
    assert_eq!(
        f.hardly_needed.as_deref(),
        Some("4.00 KiB of 400 KiB read was needed (1.0%): headers and relocations, none of its code")
    );
}
