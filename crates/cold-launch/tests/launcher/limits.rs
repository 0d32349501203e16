//! Limits of the process at their edges: where the launcher can run at all, the program starts.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output};

use crate::misfit::stored;
use crate::subject::{Resource, before, limit, make, says};
use crate::world::{LAUNCHER, Whole, add_whole, directory, evict, file, gone, plan, put, save, text, whole};

/// The launcher under a limit, with a plan that could be followed and with one that cannot be used.
fn launched(plan: &Path, subject: &Path, resource: Resource, value: u64) -> Output {
    let mut command = Command::new(LAUNCHER);
    command.arg("--plan").arg(plan).arg("--").arg(subject).args(["a", "b"]);
    before(&mut command, move || limit(resource, value)).output().expect("the launcher is executed")
}

fn at_every_edge(resource: Resource, values: impl Iterator<Item = u64>) {
    let Whole { dir, data, at } = whole(256 << 10, true, |_| {});
    let (subject, bad) = (make(dir.path()), dir.path().join("bad"));
    put(&bad, b"no plan");
    for value in values {
        for plan in [&at, &bad] {
            evict(&data);
            let out = launched(plan, &subject, resource, value);
            assert_eq!(out.status.code(), Some(7), "limit {resource} of {value}: {out:?}");
            assert_eq!(out.stdout, says(&subject, &["a", "b"]), "limit {resource} of {value}");
        }
    }
    gone(dir.path());
}

#[test]
fn few_descriptors_do_not_keep_the_program_from_starting() {
    at_every_edge(libc::RLIMIT_NOFILE, 3..24);
}

#[test]
fn a_limit_of_file_size_does_not_keep_the_program_from_starting() {
    at_every_edge(libc::RLIMIT_FSIZE, [0, 1, 63, 64, 4096].into_iter());
}

/// The least limit in these steps under which the launcher can say its version, and the program runs by itself.
fn least(resource: Resource, step: u64) -> u64 {
    let dir = directory();
    let subject = make(dir.path());
    let runs = |program: &Path, code: i32, value: u64| {
        let mut command = Command::new(program);
        let command = before(command.arg("--version"), move || limit(resource, value));
        command.output().is_ok_and(|out| out.status.code() == Some(code))
    };
    // The kernel moves the beginning of a stack by chance.
    let always =
        |value: &u64| (0..8).all(|_| runs(LAUNCHER.as_ref(), 0, *value) && runs(&subject, 7, *value));
    (1..4096).map(|n| n * step).find(always).expect("some limit is enough")
}

#[test]
fn where_the_launcher_can_say_its_version_there_is_memory_enough_to_start_the_program() {
    let (resource, step) = (libc::RLIMIT_AS, 16 << 10);
    let least = least(resource, step);
    // Up to where a helper's stacks and the plan's tables fit as well.
    at_every_edge(resource, (0..160).map(|n| least + n * step));
}

#[test]
fn a_small_stack_does_not_keep_the_program_from_starting() {
    let resource = libc::RLIMIT_STACK;
    // By chance it begins up to 8 KiB further down.
    let least = least(resource, 4096) + (8 << 10);
    at_every_edge(resource, (0..96).map(|n| least + n * 2048));
}

#[test]
fn a_history_that_may_not_grow_changes_nothing_for_the_program() {
    let dir = directory();
    let look = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; exit 7";
    let argv = ["/bin/sh", "-c", look].map(OsString::from);
    let (store, key) = stored(dir.path(), &argv, None);
    let data = file(&dir.path().join("data"), 256 << 10);
    let mut p = plan();
    p.key = key.clone();
    add_whole(&mut p, &data, true);
    save(&p, &store.path_of(&key));
    evict(&data);
    let run = |command: &mut Command| {
        let out = before(command, || limit(libc::RLIMIT_FSIZE, 0)).output().expect("runs");
        assert_eq!(out.status.code(), Some(7), "{out:?}");
        text(&out.stdout)
    };
    let mut launcher = Command::new(LAUNCHER);
    launcher.arg("--store").arg(store.directory()).arg("--").args(&argv);
    assert_eq!(run(&mut launcher), run(Command::new("/bin/sh").args(&argv[1..])));
    gone(dir.path());
}
