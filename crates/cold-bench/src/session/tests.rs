//! What the rounds decide, without starting anything.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cold_cache::ScanOptions;
use cold_cache::snapshot::capture;
use cold_journal::Journal;
use cold_model::observed::{How, ObservedFile};
use cold_model::{Dev, FileId, Nanos};
use cold_sys::page::page_size;

use super::*;
use crate::config::{DiskLimit, Eviction, RunPolicy, Stream};
use crate::ready::Ready;

pub(super) fn spec(name: &str) -> CommandSpec {
    CommandSpec::new("/bin/true".into(), vec![OsString::from(name)])
}

pub(super) fn config(states: &[State], names: &[&str]) -> Config {
    Config {
        commands: names.iter().map(|name| spec(name)).collect(),
        states: states.to_vec(),
        runs: RunPolicy { min_runs: 1, max_runs: 1, max_time: None, precision: None },
        warmup: 1,
        ready: Ready::Exit,
        first_request: None,
        eviction: Eviction::Files,
        require_cold: false,
        seed: 1,
        timeout: Duration::from_secs(9),
        grace: Duration::from_secs(1),
        idle_gap: Duration::ZERO,
        disk_limit: None,
        ignore_failure: false,
        input: Stream::Null,
        output: Stream::Null,
    }
}

/// A subject whose start uses these files.
fn using<'a>(spec: &'a CommandSpec, paths: &[PathBuf]) -> Subject<'a> {
    let seen = |path: &PathBuf| {
        let meta = path.metadata().unwrap();
        let how = How { opened: true, ..How::default() };
        let mtime_ns = cold_model::file::mtime_ns(&meta);
        let (id, size, first) = (FileId::of(&meta), Bytes(meta.len()), Nanos(0));
        ObservedFile { path: path.clone(), id, size, mtime_ns, how, first, elsewhere: false, gone: false }
    };
    let observed = cold_model::sample::observed(paths.iter().map(seen).collect());
    let set = Some(FileSet::of(&observed));
    Subject { set, ..Subject::unobserved(spec, String::new()) }
}

/// On a disk: what lies in memory cannot be evicted.
fn on_disk() -> tempfile::TempDir {
    tempfile::Builder::new().tempdir_in("/var/tmp").unwrap()
}

fn file_of(dir: &Path, name: &str, pages: u64) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, vec![1; (pages * page_size()) as usize]).unwrap();
    fs::File::open(&path).unwrap().sync_all().unwrap();
    path
}

#[test]
fn one_eviction_makes_every_command_cold_because_they_may_share_files() {
    let dir = on_disk();
    let journal = Journal::open_in(dir.path().join("journal"));
    let config = config(&[State::Cold], &["a", "b"]);
    let mut p = Preparer::new(&config, &journal).unwrap();
    let (a, b) = (file_of(dir.path(), "a", 3), file_of(dir.path(), "b", 5));
    let subjects = [using(&config.commands[0], &[a]), using(&config.commands[1], &[b])];
    p.observed(&subjects);
    p.started(1, &subjects[1]);
    assert_eq!([p.starts(0), p.starts(1)], [1, 2]);
    assert_eq!([p.warm_bytes(0), p.warm_bytes(1)], [3 * page_size(), 5 * page_size()]);
    p.evict(&subjects[0]).unwrap();
    assert_eq!([p.starts(0), p.starts(1)], [0, 0]);
    assert!(p.after(0).is_none() && p.after(1).is_none());
    // What a start leaves is remembered: the residual is judged against it.
    assert_eq!(p.warm_bytes(1), 5 * page_size());
    p.started(0, &subjects[0]);
    assert_eq!(p.warm_bytes(0), 3 * page_size(), "the most of all starts, not what the last one left");
}

#[test]
fn evicting_the_program_alone_keeps_what_is_known_of_its_other_files() {
    let dir = on_disk();
    let mut config = config(&[State::Cold], &["a", "b"]);
    config.eviction = Eviction::Program;
    let mut p = Preparer::new(&config, &Journal::open_in(dir.path().join("journal"))).unwrap();
    assert!(p.method().contains("libraries and all else stay"), "{}", p.method());
    let (program, library) = (file_of(dir.path(), "program", 3), file_of(dir.path(), "library", 5));
    let mut subjects =
        [using(&config.commands[0], &[program.clone(), library]), using(&config.commands[1], &[])];
    assert!(subjects[0].set.as_mut().unwrap().evict_only(&program));
    p.observed(&subjects);
    assert_eq!(p.warm_bytes(0), 3 * page_size(), "what has to be absent is judged against itself");
    p.evict(&subjects[0]).unwrap();
    assert_eq!(p.starts(0), 0);
    assert_eq!(p.after(0).unwrap().bytes(), 5 * page_size());
    let now = subjects[0].set.as_ref().unwrap().cached();
    assert_eq!((now.evicted_bytes(), p.after(0).unwrap().not_in(&now)), (0, 0));
}

#[test]
fn a_command_that_is_not_warm_is_forgotten_alone() {
    let dir = on_disk();
    let config = config(&[State::Cold], &["a", "b"]);
    let mut p = Preparer::new(&config, &Journal::open_in(dir.path().join("journal"))).unwrap();
    let subjects = [0, 1].map(|n| Subject::unobserved(&config.commands[n], "nobody looked".into()));
    p.observed(&subjects);
    p.not_warm(0);
    assert_eq!([p.starts(0), p.starts(1)], [0, 1]);
    assert!(p.after(1).is_none(), "nothing is known of what was cached");
}

#[test]
fn a_snapshot_that_cannot_be_read_stops_before_any_start() {
    let dir = on_disk();
    let journal = Journal::open_in(dir.path().join("journal"));
    let none = dir.path().join("none.snapshot");
    let why = Preparer::new(&config(&[State::Cold, State::Snapshot(none)], &["a"]), &journal).err().unwrap();
    assert!(why.to_string().contains("none.snapshot"), "{why}");
}

#[test]
fn a_restored_snapshot_says_which_files_are_not_those_it_was_taken_of_until_the_next_eviction() {
    let dir = on_disk();
    let journal = Journal::open_in(dir.path().join("journal"));
    let (same, other) = (file_of(dir.path(), "same", 4), file_of(dir.path(), "other", 2));
    let saved = dir.path().join("state.snapshot");
    let roots = [same.clone(), other.clone()];
    capture(&roots, ScanOptions::default(), &()).unwrap().0.save(&saved).unwrap();
    let config = config(&[State::Snapshot(saved.clone())], &["a"]);
    let mut p = Preparer::new(&config, &journal).unwrap();
    let subject = using(&config.commands[0], &roots);
    p.restore(0, &saved, &subject).unwrap();
    assert!(p.not_restored().is_none(), "{:?}", p.not_restored());
    assert_eq!(p.after(0).unwrap().bytes(), 6 * page_size());
    file_of(dir.path(), "other", 3);
    p.restore(0, &saved, &subject).unwrap();
    assert_eq!(p.not_restored().map(|n| n.files), Some(1));
    p.evict(&subject).unwrap();
    assert!(p.not_restored().is_none());
}

#[test]
fn warm_starts_see_the_work_of_an_eviction_on_a_decoy_that_goes_again() {
    let dir = on_disk();
    let journal = Journal::open_in(dir.path().join("journal"));
    let p = Preparer::new(&config(&[State::Warm], &["a"]), &journal).unwrap();
    p.sham().unwrap();
    let changes = || cold_journal::leftovers(journal.directory()).unwrap();
    drop(p);
    let made: usize = changes().iter().map(|l| l.changes().count()).sum();
    assert_eq!(made, 0, "the decoy's directory is not left in the journal");
    // Without a state that is not cold nobody needs one.
    Preparer::new(&config(&[State::Cold], &["a"]), &journal).unwrap().sham().unwrap();
}

#[test]
fn a_prefetched_state_needs_a_plan_of_every_command() {
    let mut config = config(&[State::Cold, State::Prefetched], &["a", "b"]);
    let launcher = crate::config::Launcher {
        program: "/launcher".into(),
        arguments: vec![],
        plan: "p".into(),
        files: vec![],
        history: "/h".into(),
        helper: "h".into(),
    };
    config.commands[0].launcher = Some(launcher);
    let why = needs_launcher(&config).unwrap_err().to_string();
    assert_eq!(why, "cannot reach the state prefetched: there is no plan for b");
    config.states.pop();
    assert!(needs_launcher(&config).is_ok());
}

/// A kernel without control groups that keeps an account of I/O, as far as its files tell.
fn fake_proc(dir: &Path) -> ProcFs {
    fs::create_dir_all(dir.join("self")).unwrap();
    fs::write(dir.join("self/mountinfo"), "20 1 8:2 / / rw - ext4 /dev/sda2 rw\n").unwrap();
    fs::write(dir.join("self/io"), "").unwrap();
    ProcFs::new(dir)
}

#[test]
fn a_disk_limit_needs_files_on_a_disk() {
    let dir = on_disk();
    let (proc, journal) = (fake_proc(dir.path()), Journal::open_in(dir.path().join("journal")));
    let mut config = config(&[State::Cold], &["a"]);
    config.disk_limit = Some(DiskLimit { iops: Some(100), bps: None });
    let why = |devices: BlockDevices| {
        let subject = Subject { devices, ..Subject::unobserved(&config.commands[0], String::new()) };
        TreeCgroups::create(&config, &proc, &journal, &[subject]).err().unwrap().to_string()
    };
    assert_eq!(why(BlockDevices::default()), "cannot limit the disk: the files of a are unknown");
    let without = vec![("tmpfs".to_owned(), PathBuf::from("/dev/shm/a"))];
    let on_tmpfs = BlockDevices { without: without.clone(), ..BlockDevices::default() };
    assert_eq!(why(on_tmpfs), "cannot limit the disk: /dev/shm/a is on tmpfs, which has no block device");
    // A socket on tmpfs beside a program on a disk is no obstacle; what is missing then are the groups.
    let both = BlockDevices { devices: [Dev::new(4095, 1)].into(), without };
    assert_eq!(why(both), "cannot limit the disk: no blkio or io control group is mounted");
}
