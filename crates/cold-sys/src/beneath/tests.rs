use std::os::unix::fs::symlink;

use super::*;

fn place() -> (tempfile::TempDir, Beneath) {
    let dir = tempfile::tempdir().expect("a directory");
    let beneath = Beneath::at(dir.path()).expect("held");
    (dir, beneath)
}

#[test]
fn no_link_leads_into_another_mount() {
    let (dir, beneath) = place();
    symlink("/proc/version", dir.path().join("absolute")).expect("linked");
    symlink("/proc", dir.path().join("above")).expect("linked");
    symlink("file", dir.path().join("inside")).expect("linked");
    std::fs::write(dir.path().join("file"), "text").expect("written");
    for name in ["absolute", "above/version"] {
        let error = beneath.regular(Path::new(name)).expect_err("another mount");
        assert_eq!(error.errno(), Some(libc::EXDEV), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    assert_eq!(beneath.list(Path::new("above"), 10).expect_err("another mount").errno(), Some(libc::EXDEV));
    assert_eq!(beneath.regular(Path::new("inside")).expect("within").1.len(), 4);
    beneath.look_up(Path::new("absolute")).expect("the link itself");
    assert!(beneath.look_up(Path::new("above/version")).is_err());
}

#[test]
fn the_links_of_proc_that_lead_anywhere_are_refused() {
    let beneath = Beneath::at(Path::new("/proc")).expect("held");
    let error = beneath.regular(Path::new("self/exe")).expect_err("refused");
    assert_eq!(error.errno(), Some(libc::ELOOP), "{error}");
    assert!(Beneath::at(Path::new("/proc/self/root")).is_err());
}

#[test]
fn a_link_is_no_place() {
    let (dir, _) = place();
    symlink(dir.path(), dir.path().join("link")).expect("linked");
    std::fs::write(dir.path().join("file"), "").expect("written");
    for name in ["link", "file"] {
        let error = Beneath::at(&dir.path().join(name)).expect_err(name);
        assert_eq!(error.errno(), Some(libc::ENOTDIR), "{error}");
    }
}

#[test]
fn only_regular_files_and_allowed_devices_are_opened() {
    let (dir, beneath) = place();
    std::fs::create_dir(dir.path().join("inner")).expect("made");
    let mode = Mode::RUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("fifo"), kind, mode, 0).expect("made");
    std::fs::write(dir.path().join("file"), "").expect("written");
    let refused = |opened: Result<(File, Metadata)>| match opened {
        Err(Error::NotRegular { kind, .. }) => kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(beneath.regular(Path::new("inner"))), "directory");
    assert_eq!(refused(beneath.regular(Path::new("fifo"))), "FIFO", "and nobody waits for its other end");
    assert_eq!(refused(beneath.block_device(Path::new("file"), |_| true)), "regular file");
    let dev = Beneath::at(Path::new("/dev")).expect("held");
    assert_eq!(refused(dev.block_device(Path::new("null"), |_| true)), "character device");
    let blocks = std::fs::read_dir("/sys/class/block").into_iter().flatten();
    let names = blocks.map(|entry| entry.expect("an entry").file_name());
    if let Some(name) = names.into_iter().find(|name| Path::new("/dev").join(name).exists()) {
        assert_eq!(refused(dev.block_device(Path::new(&name), |_| false)), "block device");
    }
}

#[test]
fn a_directory_is_listed_as_far_as_wanted() {
    let (dir, beneath) = place();
    for name in ["a", "b", "c"] {
        std::fs::write(dir.path().join(name), "").expect("written");
    }
    // With `.` and `..`, which are entries on the disk as well.
    for (most, count) in [(0, 0), (2, 2), (5, 5), (100, 5)] {
        assert_eq!(beneath.list(Path::new(""), most).expect("listed"), count, "{most}");
    }
    assert_eq!(beneath.list(Path::new("a"), 1).expect_err("a file").errno(), Some(libc::ENOTDIR));
}
