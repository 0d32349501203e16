//! Save, evict, restore on the real kernel: the same pages, page for page.
#![allow(unsafe_code)] // the shared `support` maps files

mod support;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use cold_cache::snapshot::{Snapshot, capture, restore};
use cold_cache::{EvictTarget, Method, Reason, ScanOptions, evict};
use cold_sys::residency::PageMap;
use support::{Mapping, Scratch};

fn map(path: &Path) -> PageMap {
    let (file, meta) = cold_sys::open::regular(path, false).expect("open");
    PageMap::of(&file, &meta).expect("mincore").expect("an own file is told")
}

fn out(path: &Path) {
    let target = EvictTarget { path: path.to_owned(), id: None };
    let report = evict(&[target], Method::FILES).expect("evict");
    assert!(report.is_clean(), "{report:?}");
}

/// Reads single bytes with the default readahead, so that the kernel adds what it likes (large folios
/// included).
fn touch(path: &Path, pages: impl IntoIterator<Item = u64>) {
    let file = std::fs::File::open(path).expect("open");
    for page in pages {
        file.read_exact_at(&mut [0], page * 4096).expect("read");
    }
}

fn save(root: &Path) -> Snapshot {
    let (snapshot, gaps) = capture(&[root.to_owned()], ScanOptions::default(), &()).expect("capture");
    assert_eq!(gaps, cold_cache::snapshot::CaptureGaps::default());
    Snapshot::decode(&snapshot.encode()).expect("what was encoded")
}

#[test]
fn scattered_pages_of_a_large_file_come_back_exactly() {
    let scratch = Scratch::new();
    let path = scratch.file("large", 16384);
    out(&path);
    // Others may drop caches at any time; then the state is made anew.
    support::retry(|| {
        touch(&path, (0..16384).filter(|p| p % 97 == 3 || p % 1031 < 9));
        let saved = save(&path);
        let before = map(&path);
        if before.runs().collect::<Vec<_>>() != saved.files[0].runs {
            return None;
        }
        assert!(before.resident() > 0 && before.resident() < 16384, "{}", before.resident());
        out(&path);
        let report = restore(&saved, &()).expect("restore");
        assert!(report.is_exact(), "{report:?}");
        assert_eq!(report.read.0, before.resident() * 4096);
        (map(&path) == before).then_some(())
    });
    // And from a cache that holds everything.
    support::retry(|| {
        out(&path);
        touch(&path, [5, 9000]);
        let (saved, before) = (save(&path), map(&path));
        touch(&path, 0..16384);
        let report = restore(&saved, &()).expect("restore");
        assert!(report.is_exact(), "{report:?}");
        (map(&path) == before).then_some(())
    });
}

#[test]
fn a_tree_with_absent_partial_and_empty_files_and_an_odd_end() {
    let scratch = Scratch::new();
    let paths: Vec<PathBuf> = (0..60).map(|i| scratch.file(&format!("f{i:02}"), i * 7)).collect();
    let odd = scratch.path("odd");
    std::fs::write(&odd, vec![3; 5 * 4096 + 17]).expect("write");
    support::retry(|| {
        for path in paths.iter().chain([&odd]) {
            out(path);
        }
        for (i, path) in paths.iter().enumerate().filter(|(i, _)| i % 3 == 1) {
            touch(path, [i as u64 / 2]);
        }
        touch(&odd, [5]);
        let saved = save(scratch.path("").as_path());
        let before: Vec<PageMap> = paths.iter().chain([&odd]).map(|p| map(p)).collect();
        for path in &paths {
            touch(path, 0..map(path).pages());
        }
        let report = restore(&saved, &()).expect("restore");
        assert!(report.is_exact(), "{report:?}");
        assert_eq!(report.identical, 61);
        let after: Vec<PageMap> = paths.iter().chain([&odd]).map(|p| map(p)).collect();
        (before == after).then_some(())
    });
}

#[test]
fn changed_missing_and_special_files_are_named_and_left_alone() {
    let scratch = Scratch::new();
    for name in ["grown", "gone", "replaced", "fifo", "same"] {
        scratch.file(name, 4);
    }
    let saved = save(scratch.path("").as_path());
    std::fs::OpenOptions::new()
        .append(true)
        .open(scratch.path("grown"))
        .and_then(|mut f| std::io::Write::write_all(&mut f, b"x"))
        .expect("append");
    std::fs::remove_file(scratch.path("gone")).expect("remove");
    std::fs::write(scratch.path("new"), vec![0; 4 * 4096]).expect("write");
    std::fs::rename(scratch.path("new"), scratch.path("replaced")).expect("rename");
    std::fs::remove_file(scratch.path("fifo")).expect("remove");
    support::mkfifo(&scratch.path("fifo"));
    let report = restore(&saved, &()).expect("restore");
    let mut changed: Vec<_> =
        report.changed.iter().map(|(p, _)| p.file_name().and_then(|n| n.to_str()).expect("name")).collect();
    changed.sort_unstable();
    assert_eq!(changed, ["fifo", "gone", "grown", "replaced"]);
    assert_eq!(report.identical, 1, "{report:?}");
}

#[test]
fn an_extra_page_that_a_process_maps_is_reported_with_its_pid() {
    let scratch = Scratch::new();
    let path = scratch.file("held", 64);
    out(&path);
    let saved = save(&path);
    let mapping = Mapping::new(&path);
    mapping.touch(40);
    let report = restore(&saved, &()).expect("restore");
    let own = i32::try_from(std::process::id()).expect("pid");
    let [difference] = &report.different[..] else { panic!("{report:?}") };
    assert!(difference.extra >= 1 && difference.missing == 0, "{difference:?}");
    assert!(difference.reasons.iter().any(|r| matches!(r, Reason::Mapped { pid, .. } if *pid == own)));
}

#[test]
fn a_saved_file_is_whole_or_absent() {
    let scratch = Scratch::new();
    scratch.file("a", 2);
    let saved = save(&scratch.path("a"));
    let file = scratch.path("s.snap");
    saved.save(&file).expect("save");
    assert_eq!(Snapshot::load(&file).expect("load"), saved);
    assert!(saved.save(&scratch.path("missing/s.snap")).is_err());
    let names = std::fs::read_dir(scratch.path("")).expect("list").count();
    assert_eq!(names, 2, "no temporary file is left");
}
