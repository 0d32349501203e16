//! What a file system's type tells.

/// Types whose contents the kernel makes up when they are read: on no device, in no page cache.
pub const MADE_UP: [&str; 20] = [
    "anon_inodefs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "mqueue",
    "nsfs",
    "pipefs",
    "proc",
    "pstore",
    "securityfs",
    "sockfs",
    "sysfs",
    "tracefs",
];

/// Whether the kernel makes up the contents of a file system of this type.
pub fn is_made_up(kind: &str) -> bool {
    MADE_UP.contains(&kind)
}

/// Where the inode of a name is kept, for file systems that keep inodes of neighbouring numbers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inode {
    /// Device (`st_dev`), major and minor number.
    pub dev: (u32, u32),
    /// Its number.
    pub number: u64,
    /// Within the device the same for inodes that are read with one block.
    pub block: u64,
    /// Size in bytes; of a directory, that of its own blocks.
    pub size: u64,
}
