//! FIFOs and devices where the plan has files.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use cold_model::Bytes;
use cold_plan::plan::{FileKind, Identity, Op, Step};
use cold_testbed::disk::{self, Preset};
use cold_testbed::{SlowDisk, attempts};

use crate::world::{
    MIB, WAITS, add, add_file, add_whole, came, directory, evict, file, followed, launcher, plan, save,
};

/// A place of the disk where nothing lies.
const PLACE: u64 = 200 * MIB;

fn run(program: &str, arguments: &[&str], path: &Path, more: &[&str]) {
    let out = Command::new(program).args(arguments).arg(path).args(more).output().expect("runs");
    assert!(out.status.success(), "{out:?}");
}

#[test]
fn nodes_in_place_of_files_are_not_opened_and_a_disk_that_is_not_mounted_is_not_read() {
    cold_testbed::needs_root!();
    let disk = SlowDisk::create(Preset::Fast, Bytes(320 << 20)).expect("a test disk");
    let dir = directory();
    let at = dir.path().join("plan");
    let [fifo, node, device] = ["fifo", "node", "device"].map(|n| dir.path().join(n));
    let kept = file(&dir.path().join("kept"), MIB);
    let any = Identity { inode: 1, size: 1 << 30, ..Identity::default() };
    let mut p = plan();
    add(&mut p, &fifo, any, &[(0, 4096)], true);
    add(&mut p, &node, any, &[(PLACE, 4096)], true);
    // The device itself, by a name of ours and by its own.
    for path in [&device, &disk.info().device] {
        let file = add_file(&mut p, FileKind::BlockDevice, path);
        p.steps.push(Step { op: Op::Read, critical: false, file, offset: PLACE, bytes: 4096, need_ns: 0 });
    }
    add_whole(&mut p, &kept, false);
    save(&p, &at);
    run("mkfifo", &[], &fifo, &[]);
    let number = disk.info().number.to_string();
    for path in [&node, &device] {
        run("mknod", &[], path, &["b", "7", &number]);
    }
    disk.unmount().expect("unmounted");
    // Who writes to a FIFO is woken by whoever opens it to read, however briefly.
    let other_end = std::thread::spawn({
        let fifo = fifo.clone();
        move || File::options().write(true).open(fifo)
    });
    attempts(|| {
        evict(&kept);
        followed(&mut launcher(&at, &[], &WAITS), dir.path());
        came(&kept, 256)
    });
    assert!(!other_end.is_finished(), "the FIFO was opened");
    let reads = disk.log().expect("a log").into_iter().filter(|r| r.op == disk::Op::Read);
    let place = |r: &disk::Request| r.offset <= PLACE && PLACE < r.offset + r.len.0;
    assert_eq!(reads.filter(place).count(), 0, "the disk was read");
    drop(File::open(&fifo).expect("opened"));
    other_end.join().expect("no panic").expect("opened");
    run("mount", &["-o", "nosuid,nodev"], &disk.info().device, &[&disk.mount_point().display().to_string()]);
}
