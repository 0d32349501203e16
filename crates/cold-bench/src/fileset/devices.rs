//! From the files of a set to the block devices they are read from.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use cold_sys::procfs::ProcFs;

use super::FileSet;
use crate::counters::Dev;

/// The block devices of a file set, and the file systems that have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockDevices {
    /// Devices by number.
    pub devices: BTreeSet<Dev>,
    /// File systems without a block device that we know of: type and one path on it.
    pub without: Vec<(String, PathBuf)>,
}

/// `st_dev` as major and minor (the Linux encoding of `makedev(3)`).
fn split(dev: u64) -> Dev {
    (libc_major(dev), libc_minor(dev))
}

fn libc_major(dev: u64) -> u32 {
    (((dev >> 8) & 0xfff) | ((dev >> 32) & 0xffff_f000)) as u32
}

fn libc_minor(dev: u64) -> u32 {
    ((dev & 0xff) | ((dev >> 12) & 0xffff_ff00)) as u32
}

/// Finds the devices. btrfs and overlayfs report device numbers of their own (major 0): there the
/// mount's source is asked.
pub fn block_devices(proc: &ProcFs, set: &FileSet) -> BlockDevices {
    let mut found = BlockDevices::default();
    let mut seen = BTreeSet::new();
    for f in &set.files {
        let dev = split(f.id.dev);
        if !seen.insert(dev) {
            continue;
        }
        if dev.0 != 0 {
            found.devices.insert(dev);
            continue;
        }
        let mount = proc.mount_of(&f.path).ok().flatten();
        let source = mount.as_ref().and_then(|m| Path::new(&m.source).metadata().ok());
        match source {
            Some(m) if m.file_type().is_block_device() => {
                found.devices.insert(split(m.rdev()));
            }
            _ => {
                let kind = mount.map_or_else(|| "unknown".to_owned(), |m| m.fs_type);
                found.without.push((kind, f.path.clone()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_split_as_the_c_library_does() {
        assert_eq!(split(0xfe00), (254, 0));
        assert_eq!(split(0x0000_0000_0010_0801), (8, 0x101));
        assert_eq!(split(0x0000_1000_0000_0500), (0x1005, 0));
    }
}
