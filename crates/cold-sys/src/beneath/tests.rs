use std::os::unix::fs::symlink;

use super::*;

/// By `openat2`, and without it.
const WAYS: [fn(&Path) -> Result<Beneath>; 2] = [Beneath::at, Beneath::walking];

fn place() -> (tempfile::TempDir, [Beneath; 2]) {
    let dir = tempfile::tempdir().expect("a directory");
    let ways = WAYS.map(|at| at(dir.path()).expect("held"));
    assert!(ways[0].walk.is_none(), "this kernel has openat2");
    (dir, ways)
}

#[test]
fn no_link_leads_into_another_mount() {
    let (dir, ways) = place();
    symlink("/proc/version", dir.path().join("absolute")).expect("linked");
    symlink("/proc", dir.path().join("above")).expect("linked");
    symlink("file", dir.path().join("inside")).expect("linked");
    std::fs::write(dir.path().join("file"), "text").expect("written");
    for beneath in ways {
        for name in ["absolute", "above/version"] {
            let error = beneath.regular(Path::new(name)).expect_err("another mount");
            assert_eq!(error.errno(), Some(libc::EXDEV), "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
        let error = beneath.list(Path::new("above"), 10).expect_err("another mount");
        assert_eq!(error.errno(), Some(libc::EXDEV));
        assert_eq!(beneath.regular(Path::new("inside")).expect("within").1.len(), 4);
        beneath.look_up(Path::new("absolute")).expect("the link itself");
        assert!(beneath.look_up(Path::new("above/version")).is_err());
    }
}

/// What a name leads to is the same without `openat2`: the kernel's answer is the truth.
#[test]
fn both_ways_lead_to_the_same() {
    let (dir, ways) = place();
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir_all(at("a/b")).expect("made");
    std::fs::write(at("a/b/file"), "").expect("written");
    let above = dir.path().parent().expect("has one");
    let links: [(&str, &Path); 12] = [
        ("to-file", Path::new("a/b/file")),
        ("to-dir", Path::new("a/b")),
        ("a/back", Path::new("../a/./b//")),
        ("a/b/chain", Path::new("../../to-file")),
        ("loop", Path::new("loop")),
        ("two", Path::new("three")),
        ("three", Path::new("two")),
        ("nowhere", Path::new("a/none")),
        ("itself", dir.path()),
        ("above", above),
        ("root", Path::new("/")),
        ("dot", Path::new(".")),
    ];
    for (name, to) in links {
        symlink(to, at(name)).expect("linked");
    }
    let names = [
        "",
        ".",
        "a",
        "a/b/file",
        "a/../a/b",
        "a/b/file/x",
        "none",
        "none/x",
        "to-file",
        "to-file/x",
        "to-dir",
        "to-dir/file",
        "to-dir/..",
        "a/back/file",
        "a/b/chain",
        "loop",
        "two",
        "loop/x",
        "nowhere",
        "itself/a",
        "above",
        "..",
        "../..",
        "../../../../../../..",
        "root",
        "root/proc",
        "root/proc/version",
        "root/dev/null",
        "dot/dot/a",
        "a/b/../../../..",
    ];
    let mut found = 0;
    for name in names {
        for follow in [true, false] {
            let [kernels, walked] = [0, 1].map(|way: usize| {
                let held = ways[way].hold(Path::new(name), follow);
                let meta = held.map(|file| file.metadata().expect("looked at"));
                meta.map(|meta| (meta.dev(), meta.ino())).map_err(|e| e.errno())
            });
            assert_eq!(kernels, walked, "{name:?}, followed: {follow}");
            found += usize::from(kernels.is_ok());
        }
    }
    assert!(found >= 30, "{found}");
}

/// Looking a mounted name up may ask a server that never answers, so the table is asked before.
#[test]
fn what_is_mounted_is_not_walked_into() {
    let (dir, _) = place();
    std::fs::create_dir_all(dir.path().join("a/b")).expect("made");
    symlink("a/b", dir.path().join("link")).expect("linked");
    let mut beneath = Beneath::walking(dir.path()).expect("held");
    beneath.look_up(Path::new("a/b")).expect("nothing is mounted there");
    beneath.walk.as_mut().expect("it walks").is_mounted(dir.path().join("a/b"));
    for name in ["a/b", "a/b/none", "link/none"] {
        let error = beneath.look_up(Path::new(name)).expect_err("another mount");
        assert_eq!(error.errno(), Some(libc::EXDEV), "{error}");
    }
}

#[test]
fn the_links_of_proc_that_lead_anywhere_are_refused() {
    for at in WAYS {
        let beneath = at(Path::new("/proc")).expect("held");
        let name = format!("{}/exe", std::process::id());
        let error = beneath.regular(Path::new(&name)).expect_err("refused");
        assert_eq!(error.errno(), Some(libc::ELOOP), "{error}");
        assert!(at(Path::new("/proc/self/root")).is_err());
    }
}

#[test]
fn a_link_is_no_place() {
    let (dir, _) = place();
    symlink(dir.path(), dir.path().join("link")).expect("linked");
    std::fs::write(dir.path().join("file"), "").expect("written");
    for (name, at) in [("link", WAYS[0]), ("link", WAYS[1]), ("file", WAYS[0]), ("file", WAYS[1])] {
        let error = at(&dir.path().join(name)).expect_err(name);
        assert_eq!(error.errno(), Some(libc::ENOTDIR), "{error}");
    }
}

#[test]
fn only_regular_files_and_allowed_devices_are_opened() {
    let (dir, ways) = place();
    std::fs::create_dir(dir.path().join("inner")).expect("made");
    let mode = Mode::RUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("fifo"), kind, mode, 0).expect("made");
    std::fs::write(dir.path().join("file"), "").expect("written");
    let refused = |opened: Result<(File, Metadata)>| match opened {
        Err(Error::NotRegular { kind, .. }) => kind,
        other => panic!("{other:?}"),
    };
    for (beneath, at) in ways.iter().zip(WAYS) {
        assert_eq!(refused(beneath.regular(Path::new("inner"))), "directory");
        assert_eq!(refused(beneath.regular(Path::new("fifo"))), "FIFO", "and nobody waits for its other end");
        assert_eq!(refused(beneath.block_device(Path::new("file"), |_| true)), "regular file");
        let dev = at(Path::new("/dev")).expect("held");
        assert_eq!(refused(dev.block_device(Path::new("null"), |_| true)), "character device");
        let blocks = std::fs::read_dir("/sys/class/block").into_iter().flatten();
        let names = blocks.map(|entry| entry.expect("an entry").file_name());
        if let Some(name) = names.into_iter().find(|name| Path::new("/dev").join(name).exists()) {
            assert_eq!(refused(dev.block_device(Path::new(&name), |_| false)), "block device");
        }
    }
}

#[test]
fn a_directory_is_listed_as_far_as_wanted() {
    let (dir, ways) = place();
    for name in ["a", "b", "c"] {
        std::fs::write(dir.path().join(name), "").expect("written");
    }
    // With `.` and `..`, which are entries on the disk as well.
    for beneath in ways {
        for (most, count) in [(0, 0), (2, 2), (5, 5), (100, 5)] {
            assert_eq!(beneath.list(Path::new(""), most).expect("listed"), count, "{most}");
        }
        assert_eq!(beneath.list(Path::new("a"), 1).expect_err("a file").errno(), Some(libc::ENOTDIR));
    }
}
