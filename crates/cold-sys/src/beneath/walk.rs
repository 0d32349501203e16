//! The way below a mount's root where there is no `openat2(2)`: before Linux 5.6, and where a filter of system calls
//! does not let it through, because its arguments lie in memory that a filter cannot read (systemd's
//! `RestrictSUIDSGID=` answers ENOSYS).
//!
//! Name after name, each held by a descriptor and compared with the root's mount, so no link leads out of it. One thing
//! is weaker: `openat2` turns back before it steps into another mount, this only where the mount table had it when the
//! walk was prepared. A server that is mounted and dies after that may hold it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::procfs::ProcFs;

/// As many links as the kernel follows (`MAXSYMLINKS`).
const MOST_LINKS: usize = 40;
/// `PROC_SUPER_MAGIC` (linux/magic.h): links there may lead to what has no name.
const PROCFS: i64 = 0x9fa0;

/// What tells one mount from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountKey {
    /// The mount's number.
    Id(u64),
    /// The file system's device, before Linux 5.8: a bind mount of the same one is not told apart.
    Dev(u64),
}

impl MountKey {
    /// Of what is held open.
    pub(crate) fn of(fd: &impl AsFd) -> Result<Self, Errno> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
        match rustix::fs::statx(fd, "", flags, wanted) {
            Ok(stat) if stat.stx_mask & StatxFlags::MNT_ID.bits() != 0 => Ok(Self::Id(stat.stx_mnt_id)),
            Ok(_) | Err(Errno::NOSYS | Errno::PERM) => Ok(Self::Dev(rustix::fs::fstat(fd)?.st_dev)),
            Err(e) => Err(e),
        }
    }
}

/// What a walk needs to know.
#[derive(Debug)]
pub(super) struct Walk {
    /// The mount that is not left.
    mount: MountKey,
    /// Where something is mounted.
    points: HashSet<PathBuf>,
}

/// A directory on the way, and its path.
struct Step {
    dir: OwnedFd,
    at: PathBuf,
}

impl Walk {
    /// Below this root directory, by the mounts of now.
    pub(super) fn below(root: &OwnedFd) -> Result<Self, Errno> {
        let mounts =
            ProcFs::default().mounts().map_err(|e| e.errno().map_or(Errno::IO, Errno::from_raw_os_error))?;
        let points = mounts.into_iter().map(|m| m.mount_point).collect();
        Ok(Self { mount: MountKey::of(root)?, points })
    }

    /// As if this were mounted since.
    #[cfg(test)]
    pub(super) fn is_mounted(&mut self, point: PathBuf) {
        self.points.insert(point);
    }

    /// Holds (`O_PATH`) what `rel` names below `root`, which is the directory `point`; a link at its end itself, unless
    /// it is to be followed.
    pub(super) fn hold(
        &self,
        root: &OwnedFd,
        point: &Path,
        rel: &Path,
        follow: bool,
    ) -> Result<OwnedFd, Errno> {
        let mut way = vec![Step { dir: held(root, OsStr::new("."))?, at: point.to_owned() }];
        let mut names = names_of(rel.as_os_str());
        let mut links = 0;
        while let Some(name) = names.pop() {
            let Some(last) = way.last() else { break };
            if name == ".." {
                if way.len() > 1 {
                    way.pop();
                } else if let Some(above) = self.above(last)? {
                    way = vec![above];
                }
                continue;
            }
            let at = last.at.join(&name);
            if self.points.contains(&at) {
                return Err(Errno::XDEV);
            }
            let found = self.within(held(&last.dir, &name)?)?;
            let is_link = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode) == FileType::Symlink;
            if !is_link || (names.is_empty() && !follow) {
                way.push(Step { dir: found, at });
                continue;
            }
            links += 1;
            if links > MOST_LINKS || rustix::fs::fstatfs(&found)?.f_type == PROCFS {
                return Err(Errno::LOOP);
            }
            let to = OsString::from_vec(rustix::fs::readlinkat(&found, "", Vec::new())?.into_bytes());
            // As `openat2` does, which does not know yet whether that is the same mount.
            if to.as_bytes().starts_with(b"/") {
                return Err(Errno::XDEV);
            }
            names.append(&mut names_of(&to));
        }
        way.pop().map(|step| step.dir).ok_or(Errno::NOENT)
    }

    /// The directory above the one that the way began at; none above the topmost.
    fn above(&self, first: &Step) -> Result<Option<Step>, Errno> {
        let Some(at) = first.at.parent() else { return Ok(None) };
        let dir = self.within(held(&first.dir, OsStr::new(".."))?)?;
        Ok(Some(Step { dir, at: at.to_owned() }))
    }

    fn within(&self, fd: OwnedFd) -> Result<OwnedFd, Errno> {
        if MountKey::of(&fd)? == self.mount { Ok(fd) } else { Err(Errno::XDEV) }
    }
}

fn held(dir: &impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// The names of a path, the first one last. A slash at its end asks for a directory, as `.` does.
fn names_of(path: &OsStr) -> Vec<OsString> {
    let bytes = path.as_bytes();
    let names = bytes.split(|b| *b == b'/').filter(|name| !name.is_empty() && *name != b".");
    let mut names: Vec<_> = names.map(|name| OsStr::from_bytes(name).to_owned()).collect();
    names.reverse();
    names
}
