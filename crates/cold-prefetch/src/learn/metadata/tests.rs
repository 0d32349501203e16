use cold_model::file_system::Inode;
use cold_model::recording::{FileKind as Kind, FillCause, LookupKind, TouchKind};
use cold_model::sample::DISK;

use super::super::tests::{file, lookup, recording, touch};
use super::*;
use crate::learn::{Sees, observe};

/// Of a machine without `/usr/local`.
fn inode(path: &Path) -> Option<Inode> {
    let there = ["/.", "/usr/.", "/usr/lib/."].map(Path::new).contains(&path);
    there.then_some(Inode { dev: Dev::new(8, 1), number: 7, block: 0, size: 4096 })
}

#[test]
fn metadata_is_names_directories_and_blocks() {
    let mut r = recording();
    r.manifest.state.wanted = "cold".into();
    touch(&mut r, 20, 10, 0, 0..1, TouchKind::Fault);
    let dir = file(&mut r, "/etc/conf.d", 1);
    r.files[dir as usize].kind = Kind::Directory;
    let device = file(&mut r, "/dev/sda1", 1);
    r.files[device as usize].kind = Kind::BlockDevice;
    lookup(&mut r, 5, LookupKind::Open, "/etc//conf.d", 3, Some(dir));
    lookup(&mut r, 6, LookupKind::List, "/etc/conf.d", 3, Some(dir));
    lookup(&mut r, 7, LookupKind::Stat, "/usr/lib/link", 0, Some(0));
    lookup(&mut r, 8, LookupKind::Open, "/usr/bin/prog", 3, Some(0));
    lookup(&mut r, 9, LookupKind::Stat, "/proc/self/maps", 0, None);
    // Below other roots: one that is seen from here, and one that is not.
    for root in ["/srv/image", ""] {
        r.lookup(9, LookupKind::Stat, "/etc/hosts", 0).root = Some(root.into());
    }
    for (first_page, in_tree) in [(700, true), (900, false), (700, true)] {
        r.fill(4, device, first_page..first_page + 2, FillCause::Metadata).in_tree = in_tree;
    }
    let s = observe(&r, &With::default()).expect("teaches");
    let files: Vec<_> = s.files.iter().map(|f| (f.path.to_str().unwrap_or(""), f.kind)).collect();
    let want = [
        ("/dev/sda1", FileKind::BlockDevice),
        ("/etc/conf.d", FileKind::Directory),
        ("/usr/lib/link", FileKind::Name),
        ("/usr/bin/prog", FileKind::Regular),
        ("/srv/image/etc/hosts", FileKind::Name),
    ];
    assert_eq!(files, want);
    assert_eq!((s.ranges[0].file, s.ranges[0].first_page, s.ranges[0].pages), (0, 700, 2));
    assert_eq!(s.sees, Sees { pages: true, lookups: true, metadata: true });
    // A file is needed from its first lookup on.
    assert_eq!(s.files[3].need_ns, 7_000_000);
}

#[test]
fn of_missing_names_one_stays_for_each_directory_in_which_nothing_else_is_looked_up() {
    let mut r = recording();
    touch(&mut r, 20, 10, 0, 0..1, TouchKind::Fault);
    let dir = file(&mut r, "/srv/listed", 1);
    r.files[dir as usize].kind = Kind::Directory;
    for (at, path) in [
        (5, "/usr/local/bin/ld"),
        (6, "/usr/local/bin/as"),
        (6, "/usr/lib/absent"),
        (7, "/srv/listed/absent"),
        (7, "relative"),
        (7, "/proc/absent"),
    ] {
        lookup(&mut r, at, LookupKind::Stat, path, -2, None);
    }
    // Not let in is another matter than not there.
    lookup(&mut r, 8, LookupKind::Open, "/root/secret/x", -13, None);
    lookup(&mut r, 8, LookupKind::Stat, "/usr/lib/link", 0, Some(0));
    lookup(&mut r, 8, LookupKind::List, "/srv/listed", 3, Some(dir));
    // What a container does not find says nothing of the directory that has its name here.
    r.lookup(9, LookupKind::Stat, "/opt/absent", -2).root = Some(String::new());
    let learnt = |with: &With<'_>| -> Vec<(String, u64)> {
        let files = observe(&r, with).expect("teaches").files.into_iter();
        let names = files.filter(|f| f.kind == FileKind::Name);
        names.map(|f| (f.path.display().to_string(), f.need_ns)).collect()
    };
    let link = ("/usr/lib/link".to_owned(), 7_000_000);
    // In the order of names, which the next start has as well; needed as early as the first of them.
    assert_eq!(learnt(&With::default()), [("/usr/local/bin/as".to_owned(), 4_000_000), link.clone()]);
    // Where it is known that there is no /usr/local, that is what is missing.
    let with = With { inode: Some(inode), ..With::default() };
    assert_eq!(learnt(&with), [("/usr/local".to_owned(), 4_000_000), link]);
}

#[test]
fn a_missing_name_is_learnt_in_a_directory_that_itself_was_only_asked_for() {
    let mut r = recording();
    touch(&mut r, 20, 10, 0, 0..1, TouchKind::Fault);
    let directory = file(&mut r, "/usr/lib/tools", 1);
    r.files[directory as usize].kind = Kind::Directory;
    lookup(&mut r, 5, LookupKind::Stat, "/usr/lib/tools", 0, Some(directory));
    lookup(&mut r, 6, LookupKind::Stat, "/usr/lib/tools/absent", -2, None);
    let files = observe(&r, &With::default()).expect("teaches").files.into_iter();
    let names = files.filter(|f| f.kind == FileKind::Name).map(|f| f.path.display().to_string());
    assert_eq!(names.collect::<Vec<_>>(), ["/usr/lib/tools", "/usr/lib/tools/absent"]);
}

/// Names lie scattered over a directory's blocks: a name that is found beside a missing one reads another block.
#[test]
fn of_a_directory_of_several_blocks_missing_names_are_learnt_beside_found_ones() {
    fn inode(path: &Path) -> Option<Inode> {
        let sizes = [("/usr/bin", 2 * 4096), ("/usr/sbin", 2 * 4096), ("/etc", 4096)];
        let size = sizes.into_iter().find(|(directory, _)| path == Path::new(directory))?.1;
        Some(Inode { dev: Dev::new(8, 1), number: 7, block: 0, size })
    }
    let mut r = recording();
    touch(&mut r, 20, 10, 0, 0..1, TouchKind::Fault);
    let listed = file(&mut r, "/usr/sbin", 1);
    r.files[listed as usize].kind = Kind::Directory;
    lookup(&mut r, 5, LookupKind::List, "/usr/sbin", 3, Some(listed));
    for directory in ["/usr/bin", "/etc", "/usr/sbin"] {
        lookup(&mut r, 5, LookupKind::Stat, &format!("{directory}/found"), 0, Some(0));
        for n in 0..10 {
            lookup(&mut r, 19 - n, LookupKind::Stat, &format!("{directory}/absent-{n}"), -2, None);
        }
    }
    let files =
        observe(&r, &With { inode: Some(inode), ..With::default() }).expect("teaches").files.into_iter();
    let mut names: Vec<_> = files
        .filter(|f| f.kind == FileKind::Name && !f.path.ends_with("found"))
        .map(|f| (f.path.display().to_string(), f.need_ns))
        .collect();
    names.sort();
    // Four for each of its blocks; they stand for the others, which are needed earlier.
    let wanted: Vec<_> = (0..8).map(|n| (format!("/usr/bin/absent-{n}"), 9_000_000)).collect();
    assert_eq!(names, wanted);
}

#[test]
fn of_inodes_that_were_read_ahead_only_those_of_known_names_are_learnt() {
    let mut r = recording();
    r.manifest.state.wanted = "cold".into();
    touch(&mut r, 20, 10, 0, 0..1, TouchKind::Fault);
    let device = file(&mut r, "/dev/sda1", 1);
    r.files[device as usize].kind = Kind::BlockDevice;
    // One request by read-ahead around the known inode's page 706, one elsewhere (a directory's blocks), and
    // one page that somebody waited for.
    for (first_page, pages, readahead) in [(704, 8, true), (900, 2, true), (712, 1, false)] {
        let pages = first_page..first_page + pages;
        let request = r.request(4, 1, device, pages.clone());
        (request.sector, request.metadata, request.readahead) = (first_page * 8, true, readahead);
        r.fill(4, device, pages, FillCause::Metadata);
    }
    let with = With { inode_page: Some(|_| Some((DISK, 706))), ..With::default() };
    let s = observe(&r, &with).expect("teaches");
    let device = s.files.iter().position(|f| f.kind == FileKind::BlockDevice).expect("is planned") as u32;
    let mut pages: Vec<_> =
        s.ranges.iter().filter(|r| r.file == device).map(|r| (r.first_page, r.pages)).collect();
    pages.sort_unstable();
    assert_eq!(pages, [(706, 1), (712, 1), (900, 2)]);
}
