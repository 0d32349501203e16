//! Real changes: cgroups of both versions, a loop device, its read-ahead, a mount.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cold_journal::Journal;
use cold_testbed::needs_root;

/// Directories in which cgroups can be made: one v1 hierarchy and v2, as far as mounted.
fn cgroup_roots() -> Vec<PathBuf> {
    let mounts = cold_sys::procfs::ProcFs::default().mounts().expect("mounts");
    let first = |fs_type: &str, option: &str| {
        mounts
            .iter()
            .find(|m| m.fs_type == fs_type && m.mount_point.ends_with(option))
            .map(|m| m.mount_point.clone())
    };
    let v2 = mounts.iter().find(|m| m.fs_type == "cgroup2").map(|m| m.mount_point.clone());
    first("cgroup", "pids").into_iter().chain(v2).collect()
}

fn cgroup_name(world: &Path) -> String {
    let parent = world.parent().and_then(Path::file_name).expect("name").to_string_lossy().into_owned();
    format!("cold-journal-test-{}", parent.trim_start_matches('.'))
}

pub(crate) fn scenario(journal: &Journal, world: &Path) {
    let mut guards = Vec::new();
    let mut members = Vec::new();
    for root in cgroup_roots() {
        let (group, guard) = journal.create_cgroup(&root, &cgroup_name(world)).expect("cgroup");
        guards.push(guard);
        fs::create_dir(group.join("inner")).expect("inner cgroup");
        // It is in no journal itself: only the cgroup's removal ends it.
        let mut member = Command::new("sleep");
        let member = member.arg("1000").spawn().expect("spawn");
        fs::write(group.join("inner/cgroup.procs"), member.id().to_string()).expect("join");
        members.push(member);
    }
    let (dir, g) = journal.create_directory(world, "disk").expect("directory");
    guards.push(g);
    let image = dir.join("image");
    let file = fs::File::create(&image).expect("create");
    file.set_len(16 << 20).expect("size");
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).status().expect("mkfs.ext4");
    assert!(made.success());
    let (number, g) = journal.attach_loop(&image).expect("loop");
    guards.push(g);
    let read_ahead = PathBuf::from(format!("/sys/block/loop{number}/queue/read_ahead_kb"));
    guards.push(journal.set(&read_ahead, "16").expect("read-ahead"));
    let target = image.with_file_name("mnt");
    fs::create_dir(&target).expect("create");
    let device = PathBuf::from(format!("/dev/loop{number}"));
    guards.push(journal.mount(&device, &target, "ext4", "").expect("mount"));
    fs::write(target.join("file"), "on the mounted file system").expect("write");
    for undone in journal.undo_all() {
        assert!(undone.outcome.is_ok(), "{undone}");
    }
    for mut member in members {
        assert!(!member.wait().expect("wait").success(), "the cgroup's removal kills its members");
    }
}

/// Nothing of the world is mounted, attached or grouped any more.
fn check(world: &Path) {
    let mounts = cold_sys::procfs::ProcFs::default().mounts().expect("mounts");
    assert!(
        mounts.iter().all(|m| !m.mount_point.starts_with(world)),
        "a mount stays below {}",
        world.display()
    );
    for entry in fs::read_dir("/sys/block").expect("list") {
        let backing = entry.expect("entry").path().join("loop/backing_file");
        let text = fs::read_to_string(backing).unwrap_or_default();
        assert!(!Path::new(text.trim()).starts_with(world), "{text} stays attached");
    }
    for root in cgroup_roots() {
        let names = fs::read_dir(&root).expect("list").map(|e| e.expect("entry").file_name());
        let ours: Vec<_> = names.filter(|n| n.to_string_lossy().starts_with(&cgroup_name(world))).collect();
        assert!(ours.is_empty(), "{ours:?} stays in {}", root.display());
    }
}

#[test]
fn killed_at_every_step_of_real_changes() {
    needs_root!();
    assert!(!cgroup_roots().is_empty(), "no cgroup file system is mounted");
    crate::crash::kill_at_every_step("root", 30, check);
}

#[test]
fn a_mount_in_use_is_detached_and_its_loop_device_freed_with_the_last_user() {
    needs_root!();
    let dir = tempfile::tempdir().expect("tempdir");
    let world = dir.path().canonicalize().expect("path");
    let journal = Journal::open_in(world.join("journal"));
    let image = world.join("image");
    fs::File::create(&image).expect("create").set_len(16 << 20).expect("size");
    assert!(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).status().expect("mkfs").success());
    let (number, device) = journal.attach_loop(&image).expect("loop");
    let target = world.join("mnt");
    fs::create_dir(&target).expect("create");
    let path = PathBuf::from(format!("/dev/loop{number}"));
    let mount = journal.mount(&path, &target, "ext4", "").expect("mount");
    let user = fs::File::create(target.join("held")).expect("create");
    assert_eq!(mount.undo().expect("undo"), cold_journal::Outcome::WhenUnused);
    assert_eq!(device.undo().expect("undo"), cold_journal::Outcome::WhenUnused);
    drop(user);
    let backing = PathBuf::from(format!("/sys/block/loop{number}/loop/backing_file"));
    let ours = || fs::read_to_string(&backing).is_ok_and(|t| t.trim() == image.to_string_lossy());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while ours() {
        assert!(std::time::Instant::now() < deadline, "the loop device stays attached");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_loop_device_that_was_given_another_file_is_left_alone() {
    needs_root!();
    let dir = tempfile::tempdir().expect("tempdir");
    let journal = Journal::open_in(dir.path().join("journal"));
    let other = Journal::open_in(dir.path().join("other"));
    let [a, b] = ["a", "b"].map(|name| {
        let path = dir.path().join(name);
        fs::File::create(&path).expect("create").set_len(1 << 20).expect("size");
        path
    });
    let (number, guard) = journal.attach_loop(&a).expect("loop");
    cold_sys::loopdev::LoopDevice::open(number).expect("open").detach().expect("detach");
    // Others may take the freed number first; then there is nothing to prove.
    let (second, theirs) = other.attach_loop(&b).expect("loop");
    let outcome = guard.undo().expect("undo");
    if number == second {
        assert!(matches!(outcome, cold_journal::Outcome::ChangedByOthers { .. }), "{outcome}");
    }
    assert_eq!(theirs.undo().expect("undo"), cold_journal::Outcome::Restored);
}

#[test]
fn a_process_killed_in_another_pid_namespace_is_recovered_and_a_living_one_left_alone() {
    needs_root!();
    let base = tempfile::tempdir().expect("tempdir");
    let world = base.path().canonicalize().expect("path").join("world");
    fs::create_dir(&world).expect("create");
    // The child is not the first process of the namespace: that one cannot kill itself. Its `/proc` is ours, where
    // its number is another process's.
    let mut child = Command::new("unshare");
    child.args(["-pf", "sh", "-c", "\"$0\" \"$@\"; exit 0"]).arg(std::env::current_exe().expect("exe"));
    child
        .args(["crash::child", "--exact"])
        .env(crate::crash::CHILD, format!("files|4|{}", base.path().display()));
    assert!(child.output().expect("run").status.success());
    assert_eq!(fs::read_dir(&world).expect("list").count(), 1, "it was killed in the middle");
    // From inside, a living process of the outside is none by its number.
    let journal = Journal::open_in(base.path().join("living"));
    let (made, guard) = journal.create_directory(base.path(), "made").expect("directory");
    let mut inner = Command::new("unshare");
    inner.args(["-pf", "--mount-proc"]).arg(std::env::current_exe().expect("exe"));
    inner.args(["root::recovers_in_a_namespace", "--exact"]).env(INNER, journal.directory());
    assert!(inner.output().expect("run").status.success());
    assert!(made.exists());
    guard.undo().expect("undone");
    let undone = cold_journal::recover(&base.path().join("journal")).expect("recover");
    assert_eq!(undone.len(), 1, "{undone:?}");
    assert_eq!(fs::read_dir(&world).expect("list").count(), 0);
}

const INNER: &str = "COLD_JOURNAL_RECOVER";

/// The inner half of the test above; as a test of its own it does nothing.
#[test]
fn recovers_in_a_namespace() {
    let Some(dir) = std::env::var_os(INNER) else { return };
    assert!(cold_journal::recover(Path::new(&dir)).expect("recover").is_empty());
}
