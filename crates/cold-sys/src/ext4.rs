//! Where ext4 keeps an inode: its block in the inode tables (Documentation/filesystems/ext4/).

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::procfs::ProcFs;
use cold_model::Dev;

/// Where the superblock begins, and its magic number.
const SUPERBLOCK: u64 = 1024;
const MAGIC: u16 = 0xEF53;
/// Features by which descriptors are longer, or lie elsewhere.
const INCOMPAT_64BIT: u32 = 0x80;
const INCOMPAT_META_BG: u32 = 0x10;

/// The device of the file system that the name lies on, and the page (of 4096 bytes) of that device with its
/// inode. `None` where that is no ext2, ext3 or ext4, or the device may not be read (root only).
pub fn inode_page(path: &Path) -> Option<(Dev, u64)> {
    let meta = path.symlink_metadata().ok()?;
    let dev = Dev::of_number(meta.dev());
    let mounts = ProcFs::default().mounts().ok()?;
    let mount = mounts.iter().find(|m| m.dev == dev && m.fs_type.starts_with("ext"))?;
    let disk = File::open(&mount.source).ok()?;
    Some((dev, inode_offset(&disk, meta.ino())? / 4096))
}

/// Byte of the inode on the device.
fn inode_offset(disk: &impl FileExt, inode: u64) -> Option<u64> {
    let mut superblock = [0_u8; 1024];
    disk.read_exact_at(&mut superblock, SUPERBLOCK).ok()?;
    let u16_at = |at: usize| Some(u16::from_le_bytes(superblock.get(at..at + 2)?.try_into().ok()?));
    let u32_at = |at: usize| Some(u32::from_le_bytes(superblock.get(at..at + 4)?.try_into().ok()?));
    let incompat = u32_at(0x60)?;
    if u16_at(0x38)? != MAGIC || incompat & INCOMPAT_META_BG != 0 {
        return None;
    }
    // At most 64 KiB.
    let block_bytes = 1024 << Some(u64::from(u32_at(0x18)?)).filter(|shift| *shift <= 6)?;
    let inode_bytes = u64::from(u16_at(0x58)?);
    let per_group = u64::from(u32_at(0x28)?);
    let long = incompat & INCOMPAT_64BIT != 0;
    let descriptor_bytes = if long { u64::from(u16_at(0xFE)?) } else { 32 };
    let number = inode.checked_sub(1)?;
    let (group, within) = (number.checked_div(per_group)?, number.checked_rem(per_group)?);
    // The descriptors follow the superblock's block.
    let first = (u64::from(u32_at(0x14)?) + 1) * block_bytes;
    let at = first + group * descriptor_bytes;
    let word = |at: u64| {
        let mut bytes = [0_u8; 4];
        disk.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from(u32::from_le_bytes(bytes)))
    };
    let table = word(at + 8)? | if long { word(at + 0x28)? << 32 } else { 0 };
    table.checked_mul(block_bytes)?.checked_add(within * inode_bytes)
}

#[cfg(test)]
mod tests;
