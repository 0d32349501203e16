//! Loop devices (loop(4)): attaching a file as a block device, asking what is attached, detaching.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use cold_model::Shown as _;

use crate::{Error, Result};

// include/uapi/linux/loop.h
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

impl LoopInfo64 {
    const EMPTY: Self = Self {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        sizelimit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: 0,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

/// The file behind an attached loop device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopBacking {
    /// Device of the backing file, as `st_dev` (on most file systems).
    pub dev: u64,
    /// Inode number of the backing file (`lo_inode`).
    pub ino: u64,
    /// The backing file is read and written past the page cache.
    pub direct_io: bool,
}

/// An opened loop device. Closing it changes nothing.
#[derive(Debug)]
pub struct LoopDevice {
    number: u32,
    file: File,
}

/// The number of a loop device that is free now; another process may take it before you do.
pub fn free_number() -> Result<u32> {
    let path = "/dev/loop-control";
    let control = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_CLOEXEC)
        .open(path)
        .map_err(|e| Error::io("open", path, e))?;
    // SAFETY: this request takes no argument; the descriptor is open for the call.
    let n = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
    u32::try_from(n).map_err(|_| Error::last_os("get a free loop device from", path))
}

/// The path of loop device `number`.
pub fn path(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/loop{number}"))
}

impl LoopDevice {
    /// Opens `/dev/loopNUMBER` for reading and writing.
    pub fn open(number: u32) -> Result<Self> {
        let path = path(number);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_CLOEXEC)
            .open(&path)
            .map_err(|e| Error::io("open", path.shown().to_string(), e))?;
        Ok(Self { number, file })
    }

    /// Attaches `backing` (opened for reading and writing), with direct I/O: without it the backing
    /// file is cached a second time, and "cold" reads come from memory. `EBUSY` if it is taken.
    pub fn attach(&self, backing: &File) -> Result<()> {
        let config = LoopConfig {
            fd: backing.as_raw_fd().unsigned_abs(),
            block_size: 0,
            info: LoopInfo64 { flags: LO_FLAGS_DIRECT_IO, ..LoopInfo64::EMPTY },
            reserved: [0; 8],
        };
        // SAFETY: `config` is a fully initialised `struct loop_config` that outlives the call, which
        // only reads it; both descriptors are open for the call.
        let r = unsafe { libc::ioctl(self.file.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
        if r == 0 { Ok(()) } else { Err(self.error("attach a file to")) }
    }

    /// What is attached; `None` for a free device.
    pub fn backing(&self) -> Result<Option<LoopBacking>> {
        let mut info = LoopInfo64::EMPTY;
        // SAFETY: the kernel writes one `struct loop_info64` to `info`, which has that layout.
        let r = unsafe { libc::ioctl(self.file.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) };
        if r == 0 {
            // The kernel fills it with huge_encode_dev(), which is the user's `dev_t` for minors below 2^20.
            let direct_io = info.flags & LO_FLAGS_DIRECT_IO != 0;
            return Ok(Some(LoopBacking { dev: info.device, ino: info.inode, direct_io }));
        }
        let e = self.error("ask");
        if e.errno() == Some(libc::ENXIO) { Ok(None) } else { Err(e) }
    }

    /// Detaches the file. Takes effect when the last user (also this handle) has closed the device.
    pub fn detach(&self) -> Result<()> {
        // SAFETY: this request takes no argument.
        let r = unsafe { libc::ioctl(self.file.as_raw_fd(), LOOP_CLR_FD) };
        let e = self.error("detach the file of");
        if r == 0 || e.errno() == Some(libc::ENXIO) { Ok(()) } else { Err(e) }
    }

    fn error(&self, action: &'static str) -> Error {
        Error::last_os(action, path(self.number).shown().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's sizes (x86-64 and arm64 agree).
    #[test]
    fn layouts_are_the_kernels() {
        assert_eq!(size_of::<LoopInfo64>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
    }
}
