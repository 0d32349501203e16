//! What other processes make, set or hold at the same time is theirs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cold_journal::{Error, Journal, Outcome, Step};
use cold_testbed::{need, needs_root};

use crate::trust::{World, boot, header, setting};

/// A journal in `dir`; at `step` of every change `act` gets the path that is going to be made.
fn at(step: Step, dir: &Path, act: impl Fn(PathBuf) + Send + Sync + 'static) -> Journal {
    let journal = dir.join("journal");
    let seen = journal.clone();
    Journal::observe(journal, move |now| {
        if now == step {
            // The journal tells others nothing, but the test may read it.
            let text = fs::read_dir(&seen).expect("list").next().expect("a journal").expect("entry").path();
            let text = fs::read_to_string(text).expect("read");
            let path = text.split_once("\"path\":\"").expect("a path").1.split('"').next().expect("its end");
            act(PathBuf::from(path));
        }
    })
}

#[test]
fn a_file_that_another_process_made_first_stays() {
    let dir = tempfile::tempdir().expect("tempdir");
    let theirs: Arc<Mutex<PathBuf>> = Arc::default();
    let made = Arc::clone(&theirs);
    // Empty as ours would be.
    let journal = at(Step::Recorded, dir.path(), move |path| {
        fs::write(&path, "").expect("write");
        *made.lock().expect("lock") = path;
    });
    journal.create_file(dir.path(), "name").expect_err("it exists");
    assert!(theirs.lock().expect("lock").exists());
    assert_eq!(fs::read_dir(dir.path().join("journal")).expect("list").count(), 0);
}

#[test]
fn a_directory_that_another_process_made_first_stays() {
    let dir = tempfile::tempdir().expect("tempdir");
    let theirs: Arc<Mutex<PathBuf>> = Arc::default();
    let made = Arc::clone(&theirs);
    let journal = at(Step::Recorded, dir.path(), move |path| {
        fs::create_dir(&path).expect("mkdir");
        *made.lock().expect("lock") = path;
    });
    journal.create_directory(dir.path(), "name").expect_err("it exists");
    assert!(theirs.lock().expect("lock").exists());
}

#[test]
fn a_group_that_another_process_made_first_stays_as_root() {
    needs_root!();
    let mounts = cold_sys::procfs::ProcFs::default().mounts().expect("mounts");
    let root = mounts.into_iter().find(|m| m.fs_type == "cgroup2").expect("cgroups of version 2").mount_point;
    let dir = tempfile::tempdir().expect("tempdir");
    let theirs: Arc<Mutex<PathBuf>> = Arc::default();
    let made = Arc::clone(&theirs);
    let journal = at(Step::Recorded, dir.path(), move |path| {
        fs::create_dir(&path).expect("mkdir");
        *made.lock().expect("lock") = path;
    });
    journal.create_cgroup(&root, "cold-test").expect_err("it exists");
    fs::remove_dir(&*theirs.lock().expect("lock")).expect("it stays");
}

#[test]
fn what_another_user_put_under_a_name_that_was_not_confirmed_stays_as_root() {
    needs_root!();
    let dir = tempfile::tempdir().expect("tempdir");
    let theirs: Arc<Mutex<PathBuf>> = Arc::default();
    let made = Arc::clone(&theirs);
    // Killed when the file was made and not confirmed; by then somebody else had moved his own there.
    let journal = at(Step::Made, dir.path(), move |path| {
        fs::remove_file(&path).expect("remove");
        fs::write(&path, "").expect("write");
        std::os::unix::fs::chown(&path, Some(65534), None).expect("chown");
        *made.lock().expect("lock") = path;
        panic!("killed");
    });
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = journal.create_file(dir.path(), "name");
    }));
    died.expect_err("killed");
    let undone = journal.undo_all();
    assert!(matches!(undone[0].outcome, Ok(Outcome::ChangedByOthers { .. })), "{}", undone[0]);
    assert!(theirs.lock().expect("lock").exists());
}

#[test]
fn two_processes_never_hold_one_setting() {
    let dir = tempfile::tempdir().expect("tempdir");
    let setting = dir.path().join("setting");
    fs::write(&setting, "128\n").expect("write");
    let [first, second] = [(); 2].map(|()| Journal::open_in(dir.path().join("journal")));
    let held = first.set(&setting, "0").expect("set");
    let refused = second.set(&setting, "16").expect_err("held");
    assert!(matches!(refused, Error::Held { .. }), "{refused}");
    assert!(refused.to_string().contains(&format!("[{}] holds it", std::process::id())), "{refused}");
    drop(held);
    drop(second.set(&setting, "16").expect("free again"));
    assert_eq!(fs::read_to_string(&setting).expect("read"), "128\n");
}

#[test]
fn what_a_killed_process_left_set_is_put_back_before_it_is_set_again() {
    let world = World::new("0");
    world.write(header(&boot()) + &setting(0, &world.setting, "128", "0"));
    let guard = Journal::open_in(world.journal()).set(&world.setting, "16").expect("set");
    assert_eq!(world.value(), "16");
    drop(guard);
    assert_eq!(world.value(), "128");
    assert_eq!(fs::read_dir(world.journal()).expect("list").count(), 0);
}

#[test]
fn a_controller_stays_on_until_the_last_process_that_needs_it_ends_as_root() {
    needs_root!();
    let mounts = cold_sys::procfs::ProcFs::default().mounts().expect("mounts");
    let root = mounts.into_iter().find(|m| m.fs_type == "cgroup2").expect("cgroups of version 2").mount_point;
    let words = |file: &str| fs::read_to_string(root.join(file)).expect("read");
    let (offered, on) = (words("cgroup.controllers"), words("cgroup.subtree_control"));
    let free = offered.split_whitespace().find(|name| !on.split_whitespace().any(|o| o == *name));
    let Some(name) = free else {
        assert!(need(false, "a controller that is off"));
        return;
    };
    let is_on = || words("cgroup.subtree_control").split_whitespace().any(|o| o == name);
    let dir = tempfile::tempdir().expect("tempdir");
    let [first, second] = [(); 2].map(|()| Journal::open_in(dir.path().join("journal")));
    let a = first.enable_controller(&root, name).expect("enabled").expect("was off");
    let b = second.enable_controller(&root, name).expect("enabled").expect("needs it, too");
    assert_eq!(a.undo().expect("undo"), Outcome::LeftToOthers);
    assert!(is_on(), "the second still needs it");
    assert_eq!(b.undo().expect("undo"), Outcome::Restored);
    assert!(!is_on());
}

/// Ends the container, also when its test fails.
struct Stop<'a>(&'a Path);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        fs::write(self.0.join("stop"), "").expect("write");
    }
}

/// Run by the next test with process ids of its own: recovers until it is told to stop.
#[test]
fn container() {
    let Some(dir) = std::env::var_os("COLD_JOURNAL_CONTAINER") else { return };
    let dir = PathBuf::from(dir);
    fs::write(dir.join("began"), "").expect("write");
    while !dir.join("stop").exists() {
        let undone = cold_journal::recover(&dir.join("journal")).expect("recover");
        assert!(undone.is_empty(), "undone while its owner lives: {undone:?}");
    }
}

#[test]
fn a_container_that_shares_the_directory_leaves_living_journals_alone_as_root() {
    needs_root!();
    let dir = tempfile::tempdir().expect("tempdir");
    let (setting, journals) = (dir.path().join("setting"), dir.path().join("journal"));
    fs::write(&setting, "128\n").expect("write");
    let mut container = std::process::Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "--kill-child"])
        .arg(std::env::current_exe().expect("exe"))
        .args(["others::container", "--exact", "--nocapture"])
        .env("COLD_JOURNAL_CONTAINER", dir.path())
        .spawn()
        .expect("unshare");
    let stop = Stop(dir.path());
    cold_testbed::until("it runs", || dir.path().join("began").exists().then_some(()));
    for _ in 0..300 {
        let journal = Journal::open_in(&journals);
        let guard = journal.set(&setting, "0").expect("set");
        assert_eq!(fs::read_dir(&journals).expect("list").count(), 1, "its journal is gone");
        assert_eq!(guard.undo().expect("undo"), Outcome::Restored);
    }
    drop(stop);
    assert!(container.wait().expect("wait").success());
}
