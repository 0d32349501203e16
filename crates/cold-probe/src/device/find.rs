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
pub struct Found {
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
pub fn find(place: &Path, proc: &ProcFs, sys: &SysFs) -> Result<Found, Error> {
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
    Ok(Found {
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
