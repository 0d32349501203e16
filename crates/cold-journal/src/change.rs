//! The kinds of change, as they stand in the journal.

use std::fmt;
use std::path::{Path, PathBuf};

use cold_model::FileId;
use cold_model::Shown as _;
use serde::{Deserialize, Serialize};

use crate::kernel::KernelFile;

/// The environment variable of a process that must not survive, and of everything that inherits its environment.
pub(crate) const TOKEN_VARIABLE: &str = "COLD_JOURNAL_TOKEN";

/// A change that is about to be made, with all that is needed to undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// A value written to a file below /sys or /proc.
    Setting {
        /// The file, all symbolic links resolved.
        #[serde(with = "crate::text")]
        path: PathBuf,
        /// The value to go back to.
        old: String,
        /// The value to write.
        new: String,
        /// What the path stands for, in the kernel's own file systems.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kernel: Option<KernelFile>,
    },
    /// A controller enabled for the children of a cgroup (version 2) that was off before.
    Controller {
        /// The `cgroup.subtree_control` file.
        #[serde(with = "crate::text")]
        path: PathBuf,
        /// Its name (`io`).
        name: String,
        /// What the path stands for, in the kernel's own file systems.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kernel: Option<KernelFile>,
    },
    /// A created cgroup; cgroups created inside it go with it, their processes are killed.
    Cgroup {
        /// The directory, with a name that nobody else can have chosen.
        #[serde(with = "crate::text")]
        path: PathBuf,
        /// What its parent stands for, in the kernel's own file systems.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kernel: Option<KernelFile>,
    },
    /// A mounted file system.
    Mount {
        /// The directory it covers.
        #[serde(with = "crate::text")]
        target: PathBuf,
        /// Type as in `mountinfo` (`ext4`, `fuse`).
        fs_type: String,
        /// Source as in `mountinfo`.
        source: String,
    },
    /// A file attached to a loop device.
    Loop {
        /// N of `/dev/loopN`.
        number: u32,
        /// Path of the file, resolved.
        #[serde(with = "crate::text")]
        backing: PathBuf,
        /// The file's identity.
        id: FileId,
    },
    /// A created regular file.
    File {
        /// Its path, the directory part resolved, the name one that nobody else can have chosen.
        #[serde(with = "crate::text")]
        path: PathBuf,
        /// The directory it is created in.
        parent: FileId,
    },
    /// A created directory with everything that will be in it.
    Directory {
        /// Its path, the directory part resolved, the name one that nobody else can have chosen.
        #[serde(with = "crate::text")]
        path: PathBuf,
        /// The directory it is created in.
        parent: FileId,
    },
    /// A process that must not survive.
    Process {
        /// Its program, as whoever started it named it.
        #[serde(with = "crate::text")]
        program: PathBuf,
        /// Value of the environment variable `COLD_JOURNAL_TOKEN`, by which it and what it started are
        /// found, also when its pid did not get into the journal any more.
        token: String,
    },
}

/// What is known only after the change was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    /// The setting's value as it read back.
    Value(String),
    /// The created file, directory or cgroup.
    File(FileId),
    /// The started process: its pid and start time (field 22 of `/proc/PID/stat`).
    Process {
        /// Process id, in the pid namespace of the process that started it.
        pid: i32,
        /// Clock ticks since boot.
        starttime: u64,
    },
    /// Made, and nothing more to know.
    Plain,
}

impl Change {
    /// Whether a reboot undoes it by itself; only files stay.
    pub(crate) fn ends_with_boot(&self) -> bool {
        !matches!(self, Self::File { .. } | Self::Directory { .. })
    }

    /// Whether undoing it looks at the journals of others, who must not change them meanwhile.
    pub(crate) fn takes_turn(&self) -> bool {
        matches!(self, Self::Controller { .. })
    }

    /// Whether both change the same thing of the machine: a setting, or a group's controller.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        let same = |a: (&Path, &Option<KernelFile>), b: (&Path, &Option<KernelFile>)| match (a.1, b.1) {
            (Some(a), Some(b)) => a.is(b),
            _ => a.0 == b.0,
        };
        match (self, other) {
            (Self::Setting { path, kernel, .. }, Self::Setting { path: p, kernel: k, .. }) => {
                same((path, kernel), (p, k))
            }
            (Self::Controller { path, kernel, name }, Self::Controller { path: p, kernel: k, name: n }) => {
                name == n && same((path, kernel), (p, k))
            }
            _ => false,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting { path, old, new, .. } => {
                write!(f, "setting {} from {old:?} to {new:?}", path.shown())
            }
            Self::Controller { path, name, .. } => {
                write!(f, "controller {name} enabled in {}", path.shown())
            }
            Self::Cgroup { path, .. } => write!(f, "cgroup {}", path.shown()),
            Self::Mount { target, fs_type, source } => {
                write!(f, "mount of {source} ({fs_type}) on {}", target.shown())
            }
            Self::Loop { number, backing, .. } => {
                write!(f, "loop device /dev/loop{number} with {}", backing.shown())
            }
            Self::File { path, .. } => write!(f, "file {}", path.shown()),
            Self::Directory { path, .. } => write!(f, "directory {}", path.shown()),
            Self::Process { program, .. } => write!(f, "process {}", program.shown()),
        }
    }
}
