//! Which inodes are read together.
//!
//! - ext2, ext3, ext4: a table, from inode 1 on; 16 inodes of 256 bytes per block of 4 KiB, and ext4 reads up to
//!   32 blocks ahead (`inode_readahead_blks`).
//! - XFS: clusters of at least 16 inodes, aligned to their number.
//! - btrfs: leaves sorted by number, 16 KiB by default; about 16 inodes without data of their own.

use std::path::Path;

use cold_model::file_system::Inode;
use rustix::fs::{Mode, OFlags};

use cold_model::Dev;

/// `f_type` of the file systems (linux/magic.h).
const EXT: i64 = 0xEF53;
const XFS: i64 = 0x5846_5342;
const BTRFS: i64 = 0x9123_683E;
/// Inodes per block.
const TOGETHER: u64 = 16;

/// The inode of a name, not following a last link. `None` where the name is not there, or its file system is none
/// of the above.
pub fn inode(path: &Path) -> Option<Inode> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let name = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&name).ok()?;
    #[allow(clippy::unnecessary_cast)] // the type differs between architectures
    let kind = rustix::fs::fstatfs(&name).ok()?.f_type as i64;
    let number = stat.st_ino;
    Some(Inode {
        dev: Dev::of_number(stat.st_dev),
        number,
        block: number.saturating_sub(first(kind)?) / TOGETHER,
        size: u64::try_from(stat.st_size).ok()?,
    })
}

/// The number of a block's first inode, modulo [`TOGETHER`].
fn first(kind: i64) -> Option<u64> {
    match kind {
        EXT => Some(1),
        XFS | BTRFS => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_name_has_its_own_inode_and_file_systems_of_the_kernel_have_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "12345").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        // Temporary files may lie in memory.
        if let Some(found) = inode(&file) {
            let meta = std::fs::metadata(&file).expect("is there");
            assert_eq!((found.dev, found.number, found.size), (Dev::of_number(meta.dev()), meta.ino(), 5));
            assert_ne!(inode(&link).expect("same file system").number, found.number);
        }
        assert_eq!(inode(Path::new("/proc/self/status")), None);
        assert_eq!(inode(&dir.path().join("none")), None);
        assert_eq!((first(EXT), first(XFS), first(0x0102_1994)), (Some(1), Some(0), None));
    }
}
