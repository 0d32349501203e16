//! What one observed start touched: its file set, its lookups, its processes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::bench::Ending;
use crate::{Bytes, FileId, Nanos, path_text};

/// In which ways a start used a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct How {
    /// Given to `execve`: the program, or the script that named it as its interpreter.
    pub executed: bool,
    /// Found in a process' memory mappings (looked at after each exec, before the next, and at exit).
    pub mapped: bool,
    /// Opened by a system call of the tree.
    pub opened: bool,
    /// Opened for writing.
    pub written: bool,
    /// Already open when the command was started (a redirected standard input, say).
    pub inherited: bool,
}

impl How {
    /// The union of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            executed: self.executed | other.executed,
            mapped: self.mapped | other.mapped,
            opened: self.opened | other.opened,
            written: self.written | other.written,
            inherited: self.inherited | other.inherited,
        }
    }
}

/// A regular file that the tree executed, mapped or opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedFile {
    /// Its path as the kernel prints it: absolute, without symbolic links.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// Device and inode.
    pub id: FileId,
    /// Size when it was first seen.
    pub size: Bytes,
    /// Modification time when it was first seen, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// What was done with it.
    pub how: How,
    /// When it was first seen, counted from the start of the observation.
    pub first: Nanos,
    /// `path` does not lead to this file from here: it lies in another mount namespace.
    pub elsewhere: bool,
    /// At the end of the observation `path` did not lead to this file any more: it was deleted, renamed
    /// or replaced, most likely by the command itself (temporary files). Never set with `elsewhere`.
    pub gone: bool,
}

/// Failed lookups in one directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misses {
    /// The directory that was searched.
    #[serde(with = "path_text")]
    pub dir: PathBuf,
    /// How many lookups failed.
    pub count: u64,
}

/// One observed start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedStart {
    /// The file set in the order of first use. Files of kernel file systems (proc, sysfs, cgroup, …)
    /// and files without any name (memfd, System V shared memory) have nothing to read from storage
    /// and are left out.
    pub files: Vec<ObservedFile>,
    /// Directories that were opened, sorted.
    #[serde(with = "path_text::list")]
    pub directories: Vec<PathBuf>,
    /// Opens of files of kernel file systems.
    pub kernel_file_opens: u64,
    /// Opens and mappings whose file could not be identified (the process hid itself with
    /// `PR_SET_DUMPABLE`, or died in that moment). 0 means that the file set is whole.
    pub unidentified: u64,
    /// Path lookups by the open, exec, stat, access and readlink families.
    pub lookups: u64,
    /// Lookups that found nothing (`ENOENT`, `ENOTDIR`).
    pub misses: u64,
    /// The directories with most misses, largest first; bounded.
    pub misses_by_dir: Vec<Misses>,
    /// Misses that `misses_by_dir` does not name.
    pub misses_elsewhere: u64,
    /// Processes of the tree.
    pub processes: u64,
    /// Threads of the tree beside each process' first.
    pub threads: u64,
    /// From the start of the command to the end of its tree, slowed down by the observation.
    pub duration: Nanos,
    /// How the command ended.
    pub ending: Ending,
    /// Processes that ignored the request to end and were killed by force.
    pub killed_by_force: u64,
    /// What the reader has to know to judge this result.
    pub notes: Vec<String>,
}

impl ObservedStart {
    /// Sizes of all files of the set, summed.
    pub fn file_bytes(&self) -> Bytes {
        self.files.iter().map(|f| f.size).sum()
    }
}
