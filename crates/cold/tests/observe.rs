//! The observed start on real programs, through the helper inside `cold`.

// clippy's allowance for tests does not reach the helper functions of an integration test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

#[path = "observe/support.rs"]
mod support;

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cold_model::bench::Ending;
use cold_sys::observe::{Client, ObserveError, Streams};
use support::*;

#[test]
fn a_shell_pipeline_and_the_facts_of_a_file() {
    let dir = Dir::new();
    let (a, b) = (dir.file("a"), dir.file("b"));
    let out = dir.path("out");
    let script = format!("cat {} | (read x; cat {} > {})", a.display(), b.display(), out.display());
    let seen = observe(&spec(["sh", "-c", &script]));
    assert_eq!(seen.ending, Ending::Code(0));
    assert_eq!((seen.unidentified, seen.threads), (0, 0));
    assert!(seen.processes >= 3, "{}", seen.processes);
    let (found, meta) = (file(&seen, &a), std::fs::metadata(&a).unwrap());
    assert_eq!((found.id.dev, found.id.ino, found.size.0), (meta.dev(), meta.ino(), 10));
    assert_eq!(found.mtime_ns, meta.mtime() * 1_000_000_000 + meta.mtime_nsec());
    assert!(found.how.opened && !found.how.written && !found.elsewhere && !found.gone);
    assert!(file(&seen, &b).how.opened && file(&seen, &out).how.written);
    let shell = std::fs::canonicalize("/bin/sh").unwrap();
    assert!(file(&seen, &shell).how.executed);
    assert!(seen.files.iter().any(|f| f.path.ends_with("libc.so.6") && f.how.mapped && f.how.opened));
    assert!(seen.files.iter().any(|f| f.how.mapped && !f.how.opened && !f.how.executed), "ld.so");
    assert!(seen.files.windows(2).all(|w| w[0].first <= w[1].first));
}

#[test]
fn every_way_of_making_processes_and_threads_is_followed() {
    let dir = Dir::new();
    let f = dir.file("f");
    for actor in [actor(), static_actor()] {
        for name in ["open", "spawn", "thread_exec", "signal", "job_control"] {
            let seen = observe(&role(actor, name, &[&f]));
            assert_eq!(seen.ending, Ending::Code(0), "{name}");
            assert!(file(&seen, &f).how.opened, "{name}");
            assert!(file(&seen, actor).how.executed, "{name}");
            assert_eq!(seen.unidentified, 0, "{name}");
        }
    }
    let many: Vec<PathBuf> = (0..20).map(|i| dir.file(&format!("t{i}"))).collect();
    let args: Vec<&Path> = many.iter().map(PathBuf::as_path).collect();
    let seen = observe(&role(actor(), "threads", &args));
    assert!(many.iter().all(|f| file(&seen, f).how.opened));
    assert_eq!((seen.processes, seen.threads), (1, 20));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_32_bit_program_is_followed() {
    let dir = Dir::new();
    let f = dir.file("f");
    let seen = observe(&spec([actor32().as_os_str(), f.as_os_str()]));
    assert_eq!(seen.ending, Ending::Code(0));
    assert!(file(&seen, &f).how.opened);
    assert_eq!((seen.lookups, seen.misses), (4, 2), "exec, open; two misses");
    assert_eq!(seen.misses_by_dir[0].dir, Path::new("/nonexistent-32"));
}

#[test]
fn failed_lookups_are_counted_exactly() {
    let dir = Dir::new();
    let count = |n: &str| observe(&role(actor(), "miss", &[&dir.path(""), Path::new(n)]));
    let (none, some) = (count("0"), count("5"));
    assert_eq!(some.misses - none.misses, 7 * 5);
    assert_eq!(some.lookups - none.lookups, 7 * 5);
    let here = |d: &&cold_model::observed::Misses| d.dir.join("x") == dir.path("x");
    assert_eq!(some.misses_by_dir.iter().find(here).unwrap().count, 35);
    assert!(!none.misses_by_dir.iter().any(|d| here(&d)));
    let named: u64 = some.misses_by_dir.iter().map(|d| d.count).sum();
    assert_eq!(named + some.misses_elsewhere, some.misses);
}

#[test]
fn the_empty_name_lies_in_no_directory() {
    let dir = Dir::new();
    let script = "import os, sys\nos.chdir(sys.argv[1])\nfor i in range(9):\n    try: open('')\n    except FileNotFoundError: pass";
    let python = |at: &Path| {
        let args = [Path::new("/usr/bin/python3"), Path::new("-Sc"), Path::new(script), at];
        observe(&spec(args.map(Path::as_os_str)))
    };
    let seen = python(&dir.path("."));
    let above = dir.path("").parent().unwrap().to_owned();
    assert!(
        seen.misses >= 9 && !seen.misses_by_dir.iter().any(|m| m.dir == above),
        "{:?}",
        seen.misses_by_dir
    );
}

#[test]
fn a_script_its_interpreter_and_theirs() {
    let dir = Dir::new();
    let f = dir.file("f");
    let (inner, outer) = (dir.path("inner"), dir.path("outer"));
    cold_testbed::executable(&inner, format!("#! /bin/sh\nexec cat {}\n", f.display()));
    cold_testbed::executable(&outer, format!("#!{} word\n", inner.display()));
    let mut spec = spec(["./outer"]);
    spec.cwd = Some(dir.path(""));
    let seen = observe(&spec);
    assert_eq!(seen.ending, Ending::Code(0));
    for path in [&inner, &outer, &std::fs::canonicalize("/bin/sh").unwrap()] {
        assert!(file(&seen, path).how.executed);
    }
    assert!(file(&seen, &f).how.opened);
}

#[test]
fn files_without_a_name_and_inherited_ones() {
    let dir = Dir::new();
    let (doomed, input) = (dir.file("doomed"), dir.file("input"));
    let mut streams = Streams::null();
    streams.stdin = Stdio::from(std::fs::File::open(&input).unwrap());
    let spec = role(actor(), "nameless", &[&doomed]);
    let client = Client::start(env!("CARGO_BIN_EXE_cold").as_ref(), &spec, streams).unwrap();
    let seen = client.wait().unwrap();
    assert_eq!((seen.ending, seen.unidentified), (Ending::Code(0), 0));
    assert!(!seen.files.iter().any(|f| f.path.as_os_str().as_bytes().starts_with(b"/memfd")));
    let found = file(&seen, &doomed);
    assert!(found.gone && found.how.opened && !found.elsewhere);
    let how = file(&seen, &input).how;
    assert!(how.inherited && !how.opened);
}

/// ext4 gives the number of a deleted file to the next new one.
#[test]
fn temporary_files_that_share_one_inode_number_are_told_apart() {
    let dir = Dir::new();
    let script = "for i in 1 2 3 4 5 6; do echo $i > t$i; read x < t$i; rm t$i; done";
    let mut spec = spec(["sh", "-c", script]);
    spec.cwd = Some(dir.path(""));
    let seen = observe(&spec);
    for i in 1..=6 {
        let found = file(&seen, &dir.path(&format!("t{i}")));
        assert!(found.gone && found.how.written && found.how.opened);
    }
}

#[test]
fn a_command_that_fails_or_is_killed_says_so() {
    let seen = observe(&spec(["sh", "-c", "kill -9 $$"]));
    assert_eq!(seen.ending, Ending::Signal(9));
    assert_eq!(observe(&spec(["sh", "-c", "exit 3"])).ending, Ending::Code(3));
    assert_eq!(seen.killed_by_force, 0, "that was not us");
}

#[test]
fn what_cannot_be_started_is_named() {
    let dir = Dir::new();
    let plain = dir.file("plain");
    let error = |spec| start(&spec).map(drop).unwrap_err();
    let not_found = error(spec(["no-such-command-at-all"]));
    assert!(matches!(&not_found, ObserveError::NotFound { .. }), "{not_found}");
    let not_executable = error(spec([plain.as_os_str()]));
    assert_eq!(not_executable, ObserveError::Exec { path: plain, errno: 13 });
    let mut elsewhere = spec(["true"]);
    elsewhere.cwd = Some(dir.path("absent"));
    assert_eq!(error(elsewhere), ObserveError::Chdir { path: dir.path("absent"), errno: 2 });
    assert_eq!(error(spec::<&str>([])), ObserveError::NoCommand);
}

#[test]
fn a_daemon_is_ended_on_request_and_by_force_if_it_refuses() {
    let dir = Dir::new();
    for stubborn in [false, true] {
        let pidfile = dir.path(&format!("pid-{stubborn}"));
        let mut args = vec![pidfile.as_path()];
        args.extend(stubborn.then_some(Path::new("stubborn")));
        let mut client = start(&role(actor(), "daemon", &args)).unwrap();
        let pid = until("the daemon stands", || std::fs::read_to_string(&pidfile).ok());
        assert_eq!(client.wait_timeout(Duration::from_millis(100)), Ok(None), "the tree still lives");
        client.stop();
        let seen = client.wait().unwrap();
        assert!(!is_alive(&pid));
        assert_eq!(seen.ending, Ending::Code(0), "the command itself had ended before");
        assert_eq!((seen.processes, seen.killed_by_force), (3, u64::from(stubborn)));
    }
}

#[test]
fn a_deadline_ends_the_tree() {
    let mut spec = spec(["sh", "-c", "sleep 1000 & sleep 1000"]);
    spec.deadline = Some(Duration::from_millis(200));
    let seen = observe(&spec);
    assert_eq!((seen.ending, seen.killed_by_force), (Ending::TimedOut, 0));
}

#[test]
fn nothing_survives_its_client_or_its_helper() {
    let dir = Dir::new();
    let pid_of = |name: &str| until("pid", || std::fs::read_to_string(dir.path(name)).ok());
    let client = start(&role(actor(), "daemon", &[&dir.path("a"), Path::new("stubborn")])).unwrap();
    let pid = pid_of("a");
    drop(client);
    assert!(!is_alive(&pid));

    let script = format!("{} daemon {} stubborn; sleep 1000", actor().display(), dir.path("b").display());
    let client = start(&spec(["sh", "-c", &script])).unwrap();
    let pid = pid_of("b");
    let helper = cold_sys::procfs::ProcFs::default().stat(client.pid()).unwrap().ppid;
    // The shell's own kill: the program of that name is in a package of its own.
    assert!(Command::new("sh").args(["-c", &format!("kill -9 {helper}")]).status().unwrap().success());
    let error = client.wait().unwrap_err();
    assert!(matches!(&error, ObserveError::HelperDied { .. }), "{error}");
    until("the kernel has killed the tree", || (!is_alive(&pid)).then_some(()));
}

#[test]
fn sandboxes_debuggers_and_sudden_deaths() {
    let dir = Dir::new();
    let f = dir.file("f");
    let seen = observe(&role(actor(), "sandbox", &[&f]));
    assert_eq!(seen.ending, Ending::Code(0), "its own filter works as without us");
    assert!(!seen.files.iter().any(|x| x.path == f));
    let seen = observe(&role(actor(), "debugger", &[]));
    assert_eq!(seen.ending, Ending::Code(0));
    assert!(seen.notes.iter().any(|n| n.contains("wanted to trace")), "{:?}", seen.notes);
    let seen = observe(&role(actor(), "massacre", &[&f]));
    assert_eq!(seen.ending, Ending::Code(0));
    assert_eq!(seen.processes, 151);
    assert!(file(&seen, &f).how.opened);
}

/// The independent witness: strace prints which file each open returned.
#[test]
fn the_file_set_is_the_one_that_strace_sees() {
    let is_there = Path::new("/usr/bin/strace").exists() && Path::new("/usr/bin/python3").exists();
    if !cold_testbed::need(is_there, "strace and python3") {
        return;
    }
    let dir = Dir::new();
    let argv = ["/usr/bin/python3", "-B", "-c", "import json, http.server, sqlite3"];
    let log = dir.path("log");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-qq", "-s4096", "-e", "trace=open,openat,openat2,creat", "-o"]);
    assert!(strace.arg(&log).args(argv).status().unwrap().success());
    let log = std::fs::read_to_string(log).unwrap();
    let opened = log.lines().filter_map(|l| l.rsplit_once("= ")?.1.split_once('<')?.1.strip_suffix('>'));
    let expected: BTreeSet<&Path> = opened.map(Path::new).filter(|p| p.is_file()).collect();
    let seen = observe(&spec(argv));
    let found: BTreeSet<&Path> =
        seen.files.iter().filter(|f| f.how.opened).map(|f| f.path.as_path()).collect();
    assert!(expected.len() > 30, "{expected:?}");
    assert_eq!(found, expected);
}

mod root {
    use super::*;

    /// A helper that gives up root before it observes, in a directory that everybody may enter.
    fn as_nobody(dir: &Dir) -> PathBuf {
        let (copy, wrapper) = (dir.path("cold"), dir.path("cold-as-nobody"));
        cold_testbed::executable(&copy, std::fs::read(env!("CARGO_BIN_EXE_cold")).unwrap());
        let setpriv = "exec setpriv --reuid=65534 --regid=65534 --clear-groups";
        cold_testbed::executable(&wrapper, format!("#!/bin/sh\n{setpriv} {} \"$@\"\n", copy.display()));
        wrapper
    }

    #[test]
    fn an_ordinary_user_sees_the_same_and_is_told_what_is_missing() {
        cold_testbed::needs_root!();
        let dir = Dir::new();
        let (wrapper, f) = (as_nobody(&dir), dir.file("f"));
        let (actor_copy, privileged) = (dir.path("actor"), dir.path("privileged"));
        cold_testbed::executable(&actor_copy, std::fs::read(actor()).unwrap());
        cold_testbed::executable(&privileged, std::fs::read("/bin/cat").unwrap());
        std::fs::set_permissions(&privileged, PermissionsExt::from_mode(0o4755)).unwrap();
        let observe = |spec| Client::start(wrapper.as_ref(), &spec, Streams::null()).unwrap().wait().unwrap();

        let seen = observe(spec([privileged.as_os_str(), f.as_os_str()]));
        assert_eq!((seen.ending, seen.unidentified), (Ending::Code(0), 0));
        assert!(file(&seen, &f).how.opened && file(&seen, &privileged).how.executed);
        assert!(file(&seen, &privileged).how.mapped);
        let note = format!("setuid program {} ran without its privileges", privileged.display());
        assert!(seen.notes.iter().any(|n| n.starts_with(&note)), "{:?}", seen.notes);

        for name in ["spawn", "thread_exec", "job_control"] {
            let seen = observe(role(&actor_copy, name, &[&f]));
            assert_eq!((seen.ending, seen.unidentified), (Ending::Code(0), 0), "{name}");
            assert!(file(&seen, &f).how.opened, "{name}");
        }
        // Without root the mappings of a deleted file have to be matched with its open.
        let writable = dir.path("writable");
        std::fs::create_dir(&writable).unwrap();
        std::fs::set_permissions(&writable, PermissionsExt::from_mode(0o777)).unwrap();
        let doomed = writable.join("doomed");
        std::fs::write(&doomed, "text").unwrap();
        let seen = observe(role(&actor_copy, "nameless", &[&doomed]));
        assert_eq!((seen.ending, seen.unidentified), (Ending::Code(0), 0));
        assert!(file(&seen, &doomed).how.mapped && file(&seen, &doomed).gone);
        // A process that hides itself hides its files from its own user: counted, not forgotten.
        let seen = observe(role(&actor_copy, "hide", &[&f]));
        assert_eq!((seen.ending, seen.unidentified), (Ending::Code(0), 1));
    }

    #[test]
    fn a_hidden_process_and_another_root_directory() {
        cold_testbed::needs_root!();
        let dir = Dir::new();
        let f = dir.file("f");
        let seen = observe(&role(actor(), "hide", &[&f]));
        assert!(file(&seen, &f).how.opened && seen.unidentified == 0);
        // In a chroot the paths are still those of this side.
        std::fs::copy(static_actor(), dir.path("actor")).unwrap();
        let script = format!("chroot {} /actor open /f", dir.path("").display());
        let seen = observe(&spec(["sh", "-c", &script]));
        assert_eq!(seen.ending, Ending::Code(0));
        assert!(file(&seen, &f).how.opened && file(&seen, &dir.path("actor")).how.executed);
        // In a mount namespace of its own a file may have a path that means nothing here.
        let mount = format!("mount -t tmpfs none {0} && echo x > {0}/g && cat {0}/g", dir.path("").display());
        let seen = observe(&spec(["unshare", "-m", "sh", "-c", &mount]));
        assert_eq!(seen.ending, Ending::Code(0));
        let found = file(&seen, &dir.path("g"));
        assert!(found.elsewhere && found.how.opened && !found.gone);
    }
}
