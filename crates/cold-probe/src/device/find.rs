//! From a path to the device behind it.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use cold_model::Dev;
use cold_model::file_system::Origin;
use cold_sys::procfs::ProcFs;
use cold_sys::sysfs::{BlockKind, SysFs};

use super::Error;

/// A device that can be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDevice {
    /// The whole device: of a partition its disk; of a volume (device mapper, RAID, loop) the volume, because
    /// its cost includes that of all below it.
    pub dev: Dev,
    /// Its name below `/sys/block`, and its model where it has one: `sda (Samsung SSD 860)`.
    pub name: String,
    /// Which device has the name now ([`SysFs::block_identity`]): names of loop devices go round.
    pub identity: String,
    /// The kernel calls it rotational, which is no more than a hint.
    pub rotational: bool,
    /// The largest of read-ahead and request size, which bounds a readahead call: what the kernel states.
    pub stated_cap: u64,
}

/// The device behind a path. btrfs and others have device numbers of their own: there the mount's source is
/// asked. Stacked, networked and memory file systems have none.
pub fn find(place: &Path, proc: &ProcFs, sys: &SysFs) -> Result<FoundDevice, Error> {
    let path = std::fs::canonicalize(place).map_err(|e| Error::Io {
        action: "resolve",
        path: place.to_owned(),
        source: e,
    })?;
    let meta =
        path.metadata().map_err(|e| Error::Io { action: "stat", path: place.to_owned(), source: e })?;
    let none = |why: String| Error::NoDevice { place: place.to_owned(), why };
    let mount = proc.mount_of(&path)?;
    let mut dev = Dev::of_number(meta.dev());
    if dev.is_anonymous() {
        let Some(mount) = mount else { return Err(none("its mount is not known".to_owned())) };
        let source = Path::new(&mount.source).metadata().ok().filter(|m| m.file_type().is_block_device());
        dev = match source {
            Some(m) if Origin::of(&mount.fs_type) != Origin::Layers => Dev::of_number(m.rdev()),
            _ => return Err(none(format!("{} has no block device of its own", mount.fs_type))),
        };
    }
    let Some(block) = sys.block_device(dev)? else {
        return Err(none(format!("the kernel knows no device {dev}")));
    };
    if matches!(block.kind, BlockKind::Zram | BlockKind::Ram) {
        return Err(none(format!("{} is memory", block.disk)));
    }
    let kib = block.max_sectors_kb.unwrap_or(0).max(block.read_ahead_kb.unwrap_or(0));
    let identity = sys.block_identity(&block.disk);
    Ok(FoundDevice {
        identity,
        dev: block.disk_dev.unwrap_or(dev),
        name: match block.model {
            Some(model) => format!("{} ({model})", block.disk),
            None => block.disk,
        },
        rotational: block.rotational.unwrap_or(false),
        // 128 KiB is the kernel's default and the least of all limits seen.
        stated_cap: if kib == 0 { 128 << 10 } else { kib << 10 },
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A file, and a /proc and a /sys in which its device is a partition (by number) of a disk with these
    /// attributes.
    fn machine(disk: &str, attributes: &[(&str, &str)]) -> (tempfile::TempDir, ProcFs, SysFs, Dev) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        let dev = Dev::of_number(file.metadata().unwrap().dev());
        let of_disk = dir.path().join("sys/devices").join(disk);
        let partition = of_disk.join(format!("{disk}1"));
        fs::create_dir_all(&partition).unwrap();
        fs::write(partition.join("partition"), "1\n").unwrap();
        for (name, value) in [("dev", "259:77")].iter().chain(attributes) {
            let path = of_disk.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        }
        fs::create_dir_all(dir.path().join("sys/dev/block")).unwrap();
        std::os::unix::fs::symlink(&partition, dir.path().join(format!("sys/dev/block/{dev}"))).unwrap();
        fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        fs::write(dir.path().join("proc/self/mountinfo"), "").unwrap();
        let (proc, sys) = (ProcFs::new(dir.path().join("proc")), SysFs::new(dir.path().join("sys")));
        (dir, proc, sys, dev)
    }

    fn found(disk: &str, attributes: &[(&str, &str)]) -> Option<Result<FoundDevice, Error>> {
        let (dir, proc, sys, dev) = machine(disk, attributes);
        let on_disk = cold_testbed::need(!dev.is_anonymous(), "temporary files on a block device");
        on_disk.then(|| find(&dir.path().join("file"), &proc, &sys))
    }

    #[test]
    fn a_partition_is_measured_as_its_disk_and_named_with_its_model() {
        let attributes = [("device/model", "SSD 860"), ("queue/rotational", "0")];
        let Some(found) = found("sdx", &attributes) else { return };
        let found = found.unwrap();
        assert_eq!(
            (found.dev, found.name.as_str(), found.rotational),
            (Dev::new(259, 77), "sdx (SSD 860)", false)
        );
    }

    #[test]
    fn a_readahead_call_is_bounded_by_the_larger_of_request_and_window_or_else_the_usual() {
        let cap = |attributes: &[(&str, &str)]| Some(found("sdx", attributes)?.unwrap().stated_cap);
        let both = [("queue/read_ahead_kb", "128"), ("queue/max_sectors_kb", "1280")];
        let Some(larger) = cap(&both) else { return };
        assert_eq!(larger, 1280 << 10);
        let long = [("queue/read_ahead_kb", "4096"), both[1]];
        assert_eq!((cap(&long), cap(&long[..1])), (Some(4096 << 10), Some(4096 << 10)));
        assert_eq!(cap(&[("queue/read_ahead_kb", "0")]), Some(128 << 10), "turned off, it bounds nothing");
        assert_eq!(cap(&[]), Some(128 << 10));
    }

    #[test]
    fn what_is_memory_or_not_known_to_the_kernel_is_refused() {
        let Some(zram) = found("zram0", &[]) else { return };
        assert!(matches!(zram, Err(Error::NoDevice { why, .. }) if why == "zram0 is memory"));
        let (dir, proc, _, dev) = machine("sdx", &[]);
        let empty = SysFs::new(dir.path().join("nothing"));
        let found = find(&dir.path().join("file"), &proc, &empty);
        let expected = format!("the kernel knows no device {dev}");
        assert!(matches!(found, Err(Error::NoDevice { why, .. }) if why == expected));
    }
}
