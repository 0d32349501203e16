//! Facts about one block device (Documentation/ABI/stable/sysfs-block).

use std::path::{Path, PathBuf};

use cold_model::Shown as _;

use super::SysFs;
use crate::{Error, Result};
use cold_model::Dev;

/// What stands behind a block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind {
    /// Device mapper (LVM, dm-crypt, multipath) with its name.
    DeviceMapper {
        /// Name in /dev/mapper.
        name: String,
        /// Its use as the uuid's prefix says it (`LVM`, `CRYPT-LUKS2`); `None` without a uuid.
        subsystem: Option<String>,
    },
    /// Software RAID with its level (`raid1`).
    Md {
        /// `md/level` as it is there: `raid1`, `linear`.
        level: String,
    },
    /// A file presented as a disk.
    Loop {
        /// Path of the file (`loop/backing_file`); ends with ` (deleted)` when it was removed.
        backing: PathBuf,
        /// Whether it is read past the page cache.
        direct_io: Option<bool>,
    },
    /// zram: a disk in compressed memory.
    Zram,
    /// A RAM disk.
    Ram,
    /// A disk of a virtual machine (virtio-blk, xen-blkfront).
    Virtual,
    /// A drive attached by `NVMe`.
    Nvme,
    /// Any other disk (SATA, SAS, USB, MMC, virtio-scsi).
    Disk,
}

/// A block device; queue attributes are those of the whole disk. `None` means that this kernel or
/// driver does not have the attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDevice {
    /// Kernel name of the device asked for (`sda1`).
    pub name: String,
    /// Kernel name of its whole disk (`sda`; equal to `name` without partitions).
    pub disk: String,
    /// Its number; `None` when its `dev` attribute cannot be read.
    pub disk_dev: Option<Dev>,
    /// What it is.
    pub kind: BlockKind,
    /// Read-ahead window in KiB (`queue/read_ahead_kb`); also the size of read-around at a mapped fault.
    pub read_ahead_kb: Option<u64>,
    /// Largest request in KiB.
    pub max_sectors_kb: Option<u64>,
    /// Most pieces of memory that one request takes, each in one run.
    pub max_segments: Option<u64>,
    /// Chosen I/O scheduler.
    pub scheduler: Option<String>,
    /// The driver says it rotates.
    pub rotational: Option<bool>,
    /// Requests the queue holds.
    pub nr_requests: Option<u64>,
    /// Write-back throttling's target latency in µs; 0 is off.
    pub wbt_lat_usec: Option<u64>,
    /// Model as the device reports it.
    pub model: Option<String>,
    /// Kernel names of the devices below (dm, md).
    pub slaves: Vec<String>,
}

impl SysFs {
    /// The block device with this number, or `None` when there is none (an anonymous device).
    pub fn block_device(&self, dev: Dev) -> Result<Option<BlockDevice>> {
        self.block_at(&self.path(format!("dev/block/{dev}")))
    }

    /// The block device of this kernel name (`sda1`, `dm-0`).
    pub fn block_device_named(&self, name: &str) -> Result<Option<BlockDevice>> {
        self.block_at(&self.path("class/block").join(name))
    }

    fn block_at(&self, link: &Path) -> Result<Option<BlockDevice>> {
        let dir = match std::fs::canonicalize(link) {
            Ok(dir) => dir,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("resolve", link.shown().to_string(), e)),
        };
        let is_partition = dir.join("partition").exists();
        let disk_dir = if is_partition { dir.parent().unwrap_or(&dir) } else { &dir };
        let disk = file_name(disk_dir);
        let attr = |rel: &str| self.read_opt(disk_dir.join(rel));
        let number = |rel: &str| Ok::<_, Error>(attr(rel)?.and_then(|t| t.parse::<u64>().ok()));
        Ok(Some(BlockDevice {
            kind: self.block_kind(disk_dir, &disk)?,
            read_ahead_kb: number("queue/read_ahead_kb")?,
            max_sectors_kb: number("queue/max_sectors_kb")?,
            max_segments: number("queue/max_segments")?,
            scheduler: attr("queue/scheduler")?.map(|t| Self::chosen(&t).unwrap_or(&t).to_owned()),
            rotational: number("queue/rotational")?.map(|n| n != 0),
            nr_requests: number("queue/nr_requests")?,
            wbt_lat_usec: number("queue/wbt_lat_usec")?,
            model: attr("device/model")?,
            slaves: self.list(disk_dir.join("slaves"))?,
            name: file_name(&dir),
            disk_dev: attr("dev")?.as_deref().and_then(Dev::parse),
            disk,
        }))
    }

    fn block_kind(&self, dir: &Path, disk: &str) -> Result<BlockKind> {
        let attr = |rel: &str| self.read_opt(dir.join(rel));
        Ok(if let Some(name) = attr("dm/name")? {
            let uuid = attr("dm/uuid")?.unwrap_or_default();
            // `LVM-xyz`, `CRYPT-LUKS2-xyz-name`: the words before the first identifier.
            let words: Vec<&str> =
                uuid.split('-').take_while(|w| w.len() < 20 && w.starts_with(char::is_uppercase)).collect();
            let subsystem = (!words.is_empty()).then(|| words.join("-"));
            BlockKind::DeviceMapper { name, subsystem }
        } else if let Some(level) = attr("md/level")? {
            BlockKind::Md { level }
        } else if let Some(backing) = attr("loop/backing_file")? {
            let direct_io = attr("loop/dio")?.map(|t| t != "0");
            BlockKind::Loop { backing: PathBuf::from(backing), direct_io }
        } else if disk.starts_with("zram") {
            BlockKind::Zram
        } else if disk.starts_with("ram") {
            BlockKind::Ram
        } else if disk.starts_with("vd") || disk.starts_with("xvd") {
            BlockKind::Virtual
        } else if disk.starts_with("nvme") {
            BlockKind::Nvme
        } else {
            BlockKind::Disk
        })
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
