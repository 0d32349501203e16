//! Mounting and unmounting (mount(2), umount2(2)).

use std::ffi::CString;
use std::path::Path;

use cold_model::Shown as _;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::{Error, Result};

/// Mounts `source` of type `fs_type` on `target`; `data` holds the file system's own options,
/// separated by commas, empty for none. Programs on it get no set-user-id bits and no device nodes.
pub fn mount(source: &Path, target: &Path, fs_type: &str, read_only: bool, data: &str) -> Result<()> {
    let fail = |e: std::io::Error| {
        Error::io("mount", format!("{} ({fs_type}) on {}", source.shown(), target.shown()), e)
    };
    let options = CString::new(data).map_err(|e| fail(e.into()))?;
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
    if read_only {
        flags |= MountFlags::RDONLY;
    }
    rustix::mount::mount(source, target, fs_type, flags, options.as_c_str()).map_err(|e| fail(e.into()))
}

/// Unmounts what is mounted on `target`, which must not be a symbolic link. With `detach` the mount
/// leaves the tree at once and ends when its last user is gone (`MNT_DETACH`); without it a mount in
/// use is refused (`EBUSY`).
pub fn unmount(target: &Path, detach: bool) -> Result<()> {
    let mut flags = UnmountFlags::NOFOLLOW;
    if detach {
        flags |= UnmountFlags::DETACH;
    }
    rustix::mount::unmount(target, flags)
        .map_err(|e| Error::io("unmount", target.shown().to_string(), e.into()))
}
