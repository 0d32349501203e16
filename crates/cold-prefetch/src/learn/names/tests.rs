use cold_model::recording::{FileKind as Kind, LookupKind, Recording, TouchKind};
use cold_plan::plan::FileKind;

use super::super::tests::{file, lookup, recording, touch};
use super::*;
use crate::learn::{With, observe};

/// Names end in their inode: `…-17`. `/2-blocks` is a directory of two blocks. Of what lies in `/strange` nothing
/// is known.
fn inode(path: &Path) -> Option<Inode> {
    let name = path.to_str()?;
    if name.starts_with("/strange") {
        return None;
    }
    let number = name.rsplit_once('-').and_then(|(_, n)| n.parse().ok()).unwrap_or(1_000_000);
    let size = if path == Path::new("/2-blocks") { 8192 } else { 4096 };
    Some(Inode { dev: Dev::new(8, 1), number, block: number / 16, size })
}

/// The program is there, touched at 20 ms, with inode 1,000,000; names are looked up at their times (ms).
fn start(names: &[(u64, &str)]) -> Recording {
    let mut r = recording();
    touch(&mut r, 20, 10, 0, 0..1, TouchKind::Fault);
    for (at, name) in names {
        lookup(&mut r, *at, LookupKind::Stat, name, 0, None);
    }
    r
}

/// Path and need (ms; 1 ms of each time is before the exec) of what is planned, sorted by path, without the
/// program.
fn planned(r: &Recording) -> Vec<(String, FileKind, u64)> {
    let with = With { inode: Some(inode), ..With::default() };
    let files = observe(r, &with).expect("teaches").files;
    let mut out: Vec<_> = files
        .iter()
        .filter(|f| f.path != Path::new("/usr/bin/prog"))
        .map(|f| (f.path.display().to_string(), f.kind, f.need_ns / 1_000_000 + 1))
        .collect();
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

fn name(path: &str, at: u64) -> (String, FileKind, u64) {
    (path.to_owned(), FileKind::Name, at)
}

#[test]
fn of_names_in_one_block_of_inodes_the_smallest_inode_stays_whoever_came_first() {
    let names = [(9, "/d/a-33"), (5, "/d/b-32"), (7, "/d/c-47"), (3, "/d/d-48")];
    assert_eq!(planned(&start(&names)), [name("/d/b-32", 5), name("/d/d-48", 3)]);
    let other = [(3, "/d/a-33"), (9, "/d/b-32"), (7, "/d/c-47"), (5, "/d/d-48")];
    // Needed as early as the earliest that it stands for.
    assert_eq!(planned(&start(&other)), [name("/d/b-32", 3), name("/d/d-48", 5)]);
}

#[test]
fn every_directory_keeps_a_name() {
    let names = [(9, "/d/a-32"), (8, "/e/c-35"), (5, "/e/b-36"), (7, "/e/d-34")];
    // Of /e the first by name, as early as any name there, and the block as early as anything in it.
    assert_eq!(planned(&start(&names)), [name("/d/a-32", 7), name("/e/b-36", 5)]);
}

#[test]
fn names_in_a_directory_of_several_blocks_are_kept_for_each_of_them() {
    let names: Vec<_> = (32..45).map(|n| format!("/2-blocks/n-{n}")).collect();
    let all: Vec<_> = names.iter().map(|n| (5, n.as_str())).collect();
    let stay: Vec<_> = names[..8].iter().map(|n| name(n, 5)).collect();
    assert_eq!(planned(&start(&all)), stay);
    assert_eq!(planned(&start(&all[..6])).len(), 6);
}

#[test]
fn a_directory_that_is_listed_and_a_file_that_is_read_stand_for_what_they_bring_in() {
    let mut r = start(&[(9, "/d-32/a-48"), (4, "/d-32/b-49"), (6, "/usr/lib-33"), (5, "/d-32/c-64")]);
    let directory = file(&mut r, "/d-32", 1);
    r.files[directory as usize].kind = Kind::Directory;
    lookup(&mut r, 30, LookupKind::List, "/d-32", 0, Some(directory));
    let read = file(&mut r, "/d-32/z-50", 4);
    touch(&mut r, 40, 10, read, 0..1, TouchKind::Read);
    let listed = ("/d-32".to_owned(), FileKind::Directory, 4);
    let opened = ("/d-32/z-50".to_owned(), FileKind::Regular, 4);
    // /usr has no other name than /usr/lib-33, so that stays, for all that /d-32 brings its inode in.
    assert_eq!(planned(&r), [listed, name("/d-32/c-64", 5), opened, name("/usr/lib-33", 6)]);
}

#[test]
fn a_file_that_is_opened_and_not_read_stands_for_nothing() {
    let mut r = start(&[(5, "/d/a-40"), (6, "/d/b-41")]);
    let opened = file(&mut r, "/d/c-32", 4);
    lookup(&mut r, 7, LookupKind::Open, "/d/c-32", 3, Some(opened));
    touch(&mut r, 150, 10, opened, 0..1, TouchKind::Read); // after ready
    assert_eq!(planned(&r), [name("/d/c-32", 5)], "as a name it does");
}

#[test]
fn names_of_which_nothing_is_known_stay() {
    let names = [(5, "/strange/a-32"), (6, "/strange/b-33"), (7, "/d/c-34")];
    assert_eq!(
        planned(&start(&names)),
        [name("/d/c-34", 7), name("/strange/a-32", 5), name("/strange/b-33", 6)]
    );
    let all = observe(&start(&[(5, "/d/a-32"), (6, "/d/b-33")]), &With::default()).expect("teaches");
    assert_eq!(all.files.len(), 3, "without a way to ask");
}

#[test]
fn thirty_thousand_names_are_thinned_at_once() {
    let names: Vec<_> = (0..30_000_u64).map(|n| format!("/tree/d{}/f-{}", n / 100, n + 64)).collect();
    let all: Vec<_> = names.iter().map(|n| (5, n.as_str())).collect();
    // 1875 blocks; each of the 300 directories has the first name of some block.
    assert_eq!(planned(&start(&all)).len(), 1875);
}
