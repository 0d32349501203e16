use std::fs;
use std::os::unix::fs::symlink;

use cold_model::observed::{How, ObservedFile};
use cold_model::sample::observed;
use cold_model::{Dev, Nanos};
use cold_sys::procfs::ProcFs;
use cold_sys::residency::PageRun;
use proptest::prelude::*;

use super::*;

fn seen(path: &Path) -> ObservedFile {
    let meta = path.metadata().unwrap();
    ObservedFile {
        path: path.to_owned(),
        id: FileId::of(&meta),
        size: Bytes(meta.len()),
        mtime_ns: Content::of(&meta).mtime_ns,
        how: How { opened: true, ..How::default() },
        first: Nanos(0),
        elsewhere: false,
        gone: false,
    }
}

/// A directory with files of these names, and the set of a start that used them.
fn set_of(names: &[&str]) -> (tempfile::TempDir, FileSet) {
    let dir = tempfile::tempdir().unwrap();
    let files = names.iter().map(|name| {
        let path = dir.path().join(name);
        fs::write(&path, name.as_bytes()).unwrap();
        seen(&path)
    });
    let set = FileSet::of(&observed(files.collect()));
    (dir, set)
}

/// A file: inode, length in pages and cached runs of pages.
type OfFile<'a> = (u64, u64, &'a [(u64, u64)]);

/// What was cached of files.
fn cached(files: &[OfFile<'_>]) -> Cached {
    let looked = |(ino, pages, runs): &OfFile<'_>| {
        let runs = runs.iter().map(|(first, pages)| PageRun { first: *first, pages: *pages });
        let map = PageMap::from_runs(*pages, runs);
        let content = Content { size: pages * page_size(), mtime_ns: 7 };
        (FileId { dev: 1, ino: *ino }, Looked { path: format!("/f{ino}").into(), map, content, stays: false })
    };
    Cached { maps: files.iter().map(looked).collect(), unknown_bytes: 0 }
}

#[test]
fn files_of_another_mount_namespace_are_out_of_reach_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().join("here");
    fs::write(&here, "x").unwrap();
    let there = |size| ObservedFile { elsewhere: true, size: Bytes(size), ..seen(&here) };
    let set = FileSet::of(&observed(vec![there(4000), seen(&here), there(96)]));
    assert_eq!((set.files.len(), set.out_of_reach), (1, 4096));
    assert_eq!(set.cached().unknown_bytes(), 4096);
}

#[test]
fn what_the_start_writes_or_removes_may_be_another_file_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, "x").unwrap();
    let wrote = ObservedFile { how: How { written: true, ..How::default() }, ..seen(&path) };
    let replaced = ObservedFile { gone: true, ..seen(&path) };
    for (file, asked) in [(seen(&path), true), (wrote, false), (replaced, false)] {
        let set = FileSet::of(&observed(vec![file]));
        assert_eq!(set.targets()[0].id.is_some(), asked, "evicted only as the file that it was");
        fs::write(&path, "longer than before").unwrap();
        assert_eq!(set.changed().is_some(), asked);
        fs::write(&path, "x").unwrap();
    }
}

#[test]
fn each_change_of_a_file_is_seen_and_a_second_look_at_the_same_is_none() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 5] = [
        ("longer", |p| fs::write(p, "a and more").unwrap()),
        ("shorter", |p| fs::write(p, "").unwrap()),
        ("removed", |p| fs::remove_file(p).unwrap()),
        ("replaced by one alike", |p| {
            let time = p.metadata().unwrap().modified().unwrap();
            let other = p.with_extension("new");
            fs::write(&other, "a").unwrap();
            fs::File::options().write(true).open(&other).unwrap().set_modified(time).unwrap();
            fs::rename(&other, p).unwrap();
        }),
        ("written in place", |p| {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(1);
            fs::File::options().write(true).open(p).unwrap().set_modified(time).unwrap();
        }),
    ];
    for (what, change) in changes {
        let (dir, set) = set_of(&["a", "b"]);
        assert_eq!(set.changed(), None, "{what}");
        change(&dir.path().join("a"));
        assert_eq!(set.changed(), Some(dir.path().join("a")), "{what}");
    }
}

#[test]
fn what_a_start_of_ours_has_changed_is_not_asked_again() {
    let (dir, set) = set_of(&["a", "b"]);
    fs::write(dir.path().join("a"), "its own cache").unwrap();
    set.note_own_changes();
    assert_eq!(set.changed(), None);
    fs::write(dir.path().join("b"), "an update").unwrap();
    assert_eq!(set.changed(), Some(dir.path().join("b")));
}

#[test]
fn the_launchers_files_come_once_and_only_regular_ones_that_are_there() {
    let (dir, mut set) = set_of(&["program"]);
    let path = |name: &str| dir.path().join(name);
    fs::write(path("plan"), "p").unwrap();
    symlink(path("program"), path("link")).unwrap();
    set.add(&[path("plan"), path("plan"), path("link"), path("missing"), dir.path().to_owned()]);
    let names: Vec<_> = set.files.iter().map(|f| f.path.clone()).collect();
    assert_eq!(names, [path("program"), path("plan")], "the link leads to a file that is in it");
    // A plan is written anew between starts.
    fs::write(path("plan"), "a longer plan").unwrap();
    assert_eq!(set.changed(), None);
}

#[test]
fn a_file_that_is_gone_is_no_target_and_has_nothing_cached() {
    let (dir, set) = set_of(&["a", "b"]);
    fs::remove_file(dir.path().join("a")).unwrap();
    let targets: Vec<_> = set.targets().into_iter().map(|t| t.path).collect();
    assert_eq!(targets, [dir.path().join("b")]);
    let cached = set.cached();
    assert_eq!((cached.checked_bytes(), cached.unknown_bytes()), (page_size(), 0));
}

#[test]
fn a_name_that_leads_to_no_file_any_more_is_unknown_by_the_size_it_had() {
    let (dir, set) = set_of(&["four"]);
    let path = dir.path().join("four");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let cached = set.cached();
    assert_eq!((cached.checked_bytes(), cached.unknown_bytes()), (0, 4));
}

#[test]
fn what_was_just_written_is_cached_whole_and_the_last_page_counts_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    fs::write(&path, vec![1; page_size() as usize + 1]).unwrap();
    let cached = FileSet::of(&observed(vec![seen(&path)])).cached();
    assert_eq!((cached.bytes(), cached.checked_bytes()), (2 * page_size(), 2 * page_size()));
    assert_eq!(cached.not_in(&cached), 0);
    let residual = cached.residual(false);
    assert_eq!((residual.bytes, residual.files[0].path.as_path()), (Bytes(2 * page_size()), path.as_path()));
    assert!(residual.files[0].held.is_empty(), "nobody was asked for");
}

#[test]
fn pages_are_missed_one_by_one_and_only_of_files_that_were_looked_at_again() {
    let before = cached(&[(1, 10, &[(0, 4), (8, 2)]), (2, 5, &[(0, 5)])]);
    let after = cached(&[(1, 10, &[(2, 7)]), (3, 5, &[])]);
    // Of file 1 pages 0, 1 and 9 are gone, that others came does not make up for it; nobody looked at file 2.
    assert_eq!(before.not_in(&after), 3 * page_size());
    assert_eq!(after.not_in(&before), 4 * page_size());
}

#[test]
fn pages_of_a_file_that_the_start_changed_were_taken_by_nobody() {
    let before = cached(&[(1, 10, &[(0, 10)]), (2, 10, &[(0, 10)])]);
    let mut after = cached(&[(1, 10, &[]), (2, 10, &[])]);
    after.maps.get_mut(&FileId { dev: 1, ino: 1 }).unwrap().content.mtime_ns += 1;
    assert_eq!((before.not_in(&after), before.taken_until(&after)), (20 * page_size(), 10 * page_size()));
    after.maps.get_mut(&FileId { dev: 1, ino: 2 }).unwrap().content.size -= 1;
    assert_eq!(before.taken_until(&after), 0);
}

#[test]
fn the_residual_names_the_twenty_largest_and_counts_all() {
    let runs: Vec<[(u64, u64); 1]> = (1..=22).map(|n| [(0, if n == 5 { 3 } else { n })]).collect();
    let mut files: Vec<OfFile<'_>> = runs.iter().zip(1..).map(|(r, n)| (n, 30, r.as_slice())).collect();
    files.push((99, 30, &[]));
    let residual = cached(&files).residual(false);
    assert_eq!(residual.bytes, Bytes((22 * 23 / 2 - 2) * page_size()));
    let named: Vec<_> =
        residual.files.iter().map(|f| (f.path.to_str().unwrap(), f.bytes.0 / page_size())).collect();
    assert_eq!((named.len(), named[0], named[17]), (20, ("/f22", 22), ("/f4", 4)));
    assert_eq!(named[18..], [("/f3", 3), ("/f5", 3)], "those alike by their names; the smaller are left out");
}

#[test]
fn a_holder_is_named_with_the_bytes_it_maps_and_without_a_pagemap_unknown() {
    let mapped = |pages| Reason::Mapped { pid: 7, name: "x".into(), pages, locked: 0 };
    let known = held(&mapped(Some(3))).unwrap();
    assert_eq!((known.holder.as_str(), known.bytes.value()), ("x[7]", Some(&Bytes(3 * page_size()))));
    assert_eq!(held(&mapped(None)).unwrap().bytes.value(), None);
    assert_eq!(held(&Reason::LargeFolio { pages: 3 }), None);
}

#[test]
fn devices_come_from_the_file_or_from_the_mount_where_the_file_has_none() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("self")).unwrap();
    let mounts = "20 1 8:2 / / rw - ext4 /dev/sda2 rw\n30 20 0:40 / /run rw - tmpfs tmpfs rw\n\
                  31 20 0:41 / /data rw - btrfs /dev/null rw\n";
    fs::write(dir.path().join("self/mountinfo"), mounts).unwrap();
    let proc = ProcFs::new(dir.path());
    // As glibc packs a small device number into `st_dev`.
    let file = |path: &str, major: u64, minor: u64| SetFile {
        path: path.into(),
        id: FileId { dev: major << 8 | minor, ino: 1 },
        size: 1,
        mtime_ns: 0,
        written: Cell::new(false),
        stays: false,
    };
    let files = vec![
        file("/bin/a", 8, 2),
        file("/bin/b", 8, 2),
        file("/run/x", 0, 40),
        file("/run/y", 0, 40),
        file("/data/z", 0, 41),
        file("/home/c", 259, 1),
    ];
    let found = block_devices(&proc, &FileSet { files, out_of_reach: 0 });
    assert_eq!(found.devices, [Dev::new(8, 2), Dev::new(259, 1)].into());
    // The second's source is a device, but none of blocks.
    let without = [("tmpfs", "/run/x"), ("btrfs", "/data/z")];
    assert_eq!(found.without, without.map(|(kind, path)| (kind.to_owned(), PathBuf::from(path))));
}

#[test]
fn where_only_the_program_is_evicted_the_rest_is_looked_at_apart() {
    let (dir, mut set) = set_of(&["lib", "prog"]);
    let program = dir.path().join("link");
    symlink(dir.path().join("prog"), &program).unwrap();
    assert!(!set.clone().evict_only(&dir.path().join("none")), "it is none of them");
    assert_eq!(set.cached().residual(false).left, None, "all are evicted");
    assert!(set.evict_only(&program));
    let targets = set.targets();
    assert_eq!(targets.iter().map(|t| t.path.clone()).collect::<Vec<_>>(), [dir.path().join("prog")]);
    let page = page_size();
    let mut all = cached(&[(1, 4, &[(0, 3)]), (2, 9, &[(0, 5)])]);
    all.maps.get_mut(&FileId { dev: 1, ino: 2 }).unwrap().stays = true;
    let residual = all.residual(false);
    assert_eq!((residual.bytes, residual.left), (Bytes(3 * page), Some(Bytes(5 * page))));
    assert_eq!(residual.files.len(), 1);
    assert_eq!((all.bytes(), all.evicted_bytes()), (8 * page, 3 * page));
    assert_eq!(all.staying().bytes(), 5 * page);
}

#[test]
fn a_device_whose_mount_is_not_known_is_named_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = SetFile {
        path: "/x".into(),
        id: FileId { dev: 9, ino: 1 },
        size: 1,
        mtime_ns: 0,
        written: Cell::new(false),
        stays: false,
    };
    let found = block_devices(&ProcFs::new(dir.path()), &FileSet { files: vec![file], out_of_reach: 0 });
    assert_eq!(found.without, [("unknown".to_owned(), PathBuf::from("/x"))]);
}

proptest! {
    /// By counting pages one at a time.
    #[test]
    fn missing_bytes_are_the_pages_of_one_look_and_not_of_the_other(
        a in prop::collection::vec(any::<bool>(), 1..60),
        b in prop::collection::vec(any::<bool>(), 1..60),
    ) {
        let look = |pages: &[bool]| {
            let runs: Vec<(u64, u64)> = (0..).zip(pages).filter(|(_, p)| **p).map(|(n, _)| (n, 1)).collect();
            cached(&[(1, pages.len() as u64, runs.as_slice())])
        };
        let gone = a.iter().enumerate().filter(|(n, p)| **p && !b.get(*n).is_some_and(|p| *p)).count();
        prop_assert_eq!(look(&a).not_in(&look(&b)), gone as u64 * page_size());
    }
}

#[test]
fn of_parts_of_a_file_whole_pages_count() {
    let page = page_size();
    let now = cached(&[(1, 10, &[(1, 2), (5, 3)])]);
    let part = |offset, bytes| Text { offset, bytes, address: 0 };
    let file = FileId { dev: 1, ino: 1 };
    // Half of page 1 to half of page 2, and pages 6 to 20 of a file that ends with page 9.
    let parts = [part(page + page / 2, page), part(6 * page, 15 * page)];
    assert_eq!(now.within(file, &parts), Some(4 * page));
    assert_eq!(now.within(file, &[]), Some(0));
    assert_eq!(now.within(FileId { dev: 1, ino: 2 }, &parts), None);
}
