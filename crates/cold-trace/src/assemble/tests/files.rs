//! Names and identities.

use cold_model::file::Content;
use cold_model::recording::{FileKind, PathFrom};

use super::*;
use crate::blocks::Mount;
use crate::raw::{FILE_BDEV, FILE_CUT, FILE_DELETED, FILE_FS_ROOT, FILE_FULL, FILE_SHMEM};

fn mount(minor: u32, root: &str, point: &str, kind: &str, options: &str) -> Mount {
    Mount {
        dev: dev(minor),
        root: root.to_owned(),
        point: point.to_owned(),
        kind: kind.to_owned(),
        options: options.to_owned(),
        ..Mount::default()
    }
}

/// The rows of these files, of each of which something is told.
fn rows(mounts: Vec<Mount>, files: &[Vec<u8>]) -> Vec<File> {
    let mut facts = facts();
    facts.push(Fact::Mounts(mounts));
    let told = files.iter().map(|event| match crate::raw::records(event).next() {
        Some(Ok(crate::raw::RawRecord { event: crate::raw::Event::File(f), .. })) => {
            delete(2, Id(f.file.inode, f.file.dev.major << 20 | f.file.dev.minor), 0, 0)
        }
        other => panic!("{other:?} is no file"),
    });
    let events: Vec<_> = files.iter().cloned().chain(told).collect();
    assemble(log(&facts, &events), &mut InnermostOnly, &mut Cached(Vec::new(), None)).files
}

#[test]
fn a_name_below_the_root_of_a_file_system_gets_its_mount() {
    let mounts = vec![mount(1, "/@", "/", "btrfs", ""), mount(1, "/@home", "/home", "btrfs", "")];
    let files = rows(
        mounts,
        &[
            file(id(5), 1, FILE_FS_ROOT, &["x", "usr", "@"]),
            file(id(6), 1, FILE_FS_ROOT, &["y", "@other"]),
            file(id(7), 1, FILE_FS_ROOT | FILE_CUT, &["z", "@"]),
            // A full name beats it, whichever comes first.
            file(id(5), 1, FILE_FULL, &["x", "usr", "srv"]),
        ],
    );
    let said: Vec<_> = files.iter().map(|f| (f.path.as_deref(), f.path_from)).collect();
    assert_eq!(
        said,
        [(Some("/srv/usr/x"), PathFrom::OpenFile), (None, PathFrom::Unknown), (None, PathFrom::Unknown)]
    );
    assert_eq!(files[0].file_system, "ext4");
}

#[test]
fn a_file_of_a_layer_is_named_as_the_overlay_shows_it() {
    let overlay = "rw,lowerdir=/layers/a,upperdir=/up,workdir=/work";
    let mounts = vec![mount(1, "/", "/", "ext4", ""), mount(2, "/", "/merged", "overlay", overlay)];
    let shown = Id(77, 8 << 20 | 2);
    let real = file_of(id(6), 4096, 0o100_644, 0, FILE_FS_ROOT, &["y", "a", "layers"], shown);
    let open = Call { file: shown, path: Some("/merged/y"), ..Call::new(libc::SYS_openat, 10, 11) };
    let mut facts = facts();
    facts.push(Fact::Mounts(mounts));
    let events = [
        file(id(5), 1, FILE_FS_ROOT, &["x", "a", "layers"]),
        delete(2, id(5), 0, 0),
        open.record(),
        file(shown, 4096, FILE_FULL, &["y", "merged"]),
        real,
        pages(7, 20, fault_context(19, id(6), 0), id(6), 0, 0),
    ];
    let r = assemble(log(&facts, &events), &mut InnermostOnly, &mut Cached(Vec::new(), None));
    assert_eq!(r.files.len(), 2, "the shown inode and the real one are one file");
    assert_eq!(r.files[0].path.as_deref(), Some("/merged/x"), "by the mount's options");
    let (file, touch) = (r.lookups.as_ref().unwrap()[0].file.unwrap(), r.touches.as_ref().unwrap()[0].file);
    assert_eq!(file, touch);
    assert_eq!((path(&r, touch), r.files[touch as usize].inode), ("/merged/y".to_owned(), 6));
}

#[test]
fn memory_devices_and_deleted_files() {
    let memory = file(id(5), 4096, FILE_FS_ROOT | FILE_SHMEM | FILE_DELETED, &["memfd:x"]);
    let block = file_of(Id(6, 5), 0, 0o060_660, 254 << 20 | 3, FILE_BDEV, &[], NOWHERE);
    let gone = file(id(7), 4096, FILE_FULL | FILE_DELETED, &["gone", "tmp"]);
    let odd = file(id(8), 1, FILE_FULL, &["a\u{fffd}b"]);
    let files = rows(Vec::new(), &[memory, block, gone, odd]);
    let said: Vec<_> = files.iter().map(|f| (f.path.as_deref(), f.kind, f.deleted)).collect();
    assert_eq!(said[0], (Some("memfd:x"), FileKind::Memory, true));
    assert_eq!(said[1].1, FileKind::BlockDevice);
    assert_eq!((files[1].dev, files[1].size), (Dev::new(254, 3), None));
    assert_eq!(said[2], (Some("/tmp/gone"), FileKind::Regular, true));
    assert_eq!(super::super::files::escape(b"a\xff\xfeb"), "a\\xff\\xfeb");
}

#[test]
fn the_kernels_own_files_and_roots() {
    // A process that has ended took its files in /proc with it; nobody deleted them.
    let gone = file(id(5), 0, FILE_FULL | FILE_DELETED, &["stat", "7", "proc"]);
    let mut of_proc = gone;
    let at = of_proc.windows(4).position(|w| w == b"ext4").expect("the type");
    of_proc[at..at + 4].copy_from_slice(b"proc");
    let root = file_of(id(2), 4096, 0o040_755, 0, FILE_FULL, &[], NOWHERE);
    let bitmaps = file_of(id(1), 0, 0, 0, 0, &[], NOWHERE);
    let files = rows(Vec::new(), &[of_proc, root, bitmaps]);
    let said: Vec<_> = files.iter().map(|f| (f.path.as_deref(), f.deleted)).collect();
    assert_eq!(
        said,
        [(Some("/proc/7/stat"), false), (Some("/"), false), (Some("ext4 free blocks:[1]"), false)]
    );
}

/// A machine on which each file has this size now.
struct Sized(Vec<(u64, u64)>);

impl FilesNow for Sized {
    fn resident(&mut self, _: &File) -> Option<Vec<(u64, u64)>> {
        None
    }
    fn folios(&mut self, _: &File, _: &[u64]) -> Option<Vec<(u64, u64)>> {
        None
    }
    fn content(&mut self, file: &File) -> Option<Content> {
        let found = self.0.iter().find(|(inode, _)| *inode == file.inode);
        found.map(|(_, size)| Content { size: *size, mtime_ns: 77 })
    }
}

#[test]
fn files_that_the_start_wrote_have_the_size_they_got() {
    let write = call_context(10, libc::SYS_write, NOWHERE, 0);
    let read = call_context(20, libc::SYS_read, NOWHERE, 0);
    let events = [
        file(id(5), 0, FILE_FULL, &["written"]),
        file(id(6), 0, FILE_FULL, &["written and removed"]),
        file(id(7), 4096, FILE_FULL, &["as it was"]),
        add(11, write, id(5), 0, 1),
        add(12, write, id(6), 0, 0),
        pages(9, 21, read, id(5), 0, 7),
        pages(9, 22, read, id(6), 0, 7),
        pages(9, 23, read, id(7), 0, 0),
    ];
    let mut machine = Sized(vec![(5, 5000), (7, 4096)]);
    let r = assemble(log(&facts(), &events), &mut InnermostOnly, &mut machine);
    let sizes: Vec<_> = r.files.iter().map(|f| (f.size, f.mtime_ns)).collect();
    assert_eq!(sizes, [(Some(5000), Some(77)), (None, None), (Some(4096), Some(77))]);
    let read: Vec<_> = touches(&r).into_iter().map(|t| (t.1, t.3)).collect();
    let expected = [("/written", 2), ("/written and removed", 1), ("/as it was", 1)];
    assert_eq!(read, expected.map(|(path, pages)| (path.to_owned(), pages)), "32 KiB were asked for");
}
