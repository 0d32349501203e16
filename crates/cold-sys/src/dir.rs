//! Directories at the speed of the kernel's own calls: `getdents64`, and files opened relative to the
//! directory. A tree of 135,000 files costs one open, one fstat, one cachestat and one close per file.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cold_model::Shown as _;

use crate::{Error, Result};

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory (`DT_DIR`).
    Directory,
    /// A regular file.
    Regular,
    /// A symbolic link.
    Symlink,
    /// FIFO, socket or device: never to be opened.
    Special,
    /// The file system does not say: [`Dir::stat`] does.
    Unknown,
}

/// The fields of `stat` that a scan needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// `st_dev`, in the C library's encoding of `dev_t`.
    pub dev: u64,
    /// `st_ino`; names a file together with `dev`.
    pub ino: u64,
    /// Hard links (`st_nlink`): names under which a scan may meet it; 0: deleted while open.
    pub links: u64,
    /// Size in bytes.
    pub size: u64,
    /// Type by `st_mode`, so never [`EntryKind::Unknown`].
    pub kind: EntryKind,
}

/// An open directory.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
}

impl Dir {
    /// Opens a directory for listing; a symbolic link at the last component is followed only on demand.
    /// Its access time is left alone where the kernel allows.
    pub fn open(path: &Path, follow: bool) -> Result<Self> {
        let fail = |e| Error::io("open the directory", path.shown().to_string(), e);
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| fail(e.into()))?;
        let nofollow = if follow { 0 } else { libc::O_NOFOLLOW };
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NONBLOCK | nofollow;
        let fd = match open_at(libc::AT_FDCWD, &name, flags | libc::O_NOATIME) {
            Err(e) if e.raw_os_error() == Some(libc::EPERM) => open_at(libc::AT_FDCWD, &name, flags),
            other => other,
        };
        Ok(Self { fd: fd.map_err(fail)? })
    }

    /// Calls `each` for every entry but `.` and `..`, in the directory's order. `buffer` is scratch space
    /// to be reused between calls.
    pub fn entries(&self, buffer: &mut Vec<u8>, mut each: impl FnMut(&CStr, EntryKind)) -> Result<()> {
        // 64 KiB hold about 2000 entries; a large directory costs few calls, a small one two.
        buffer.resize(64 << 10, 0);
        loop {
            // SAFETY: the kernel writes at most `len` bytes into the buffer, which is that long.
            let got = unsafe {
                libc::syscall(libc::SYS_getdents64, self.fd.as_raw_fd(), buffer.as_mut_ptr(), buffer.len())
            };
            let Ok(got) = usize::try_from(got) else {
                return Err(Error::last_os("list", format!("descriptor {}", self.fd.as_raw_fd())));
            };
            if got == 0 {
                return Ok(());
            }
            let mut rest = buffer.get(..got).unwrap_or_default();
            while let Some((name, kind, len)) = parse_entry(rest) {
                if name != c"." && name != c".." {
                    each(name, kind);
                }
                rest = rest.get(len..).unwrap_or_default();
            }
        }
    }

    /// `stat` of an entry, without following a link and without triggering a mount.
    pub fn stat(&self, name: &CStr, follow: bool) -> io::Result<FileStat> {
        let flags = libc::AT_NO_AUTOMOUNT | if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW };
        // SAFETY: stat is plain data for which zeroes are valid.
        let mut st: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: a NUL-terminated name and a live stat structure.
        if unsafe { libc::fstatat(self.fd.as_raw_fd(), name.as_ptr(), &raw mut st, flags) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(convert(&st))
    }

    /// Opens an entry known to be a regular file for reading. Should it have become something else
    /// meanwhile, the open neither blocks nor takes a terminal; check [`fstat`] before any use.
    pub fn open_regular(&self, name: &CStr, follow: bool) -> io::Result<File> {
        let nofollow = if follow { 0 } else { libc::O_NOFOLLOW };
        let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC | nofollow;
        open_at(self.fd.as_raw_fd(), name, flags).map(File::from)
    }

    /// The magic number of the directory's file system (statfs `f_type`).
    pub fn file_system(&self) -> Result<i64> {
        // SAFETY: statfs is plain data for which zeroes are valid.
        let mut fs: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: a live statfs structure.
        if unsafe { libc::fstatfs(self.fd.as_raw_fd(), &raw mut fs) } != 0 {
            return Err(Error::last_os(
                "ask the file system of",
                format!("descriptor {}", self.fd.as_raw_fd()),
            ));
        }
        #[allow(clippy::unnecessary_cast)] // the type of f_type differs between architectures
        Ok(fs.f_type as i64)
    }

    /// `stat` of the directory itself.
    pub fn own_stat(&self) -> io::Result<FileStat> {
        fstat_fd(self.fd.as_raw_fd())
    }
}

/// `stat` of an open file.
pub fn fstat(file: &File) -> io::Result<FileStat> {
    fstat_fd(file.as_raw_fd())
}

fn fstat_fd(fd: RawFd) -> io::Result<FileStat> {
    // SAFETY: stat is plain data for which zeroes are valid.
    let mut st: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a live stat structure.
    if unsafe { libc::fstat(fd, &raw mut st) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(convert(&st))
}

fn convert(st: &libc::stat) -> FileStat {
    let kind = match st.st_mode & libc::S_IFMT {
        libc::S_IFREG => EntryKind::Regular,
        libc::S_IFDIR => EntryKind::Directory,
        libc::S_IFLNK => EntryKind::Symlink,
        _ => EntryKind::Special,
    };
    #[allow(clippy::unnecessary_cast, clippy::cast_lossless)] // widths differ between architectures
    FileStat {
        dev: st.st_dev,
        ino: st.st_ino,
        links: st.st_nlink as u64,
        size: u64::try_from(st.st_size).unwrap_or(0),
        kind,
    }
}

fn open_at(dir: RawFd, name: &CStr, flags: i32) -> io::Result<OwnedFd> {
    // SAFETY: a NUL-terminated name; no mode is needed without O_CREAT.
    let fd = unsafe { libc::openat(dir, name.as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor just opened, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The first record of a getdents64 buffer: name, kind, length of the record.
fn parse_entry(rest: &[u8]) -> Option<(&CStr, EntryKind, usize)> {
    let len = rest.get(offset_of!(libc::dirent64, d_reclen)..)?.first_chunk::<2>()?;
    let len = usize::from(u16::from_ne_bytes(*len));
    let kind = match *rest.get(offset_of!(libc::dirent64, d_type))? {
        libc::DT_REG => EntryKind::Regular,
        libc::DT_DIR => EntryKind::Directory,
        libc::DT_LNK => EntryKind::Symlink,
        libc::DT_UNKNOWN => EntryKind::Unknown,
        _ => EntryKind::Special,
    };
    let name = rest.get(offset_of!(libc::dirent64, d_name)..len)?;
    Some((CStr::from_bytes_until_nul(name).ok()?, kind, len))
}

/// A directory entry's name as the operating system's string.
pub fn os_name(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_kinds_equal_those_of_std() {
        let dir = tempfile::tempdir().expect("a directory");
        for i in 0..3000 {
            std::fs::write(dir.path().join(format!("a file with a rather long name {i}")), "x")
                .expect("write");
        }
        std::fs::create_dir(dir.path().join("d")).expect("mkdir");
        std::os::unix::fs::symlink("d", dir.path().join("l")).expect("link");
        let open = Dir::open(dir.path(), false).expect("open");
        let mut seen = Vec::new();
        open.entries(&mut Vec::new(), |name, kind| seen.push((os_name(name).to_owned(), kind)))
            .expect("list");
        seen.sort_by(|a, b| a.0.cmp(&b.0));
        let mut std: Vec<_> =
            std::fs::read_dir(dir.path()).expect("list").map(|e| e.expect("entry").file_name()).collect();
        std.sort();
        assert_eq!(seen.iter().map(|s| s.0.clone()).collect::<Vec<_>>(), std);
        let kind = |n: &CStr| open.stat(n, false).expect("stat").kind;
        assert_eq!((kind(c"d"), kind(c"l")), (EntryKind::Directory, EntryKind::Symlink));
        assert_eq!(open.stat(c"l", true).expect("stat").kind, EntryKind::Directory);
        assert!(open.open_regular(c"l", false).is_err());
    }
}
