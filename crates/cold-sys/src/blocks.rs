//! Putting a file's blocks elsewhere on its file system, without changing a byte of it: `EXT4_IOC_MOVE_EXT`
//! (`fs/ext4/move_extent.c`), `FICLONERANGE` and `FIDEDUPERANGE` (their manual pages are in section 2).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use rustix::io::Errno;

use crate::{Error, Result};

/// `_IOWR('f', 15, struct move_extent)`.
const EXT4_IOC_MOVE_EXT: libc::Ioctl = 0xC028_660F_u32 as libc::Ioctl;
/// `_IOW(0x94, 13, struct file_clone_range)`.
const FICLONERANGE: libc::Ioctl = 0x4020_940D;
/// `_IOWR(0x94, 54, struct file_dedupe_range)`, of its header without destinations.
const FIDEDUPERANGE: libc::Ioctl = 0xC018_9436_u32 as libc::Ioctl;
/// `status` of a destination whose bytes are others.
const RANGE_DIFFERS: i32 = 1;
/// What direct reads are aligned to: no disk has longer sectors than a page.
const ALIGNED: usize = 4096;

// Magic numbers of linux/magic.h. ext2 and ext3 have ext4's; there the move is refused by the kernel.
const EXT4: u64 = 0xEF53;
const XFS: u64 = 0x5846_5342;
const BTRFS: u64 = 0x9123_683E;

/// How a file system lets a file's blocks be put elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// ext4: exchange them for those of another file ([`exchange`]).
    Exchange,
    /// XFS, btrfs: share those of another file with the same bytes ([`share`]).
    Share,
}

/// The way of the file system that `file` lies on; `None`: none is known.
pub fn way(file: &File) -> Result<Option<Way>> {
    let told = rustix::fs::fstatfs(file)
        .map_err(|e| Error::io("ask for the file system of", name(file), e.into()))?;
    // The type of the field differs between architectures; only 32 bits are used.
    #[allow(clippy::unnecessary_cast)]
    Ok(match told.f_type as u64 & 0xFFFF_FFFF {
        EXT4 => Some(Way::Exchange),
        XFS | BTRFS => Some(Way::Share),
        _ => None,
    })
}

/// Bytes that this user may still write on the file system of `file`.
pub fn free(file: &File) -> Result<u64> {
    let told = rustix::fs::fstatvfs(file)
        .map_err(|e| Error::io("ask for the free space of", name(file), e.into()))?;
    Ok(told.f_bavail.saturating_mul(told.f_frsize))
}

/// Gives an empty file blocks for so many bytes, which nobody has written; its size grows to that.
pub fn preallocate(file: &File, bytes: u64) -> Result<()> {
    rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes)
        .map_err(|e| Error::io("allocate blocks for", name(file), e.into()))
}

/// `struct move_extent`; starts and lengths in blocks of the file system.
#[repr(C)]
struct MoveExtent {
    reserved: u32,
    donor: u32,
    start: u64,
    donor_start: u64,
    len: u64,
    moved: u64,
}

/// Exchanges blocks of `file` for those of `donor`; both are open for writing. The bytes of `file` are copied into
/// the blocks that it gets; size and times stay. Returns the blocks moved, fewer than `len` where the kernel had to
/// stop (`EBUSY`: somebody held a page; what was moved is whole).
pub fn exchange(file: &File, start: u64, donor: &File, donor_start: u64, len: u64) -> Result<u64> {
    let donor_fd = donor.as_raw_fd().unsigned_abs();
    let mut order = MoveExtent { reserved: 0, donor: donor_fd, start, donor_start, len, moved: 0 };
    // SAFETY: `order` is a live structure of the documented layout, which the kernel reads and writes; both
    // descriptors are open for the call.
    let rc = unsafe { libc::ioctl(file.as_raw_fd(), EXT4_IOC_MOVE_EXT, &raw mut order) };
    let error = io::Error::last_os_error();
    if rc == 0 || (order.moved > 0 && order.moved <= len) {
        return Ok(order.moved.min(len));
    }
    if error.raw_os_error() == Some(libc::EBUSY) {
        return Ok(0);
    }
    Err(Error::io("exchange the blocks of", name(file), error))
}

/// `struct file_clone_range`.
#[repr(C)]
struct CloneRange {
    from: i64,
    from_offset: u64,
    bytes: u64,
    offset: u64,
}

/// Makes bytes of `to` (open for writing) those of `from`, sharing its blocks. All are multiples of a block.
pub fn clone_range(from: &File, from_offset: u64, bytes: u64, to: &File, offset: u64) -> Result<()> {
    let order = CloneRange { from: i64::from(from.as_raw_fd()), from_offset, bytes, offset };
    // SAFETY: `order` is a live structure of the documented layout, which the kernel only reads; both descriptors
    // are open for the call.
    let rc = unsafe { libc::ioctl(to.as_raw_fd(), FICLONERANGE, &raw const order) };
    if rc == 0 { Ok(()) } else { Err(Error::last_os("share the blocks of", name(from))) }
}

/// `struct file_dedupe_range` with one destination.
#[repr(C)]
struct DedupeRange {
    from_offset: u64,
    bytes: u64,
    count: u16,
    reserved1: u16,
    reserved2: u32,
    to: i64,
    to_offset: u64,
    done: u64,
    status: i32,
    reserved: u32,
}

/// Lets `file` share the blocks that `from` has for the same bytes; the kernel compares them first, and changes
/// nothing where they differ. `file` needs to be open for reading only (root). Returns the bytes shared, 0 where they
/// differ; the kernel may stop early, at most 16 MiB are sure to be taken in one call.
pub fn share(from: &File, from_offset: u64, bytes: u64, file: &File, offset: u64) -> Result<u64> {
    let mut order = DedupeRange {
        from_offset,
        bytes,
        count: 1,
        reserved1: 0,
        reserved2: 0,
        to: i64::from(file.as_raw_fd()),
        to_offset: offset,
        done: 0,
        status: 0,
        reserved: 0,
    };
    // SAFETY: `order` is a live structure of the documented layout with the one destination that it promises; both
    // descriptors are open for the call.
    let rc = unsafe { libc::ioctl(from.as_raw_fd(), FIDEDUPERANGE, &raw mut order) };
    if rc != 0 {
        return Err(Error::last_os("share blocks with", name(file)));
    }
    match order.status {
        0 => Ok(order.done.min(bytes)),
        RANGE_DIFFERS => Ok(0),
        failed => {
            let why = io::Error::from_raw_os_error(failed.saturating_neg());
            Err(Error::io("share blocks with", name(file), why))
        }
    }
}

/// The same file, opened again for writing. While it is open, executing it fails (`ETXTBSY`); while it is executed,
/// this does.
pub fn for_writing(file: &File) -> io::Result<File> {
    reopened(file, libc::O_RDWR)
}

/// The same file, opened for reads past the page cache.
pub fn past_the_cache(file: &File) -> io::Result<File> {
    reopened(file, libc::O_RDONLY | libc::O_DIRECT)
}

fn reopened(file: &File, flags: i32) -> io::Result<File> {
    let write = flags & libc::O_RDWR != 0;
    std::fs::OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags((flags & libc::O_DIRECT) | libc::O_CLOEXEC)
        .open(crate::open::held(file))
}

/// A buffer for direct reads.
#[derive(Debug)]
pub struct Aligned {
    bytes: Vec<u8>,
    first: usize,
    len: usize,
}

impl Aligned {
    /// Room for `len` bytes, a multiple of 4096.
    pub fn new(len: usize) -> Self {
        let bytes = vec![0; len.saturating_add(ALIGNED)];
        let first = bytes.as_ptr().align_offset(ALIGNED).min(ALIGNED);
        Self { bytes, first, len }
    }

    /// Reads up to `bytes` (a multiple of 4096, at most the room) at `offset` of a file opened by
    /// [`past_the_cache`]; what is dirty is written first. Fewer come only at the end of the file.
    pub fn read(&mut self, file: &File, offset: u64, bytes: usize) -> Result<&[u8]> {
        let end = self.first + bytes.min(self.len);
        let mut got = self.first;
        while got < end {
            let at = offset.saturating_add((got - self.first) as u64);
            match file.read_at(&mut self.bytes[got..end], at) {
                Ok(0) => break,
                // A read that ends between two sectors is the file's end.
                Ok(n) => got += n,
                Err(e) if e.raw_os_error() == Some(Errno::INTR.raw_os_error()) => {}
                Err(e) if e.raw_os_error() == Some(Errno::INVAL.raw_os_error()) && got > self.first => break,
                Err(e) => return Err(Error::io("read", name(file), e)),
            }
        }
        Ok(&self.bytes[self.first..got])
    }
}

fn name(file: &impl AsFd) -> String {
    let path = std::fs::read_link(crate::open::held(file));
    let number = || format!("descriptor {}", file.as_fd().as_raw_fd());
    path.map_or_else(|_| number(), |p| cold_model::Shown::shown(&p).to_string())
}

/// Whether [`exchange`] may be used on this kernel. From 3.18 on, an exchange that stopped halfway could free
/// preallocated blocks twice (Linux commit fcf6b1b729bc); 55583e899a53 mended that in 6.8 and in the releases below.
/// `version` is that of `/proc/version`, where Debian says which stable release its kernel is. Unknown is no.
pub fn exchange_is_mended(release: &str, version: &str) -> bool {
    const MENDED: [(u32, u32, u32); 6] =
        [(4, 19, 307), (5, 4, 269), (5, 10, 210), (5, 15, 149), (6, 1, 79), (6, 6, 18)];
    let of_debian = version.split("Debian ").nth(1);
    [Some(release), of_debian].into_iter().flatten().filter_map(numbers).any(|(major, minor, patch)| {
        (major, minor) >= (6, 8)
            || (major, minor) == (6, 7) && patch >= 6
            || MENDED.iter().any(|m| (m.0, m.1) == (major, minor) && patch >= m.2)
    })
}

fn numbers(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).map_while(|n| n.parse().ok());
    Some((parts.next()?, parts.next()?, parts.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!(
            (size_of::<MoveExtent>(), size_of::<CloneRange>(), size_of::<DedupeRange>()),
            (40, 32, 24 + 32)
        );
    }

    #[test]
    fn only_kernels_with_the_fix_exchange_blocks() {
        for (release, version, mended) in [
            ("6.18.44-x", "", true),
            ("6.8.0", "", true),
            ("6.7.5", "", false),
            ("6.7.6", "", true),
            ("6.1.78", "", false),
            ("6.1.79", "", true),
            ("6.1.0-18-amd64", "#1 SMP Debian 6.1.76-1 (2024-02-01)", false),
            ("6.1.0-37-amd64", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.140-1 (2025-05-22)", true),
            ("5.11.300", "", false),
            ("", "", false),
        ] {
            assert_eq!(exchange_is_mended(release, version), mended, "{release} {version}");
        }
    }

    #[test]
    fn direct_reads_give_what_was_written_up_to_the_end() {
        use std::io::Write as _;
        // Not in /tmp, which may be tmpfs and then has no direct reads.
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        let bytes: Vec<u8> = (0..10_000_u32).map(|n| (n % 251) as u8).collect();
        file.write_all(&bytes).expect("written");
        let Ok(direct) = past_the_cache(&file) else {
            eprintln!("this file system has no direct reads");
            return;
        };
        let mut room = Aligned::new(16384);
        assert_eq!(room.read(&direct, 0, 16384).expect("read"), bytes);
        assert_eq!(room.read(&direct, 4096, 4096).expect("read"), &bytes[4096..8192]);
        assert_eq!(room.read(&direct, 16384, 4096).expect("read"), b"");
    }
}
