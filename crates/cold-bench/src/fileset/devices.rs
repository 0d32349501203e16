//! From the files of a set to the block devices they are read from.

use std::collections::BTreeSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use cold_model::Dev;
use cold_sys::procfs::ProcFs;

use super::FileSet;

/// The block devices of a file set, and the file systems that have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockDevices {
    /// Devices by number.
    pub devices: BTreeSet<Dev>,
    /// File systems without a block device that we know of: type and one path on it.
    pub without: Vec<(String, PathBuf)>,
}

/// Finds the devices. btrfs and overlayfs report device numbers of their own (major 0): there the
/// mount's source is asked.
pub fn block_devices(proc: &ProcFs, set: &FileSet) -> BlockDevices {
    let mut found = BlockDevices::default();
    let mut seen = BTreeSet::new();
    for f in &set.files {
        let dev = Dev::of_number(f.id.dev);
        if !seen.insert(dev) {
            continue;
        }
        if !dev.is_anonymous() {
            found.devices.insert(dev);
            continue;
        }
        let mount = proc.mount_of(&f.path).ok().flatten();
        let source = mount.as_ref().and_then(|m| Path::new(&m.source).metadata().ok());
        match source {
            Some(m) if m.file_type().is_block_device() => {
                found.devices.insert(Dev::of_number(m.rdev()));
            }
            _ => {
                let kind = mount.map_or_else(|| "unknown".to_owned(), |m| m.fs_type);
                found.without.push((kind, f.path.clone()));
            }
        }
    }
    found
}
