//! The helper never outlives its program by more than a look at it, however the program ends.

use std::os::unix::process::CommandExt;
use std::process::Command;

use cold_model::Bytes;
use cold_plan::plan::Gate;
use cold_testbed::disk::Preset;
use cold_testbed::{SlowDisk, attempts, until};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::slow_plan;
use crate::world::{MIB, begun, cached, calm, directory, evict, file, gone, helpers, launcher};

/// Sends it to a process, or to a process group.
type Send = fn(Pid, Signal) -> rustix::io::Result<()>;

#[test]
fn a_signal_that_ends_the_program_ends_its_helper() {
    cold_testbed::needs_root!();
    let disk = SlowDisk::create(Preset::Cloud, Bytes(320 << 20)).expect("a test disk");
    let data = file(&disk.mount_point().join("data"), 32 * MIB);
    let dir = directory();
    let at = dir.path().join("plan");
    slow_plan(&at, &data, Gate::None);
    let one = |pid, signal| kill_process(pid, signal);
    let job = |pid, signal| kill_process_group(pid, signal);
    let cases: [(Send, Signal); 4] =
        [(one, Signal::TERM), (job, Signal::TERM), (job, Signal::INT), (one, Signal::KILL)];
    let mark = dir.path().display().to_string();
    for (send, signal) in cases {
        attempts(|| {
            evict(&data);
            // No shell, because that catches SIGINT.
            let launcher = launcher(&at, &["--verbose"], &["cat"]);
            // What a script starts in its background ignores SIGINT, the tests perhaps among it.
            let mut command = Command::new("env");
            command.arg("--default-signal=INT").arg(launcher.get_program()).args(launcher.get_args());
            let program = begun(command.process_group(0));
            // It follows its plan for seconds, or not at all.
            until("the helper reads", || (cached(&data) > 8 || helpers(&mark).is_empty()).then_some(()));
            let (before, read) = (helpers(&mark), cached(&data));
            send(Pid::from_child(&program), signal).expect("sent");
            let out = program.wait_with_output().expect("ended");
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&out.status), Some(signal.as_raw()));
            gone(dir.path());
            calm(&out)?;
            if read > 2048 {
                return Err(format!("the signal came late: it had read {read} pages"));
            }
            assert_eq!(before.len(), 1);
            assert!(cached(&data) < 4096, "it read to the end");
            Ok(())
        });
    }
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).expect("lists").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["plan"]);
}
