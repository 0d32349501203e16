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
