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
    let block_bytes = 1024_u64.checked_shl(u32_at(0x18)?).filter(|b| *b <= 65_536)?;
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
mod tests {
    use super::*;

    /// A device of bytes.
    struct Bytes(Vec<u8>);

    impl FileExt for Bytes {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> std::io::Result<usize> {
            let rest = self.0.get(offset as usize..).unwrap_or_default();
            let n = rest.len().min(buf.len());
            buf[..n].copy_from_slice(&rest[..n]);
            Ok(n)
        }
        fn write_at(&self, _: &[u8], _: u64) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::Unsupported.into())
        }
    }

    #[test]
    fn an_inode_lies_in_its_groups_table() {
        let mut disk = Bytes(vec![0; 16 << 10]);
        let mut put = |at: usize, bytes: &[u8]| disk.0[at..at + bytes.len()].copy_from_slice(bytes);
        put(1024 + 0x38, &MAGIC.to_le_bytes());
        put(1024 + 0x18, &2_u32.to_le_bytes()); // blocks of 4096 bytes
        put(1024 + 0x28, &8192_u32.to_le_bytes());
        put(1024 + 0x58, &256_u16.to_le_bytes());
        put(1024 + 0x60, &INCOMPAT_64BIT.to_le_bytes());
        put(1024 + 0xFE, &64_u16.to_le_bytes());
        put(4096 + 64 + 8, &7_u32.to_le_bytes()); // the second group's table: block 2^32 + 7
        put(4096 + 64 + 0x28, &1_u32.to_le_bytes());
        assert_eq!(inode_offset(&disk, 8192 + 1 + 20), Some(((1 << 32) + 7) * 4096 + 20 * 256));
        assert_eq!(inode_offset(&disk, 0), None, "no inode has this number");
        assert_eq!(inode_offset(&Bytes(vec![0; 4096]), 12), None, "no ext4");
        assert_eq!(inode_offset(&Bytes(vec![0xff; 4096]), 12), None, "rubbish");
    }

    mod root {
        /// Ground truth: ext4 reads the inode's block from exactly there, says `debugfs imap`.
        #[test]
        fn debugfs_says_the_same() {
            if !crate::caps::is_root() {
                assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "CI must be root");
                eprintln!("SKIPPED (needs root)");
                return;
            }
            let dir = tempfile::tempdir().expect("a directory");
            let image = dir.path().join("image");
            std::fs::File::create(&image).and_then(|f| f.set_len(300 << 20)).expect("an image");
            let run = |line: &str| {
                let out = std::process::Command::new("sh").args(["-c", line]).output().expect("runs");
                format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
            };
            let name = image.display();
            let made = run(&format!("mkfs.ext4 -q -b 4096 {name}"));
            assert_eq!(made, "", "mkfs.ext4");
            let disk = std::fs::File::open(&image).expect("opens");
            // The image has three groups of 25,600 inodes.
            for inode in [2_u64, 11, 17, 20_000, 30_000, 70_000] {
                // "Inode 17 is part of block group 0\n\tlocated at block 46, offset 0x0000"; its version on stderr.
                let said = run(&format!("debugfs -R 'imap <{inode}>' {name} 2>/dev/null"));
                let place = said.split_once("located at block ").expect("a place").1;
                let (block, offset) = place.split_once(", offset 0x").expect("two numbers");
                let block: u64 = block.parse().expect("a number");
                let offset = u64::from_str_radix(offset.trim(), 16).expect("a number");
                let at = super::super::inode_offset(&disk, inode);
                assert_eq!(at, Some(block * 4096 + offset), "inode {inode}: {said}");
            }
        }
    }
}
