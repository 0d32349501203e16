//! Opening files that somebody else named, without side effects.

use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use cold_model::Shown as _;

use crate::{Error, Result};

/// Opens a regular file for reading and nothing else: the path is first resolved with `O_PATH` (which
/// neither blocks on a FIFO, nor touches a device, nor triggers a mount at the last component), its
/// type is checked, and only then is that same object reopened for reading.
///
/// With `follow` false a symbolic link at the last component is refused as [`Error::NotRegular`].
pub fn regular(path: &Path, follow: bool) -> Result<(File, Metadata)> {
    let nofollow = if follow { 0 } else { libc::O_NOFOLLOW };
    let subject = || path.shown().to_string();
    let handle = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | nofollow | libc::O_CLOEXEC)
        .open(path)
        .map_err(|e| Error::io("open", subject(), e))?;
    let meta = handle.metadata().map_err(|e| Error::io("stat", subject(), e))?;
    if !meta.is_file() {
        return Err(Error::NotRegular { path: path.to_owned(), kind: kind_of(&meta) });
    }
    let file = reopen(&handle, &meta).map_err(|e| Error::io("open", subject(), e))?;
    Ok((file, meta))
}

/// Opens a file that somebody named for a program's output: made, or emptied. A FIFO that nobody reads is refused,
/// where opening it would wait for ever.
pub fn for_output(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl};
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags | OFlags::NONBLOCK, Mode::from_raw_mode(0o666)) {
        Err(rustix::io::Errno::NXIO) => return Err(std::io::Error::other("nobody reads from it")),
        opened => opened?,
    };
    // The program's own writes wait, as it expects.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file.into())
}

/// The object that an `O_PATH` descriptor stands for, opened for reading: without waiting, without becoming
/// anybody's terminal, and without a new access time where the kernel allows that (to owners and root).
pub(crate) fn reopen(handle: &File, meta: &Metadata) -> std::io::Result<File> {
    let magic = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let open = |extra| {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC | extra;
        std::fs::OpenOptions::new().read(true).custom_flags(flags).open(&magic)
    };
    let euid = rustix::process::geteuid();
    if !euid.is_root() && euid.as_raw() != meta.uid() {
        return open(0);
    }
    // Root of a user namespace is not everybody's.
    open(libc::O_NOATIME).or_else(|e| if e.raw_os_error() == Some(libc::EPERM) { open(0) } else { Err(e) })
}

/// The kind of a directory entry in words.
pub fn kind_of(meta: &Metadata) -> &'static str {
    let t = meta.file_type();
    if t.is_dir() {
        "directory"
    } else if t.is_symlink() {
        "symbolic link"
    } else if t.is_fifo() {
        "FIFO"
    } else if t.is_socket() {
        "socket"
    } else if t.is_char_device() {
        "character device"
    } else if t.is_block_device() {
        "block device"
    } else if meta.mode() & libc::S_IFMT == libc::S_IFREG {
        "regular file"
    } else {
        "file of unknown kind"
    }
}
