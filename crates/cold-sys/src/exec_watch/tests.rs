use super::*;

#[test]
fn what_is_no_event_is_none() {
    let mut bytes = vec![0_u8; 64];
    for len in [0_u32, 3, 23, 65, u32::MAX] {
        bytes[..4].copy_from_slice(&len.to_ne_bytes());
        assert!(ExecEvent::parse(&bytes).is_none(), "{len}");
    }
    assert!(ExecEvent::parse(&[]).is_none());
    for records in [&[1_u8, 0, 0, 0][..], &[1, 0, 200, 0, 1, 2], &[1, 0, 8, 0, 1, 2, 3, 4], &[9, 0, 4, 0]] {
        assert_eq!(file_of(records), None, "{records:?}");
    }
}

#[test]
fn handles_longer_than_any_known_are_nobodys() {
    let handle = |len: u32| {
        let mut bytes = vec![7_u8; 8 + len as usize];
        bytes[..4].copy_from_slice(&len.to_ne_bytes());
        bytes
    };
    assert!(parse_handle(1, &handle(HANDLE as u32)).is_some());
    assert_eq!(parse_handle(1, &handle(HANDLE as u32 + 1)), None);
    assert_eq!(parse_handle(1, &handle(20)[..20]), None, "cut short");
    assert_ne!(parse_handle(1, &handle(8)), parse_handle(2, &handle(8)), "another file system");
}

mod root {
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    fn is_root() -> bool {
        let root = crate::caps::is_root();
        assert!(root || std::env::var_os("CI").is_none(), "needs root");
        root
    }

    /// Hears until the starts of `files` were told, by this process id.
    fn heard(watch: &ExecWatch, pid: u32, file: &Path) -> bool {
        let ids = ExecWatch::ids_of(file).expect("named");
        let end = Instant::now() + Duration::from_secs(10);
        let mut found = false;
        while !found && Instant::now() < end {
            watch.wait(Duration::from_millis(50)).expect("waits");
            watch
                .hear(&mut |heard| match heard {
                    Heard::Exec { file, pid: by } => {
                        found |= by.cast_unsigned() == pid && ids.contains(&file);
                    }
                    Heard::Overflow => {}
                })
                .expect("hears");
        }
        found
    }

    #[test]
    fn starts_on_a_watched_file_system_are_told_by_file_and_process() {
        if !is_root() {
            return;
        }
        let mut watch = ExecWatch::new().expect("root may");
        watch.watch(Path::new("/")).expect("marked");
        watch.watch(Path::new("/")).expect("once more changes nothing");
        let program = Path::new("/usr/bin/true");
        let mut child = Command::new(program).spawn().expect("started");
        let pid = child.id();
        child.wait().expect("ends");
        assert!(heard(&watch, pid, program));
        assert!(ExecWatch::ids_of(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn what_is_ignored_is_not_told_and_everything_else_is() {
        if !is_root() {
            return;
        }
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let program = dir.path().join("program");
        std::fs::copy("/usr/bin/true", &program).expect("copied");
        let mut watch = ExecWatch::new().expect("root may");
        watch.watch(Path::new("/")).expect("marked");
        watch.ignore(&program).expect("since Linux 5.19");
        let ids = ExecWatch::ids_of(&program).expect("named");
        let run = |path: &Path| {
            let mut child = Command::new(path).spawn().expect("started");
            child.wait().expect("ends");
            child.id()
        };
        run(&program);
        let after = run(Path::new("/usr/bin/true"));
        let mut told = false;
        let (mut seen, end) = (false, Instant::now() + Duration::from_secs(10));
        while !seen && Instant::now() < end {
            watch.wait(Duration::from_millis(50)).expect("waits");
            let tell = &mut |heard| {
                if let Heard::Exec { file, pid } = heard {
                    told |= ids.contains(&file);
                    seen |= pid.cast_unsigned() == after;
                }
            };
            watch.hear(tell).expect("hears");
        }
        assert!(seen && !told);
    }

    #[test]
    fn what_was_told_is_ignored_by_its_name_until_it_is_to_be_heard_again() {
        if !is_root() {
            return;
        }
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let program = dir.path().join("program");
        // Copied by another process: a child of another test may hold open for writing what this one has written.
        let copied = Command::new("cp").arg("/usr/bin/true").arg(&program).status().expect("cp");
        assert!(copied.success());
        let mut watch = ExecWatch::new().expect("root may");
        assert_eq!(watch.watch(Path::new("/")).expect("marked"), Named::Handle, "on ext4, XFS, btrfs");
        let ids = ExecWatch::ids_of(&program).expect("named");
        let run = |path: &Path| {
            let mut child = Command::new(path).spawn().expect("started");
            child.wait().expect("ends");
            child.id()
        };
        // By what name it is told, and whether it is, before a program that is executed behind it.
        let told = |watch: &ExecWatch| {
            run(&program);
            let after = run(Path::new("/usr/bin/true"));
            let (mut name, mut seen, end) = (None, false, Instant::now() + Duration::from_secs(10));
            while !seen && Instant::now() < end {
                watch.wait(Duration::from_millis(50)).expect("waits");
                let tell = &mut |heard| {
                    if let Heard::Exec { file, pid } = heard {
                        name = name.or_else(|| Some(file).filter(|file| ids.contains(file)));
                        seen |= pid.cast_unsigned() == after;
                    }
                };
                watch.hear(tell).expect("hears");
            }
            assert!(seen, "what is executed behind it is told");
            name
        };
        let name = told(&watch).expect("told");
        watch.ignore_told(&name).expect("since Linux 5.19");
        assert_eq!(told(&watch), None);
        watch.hear_again(&name);
        assert_eq!(told(&watch), Some(name));
        // What is gone cannot be ignored, and is no error when it is to be heard again.
        std::fs::remove_file(&program).expect("removed");
        assert!(watch.ignore_told(&name).is_err());
        watch.hear_again(&name);
        let by_inode = ExecutedFile::of_inode(1, 2);
        assert!(watch.ignore_told(&by_inode).is_err());
    }

    #[test]
    fn a_file_known_by_its_inode_is_told_as_well() {
        if !is_root() {
            return;
        }
        let mut watch = ExecWatch::new().expect("root may");
        let group = group(0).expect("a group");
        mark(&group, Path::new("/")).expect("marked");
        watch.by_inode = Some(group);
        let program = Path::new("/usr/bin/true");
        let mut child = Command::new(program).spawn().expect("started");
        let pid = child.id();
        child.wait().expect("ends");
        assert!(heard(&watch, pid, program));
    }
}
