use std::os::unix::fs::symlink;

use super::super::tests::fake;
use super::*;

/// The line of a process with the fields behind its name numbered as in proc(5): field N is N, but for the state.
fn numbered(last: u64) -> String {
    let fields: Vec<String> = (4..=last).map(|n| n.to_string()).collect();
    format!("42 (name) S {}\n", fields.join(" "))
}

#[test]
fn a_command_name_with_parentheses() {
    let line = "42 (a) b (c)) S 1 42 42 0 -1 4194304 10 0 3 0 5 6 0 0 20 0 1 0 777 0 0 0 0 0 0 0 0 0 \
                0 0 0 0 0 0 17 0 0 0 9 0 0";
    let s = parse_stat(line).expect("parses");
    assert_eq!((s.pid, s.comm.as_str(), s.state, s.ppid), (42, "a) b (c)", 'S', 1));
    assert_eq!((s.minflt, s.majflt, s.utime, s.stime, s.starttime), (10, 3, 5, 6, 777));
    assert_eq!(s.delayacct_blkio_ticks, 9);
}

#[test]
fn fields_are_those_of_the_manual_page() {
    let s = parse_stat(&numbered(52)).expect("parses");
    assert_eq!((s.state, s.ppid, s.pgrp, s.session, s.flags), ('S', 4, 5, 6, 9));
    assert_eq!((s.minflt, s.majflt, s.utime, s.stime, s.starttime), (10, 12, 14, 15, 22));
    assert_eq!(s.delayacct_blkio_ticks, 42);
}

#[test]
fn a_line_may_end_behind_the_start_time_and_not_before() {
    assert_eq!(parse_stat(&numbered(22)).expect("parses").delayacct_blkio_ticks, 0);
    assert_eq!(parse_stat(&numbered(21)), None);
}

#[test]
fn a_line_of_another_form_is_none() {
    for text in ["", "42", "42 (name", "42 name) S 1", ")42 (", "x (name) S 4 5 6", "42 (name)"] {
        assert_eq!(parse_stat(text), None, "{text:?}");
    }
    assert_eq!(parse_stat(&numbered(52).replacen(" 4 ", " 4294967296 ", 1)), None, "no process id");
}

#[test]
fn what_stat_tells_of_this_process_other_calls_tell_too() {
    let own = ProcFs::default().own_stat().expect("readable");
    // SAFETY: these have no preconditions.
    let told = unsafe { (libc::getpid(), libc::getppid(), libc::getpgrp(), libc::getsid(0)) };
    assert_eq!((own.pid, own.ppid, own.pgrp, own.session), told);
    assert_eq!(ProcFs::default().stat(own.pid).expect("readable").starttime, own.starttime);
}

#[test]
fn a_process_sleeps_when_every_thread_of_it_does() {
    let thread = |state: &str| numbered(52).replacen(" S ", &format!(" {state} "), 1);
    let (asleep, runs, waits) = (thread("S"), thread("R"), thread("D"));
    let (dir, proc) = fake(&[
        ("1/task/1/stat", &asleep),
        ("1/task/2/stat", &asleep),
        ("2/task/2/stat", &asleep),
        ("2/task/3/stat", &runs),
        ("3/task/3/stat", &waits),
        ("4/task/4/stat", "nonsense"),
    ]);
    // A thread that has ended meanwhile.
    std::fs::create_dir_all(dir.path().join("5/task/5")).expect("made");
    assert!(proc.is_asleep(1));
    for (pid, why) in [(2, "one runs"), (3, "waits for a disk"), (4, "unknown"), (5, "gone"), (6, "none")] {
        assert!(!proc.is_asleep(pid), "{why}");
    }
}

#[test]
fn processes_are_in_the_order_of_their_numbers() {
    let (_dir, proc) = fake(&[("10/x", ""), ("9/x", ""), ("100/x", ""), ("self/x", ""), ("1x/x", "")]);
    assert_eq!(proc.pids().expect("listed"), [9, 10, 100]);
}

#[test]
fn empty_words_of_a_command_line_are_words() {
    let (_dir, proc) =
        fake(&[("1/cmdline", "a\0\0b c\0"), ("2/cmdline", ""), ("3/cmdline", "title"), ("4/cmdline", "\0")]);
    let words = |pid| proc.cmdline(pid).expect("read");
    assert_eq!(words(1), ["a", "", "b c"]);
    assert_eq!(words(2), [""; 0], "a kernel thread");
    assert_eq!(words(3), ["title"], "who has overwritten it");
    assert_eq!(words(4), [""]);
}

#[test]
fn a_group_may_have_colons_in_its_name() {
    let text = "12:cpu,cpuacct:/a\n0::/user:1000/b\nx:y:/no-number\n3\n";
    let (_dir, proc) = fake(&[("7/cgroup", text)]);
    let expected = [(12, "cpu,cpuacct", "/a"), (0, "", "/user:1000/b")];
    let expected = expected.map(|(hierarchy, controllers, path)| InCgroup {
        hierarchy,
        controllers: controllers.to_owned(),
        path: PathBuf::from(path),
    });
    assert_eq!(proc.cgroups(7).expect("read"), expected);
}

#[test]
fn a_field_is_found_by_its_whole_name() {
    let text = "Shared_Clean: 1 kB\nShared: 2 kB\nVmPeak:\t 3 kB\nchars 4\nName:\tcold\nSigQ: 0/95\n";
    let (_dir, proc) = fake(&[("7/status", text)]);
    for (key, value) in [
        ("Shared", Some(2)),
        ("Shared_Clean", Some(1)),
        ("VmPeak", Some(3)),
        ("chars", Some(4)),
        ("Name", None),
        ("SigQ", None),
        ("Peak", None),
    ] {
        assert_eq!(proc.process_field(7, "status", key).expect("read"), value, "{key}");
    }
}

#[test]
fn descriptors_are_numbered_links() {
    let (dir, proc) = fake(&[("7/fd/5", "no link"), ("7/other", "")]);
    for (name, target) in [("0", "/dev/null"), ("12", "/tmp/x (deleted)"), ("3", "socket:[99]"), ("x", "/y")]
    {
        symlink(target, dir.path().join("7/fd").join(name)).expect("linked");
    }
    let mut fds = proc.fds(7).expect("listed");
    fds.sort_by_key(|fd| fd.fd);
    let fds: Vec<(i32, &str)> = fds.iter().map(|fd| (fd.fd, fd.target.to_str().expect("text"))).collect();
    assert_eq!(fds, [(0, "/dev/null"), (3, "socket:[99]"), (12, "/tmp/x (deleted)")]);
    assert!(proc.fds(8).is_err(), "no such process");
}
