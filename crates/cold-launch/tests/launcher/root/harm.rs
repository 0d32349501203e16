//! Never harmful: a group with too little memory, a busy disk. The witness is what was read, and what the
//! launcher says; not the time, which belongs to the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use cold_model::Bytes;
use cold_plan::plan::{Gate, Identity};
use cold_sys::cgroup::Hierarchies;
use cold_sys::procfs::ProcFs;
use cold_testbed::disk::Preset;
use cold_testbed::{SlowDisk, attempts, beside_readers};

use super::slow_plan;
use crate::world::{
    LAUNCHER, MIB, WAITS, add, add_whole, begun, cached, calm, directory, evict, file, followed, gone,
    launch, launcher, plan, save, text,
};

/// A control group with a limit of memory, removed with its value.
struct Group {
    dir: PathBuf,
}

impl Group {
    /// `None` where no hierarchy has the controller.
    fn limited(bytes: u64) -> Option<Self> {
        let mounts = ProcFs::default().mounts().expect("mounts");
        let tops = Hierarchies::of(&mounts);
        let v1 = tops.v1.get("memory").map(|top| (top.at.clone(), "memory.limit_in_bytes"));
        let v2 = tops.v2.map(|top| (top.at, "memory.max"));
        v1.into_iter().chain(v2).find_map(|(top, limit)| {
            let group = Self { dir: top.join(format!("cold-launch-it-{}", std::process::id())) };
            std::fs::create_dir(&group.dir).ok()?;
            std::fs::write(group.dir.join(limit), bytes.to_string()).ok()?;
            Some(group)
        })
    }

    /// The launcher, started inside.
    fn launcher(&self, plan: &Path, command: &[&str]) -> Command {
        let mut shell = Command::new("sh");
        let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.dir.display());
        shell.args(["-c", &enter, "sh", LAUNCHER, "--plan"]).arg(plan).arg("--verbose").args(command);
        shell
    }

    fn number(&self, name: &str) -> Option<u64> {
        std::fs::read_to_string(self.dir.join(name)).ok()?.trim().parse().ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A process that has just ended may still be in it.
        let gone = || std::fs::remove_dir(&self.dir).is_ok() || !self.dir.exists();
        for _ in 0..200 {
            if gone() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn a_group_with_less_memory_than_the_plan_gets_half_of_its_room_or_nothing() {
    cold_testbed::needs_root!();
    let group = Group::limited(24 * MIB);
    let Some(group) = group else {
        cold_testbed::need(false, "a memory controller");
        return;
    };
    let dir = directory();
    let at = dir.path().join("plan");
    let data = file(&dir.path().join("data"), 32 * MIB);
    // Nothing of it is known to be needed first: it would be all or nothing.
    let mut p = plan();
    add_whole(&mut p, &data, false);
    save(&p, &at);
    attempts(|| {
        evict(&data);
        let out = group.launcher(&at, &["echo", "ran"]).output().expect("runs");
        assert_eq!(text(&out.stdout), "ran\n");
        assert_eq!(cached(&data), 0);
        match calm(&out) {
            Err(said) if !said.contains("too little free memory") => Err(said),
            Err(_) => Ok(()),
            Ok(said) => panic!("{said}"),
        }
    });
    // With a first part that fits: that, and of the rest no more than half of the room.
    let mut p = plan();
    let meta = std::fs::metadata(&data).expect("stat");
    let step = |i: u64| (i * (128 << 10), 128 << 10);
    let all: Vec<(u64, u32)> = (0..256).map(step).collect();
    let (first, rest) = all.split_at(8);
    add(&mut p, &data, Identity::of(&meta, [0; 20]), first, true);
    add(&mut p, &data, Identity::of(&meta, [0; 20]), rest, false);
    save(&p, &at);
    attempts(|| {
        evict(&data);
        let hits = group.number("memory.failcnt");
        calm(&followed(&mut group.launcher(&at, &WAITS), dir.path()))?;
        let bytes = cached(&data) * 4096;
        assert!(bytes <= 12 * MIB, "{bytes} bytes read ahead in a group of 24 MiB");
        assert_eq!(group.number("memory.failcnt"), hits, "the limit was hit");
        if bytes < MIB { Err(format!("not even the first part came: {bytes} bytes")) } else { Ok(()) }
    });
}

#[test]
fn a_busy_disk_is_left_to_those_who_wait_for_it() {
    cold_testbed::needs_root!();
    let disk = SlowDisk::create(Preset::Cloud, Bytes(320 << 20)).expect("a test disk");
    let at = disk.mount_point().join("plan");
    let data = file(&disk.mount_point().join("data"), 4 * MIB);
    let others = file(&disk.mount_point().join("others"), 64 * MIB);
    // The program lies elsewhere: what counts is where the plan would read.
    let mut p = plan();
    add_whole(&mut p, &data, false);
    save(&p, &at);
    beside_readers(&others, 8, || {
        // The kernel's average over 10 s has to rise first; until then it is followed.
        cold_testbed::until("the disk is called busy", || {
            evict(&data);
            let out = launch(&at, &["--verbose"], &["true"]);
            gone(&at);
            let busy = text(&out.stderr).contains("the disk is busy");
            assert!(!busy || cached(&data) == 0, "and read ahead all the same");
            busy.then_some(())
        });
    });
    // Nobody else reads any more: it is followed again, though the average is still high.
    attempts(|| {
        evict(&data);
        let said = calm(&followed(&mut launcher(&at, &["--verbose"], &WAITS), &at))?;
        assert!(said.contains("4194304 of 4194304 bytes"), "{said}");
        Ok(())
    });
}

#[test]
fn a_slow_disk_holds_a_program_back_until_the_deadline_and_is_then_left_alone() {
    cold_testbed::needs_root!();
    let disk = SlowDisk::create(Preset::Hdd, Bytes(320 << 20)).expect("a test disk");
    let data = file(&disk.mount_point().join("data"), 32 * MIB);
    let dir = directory();
    let at = dir.path().join("plan");
    // All of it is critical, and page after page arrives: nothing but the deadline lets the program begin.
    slow_plan(&at, &data, Gate::Arrived);
    attempts(|| {
        evict(&data);
        let program = begun(&mut launcher(&at, &["--verbose", "--deadline", "500"], &WAITS));
        let then = cached(&data);
        gone(dir.path());
        let (read, out) = (cached(&data), program.wait_with_output().expect("ended"));
        calm(&out)?;
        assert!(then < 4096 && read < 4096, "it read to the end: {then}, {read}");
        if then > 1 { Ok(()) } else { Err(format!("strangers' hunger ended it: {then} pages")) }
    });
}
