use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

#[test]
fn the_old_file_stays_until_the_new_one_is_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("result");
    std::fs::write(&path, "old").expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("changed");
    let mut file = WholeFile::create(&path, Ownership::Result).expect("begun");
    file.write_all(b"new").expect("written");
    assert_eq!(std::fs::read(&path).expect("read"), b"old");
    drop(file);
    assert_eq!(
        (std::fs::read(&path).expect("read"), names(dir.path())),
        (b"old".to_vec(), vec!["result".into()])
    );
    write(&path, Ownership::Result, b"new").expect("written");
    assert_eq!(
        (std::fs::read(&path).expect("read"), names(dir.path())),
        (b"new".to_vec(), vec!["result".into()])
    );
    assert_eq!(path.metadata().expect("there").mode() & 0o777, 0o640, "its mode is kept");
}

#[test]
fn a_free_name_is_not_taken_from_anybody() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("new");
    let file = WholeFile::create_new(&path, Ownership::Own(0o600)).expect("begun");
    std::fs::write(&path, "another's").expect("written");
    assert_eq!(file.commit().expect_err("refused").kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).expect("read"), b"another's");
    let again = WholeFile::create_new(&path, Ownership::Own(0o600)).expect_err("refused");
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(names(dir.path()), ["new"]);
}

#[test]
fn links_of_results_are_followed_and_links_of_our_own_names_replaced() {
    let dir = tempfile::tempdir().expect("a directory");
    let (target, link) = (dir.path().join("target"), dir.path().join("link"));
    std::fs::write(&target, "precious").expect("written");
    symlink("target", &link).expect("linked");
    write(&link, Ownership::Result, b"through").expect("written");
    assert_eq!(std::fs::read(&target).expect("read"), b"through");
    write(&link, Ownership::Own(0o600), b"own").expect("written");
    assert_eq!(std::fs::read(&target).expect("read"), b"through", "never through the link");
    let meta = link.symlink_metadata().expect("there");
    assert!(meta.is_file() && meta.mode() & 0o777 == 0o600);
    symlink("round", dir.path().join("round")).expect("linked");
    assert!(write(&dir.path().join("round"), Ownership::Result, b"x").is_err());
}

#[test]
fn a_link_that_another_user_put_into_a_shared_directory_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let (shared, target) = (dir.path().join("shared"), dir.path().join("target"));
    std::fs::create_dir(&shared).expect("made");
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777)).expect("changed");
    let link = shared.join("link");
    symlink(&target, &link).expect("linked");
    if !crate::caps::is_root() {
        assert!(followed(&link).is_ok(), "the own link");
        return;
    }
    let uid = Some(Uid::from_raw(65534));
    rustix::fs::chownat(rustix::fs::CWD, &link, uid, None, AtFlags::SYMLINK_NOFOLLOW).expect("given away");
    let refused = write(&link, Ownership::Result, b"x").expect_err("refused");
    assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    assert!(!target.exists());
}

#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else_as_root() {
    if !crate::caps::is_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    crate::mount::mount(Path::new("none"), dir.path(), "tmpfs", false, "size=64k").expect("mounted");
    let path = dir.path().join("result");
    let (began, full) =
        (write(&path, Ownership::Result, b"old"), write(&path, Ownership::Result, &vec![1; 1 << 20]));
    let own = write(&path, Ownership::Own(0o600), &vec![1; 1 << 20]);
    let (left, names) = (std::fs::read(&path), names(dir.path()));
    crate::mount::unmount(dir.path(), true).expect("unmounted");
    began.expect("there is room");
    for refused in [full, own] {
        assert_eq!(refused.expect_err("no room").raw_os_error(), Some(libc::ENOSPC));
    }
    assert_eq!((left.expect("stays"), names), (b"old".to_vec(), vec!["result".to_owned()]));
}

#[test]
fn a_link_to_what_is_not_there_yet_is_followed_from_its_own_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("inner")).expect("made");
    symlink("../new", dir.path().join("inner/second")).expect("linked");
    symlink("inner/second", dir.path().join("first")).expect("linked");
    write(&dir.path().join("first"), Ownership::Result, b"x").expect("written");
    assert_eq!(std::fs::read(dir.path().join("new")).expect("made"), b"x");
    // As many links as the kernel follows, and one more.
    for n in 0..=MOST_LINKS {
        symlink(format!("l{}", n + 1), dir.path().join(format!("l{n}"))).expect("linked");
    }
    assert!(followed(&dir.path().join("l2")).is_ok());
    assert_eq!(followed(&dir.path().join("l0")).expect_err("too many").raw_os_error(), Some(libc::ELOOP));
}

#[test]
fn what_is_no_file_is_written_as_it_is() {
    let error = write(Path::new("/dev/full"), Ownership::Result, b"x").expect_err("full");
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    write(Path::new("/dev/null"), Ownership::Result, b"x").expect("written");
    assert!(Path::new("/dev/null").metadata().expect("there").file_type().is_char_device());
    for directory in ["/", "/tmp", "/tmp/", "/tmp/.", ".."] {
        assert!(write(Path::new(directory), Ownership::Result, b"x").is_err(), "{directory}");
    }
}

#[test]
fn a_hidden_name_goes_with_its_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let open = || rustix::fs::open(dir.path(), flags, Mode::empty()).expect("opened");
    for new in [false, true] {
        let make = |name: &OsStr| {
            rustix::fs::openat(open(), name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, Mode::RUSR)
        };
        let (file, hidden) = with_random_name(make).expect("made");
        let place = Destination { directory: open(), name: "whole".into(), hidden: Some(hidden), new };
        let mut file = WholeFile { out: BufWriter::new(File::from(file)), place: Some(place) };
        file.write_all(b"x").expect("written");
        assert_eq!(names(dir.path()).len(), 1);
        file.commit().expect("whole");
        assert_eq!(names(dir.path()), ["whole"]);
        std::fs::remove_file(dir.path().join("whole")).expect("removed");
    }
}

#[test]
fn a_link_takes_the_place_of_a_link_and_of_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, taken) = (dir.path().join("link"), dir.path().join("taken"));
    for target in ["first", "second"] {
        link(&path, Path::new(target)).expect("linked");
        assert_eq!(path.read_link().expect("a link"), Path::new(target));
    }
    std::fs::write(&taken, "mine").expect("written");
    assert_eq!(link(&taken, Path::new("first")).expect_err("taken").kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&taken).expect("read"), b"mine");
    assert_eq!(names(dir.path()), ["link", "taken"]);
}
