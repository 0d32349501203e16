//! Control groups, both versions: where they are mounted, where we are, their files.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use rustix::fs::{Mode, OFlags};

use crate::procfs::{Mount, Pressure, ProcFs};
use crate::{Error, Result};

/// Of `clone3(2)`: the child begins in the group (version 2) whose directory is given. Linux 5.7.
pub(crate) const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// The controller that charges memory, of both versions.
const MEMORY: &str = "memory";

/// A mounted hierarchy, or the part of one that a container is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where it is mounted, by the mount table of the process that was asked about.
    pub at: PathBuf,
    /// The group that is mounted there; `/` but in a container without a cgroup namespace, where
    /// `/proc/self/cgroup` has the host's paths and the mount begins at the container's group.
    pub root: PathBuf,
}

/// The group that the memory of a process is charged to, of whichever version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryGroup {
    /// By which version memory is charged.
    pub version: Version,
    /// Where the hierarchy is mounted.
    pub top: PathBuf,
    /// The group's directory, there or below.
    pub dir: PathBuf,
}

/// Of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// A hierarchy for each controller.
    V1,
    /// One for all.
    V2,
}

/// The mounted hierarchies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hierarchies {
    /// Version 2, if mounted (alone or beside version 1).
    pub v2: Option<Hierarchy>,
    /// Version 1 by controller.
    pub v1: BTreeMap<String, Hierarchy>,
}

impl Hierarchies {
    /// Reads them from the mount table.
    pub fn find(proc: &ProcFs) -> Result<Self> {
        Ok(Self::of(&proc.mounts()?))
    }

    /// Picks them out of a mount table that was read already.
    pub fn of(mounts: &[Mount]) -> Self {
        let mut found = Self::default();
        for m in mounts {
            let mounted = Hierarchy { at: m.mount_point.clone(), root: m.root.clone() };
            match m.fs_type.as_str() {
                "cgroup2" => found.v2 = Some(mounted),
                // The controllers are among the super options, but the mount point is by convention
                // named after them (`blkio`, `cpu,cpuacct`), also where options are not repeated.
                "cgroup" => {
                    let names = m.mount_point.file_name().and_then(|n| n.to_str()).unwrap_or_default();
                    for c in names.split(',').filter(|c| !c.is_empty()) {
                        found.v1.insert(c.to_owned(), mounted.clone());
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// The directory of this process in version 2.
    pub fn own_v2(&self, proc: &ProcFs) -> Option<PathBuf> {
        self.of_process_v2(proc, i32::try_from(std::process::id()).ok()?)
    }

    fn of_process_v2(&self, proc: &ProcFs, pid: i32) -> Option<PathBuf> {
        self.v2.as_ref()?.of_process(proc, pid, str::is_empty)
    }

    fn of_process_v1(&self, proc: &ProcFs, pid: i32, controller: &str) -> Option<PathBuf> {
        self.v1.get(controller)?.of_process(proc, pid, |cs| cs.split(',').any(|c| c == controller))
    }

    /// The group that the memory of the process `pid` is charged to, where there is one and it lies in what is mounted.
    pub fn memory_of(&self, proc: &ProcFs, pid: i32) -> Option<MemoryGroup> {
        let version = self.charges_memory()?;
        let (hierarchy, dir) = match version {
            Version::V2 => (self.v2.as_ref()?, self.of_process_v2(proc, pid)?),
            Version::V1 => (self.v1.get(MEMORY)?, self.of_process_v1(proc, pid, MEMORY)?),
        };
        Some(MemoryGroup { version, top: hierarchy.at.clone(), dir })
    }

    /// By which version memory is charged: only one can have the controller. `None` where it is by neither.
    pub fn charges_memory(&self) -> Option<Version> {
        if self.v2.as_ref().is_some_and(Hierarchy::has_memory) {
            return Some(Version::V2);
        }
        self.v1.contains_key(MEMORY).then_some(Version::V1)
    }

    /// The directory of this process in the version 1 hierarchy of `controller`.
    pub fn own_v1(&self, proc: &ProcFs, controller: &str) -> Option<PathBuf> {
        self.of_process_v1(proc, i32::try_from(std::process::id()).ok()?, controller)
    }
}

impl Hierarchy {
    /// In version 2.
    fn has_memory(&self) -> bool {
        let controllers = std::fs::read_to_string(self.at.join("cgroup.controllers")).unwrap_or_default();
        controllers.split_whitespace().any(|c| c == MEMORY)
    }

    /// The directory of a process, where the mounted part holds it.
    fn of_process(&self, proc: &ProcFs, pid: i32, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
        let groups = proc.cgroups(pid).ok()?;
        let group = groups.into_iter().find(|group| is_it(&group.controllers))?;
        let dir = self.at.join(group.path.strip_prefix(&self.root).ok()?);
        // A path that leads out of the mounted part ("/..") is of no use.
        (!group.path.components().any(|c| c.as_os_str() == "..") && dir.is_dir()).then_some(dir)
    }
}

impl MemoryGroup {
    /// What a process comes into it by: its directory, held open (version 2), or its `tasks`, opened to be written
    /// (version 1). For [`crate::copier::Copier::order`].
    pub fn entrance(&self) -> io::Result<OwnedFd> {
        let (path, flags) = match self.version {
            Version::V2 => (self.dir.clone(), OFlags::PATH | OFlags::DIRECTORY),
            Version::V1 => (self.dir.join("tasks"), OFlags::WRONLY | OFlags::NOFOLLOW),
        };
        Ok(rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())?)
    }
}

/// A control group. Making and removing one is the journal's business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    dir: PathBuf,
}

impl Cgroup {
    /// The group in `dir`, which exists.
    pub fn at(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Its directory, below the mount of its hierarchy.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes one of its files.
    #[allow(clippy::disallowed_methods, reason = "the file system of control groups lets nobody make a file")]
    pub fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.dir.join(file);
        std::fs::write(&path, value).map_err(|e| Error::io("write", path.shown().to_string(), e))
    }

    /// Time in which at least one of its tasks waited for I/O, in microseconds since it was made
    /// (`io.pressure`, version 2 only).
    pub fn io_stall_us(&self) -> Result<u64> {
        let path = self.dir.join("io.pressure");
        let text =
            std::fs::read_to_string(&path).map_err(|e| Error::io("read", path.shown().to_string(), e))?;
        let pressure = Pressure::parse(&text);
        pressure.map(|p| p.some.total_us).ok_or(Error::Parse {
            file: path,
            text,
            expected: Pressure::EXPECTED,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// As runc mounts version 1 for a container without a cgroup namespace.
    #[test]
    fn a_containers_own_group_is_found_where_its_part_of_the_hierarchy_is_mounted() {
        let root = tempfile::tempdir().unwrap();
        let process = root.path().join("proc").join(std::process::id().to_string());
        fs::create_dir_all(&process).unwrap();
        fs::write(process.join("cgroup"), "4:memory:/box/c1/own\n7:blkio:/box/c1\n1:cpu:/box/c2\n0::/\n")
            .unwrap();
        let mounted = |name: &str, root_of_mount: &str| {
            let at = root.path().join(name);
            fs::create_dir_all(at.join("own")).unwrap();
            (name.to_owned(), Hierarchy { at, root: root_of_mount.into() })
        };
        let found = Hierarchies {
            v2: Some(mounted("v2", "/..").1),
            v1: ["memory", "blkio", "cpu"].map(|name| mounted(name, "/box/c1")).into(),
        };
        let proc = ProcFs::new(root.path().join("proc"));
        let memory = root.path().join("memory");
        assert_eq!(found.own_v1(&proc, "memory"), Some(memory.join("own")));
        let own = found.memory_of(&proc, std::process::id().cast_signed());
        let charged = MemoryGroup { version: Version::V1, dir: memory.join("own"), top: memory };
        assert_eq!(own, Some(charged));
        assert_eq!(found.own_v1(&proc, "blkio"), Some(root.path().join("blkio")));
        assert_eq!(found.own_v1(&proc, "cpu"), None, "its group is not in the part that is mounted");
        assert_eq!(
            found.own_v2(&proc),
            None,
            "mounted from above the namespace: where we are below it is unknown"
        );
        // Where version 2 has the controller, version 1 charges nothing.
        fs::write(root.path().join("v2/cgroup.controllers"), "cpu memory\n").unwrap();
        assert_eq!(found.charges_memory(), Some(Version::V2));
        assert_eq!(found.memory_of(&proc, std::process::id().cast_signed()), None);
        assert_eq!(Hierarchies::default().charges_memory(), None);
    }
}
