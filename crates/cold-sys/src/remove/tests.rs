use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn id(path: &Path) -> FileId {
    FileId::of(&path.symlink_metadata().expect("stat"))
}

#[test]
fn a_tree_goes_and_what_its_links_name_stays() {
    let dir = tempfile::tempdir().expect("tempdir");
    let (precious, tree) = (dir.path().join("precious"), dir.path().join("tree"));
    fs::create_dir_all(precious.join("inner")).expect("mkdir");
    fs::write(precious.join("inner/file"), "x").expect("write");
    fs::create_dir_all(tree.join("a/b/c")).expect("mkdir");
    symlink(&precious, tree.join("link")).expect("link");
    symlink(&precious, tree.join("a/b/link")).expect("link");
    fs::hard_link(precious.join("inner/file"), tree.join("a/hard")).expect("link");
    assert!(super::tree(&tree, id(&tree)).expect("removed"));
    assert!(!tree.exists());
    assert_eq!(fs::read(precious.join("inner/file")).expect("stays"), b"x");
}

#[test]
fn another_one_of_that_name_stays() {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("name");
    fs::create_dir(&path).expect("mkdir");
    let ours = id(&path);
    let entry = Entry::find(&path).expect("found").expect("there");
    fs::rename(&path, dir.path().join("moved")).expect("rename");
    fs::create_dir(&path).expect("mkdir");
    fs::write(path.join("file"), "x").expect("write");
    assert!(!entry.remove_tree().expect("looked"));
    assert!(!super::tree(&path, ours).expect("looked"));
    symlink("name", dir.path().join("link")).expect("link");
    assert!(!super::tree(&dir.path().join("link"), ours).expect("looked"));
    assert!(hold(&dir.path().join("link")).is_err(), "a link is not followed");
    assert!(path.join("file").exists());
    assert!(Entry::find(&dir.path().join("none/x")).expect("looked").is_none());
}

#[test]
fn what_is_full_or_of_another_kind_stays_and_what_has_gone_is_removed() {
    let dir = tempfile::tempdir().expect("tempdir");
    let (full, file) = (dir.path().join("full"), dir.path().join("file"));
    fs::create_dir_all(full.join("inner")).expect("mkdir");
    fs::write(&file, "x").expect("write");
    let find = |path: &Path| Entry::find(path).expect("found").expect("there");
    assert_eq!(find(&full).remove_empty().expect_err("full").raw_os_error(), Some(libc::ENOTEMPTY));
    assert_eq!(find(&full).unlink().expect_err("a directory").raw_os_error(), Some(libc::EISDIR));
    assert_eq!(find(&file).remove_empty().expect_err("a file").raw_os_error(), Some(libc::ENOTDIR));
    assert!(find(&file).remove_tree().is_err());
    assert!(!super::tree(&file, id(&file)).expect("looked"), "no directory");
    assert!(full.join("inner").exists() && file.exists());
    let entry = find(&file);
    fs::remove_file(&file).expect("removed");
    assert!(entry.unlink().expect("looked"), "it is gone, as was wanted");
    assert!(Entry::find(&full.join("inner/none/x")).expect("looked").is_none());
    assert!(Entry::find(Path::new("/")).is_err(), "what has no name");
}

#[test]
fn a_tree_deeper_than_descriptors_go_is_emptied() {
    let dir = tempfile::tempdir().expect("tempdir");
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).expect("mkdir");
    let mut at = rustix::fs::open(&tree, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).expect("open");
    // Beyond PATH_MAX, too: only descriptors reach it.
    for _ in 0..1100 {
        rustix::fs::mkdirat(&at, "inner", Mode::RWXU).expect("mkdir");
        rustix::fs::mkdirat(&at, "b", Mode::RWXU).expect("mkdir");
        at = rustix::fs::openat(&at, "inner", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).expect("open");
    }
    drop(at);
    content(&hold(&tree).expect("held")).expect("emptied");
    assert_eq!(fs::read_dir(&tree).expect("stays").count(), 0);
}

#[test]
fn a_mount_is_not_crossed_as_root() {
    if !crate::caps::is_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("tempdir");
    let (precious, tree) = (dir.path().join("precious"), dir.path().join("tree"));
    fs::create_dir(&precious).expect("mkdir");
    fs::write(precious.join("file"), "x").expect("write");
    fs::create_dir_all(tree.join("a/mnt")).expect("mkdir");
    // A bind mount has the device number of what surrounds it.
    rustix::mount::mount_bind(&precious, tree.join("a/mnt")).expect("mount");
    let removed = super::tree(&tree, id(&tree));
    let unmounted = rustix::mount::unmount(tree.join("a/mnt"), rustix::mount::UnmountFlags::DETACH);
    unmounted.expect("unmounted");
    assert_eq!(removed.expect_err("mounted").kind(), io::ErrorKind::CrossesDevices);
    assert!(precious.join("file").exists());
}
