//! Each fault arrives exactly once, at exactly the call that was named.

use std::fs;
use std::path::Path;

use cold_testbed::faults::{Choice, Fault, Injection, Key, Names, Ran, Target, choose, refused};
use cold_testbed::{PATIENCE, need, subject};

/// Three files, saved one after the other: made, written, synced, renamed.
fn saving(dir: &Path) -> Target {
    let args = ["renames", dir.to_str().expect("text"), "1", "3"].map(Into::into).to_vec();
    let names = Names(vec![(dir.to_owned(), "W".to_owned())]);
    Target { program: subject(), args, env: Vec::new(), cwd: dir.to_owned(), names, deadline: PATIENCE }
}

/// Runs in a thread of its own: the tracer waits for all children of its thread.
fn run(target: &Target, fault: Option<&Injection>) -> Ran {
    std::thread::scope(|s| s.spawn(|| target.run(fault).expect("traced")).join().expect("no panic"))
}

fn can_trace() -> bool {
    let why = refused();
    need(why.is_none(), &format!("ptrace ({})", why.unwrap_or_default()))
}

fn saved(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).expect("listed").map(|e| e.expect("entry").file_name());
    let mut names: Vec<_> = names.map(|n| n.into_string().expect("text")).collect();
    names.sort();
    names
}

#[test]
fn each_error_arrives_once_at_the_call_that_was_named() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let whole = ["saved0-0", "saved0-1", "saved0-2"];
    let counted = run(&saving(dir.path()), None);
    assert_eq!((counted.code(), saved(dir.path())), (0, whole.map(str::to_owned).to_vec()));
    let about = |key: &Key| key.about.starts_with("W/");
    let own: Vec<&Key> = counted.calls.iter().filter(|k| about(k)).collect();
    assert_eq!(own.len(), 12, "{own:?}");
    let all = choose(&counted.calls, 0, Choice { most: None, seed: 1 }, about);
    let errors: Vec<&Injection> =
        all.iter().filter(|i| about(&i.key) && matches!(i.fault, Fault::Errno(_))).collect();
    assert!(errors.len() > 40, "{}", errors.len());
    for injection in errors {
        let Fault::Errno(errno) = injection.fault else { continue };
        let dir = tempfile::tempdir().expect("a directory");
        let ran = run(&saving(dir.path()), Some(injection));
        assert!(ran.hit && !ran.late, "{injection}");
        if errno == libc::EINTR && injection.key.call != "rename" {
            // Rust's library makes the call again: once is once.
            assert_eq!(
                (ran.code(), saved(dir.path())),
                (0, whole.map(str::to_owned).to_vec()),
                "{injection}"
            );
            continue;
        }
        assert_eq!(ran.code(), 101, "{injection}: {}", ran.stderr);
        let said = std::io::Error::from_raw_os_error(errno).to_string();
        assert!(ran.stderr.contains(&said), "{injection}: {}", ran.stderr);
        let before: Vec<String> = (1..injection.nth).map(|n| format!("saved0-{}", n - 1)).collect();
        let new = (injection.key.call != "openat").then(|| format!("saved0-{}.new", injection.nth - 1));
        assert_eq!(saved(dir.path()), before.into_iter().chain(new).collect::<Vec<_>>(), "{injection}");
    }
}

#[test]
fn a_signal_arrives_at_the_call_and_nothing_stays() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let counted = run(&saving(dir.path()), None);
    let key = counted.calls.iter().find(|k| k.call.starts_with("rename")).expect("a rename").clone();
    for (fault, code) in [
        (Fault::Kill, 128 + 9),
        (Fault::Signal(libc::SIGTERM), 128 + 15),
        (Fault::Signal(libc::SIGINT), 128 + 2),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let ran = run(&saving(dir.path()), Some(&Injection { key: key.clone(), nth: 2, fault }));
        assert_eq!((ran.hit, ran.code()), (true, code), "{fault}");
        if fault == Fault::Kill {
            assert_eq!(saved(dir.path()), ["saved0-0", "saved0-1.new"], "the call was not made");
        }
        assert_eq!(ran.processes(), [0; 0]);
    }
    let never = Injection { key, nth: 4, fault: Fault::Kill };
    let dir = tempfile::tempdir().expect("a directory");
    let ran = run(&saving(dir.path()), Some(&never));
    assert_eq!((ran.hit, ran.code()), (false, 0));
}

#[test]
fn what_does_not_end_is_ended_with_all_it_started() {
    if !can_trace() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let args = ["daemon", "--seconds", "600"].map(Into::into).to_vec();
    let deadline = std::time::Duration::from_secs(1);
    let daemon = Target { args, deadline, ..saving(dir.path()) };
    let ran = run(&daemon, None);
    ran.end_processes();
    assert_eq!(ran.processes(), [0; 0]);
    let args = ["sleep", "600000"].map(Into::into).to_vec();
    let ran = run(&Target { args, deadline, ..saving(dir.path()) }, None);
    assert_eq!((ran.late, ran.code()), (true, 128 + 9));
}
