//! Opening what an untrusted list names, below the root of one mount and never beyond it.
//!
//! `openat2(2)` (Linux 5.6) with `RESOLVE_NO_XDEV`: no symbolic link, however it was planted, leads from
//! the mount that the caller found harmless into another one, whose dead server would hold the caller for
//! ever. Every object is looked at through `O_PATH` first, which neither wakes a FIFO's other end, nor
//! acts on a device, nor triggers a mount. Where there is no `openat2`, the way is walked name by name (`walk`).

mod walk;

use std::fs::{File, Metadata};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

pub(crate) use walk::MountKey;
use walk::Walk;

use crate::open::{kind_of, reopen};
use crate::{Error, Result};

const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The root directory of a mount.
#[derive(Debug)]
pub struct Beneath {
    root: OwnedFd,
    point: PathBuf,
    /// Where there is no `openat2`.
    walk: Option<Walk>,
}

impl Beneath {
    /// Holds the directory `point`. The way to it must be harmless; that is the caller's knowledge.
    pub fn at(point: &Path) -> Result<Self> {
        let how = ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(rustix::fs::CWD, point, DIRECTORY, Mode::empty(), how) {
            Ok(root) => Ok(Self { root, point: point.to_owned(), walk: None }),
            // Some containers' filters answer EPERM for what they do not know.
            Err(Errno::NOSYS | Errno::PERM) => Self::walking(point),
            Err(e) => Err(Error::io("open", point.shown().to_string(), e.into())),
        }
    }

    fn walking(point: &Path) -> Result<Self> {
        let opened = || {
            let root = rustix::fs::openat(rustix::fs::CWD, point, DIRECTORY, Mode::empty())?;
            let walk = Walk::below(&root)?;
            Ok(Self { root, point: point.to_owned(), walk: Some(walk) })
        };
        opened().map_err(|e: Errno| Error::io("open", point.shown().to_string(), e.into()))
    }

    fn failed(&self, action: &'static str, rel: &Path, e: std::io::Error) -> Error {
        Error::io(action, self.point.join(rel).shown().to_string(), e)
    }

    /// Holds (`O_PATH`) what the name stands for; a link at its end itself, unless it is to be followed.
    fn hold(&self, rel: &Path, follow: bool) -> Result<File> {
        let held = if let Some(walk) = &self.walk {
            walk.hold(&self.root, &self.point, rel, follow)
        } else {
            let rel = if rel.as_os_str().is_empty() { Path::new(".") } else { rel };
            let link = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
            let how = ResolveFlags::NO_XDEV | ResolveFlags::NO_MAGICLINKS;
            let flags = OFlags::PATH | OFlags::CLOEXEC | link;
            rustix::fs::openat2(&self.root, rel, flags, Mode::empty(), how)
        };
        held.map(File::from).map_err(|e| self.failed("open", rel, e.into()))
    }

    /// Looks the name up, so that its directory entry and inode are in memory; does not follow a link at
    /// its end.
    pub fn look_up(&self, rel: &Path) -> Result<()> {
        self.hold(rel, false).map(drop)
    }

    /// Opens a regular file for reading, without reading ahead on its own and, where allowed, without
    /// changing its access time.
    pub fn regular(&self, rel: &Path) -> Result<(File, Metadata)> {
        self.readable(rel, Metadata::is_file)
    }

    /// Opens a block device for reading if its number is one of `allowed` (`st_rdev`).
    pub fn block_device(&self, rel: &Path, allowed: impl Fn(u64) -> bool) -> Result<(File, Metadata)> {
        self.readable(rel, |meta| meta.file_type().is_block_device() && allowed(meta.rdev()))
    }

    fn readable(&self, rel: &Path, is_right: impl Fn(&Metadata) -> bool) -> Result<(File, Metadata)> {
        let handle = self.hold(rel, true)?;
        let meta = handle.metadata().map_err(|e| self.failed("stat", rel, e))?;
        if !is_right(&meta) {
            return Err(Error::NotRegular { path: self.point.join(rel), kind: kind_of(&meta) });
        }
        let file = reopen(&handle, &meta).map_err(|e| self.failed("open", rel, e))?;
        // Advice that cannot be given costs a few pages more, nothing else.
        let _ = crate::evict::advise_random(&file);
        Ok((file, meta))
    }

    /// Opens a directory and reads its entries, so that its blocks are in memory; at most `most` entries.
    pub fn list(&self, rel: &Path, most: usize) -> Result<usize> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(self.hold(rel, true)?, ".", flags, Mode::empty());
        let dir = dir.map_err(|e| self.failed("open", rel, e.into()))?;
        let mut buffer = [std::mem::MaybeUninit::<u8>::uninit(); 16 << 10];
        let mut entries = rustix::fs::RawDir::new(&dir, &mut buffer);
        let mut count = 0;
        while count < most
            && let Some(entry) = entries.next()
        {
            entry.map_err(|e| self.failed("list", rel, e.into()))?;
            count += 1;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
