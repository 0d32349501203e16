//! A file system's own blocks, read ahead through its block device, as the disk's log has it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use cold_model::Bytes;
use cold_plan::Plan;
use cold_plan::plan::{FileKind, Gate, Op, Step};
use cold_testbed::SlowDisk;
use cold_testbed::disk::{self, Preset};

use crate::world::{add_file, calm, directory, gone, launch, plan, save};

/// Directories and files in each: enough for inode tables of several block groups.
const DIRECTORIES: usize = 20;
const FILES: usize = 40;

/// The file system anew, with nothing of it in memory but what mounting reads, which is in the log: the last who
/// lets go of a block device drops its pages.
pub(super) fn mounted_anew(disk: &SlowDisk) {
    disk.unmount().expect("unmounted");
    disk.reset_log().expect("reset");
    let mut mount = Command::new("mount");
    mount.args(["-o", "nosuid,nodev"]).arg(&disk.info().device).arg(disk.mount_point());
    let out = mount.output().expect("runs");
    assert!(out.status.success(), "{out:?}");
}

/// Pages that the disk was asked for since.
pub(super) fn read(disk: &SlowDisk) -> BTreeSet<u64> {
    let reads = disk.log().expect("a log").into_iter().filter(|r| r.op == disk::Op::Read);
    reads.flat_map(|r| r.offset / 4096..(r.offset + r.len.0).div_ceil(4096)).collect()
}

/// Asks for every file's inode.
fn look_up(disk: &SlowDisk) {
    for d in 0..DIRECTORIES {
        for f in 0..FILES {
            let path = disk.mount_point().join(format!("d{d}/f{f}"));
            std::fs::symlink_metadata(path).expect("is there");
        }
    }
}

/// A plan of these pages of the device, neighbours in one step; the program begins when they have come.
fn plan_of(device: &Path, pages: &BTreeSet<u64>) -> Plan {
    let mut p = plan();
    p.knobs.gate = Gate::Arrived;
    let file = add_file(&mut p, FileKind::BlockDevice, device);
    for page in pages {
        let end = p.steps.last().map(|s| s.offset + u64::from(s.bytes));
        match p.steps.last_mut() {
            Some(s) if end == Some(page * 4096) && s.bytes < p.knobs.chunk_bytes => s.bytes += 4096,
            _ => p.steps.push(Step {
                op: Op::Read,
                critical: true,
                file,
                offset: page * 4096,
                bytes: 4096,
                need_ns: 0,
            }),
        }
    }
    p
}

#[test]
fn blocks_of_the_device_are_read_and_lookups_then_wait_for_no_disk() {
    let device = Path::new("/dev");
    if !cold_testbed::need_root() || !cold_testbed::need(device.join("loop-control").exists(), "loop devices")
    {
        return;
    }
    // Below 512 MiB its blocks would have 1 KiB, and of a page that mounting has read in part `readahead` does
    // not read the rest.
    let disk = SlowDisk::create(Preset::SataSsd, Bytes(640 << 20)).expect("a test disk");
    for d in 0..DIRECTORIES {
        let dir = disk.mount_point().join(format!("d{d}"));
        std::fs::create_dir(&dir).expect("made");
        for f in 0..FILES {
            std::fs::write(dir.join(format!("f{f}")), "").expect("written");
        }
    }
    let dir = directory();
    let at = dir.path().join("plan");
    cold_testbed::attempts(|| {
        mounted_anew(&disk);
        look_up(&disk);
        let needed = read(&disk);
        assert!(needed.len() > 2 * DIRECTORIES, "directories and inode tables: {needed:?}");
        save(&plan_of(&disk.info().device, &needed), &at);

        mounted_anew(&disk);
        let out = launch(&at, &["--verbose"], &["true"]);
        gone(dir.path());
        let said = calm(&out)?;
        let bytes = needed.len() * 4096;
        assert!(said.contains(&format!("{bytes} of {bytes} bytes")), "{said}");
        let replayed = read(&disk);
        assert!(replayed.is_superset(&needed), "{replayed:?} instead of {needed:?}");
        // Whoever looks at new disks (udev) reads their beginning and their end.
        if replayed != needed {
            return Err(format!("somebody else read, too: {:?}", replayed.difference(&needed)));
        }
        disk.reset_log().expect("reset");
        look_up(&disk);
        let late = read(&disk);
        if late.is_empty() { Ok(()) } else { Err(format!("pages were taken away again: {late:?}")) }
    });
}
