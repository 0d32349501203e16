//! The helper never outlives its program by more than a look at it, however the program ends.

use std::os::unix::process::CommandExt;
use std::path::Path;

use cold_model::Bytes;
use cold_plan::plan::Identity;
use cold_testbed::SlowDisk;
use cold_testbed::disk::Preset;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::world::{MIB, add, cached, directory, evict, file, gone, helpers, launcher, plan, save};

/// A plan of single pages, one after the other, which takes the disk seconds.
fn slow_plan(at: &Path, data: &Path) {
    let mut p = plan();
    p.knobs.in_flight_bytes = 4096;
    p.knobs.gate = cold_plan::plan::Gate::None;
    let meta = std::fs::metadata(data).expect("stat");
    let pages: Vec<(u64, u32)> = (0..4096).map(|i| (i * 8192, 4096)).collect();
    add(&mut p, data, Identity::of(&meta, [0; 20]), &pages, false);
    save(&p, at);
}

/// Sends it to a process, or to a process group.
type Send = fn(Pid, Signal) -> rustix::io::Result<()>;

#[test]
fn a_signal_that_ends_the_program_ends_its_helper() {
    if !cold_testbed::need_root() {
        return;
    }
    let disk = SlowDisk::create(Preset::Cloud, Bytes(320 << 20)).expect("a test disk");
    let data = file(&disk.mount_point().join("data"), 32 * MIB);
    let dir = directory();
    let at = dir.path().join("plan");
    slow_plan(&at, &data);
    let one = |pid, signal| kill_process(pid, signal);
    let job = |pid, signal| kill_process_group(pid, signal);
    let cases: [(Send, Signal); 4] =
        [(one, Signal::TERM), (job, Signal::TERM), (job, Signal::INT), (one, Signal::KILL)];
    for (send, signal) in cases {
        assert!(evict(&data), "nobody else knows the file");
        let mut program = launcher(&at, &[], &["sleep", "600"]).process_group(0).spawn().expect("runs");
        cold_testbed::until("the helper reads", || (cached(&data) > 8).then_some(()));
        assert_eq!(helpers(&dir.path().display().to_string()).len(), 1);
        send(Pid::from_child(&program), signal).expect("sent");
        let status = program.wait().expect("ended");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(signal.as_raw()));
        gone(dir.path());
        assert!(cached(&data) < 4096, "it read to the end");
    }
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).expect("lists").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["plan"]);
}
