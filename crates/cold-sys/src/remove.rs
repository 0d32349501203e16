//! Removing what `cold` made: the one place that removes more than a single known file.
//!
//! Everything is found once and held by a descriptor; whoever removes it compares inode and owner with what it
//! remembers, and what is removed then is that object. A tree is walked by descriptors: no symbolic link is
//! followed, no mount is crossed, whatever is put there meanwhile. Linux has no way to unlink an open file, so
//! between the last look at a name and its removal another one can take it: only somebody who may remove that
//! other one himself can do that.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cold_model::FileId;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

use crate::beneath::MountKey;

/// Directories deeper than this are moved up before they are emptied, so that no tree needs more open
/// descriptors than a process may have.
const DEEPEST: usize = 32;

/// A name in a directory and what it stands for, both held.
#[derive(Debug)]
pub struct Entry {
    parent: OwnedFd,
    parent_id: FileId,
    name: OsString,
    handle: OwnedFd,
    meta: Metadata,
}

impl Entry {
    /// Finds `path`; `None` when there is no such thing. A symbolic link at its end is found itself.
    pub fn find(path: &Path) -> io::Result<Option<Self>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(Errno::INVAL.into());
        };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let hold = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::open(parent, hold | OFlags::DIRECTORY, Mode::empty())
            .and_then(|parent| rustix::fs::openat(&parent, name, hold, Mode::empty()).map(|h| (parent, h)));
        let (parent, handle) = match found {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let parent_id = id_of(&parent)?;
        let handle = File::from(handle);
        let meta = handle.metadata()?;
        Ok(Some(Self { parent, parent_id, name: name.to_owned(), handle: handle.into(), meta }))
    }

    /// The directory it is in.
    pub fn parent(&self) -> FileId {
        self.parent_id
    }

    /// What it is.
    pub fn meta(&self) -> &Metadata {
        &self.meta
    }

    /// Which one it is.
    pub fn id(&self) -> FileId {
        FileId::of(&self.meta)
    }

    /// Removes what is no directory. `false`: something else has the name by now, and stays.
    pub fn unlink(self) -> io::Result<bool> {
        self.take(AtFlags::empty())
    }

    /// Removes an empty directory. `false`: something else has the name by now, and stays.
    pub fn remove_empty(self) -> io::Result<bool> {
        self.take(AtFlags::REMOVEDIR)
    }

    /// Removes a directory with everything in it. `false`: something else has the name by now, and stays. An
    /// error ([`io::ErrorKind::CrossesDevices`]) where something is mounted below it; that stays, with what is
    /// above it.
    pub fn remove_tree(self) -> io::Result<bool> {
        let dir = list(&self.handle, OsStr::new("."))?;
        empty_directory(&dir)?;
        self.remove_empty()
    }

    fn take(self, flags: AtFlags) -> io::Result<bool> {
        let now = match rustix::fs::statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(now) => now,
            Err(Errno::NOENT) => return Ok(true),
            Err(e) => return Err(e.into()),
        };
        if (FileId { dev: now.st_dev, ino: now.st_ino }) != self.id() {
            return Ok(false);
        }
        rustix::fs::unlinkat(&self.parent, &self.name, flags)?;
        Ok(true)
    }
}

/// Removes the directory `path` with everything in it if it still is `id`; `false` when it is gone or another
/// one has its name.
pub fn tree(path: &Path, id: FileId) -> io::Result<bool> {
    match Entry::find(path)? {
        Some(entry) if entry.id() == id && entry.meta().is_dir() => entry.remove_tree(),
        _ => Ok(false),
    }
}

/// Holds the directory `path`, which is no symbolic link, for [`content`].
pub fn hold(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
}

/// Removes what is in a directory, and not the directory itself.
pub fn content(dir: &OwnedFd) -> io::Result<()> {
    empty_directory(dir)
}

fn id_of(fd: &impl AsFd) -> io::Result<FileId> {
    let stat = rustix::fs::fstat(fd)?;
    Ok(FileId { dev: stat.st_dev, ino: stat.st_ino })
}

/// Opens a directory of this one for listing; neither through a link nor through a mount.
fn list(dir: &impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let how = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(dir, name, flags, Mode::empty(), how) {
        // Before Linux 5.6; also where a filter of system calls does not know it.
        Err(Errno::NOSYS | Errno::PERM) => {
            let fd = rustix::fs::openat(dir, name, flags, Mode::empty())?;
            if MountKey::of(&fd)? != MountKey::of(dir)? {
                return Err(Errno::XDEV.into());
            }
            Ok(fd)
        }
        opened => Ok(opened?),
    }
}

/// Empties from the leaves up. What others put in meanwhile is found in the next round.
fn empty_directory(root: &OwnedFd) -> io::Result<()> {
    let mut way: Vec<(OwnedFd, OsString)> = Vec::new();
    loop {
        let dir = way.last().map_or(root, |(dir, _)| dir);
        let Some(name) = without_files(dir)? else {
            let Some((_, name)) = way.pop() else { return Ok(()) };
            let above = way.last().map_or(root, |(dir, _)| dir);
            match rustix::fs::unlinkat(above, &name, AtFlags::REMOVEDIR) {
                // Not empty: somebody has put something in, or moved it; it is found again.
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                Err(e) => return Err(e.into()),
            }
            continue;
        };
        if way.len() >= DEEPEST {
            let up = crate::place::random_name()?;
            rustix::fs::renameat(dir, &name, root, up)?;
            continue;
        }
        match list(dir, &name) {
            Ok(inner) => way.push((inner, name)),
            // Gone, or no directory any more: the next round sees.
            Err(e)
                if matches!(Errno::from_io_error(&e), Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)) => {}
            Err(e) => return Err(e),
        }
    }
}

/// Removes what is no directory; the name of the first directory that is left.
fn without_files(dir: &OwnedFd) -> io::Result<Option<OsString>> {
    // A directory of its own, because entries are read from where the last reading ended.
    let listing = list(dir, OsStr::new("."))?;
    let mut buffer = [std::mem::MaybeUninit::<u8>::uninit(); 16 << 10];
    let mut entries = RawDir::new(&listing, &mut buffer);
    let mut first = None;
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let directory = match entry.file_type() {
            FileType::Directory => true,
            FileType::Unknown => {
                let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode) == FileType::Directory
            }
            _ => false,
        };
        if directory {
            first.get_or_insert_with(|| name.to_owned());
            continue;
        }
        match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(first)
}

#[cfg(test)]
mod tests;
