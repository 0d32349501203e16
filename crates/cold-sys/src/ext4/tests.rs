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

/// A device whose superblock has these words, beside the magic number and sizes of inodes and groups.
fn device(words: &[(usize, u32)]) -> Bytes {
    let mut disk = Bytes(vec![0; 16 << 10]);
    let mut put = |at: usize, bytes: &[u8]| disk.0[at..at + bytes.len()].copy_from_slice(bytes);
    put(1024 + 0x38, &MAGIC.to_le_bytes());
    put(1024 + 0x28, &100_u32.to_le_bytes());
    put(1024 + 0x58, &128_u16.to_le_bytes());
    for (at, word) in words {
        put(1024 + at, &word.to_le_bytes());
    }
    // The first group's table, where descriptors follow a superblock in block 1 of 1024 bytes, and one in
    // block 0 of 2048.
    put(2048 + 8, &5_u32.to_le_bytes());
    disk
}

#[test]
fn descriptors_follow_the_block_of_the_superblock() {
    let small = device(&[(0x14, 1), (0x18, 0)]);
    assert_eq!(inode_offset(&small, 1), Some(5 * 1024));
    assert_eq!(inode_offset(&small, 100), Some(5 * 1024 + 99 * 128), "the group's last");
    assert_eq!(inode_offset(&small, 101), Some(0), "the next group's first, of a table in block 0");
    assert_eq!(inode_offset(&device(&[(0x14, 0), (0x18, 1)]), 2), Some(5 * 2048 + 128));
}

#[test]
fn what_no_file_system_has_is_no_place() {
    // Blocks beyond 64 KiB, also of so many that their size runs over; descriptors elsewhere; no inodes.
    for words in
        [(0x18, 7), (0x18, 53), (0x18, 54), (0x18, 63), (0x18, 64), (0x60, INCOMPAT_META_BG), (0x28, 0)]
    {
        assert_eq!(inode_offset(&device(&[words]), 2), None, "{words:x?}");
    }
    assert_eq!(inode_offset(&device(&[(0x14, 1)]), 100_000_000), None, "behind the device's end");
    assert_eq!(inode_offset(&device(&[(0x14, u32::MAX), (0x18, 6)]), 1), None);
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
