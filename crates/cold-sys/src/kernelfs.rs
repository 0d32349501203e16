//! The kernel's own file systems, wherever they are mounted, and also where they are not.
//!
//! A path like `/sys/kernel/debug/fault_around_bytes` names a file only as long as debugfs is mounted there. What
//! has to be found again later is named by the type of the file system and the path within.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use crate::procfs::ProcFs;
use crate::{Error, Result};

/// One of these file systems, of which the machine (or the namespace) has one each.
#[derive(Debug, PartialEq, Eq)]
pub struct KernelFs {
    /// Its type, as in `mountinfo`.
    pub fs_type: &'static str,
    /// Where everybody mounts it.
    pub usual: &'static str,
    /// Whether an inode number stands for one file as long as the machine runs (kernfs, 64 bit).
    pub lasting_inodes: bool,
    /// `f_type` (linux/magic.h).
    magic: u64,
}

/// What the kernel's developers let users see and set.
pub static DEBUGFS: KernelFs =
    KernelFs { fs_type: "debugfs", usual: "/sys/kernel/debug", lasting_inodes: false, magic: 0x6462_6720 };
/// Devices and their settings.
pub static SYSFS: KernelFs = KernelFs {
    fs_type: "sysfs",
    usual: "/sys",
    lasting_inodes: cfg!(target_pointer_width = "64"),
    magic: 0x6265_6572,
};
/// Control groups, version 2.
pub static CGROUP2: KernelFs = KernelFs {
    fs_type: "cgroup2",
    usual: "/sys/fs/cgroup",
    lasting_inodes: cfg!(target_pointer_width = "64"),
    magic: 0x6367_7270,
};

/// The one of this type.
pub fn known(fs_type: &str) -> Option<&'static KernelFs> {
    [&DEBUGFS, &SYSFS, &CGROUP2].into_iter().find(|fs| fs.fs_type == fs_type)
}

/// In which of them a resolved path lies, and the path within it, from its root.
pub fn within(proc: &ProcFs, path: &Path) -> Result<Option<(&'static KernelFs, PathBuf)>> {
    let Some(mount) = proc.mount_of(path)? else { return Ok(None) };
    let (Some(fs), Ok(rest)) = (known(&mount.fs_type), path.strip_prefix(&mount.mount_point)) else {
        return Ok(None);
    };
    Ok(Some((fs, mount.root.join(rest))))
}

impl KernelFs {
    /// Its root directory: of a mount that is there, else of one that only this descriptor has (`fsmount(2)`,
    /// Linux 5.2, root), which is gone with it, however this process ends.
    pub fn root(&self, proc: &ProcFs) -> Result<OwnedFd> {
        for mount in proc.mounts()? {
            if mount.fs_type == self.fs_type
                && mount.root == Path::new("/")
                && let Ok(root) = open_directory(&mount.mount_point)
                && self.is_of(&root)
            {
                return Ok(root);
            }
        }
        self.mount().map_err(|e| Error::io("mount", self.fs_type, e.into()))
    }

    /// Another mount may cover the one that was listed.
    fn is_of(&self, root: &OwnedFd) -> bool {
        #[allow(clippy::unnecessary_cast)] // the type of f_type differs between architectures
        rustix::fs::fstatfs(root).is_ok_and(|fs| fs.f_type as u64 == self.magic)
    }

    fn mount(&self) -> rustix::io::Result<OwnedFd> {
        let context = rustix::mount::fsopen(self.fs_type, FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_create(&context)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    }
}

fn open_directory(path: &Path) -> rustix::io::Result<OwnedFd> {
    rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_sysfs_is_named_by_its_path_within() {
        let (fs, path) =
            within(&ProcFs::default(), Path::new("/sys/kernel/mm")).expect("read").expect("sysfs");
        assert_eq!((fs.fs_type, path.as_path()), ("sysfs", Path::new("/kernel/mm")));
        let root = fs.root(&ProcFs::default()).expect("mounted");
        assert!(crate::open::held(&root).join("kernel/mm").is_dir());
        assert_eq!(within(&ProcFs::default(), Path::new("/proc/self")).expect("read"), None);
    }

    #[test]
    fn what_is_mounted_nowhere_is_reached_all_the_same_as_root() {
        if !crate::caps::is_root() {
            return;
        }
        let empty = tempfile::tempdir().expect("tempdir");
        std::fs::create_dir(empty.path().join("self")).expect("mkdir");
        std::fs::write(empty.path().join("self/mountinfo"), "").expect("write");
        let root = SYSFS.root(&ProcFs::new(empty.path())).expect("mounted");
        assert!(crate::open::held(&root).join("kernel/mm").is_dir());
    }
}
