use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use cold_model::recording::TouchKind;
use cold_model::sample::{PAGE, empty};
use serde_json::Value;

use super::*;

/// A start: libc's pages 256..258 of 1 MiB and more, then its first, the program, one outside.
fn wanted() -> PagesWanted {
    let mut r = empty();
    let libc = r.file("/img/lib/libstdc++.so.6", 300 * PAGE - 100);
    let prog = r.file("/img/bin/a b", 2 * PAGE);
    let other = r.file("/etc/hosts", PAGE);
    r.touch(1, libc, 256..258, TouchKind::Fault);
    r.touch(2, libc, 0..1, TouchKind::Fault);
    r.touch(3, prog, 0..2, TouchKind::Read);
    r.touch(4, libc, 0..2, TouchKind::Fault);
    r.touch(5, libc, 298..300, TouchKind::Fault);
    r.touch(6, other, 0..1, TouchKind::Read);
    PagesWanted::of_recording(&r).below(Path::new("/img"))
}

fn text(format: Format, wanted: &PagesWanted) -> String {
    format.write(wanted).unwrap().text
}

#[test]
fn a_recording_gives_each_page_once_in_the_order_of_need() {
    let w = wanted();
    assert_eq!(w.outside, 1);
    let pieces: Vec<_> = w.pieces.iter().map(|p| (p.file, p.offset / PAGE, p.bytes)).collect();
    let expected =
        [(0, 256, 2 * PAGE), (0, 0, PAGE), (1, 0, 2 * PAGE), (0, 1, PAGE), (0, 298, 2 * PAGE - 100)];
    assert_eq!(pieces, expected);
}

#[test]
fn nydus_takes_no_chunk_of_which_nothing_is_needed() {
    let document: Value = serde_json::from_str(&text(Format::Nydus, &wanted())).unwrap();
    assert_eq!(document["version"], "v1");
    let file = &document["files"][0];
    assert_eq!(file["path"], "/lib/libstdc++.so.6");
    let ranges = file["ranges"].as_array().unwrap();
    // The reader's own test: borders included on both sides.
    let overlaps = |begin: u64, end: u64| {
        ranges.iter().any(|r| {
            let (offset, size) = (r[0].as_u64().unwrap(), r[1].as_u64().unwrap());
            offset.max(begin) <= (offset + size).min(end)
        })
    };
    // With chunks of a page the most borders are met.
    let needed: Vec<u64> = (0..300).filter(|n| overlaps(n * PAGE, (n + 1) * PAGE)).collect();
    assert_eq!(needed, [0, 1, 256, 257, 298, 299]);
}

#[test]
fn estargz_and_soci_have_the_files_in_order() {
    let w = wanted();
    let lines = text(Format::Estargz, &w);
    let paths: Vec<String> = lines
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).unwrap()["path"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(paths, ["lib/libstdc++.so.6", "bin/a b"]);
    let soci: Vec<String> = serde_json::from_str(&text(Format::Soci, &w)).unwrap();
    assert_eq!(soci, ["/lib/libstdc++.so.6", "/bin/a b"]);
}

#[test]
fn what_overlaybd_would_drop_in_silence_is_said() {
    let mut w = wanted();
    w.files[1].path = "/bin/a-b_1".into();
    let written = Format::OverlaybdList.write(&w).unwrap();
    assert_eq!(written.text, "/bin/a-b_1\n");
    assert_eq!((written.left_out[0].files, written.left_out[0].example.as_str()), (1, "/lib/libstdc++.so.6"));
    let file = |n: usize| WantedFile { path: format!("/{n:0>999}").into(), size: None };
    w.files = (0..100).map(file).collect();
    let written = Format::OverlaybdList.write(&w).unwrap();
    assert!(written.text.len() <= 65_536 && written.files == 65, "{}", written.files);
    assert_eq!(written.left_out[0].files, 35);
}

#[test]
fn squashfs_sorts_what_is_listed_before_what_is_not() {
    let sorted = text(Format::SquashfsSort, &wanted());
    assert_eq!(sorted, "lib/libstdc++.so.6 32767\nbin/a\\ b 32766\n");
    let mut w = wanted();
    w.files = (0..40_000).map(|n| WantedFile { path: format!("/{n}").into(), size: None }).collect();
    assert!(text(Format::SquashfsSort, &w).ends_with("39999 1\n"), "0 is what unlisted files have");
}

#[test]
fn reap_is_about_one_file() {
    let error = Format::Reap.write(&wanted()).unwrap_err();
    assert!(error.to_string().contains("needs 2: /lib/libstdc++.so.6, /bin/a b"), "{error}");
    let one = wanted().only("libstdc");
    assert_eq!(text(Format::Reap, &one), "100000\n101000\n0\n1000\n12a000\n12b000\n");
    assert_eq!(Format::Reap.write(&wanted().only("none")), Err(ExportError::Nothing));
}

#[test]
fn no_made_up_memory_file_fills_the_memory() {
    let file = WantedFile { path: "/vm".into(), size: None };
    let piece = Piece { file: 0, offset: 0, bytes: u64::MAX, need_ns: 0 };
    let wanted =
        PagesWanted { files: vec![file], pieces: vec![piece], page_bytes: 4096, ..PagesWanted::default() };
    assert!(matches!(Format::Reap.write(&wanted), Err(ExportError::TooMany { .. })));
}

#[test]
fn ranges_keep_the_order_and_every_name() {
    let mut w = wanted();
    w.files[1].path = std::ffi::OsString::from_vec(b"/bin/\xff,\"".to_vec()).into();
    let document: Value = serde_json::from_str(&text(Format::RangesJson, &w)).unwrap();
    assert_eq!(document["ranges"][2]["file"], 1);
    assert_eq!(document["files"][1]["path"], "/bin/\\xff,\"");
    let csv = text(Format::RangesCsv, &w);
    assert_eq!(csv.lines().nth(3), Some("\"/bin/\\xff,\"\"\",0,8192,3000000"));
    let left_out = Format::Soci.write(&w).unwrap().left_out;
    assert_eq!(left_out[0].why, "their names are no UTF-8 text");
}

#[test]
fn a_plan_gives_what_its_recording_gives() {
    let mut plan = cold_plan::sample::sample();
    plan.ranges.sort_by_key(|r| r.need_ns);
    let w = PagesWanted::of_plan(&plan);
    let regular =
        |r: &&cold_plan::plan::Range| plan.files[r.file as usize].kind == cold_plan::plan::FileKind::Regular;
    assert_eq!(w.pieces.is_empty(), plan.ranges.iter().find(regular).is_none());
    assert!(w.pieces.is_sorted_by_key(|p| p.need_ns));
    let bytes: u64 = w.ranges_by_file().iter().flatten().map(|(_, n)| n).sum();
    assert_eq!(bytes, w.pieces.iter().map(|p| p.bytes).sum::<u64>());
}
