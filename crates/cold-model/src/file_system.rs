//! What a file system's type (`ext4`, `fuse.sshfs`: as mountinfo prints it) tells.

use crate::Dev;

/// Where the contents of a file system's files come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The block device whose number the file system has; also what is of no known type.
    Device,
    /// Block devices behind a number of its own (btrfs, bcachefs, UBIFS, ZFS).
    Volume,
    /// Memory: its pages are the files themselves.
    Memory,
    /// The kernel makes them up when they are read: on no device, in no page cache.
    Kernel,
    /// Files of the file systems below, with their pages.
    Layers,
    /// Another machine, by a network.
    Network,
    /// The host of a virtual machine.
    Host,
    /// A process of this machine (FUSE).
    Process,
    /// Nothing yet: looking a name up mounts what answers.
    Automount,
}

impl Origin {
    /// By the type. A type that no list has is taken for one of block devices.
    pub fn of(fs_type: &str) -> Self {
        match fs_type {
            "btrfs" | "bcachefs" | "ubifs" | "zfs" => Self::Volume,
            "tmpfs" | "ramfs" | "rootfs" | "hugetlbfs" => Self::Memory,
            "anon_inodefs" | "binfmt_misc" | "bpf" | "cgroup" | "cgroup2" | "configfs" | "debugfs"
            | "devpts" | "devtmpfs" | "efivarfs" | "fusectl" | "mqueue" | "nsfs" | "pipefs" | "proc"
            | "pstore" | "securityfs" | "sockfs" | "sysfs" | "tracefs" => Self::Kernel,
            "overlay" | "aufs" | "unionfs" => Self::Layers,
            "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "afs" | "coda" | "lustre" | "gpfs" | "beegfs"
            | "orangefs" | "fuse.glusterfs" => Self::Network,
            "9p" | "virtiofs" | "vboxsf" | "drvfs" => Self::Host,
            "autofs" => Self::Automount,
            "fuse" | "fuseblk" => Self::Process,
            other if other.starts_with("fuse.") => Self::Process,
            _ => Self::Device,
        }
    }

    /// It reads from no storage at all.
    pub fn reads_nothing(self) -> bool {
        matches!(self, Self::Memory | Self::Kernel)
    }

    /// Somebody else answers, who may never do so: whoever looks a name up waits, and cannot be killed.
    pub fn may_hang(self) -> bool {
        matches!(self, Self::Network | Self::Host | Self::Process | Self::Automount)
    }
}

/// Whether it caches its files itself, past the page cache (ZFS: the ARC).
pub fn caches_itself(fs_type: &str) -> bool {
    fs_type == "zfs"
}

/// Whether `st_dev` or `st_ino` of its files are other numbers than those of superblock and inode, which the kernel's
/// events name.
pub fn numbers_differ(fs_type: &str) -> bool {
    matches!(fs_type, "bcachefs" | "btrfs" | "fuse.mergerfs" | "overlay")
}

/// The first Linux (major, minor) that keeps files of a file system in large folios; `None`: none does, as far as is
/// known here. Btrfs had them in 6.17 for kernels with experimental features; they are for all since 7.2.
pub fn large_folios_since(fs_type: &str) -> Option<(u32, u32)> {
    match fs_type {
        "xfs" => Some((5, 18)),
        "erofs" => Some((6, 2)),
        "bcachefs" => Some((6, 7)),
        "ext4" => Some((6, 16)),
        "btrfs" => Some((7, 2)),
        _ => None,
    }
}

/// Where the inode of a name is kept, for file systems that keep inodes of neighbouring numbers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inode {
    /// Device as `stat` gives it (`st_dev`), not the superblock's.
    pub dev: Dev,
    /// Inode number (`st_ino`).
    pub number: u64,
    /// Within the device the same for inodes that are read with one block.
    pub block: u64,
    /// Size in bytes; of a directory, that of its own blocks.
    pub size: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the tables that this one replaced disagreed.
    #[test]
    fn one_type_has_one_origin() {
        let of = Origin::of;
        assert_eq!((of("ext4"), of("strange"), of("")), (Origin::Device, Origin::Device, Origin::Device));
        // Its files are nodes of devices; a copy of a program there is rare, and in memory.
        assert_eq!(of("devtmpfs"), Origin::Kernel);
        // A process answers for the layers, and may hang.
        assert_eq!((of("fuse.fuse-overlayfs"), of("overlay")), (Origin::Process, Origin::Layers));
        assert_eq!((of("fuse.sshfs"), of("fuseblk")), (Origin::Process, Origin::Process));
        assert_eq!(
            (of("coda"), of("beegfs"), of("vboxsf")),
            (Origin::Network, Origin::Network, Origin::Host)
        );
        assert!(of("autofs").may_hang() && !of("overlay").may_hang() && !of("zfs").may_hang());
        assert!(
            of("rootfs").reads_nothing() && of("proc").reads_nothing() && !of("squashfs").reads_nothing()
        );
    }
}
