//! Blocks that are asked for before it is known which plan the start has, as the disk's log has it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use cold_model::Bytes;
use cold_plan::plan::{FileKind, Key, Op, Standing, Step};
use cold_plan::{Plan, Store};
use cold_testbed::SlowDisk;
use cold_testbed::disk::Preset;

use super::metadata::{mounted_anew, read};
use crate::misfit::stored;
use crate::world::{LAUNCHER, add_file, add_whole, calm, directory, file, gone, plan, text};

/// Pages in the middle of the disk, which hold nothing and which nobody else reads.
const NOBODYS: std::ops::Range<u64> = 80_000..80_016;

/// A program on a disk of its own, and a store elsewhere.
struct Scene {
    disk: SlowDisk,
    dir: tempfile::TempDir,
    program: PathBuf,
    store: Store,
    key: Key,
}

impl Scene {
    fn new() -> Option<Self> {
        let loops = PathBuf::from("/dev/loop-control").exists();
        if !cold_testbed::need_root() || !cold_testbed::need(loops, "loop devices") {
            return None;
        }
        let disk = SlowDisk::create(Preset::SataSsd, Bytes(640 << 20)).expect("a test disk");
        let program = disk.mount_point().join("program");
        cold_testbed::executable(&program, std::fs::read("/bin/true").expect("read"));
        file(&disk.mount_point().join("data"), 256 << 10);
        let dir = directory();
        let (store, key) = stored(dir.path(), &[OsString::from(&program)], Some("usual"));
        Some(Self { disk, dir, program, store, key })
    }

    /// Saves a plan of nobody's pages and of the data, which is found by the program's path.
    fn save(&self, change: impl FnOnce(&mut Plan)) {
        let mut p = plan();
        p.key = self.key.clone();
        let device = add_file(&mut p, FileKind::BlockDevice, &self.disk.info().device);
        let (offset, bytes) = (NOBODYS.start * 4096, ((NOBODYS.end - NOBODYS.start) * 4096) as u32);
        p.steps.push(Step { op: Op::Read, critical: true, file: device, offset, bytes, need_ns: 0 });
        add_whole(&mut p, &self.disk.mount_point().join("data"), false);
        change(&mut p);
        let locked = self.store.lock().expect("locked");
        locked.save(&p).expect("saved");
        locked.call(&p.key, self.program.as_os_str()).expect("called");
    }

    /// The pages that a start reads, and what the launcher said of it.
    fn start(&self, options: &[&str]) -> (BTreeSet<u64>, Result<String, String>) {
        self.disk.reset_log().expect("reset");
        let mut launcher = Command::new(LAUNCHER);
        launcher
            .arg("--store")
            .arg(self.store.directory())
            .args(["--verbose", "--wait", "arrived"])
            .args(options);
        let out = launcher.arg("--").arg(&self.program).output().expect("runs");
        assert!(out.status.success(), "{}", text(&out.stderr));
        gone(self.dir.path());
        (read(&self.disk), calm(&out))
    }

    /// Whether a start with nothing in memory reads nobody's pages.
    fn asks(&self, options: &[&str]) -> bool {
        mounted_anew(&self.disk);
        let (pages, _) = self.start(options);
        let of_them = pages.iter().filter(|page| NOBODYS.contains(page)).count() as u64;
        assert!(of_them == 0 || of_them == NOBODYS.end - NOBODYS.start, "{pages:?}");
        of_them > 0
    }
}

#[test]
fn blocks_of_the_programs_last_plan_are_asked_for_before_the_start_has_one() {
    let Some(scene) = Scene::new() else { return };
    // The start is of another scenario and has no plan: only what comes before can ask for them.
    assert!(!scene.asks(&["--scenario", "other"]), "there is no plan yet");
    scene.save(|_| {});
    assert!(scene.asks(&["--scenario", "other"]));

    // Names that are in memory read nothing, so nothing is asked for.
    cold_testbed::attempts(|| {
        mounted_anew(&scene.disk);
        scene.program.metadata().expect("is there");
        let (pages, _) = scene.start(&["--scenario", "other"]);
        if cold_sys::open::is_known(&scene.program) != Some(true) {
            return Err("the name was taken out of memory again".to_owned());
        }
        assert!(pages.iter().all(|page| !NOBODYS.contains(page)), "{pages:?}");
        Ok(())
    });

    // A control start is made as if there was no plan.
    assert!(!scene.asks(&["--scenario", "usual", "--control-every", "1"]));
    assert!(scene.asks(&["--scenario", "usual"]), "by the plan itself");
    scene.save(|p| p.standing = Standing::Off("it does harm".to_owned()));
    assert!(!scene.asks(&["--scenario", "other"]), "it is switched off");
}

#[test]
fn what_is_no_link_to_a_plan_of_the_store_leads_nowhere() {
    let Some(scene) = Scene::new() else { return };
    scene.save(|_| {});
    let link = scene.store.directory().read_dir().expect("listed").map(|e| e.expect("listed").path());
    let link = link.into_iter().find(|p| p.is_symlink()).expect("a link");
    let plan = scene.store.path_of(&scene.key);
    let elsewhere = scene.dir.path().join(plan.file_name().expect("named"));
    std::fs::copy(&plan, &elsewhere).expect("copied");
    let lead_to = |target: &Path| {
        std::fs::remove_file(&link).expect("removed");
        std::os::unix::fs::symlink(target, &link).expect("linked");
    };
    // Another directory's, one that is not there, and one that its name says is no plan.
    for target in [elsewhere.as_path(), "x-0123456789abcdef.plan".as_ref(), "../store/lock".as_ref()] {
        lead_to(target);
        assert!(!scene.asks(&["--scenario", "other"]), "{}", target.display());
    }
    lead_to(plan.file_name().expect("named").as_ref());
    assert!(scene.asks(&["--scenario", "other"]));
    // Root believes no plan of a user's.
    std::os::unix::fs::chown(&plan, Some(super::NOBODY), None).expect("given away");
    assert!(!scene.asks(&["--scenario", "other"]));
}
