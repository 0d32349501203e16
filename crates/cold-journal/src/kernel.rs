//! Settings and groups by what they are: a path says nothing once its file system is mounted elsewhere, or nowhere.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use cold_sys::kernelfs::{self, KernelFs};
use cold_sys::procfs::ProcFs;
use serde::{Deserialize, Serialize};

use crate::error::is_gone;
use crate::{Error, Result};

/// A file or directory of one of the kernel's own file systems.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFile {
    /// The file system's type (`debugfs`, `sysfs`, `cgroup2`).
    fs_type: String,
    /// The path from its root.
    #[serde(with = "crate::text")]
    path: PathBuf,
    /// The inode, where it stands for one thing as long as the machine runs: a device that came later under the
    /// same name is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ino: Option<u64>,
}

/// Where a file is now. The path is good as long as this is held.
pub(crate) struct CurrentPath {
    pub(crate) path: PathBuf,
    _root: Option<OwnedFd>,
}

impl KernelFile {
    /// What a resolved path stands for; `None` outside these file systems.
    pub(crate) fn of(proc: &ProcFs, path: &Path) -> Result<Option<Self>> {
        let Some((fs, within)) = kernelfs::within(proc, path)? else { return Ok(None) };
        let ino = fs.lasting_inodes.then(|| path.metadata().ok().map(|m| m.ino())).flatten();
        Ok(Some(Self { fs_type: fs.fs_type.to_owned(), path: within, ino }))
    }

    /// The file `within` of this file system, wherever that is mounted, and where it usually is.
    pub(crate) fn named(fs: &KernelFs, within: &Path) -> (Self, PathBuf) {
        let usual = Path::new(fs.usual).join(within);
        (Self { fs_type: fs.fs_type.to_owned(), path: Path::new("/").join(within), ino: None }, usual)
    }

    /// Whether both are the same file.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (&self.fs_type, &self.path) == (&other.fs_type, &other.path)
    }

    fn place(&self, proc: &ProcFs) -> std::result::Result<CurrentPath, String> {
        let kind = &self.fs_type;
        let fs = kernelfs::known(kind).ok_or_else(|| format!("{kind} is not known to this version"))?;
        let plain = |c: &Component<'_>| matches!(c, Component::RootDir | Component::Normal(_));
        if !self.path.components().all(|c| plain(&c)) {
            return Err(format!("the path within {kind} is no plain one"));
        }
        let root = fs.root(proc).map_err(|e| {
            format!("{kind} is mounted nowhere, and this process may not mount it ({e}); run this as root, or mount it")
        })?;
        let within = self.path.strip_prefix("/").unwrap_or(&self.path);
        let path = cold_sys::open::held(&root).join(within);
        Ok(CurrentPath { path, _root: Some(root) })
    }
}

/// Where to find what had this path; `None` when it is gone, though its file system is there. An error when the
/// file system is not.
pub(crate) fn locate(proc: &ProcFs, kernel: Option<&KernelFile>, path: &Path) -> Result<Option<CurrentPath>> {
    let Some(kernel) = kernel else { return Ok(Some(CurrentPath { path: path.to_owned(), _root: None })) };
    let place = kernel.place(proc).map_err(|why| Error::refused("reach", path, why))?;
    match place.path.symlink_metadata() {
        Err(e) if is_gone(&e) => Ok(None),
        Err(e) => Err(Error::io("stat", path, e)),
        Ok(meta) if kernel.ino.is_some_and(|ino| ino != meta.ino()) => Ok(None),
        Ok(_) => Ok(Some(place)),
    }
}
