//! Scripts that start a program through the launcher, and each other.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::subject::{make, says};
use crate::world::{LAUNCHER, directory, text};

/// A script in a directory of its own.
fn script(dir: &Path, name: &str, text: &str) -> PathBuf {
    std::fs::create_dir_all(dir).expect("made");
    let path = dir.join(name);
    cold_testbed::executable(&path, text);
    path
}

/// As `cold prefetch install --wrapper` writes it.
fn wrapper(dir: &Path, name: &str, program: &Path) -> PathBuf {
    let head = "#!/bin/sh\n# Written by `cold prefetch install`.\n";
    script(dir, name, &format!("{head}exec {LAUNCHER} -- {} \"$@\"\n", program.display()))
}

/// Runs it, unless it never ends.
fn run(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("runs");
    let pid = rustix::process::Pid::from_child(&child);
    let (ended, wait) = std::sync::mpsc::channel();
    let waits = std::thread::spawn(move || {
        let out = child.wait_with_output();
        // Nobody listens any more when it took too long.
        let _ = ended.send(());
        out
    });
    if wait.recv_timeout(std::time::Duration::from_secs(20)).is_err() {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    }
    waits.join().expect("no panic").expect("ended")
}

/// Directories in the order of PATH.
fn path(dirs: &[&Path]) -> std::ffi::OsString {
    std::env::join_paths(dirs.iter().copied().chain(["/usr/bin".as_ref(), "/bin".as_ref()])).expect("joined")
}

#[test]
fn two_wrappers_of_one_program_that_start_each_other_end_in_the_program() {
    let dir = directory();
    let [a, b, real] = ["a", "b", "real"].map(|d| dir.path().join(d));
    std::fs::create_dir_all(&real).expect("made");
    let program = real.join("tool");
    std::fs::rename(make(dir.path()), &program).expect("moved");
    wrapper(&a, "tool", &b.join("tool"));
    wrapper(&b, "tool", &a.join("tool"));
    for first in [&a, &b] {
        let mut command = Command::new(first.join("tool"));
        let out = run(command.arg("x").env("PATH", path(&[&a, &b, &real])));
        assert_eq!(out.status.code(), Some(7), "{out:?}");
        assert_eq!(out.stdout, says(&program, &["x"]), "{out:?}");
    }
    // A script of somebody's own, which finds itself.
    script(&a, "tool", &format!("#!/bin/sh\nexec {LAUNCHER} tool \"$@\"\n"));
    let out = run(Command::new(a.join("tool")).env("PATH", path(&[&a, &real])));
    assert_eq!(out.status.code(), Some(7), "{out:?}");
}

#[test]
fn wrappers_of_different_programs_are_followed_to_the_last_one() {
    let dir = directory();
    let [a, b, other] = ["a", "b", "other"].map(|d| dir.path().join(d));
    let program = make(dir.path());
    // A program of that name in PATH is not the one that the second wrapper names.
    script(&other, "tool", "#!/bin/sh\nexit 3\n");
    wrapper(&b, "tool", &program);
    wrapper(&a, "tool", &b.join("tool"));
    let out = run(Command::new(a.join("tool")).arg("x").env("PATH", path(&[&a, &b, &other])));
    assert_eq!((out.status.code(), out.stdout), (Some(7), says(&program, &["x"])));
}

#[test]
fn where_only_wrappers_are_left_that_is_said_and_nothing_runs_for_ever() {
    let dir = directory();
    let [a, b] = ["a", "b"].map(|d| dir.path().join(d));
    wrapper(&a, "tool", &b.join("tool"));
    wrapper(&b, "tool", &a.join("tool"));
    let out = run(Command::new(a.join("tool")).env("PATH", path(&[&a, &b])));
    assert_eq!(out.status.code(), Some(126), "{out:?}");
    assert!(text(&out.stderr).contains("wrappers that start each other"), "{}", text(&out.stderr));
}

#[test]
fn the_program_sees_the_environment_that_the_wrapper_was_given() {
    let dir = directory();
    let [a, b, real] = ["a", "b", "real"].map(|d| dir.path().join(d));
    let look = "#!/bin/sh\ntr '\\0' '\\n' </proc/$$/environ | sort\n";
    let program = script(&real, "tool", look);
    wrapper(&a, "tool", &b.join("tool"));
    wrapper(&b, "tool", &a.join("tool"));
    let seen = |first: &Path| {
        let mut command = Command::new(first);
        command.env_clear().env("PATH", path(&[&a, &b, &real])).env("ONE", "1").env("PWD", "/");
        text(&run(command.current_dir("/")).stdout)
    };
    assert_eq!(seen(&a.join("tool")), seen(&program));
}
