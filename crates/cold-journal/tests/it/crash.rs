//! A child process makes changes and is killed with SIGKILL at step 0, 1, 2, … until it gets through.
//! After each death the recovery must bring back exactly the state of before, twice in a row.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use cold_journal::{Journal, recover};

pub(crate) const CHILD: &str = "COLD_JOURNAL_CRASH_CHILD";

/// A scenario: what the child does in the directory given to it.
pub(crate) type Scenario = fn(&Journal, &Path);

const SCENARIOS: &[(&str, Scenario)] =
    &[("settings", settings), ("files", files), ("process", process), ("root", crate::root::scenario)];

fn settings(journal: &Journal, world: &Path) {
    let number = world.join("read_ahead_kb");
    let choice = world.join("enabled");
    let a = journal.set(&number, "0").expect("set");
    let b = journal.set(&choice, "never").expect("set");
    let c = journal.set(&number, "16").expect("set again");
    drop(a); // below c: c has to take over 128
    drop(c);
    b.undo().expect("undo");
    let _d = journal.set(&number, "1").expect("set");
    let _e = journal.set(&number, "2").expect("set");
    journal.undo_all();
}

fn files(journal: &Journal, world: &Path) {
    let (dir, _d) = journal.create_directory(world, "scratch").expect("directory");
    fs::write(dir.join("inside"), "x").expect("write");
    let (decoy, _file, f) = journal.create_file(world, "decoy").expect("file");
    fs::write(decoy, "content").expect("write");
    f.undo().expect("undo");
}

fn process(journal: &Journal, world: &Path) {
    // The world's name in the arguments tells the processes of this run from all others. The shell
    // starts a child of its own, which inherits the token.
    let script = format!("sleep 1000 {0} & exec sleep 1000 {0}", sleep_argument(world));
    let (mut child, guard) = journal.spawn(Command::new("sh").args(["-c", &script])).expect("spawn");
    guard.undo().expect("undo");
    child.wait().expect("wait");
}

/// A number that only this world's processes sleep.
fn sleep_argument(world: &Path) -> String {
    let name = world.to_string_lossy();
    let sum = crc32fast::hash(name.as_bytes());
    format!("0.{sum}")
}

/// Runs the child of [`kill_at_every_step`]; as a test of its own it does nothing.
#[test]
fn child() {
    let Ok(order) = std::env::var(CHILD) else { return };
    let mut words = order.splitn(3, '|');
    let mut word = || words.next().expect("name|step|world");
    let (name, at, world) = (word(), word().parse::<usize>().expect("step"), PathBuf::from(word()));
    let steps = AtomicUsize::new(0);
    let journal = Journal::observe(world.join("journal"), move |_| {
        if steps.fetch_add(1, Ordering::Relaxed) == at {
            let me = rustix::process::getpid();
            rustix::process::kill_process(me, rustix::process::Signal::KILL).expect("kill");
        }
    });
    let (_, scenario) = SCENARIOS.iter().find(|(n, _)| *n == name).expect("known scenario");
    scenario(&journal, &world.join("world"));
}

/// `check` looks at what lies outside the world's directory.
pub(crate) fn kill_at_every_step(name: &str, least_steps: usize, check: fn(&Path)) {
    for step in 0.. {
        let base = tempfile::tempdir().expect("tempdir");
        let world = base.path().canonicalize().expect("path").join("world");
        build(&world);
        let before = contents(&world);
        // To a file: a pipe would be kept open by the processes that survive the child.
        let log = fs::File::create(base.path().join("log")).expect("create");
        let status = Command::new(std::env::current_exe().expect("exe"))
            .args(["crash::child", "--exact", "--nocapture"])
            .env(CHILD, format!("{name}|{step}|{}", base.path().display()))
            .stdout(log.try_clone().expect("clone"))
            .stderr(log)
            .status()
            .expect("run child");
        let journal = base.path().join("journal");
        let killed = status.signal() == Some(9);
        let log = fs::read_to_string(base.path().join("log")).expect("log");
        assert!(killed || status.success(), "step {step}: {log}");
        // As if recovery were itself killed before it wrote what it had done: do it all again.
        let copies = journals(&journal);
        for round in 0..2 {
            for (path, bytes) in &copies {
                fs::write(path, bytes).expect("put back");
            }
            for undone in recover(&journal).expect("recover") {
                assert!(undone.outcome.is_ok(), "step {step} round {round}: {undone}");
            }
            assert_eq!(contents(&world), before, "{name} killed at step {step}, recovery {round}");
            assert_eq!(journals(&journal), BTreeMap::new(), "journals stay after step {step}");
            check(&world);
        }
        if !killed {
            assert!(step >= least_steps, "{name} has only {step} steps");
            return;
        }
    }
}

fn build(world: &Path) {
    fs::create_dir(world).expect("create");
    fs::write(world.join("read_ahead_kb"), "128\n").expect("write");
    fs::write(world.join("enabled"), "madvise\n").expect("write");
}

fn journals(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let Ok(entries) = fs::read_dir(dir) else { return BTreeMap::new() };
    entries.map(|e| e.expect("entry").path()).map(|p| (p.clone(), fs::read(&p).expect("read"))).collect()
}

fn contents(world: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(world).expect("list") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            all.insert(path.clone(), Vec::new());
            all.extend(contents(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).expect("read"));
        }
    }
    all
}

#[test]
fn killed_at_every_step_of_changing_settings() {
    kill_at_every_step("settings", 30, |_| {});
}

#[test]
fn killed_at_every_step_of_creating_files() {
    kill_at_every_step("files", 14, |_| {});
}

#[test]
fn killed_at_every_step_of_starting_a_process() {
    kill_at_every_step("process", 7, |world| {
        let argument = sleep_argument(world);
        let mine = fs::read_dir("/proc").expect("list").filter_map(|e| {
            let text = fs::read(e.ok()?.path().join("cmdline")).ok()?;
            String::from_utf8_lossy(&text).contains(&argument).then_some(())
        });
        assert_eq!(mine.count(), 0, "processes survive");
    });
}
