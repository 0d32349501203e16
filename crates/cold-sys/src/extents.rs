//! Where a file lies on its device: `FS_IOC_FIEMAP` (Documentation/filesystems/fiemap.rst).

use std::fs::File;
use std::os::fd::AsRawFd;

use cold_model::Extent;

use crate::{Error, Result};

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
/// The last extent of the file.
const LAST: u32 = 0x1;
/// Flags of extents without a place that a read would go to: unknown, not yet allocated, encoded, inline.
const NO_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x200;
/// Extents per call.
const PER_CALL: usize = 128;
/// Most extents that are looked at (a file of 1 TiB in pieces of 1 MiB).
const MOST: usize = 1 << 20;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

#[repr(C)]
struct RawMap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; PER_CALL],
}

/// The file's pieces by offset; `None` where the file system does not say. Places are bytes on the file
/// system's device. Reads the extent tree, which stays cached; reads no data and writes nothing.
pub fn extents(file: &File) -> Result<Option<Vec<Extent>>> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut seen = 0;
    while seen < MOST {
        let mut map = RawMap {
            start,
            length: u64::MAX - start,
            flags: 0,
            mapped_extents: 0,
            extent_count: PER_CALL as u32,
            reserved: 0,
            extents: [RawExtent::default(); PER_CALL],
        };
        // SAFETY: `map` is a live structure of the documented layout with room for the `extent_count` extents
        // that it promises; the kernel writes no more. The descriptor is open.
        let rc = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) };
        if rc != 0 {
            let e = std::io::Error::last_os_error();
            return match e.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL) => Ok(None),
                _ => Err(Error::io("ask for the extents of", format!("descriptor {}", file.as_raw_fd()), e)),
            };
        }
        let found = &map.extents[..(map.mapped_extents as usize).min(PER_CALL)];
        let Some(last) = found.last() else { break };
        out.extend(found.iter().filter(|e| e.flags & NO_PLACE == 0).map(|e| Extent {
            logical: e.logical,
            physical: e.physical,
            bytes: e.length,
        }));
        seen += found.len();
        let next = last.logical.saturating_add(last.length);
        if last.flags & LAST != 0 || next <= start {
            break;
        }
        start = next;
    }
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_with_a_hole_has_its_pieces_where_its_bytes_are() {
        // Not in /tmp, which may be tmpfs and then does not say.
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        file.write_all(&[1; 8192]).expect("write");
        std::os::unix::fs::FileExt::write_all_at(&file, &[2; 4096], 1 << 20).expect("write");
        file.sync_all().expect("sync");
        let Some(found) = extents(&file).expect("extents") else {
            eprintln!("this file system does not tell extents");
            return;
        };
        assert_eq!(found.first().map(|e| e.logical), Some(0));
        assert_eq!(found.last().map(|e| e.logical), Some(1 << 20));
        assert!(found.iter().all(|e| e.physical > 0 && e.bytes > 0));
        assert!(found.iter().map(|e| e.bytes).sum::<u64>() < 1 << 20, "the hole is no extent");
    }
}
