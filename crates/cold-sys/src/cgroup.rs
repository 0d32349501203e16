//! Control groups, both versions: where they are mounted, where we are, their files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;

use crate::procfs::{Mount, Pressure, ProcFs};
use crate::{Error, Result};

/// The mounted hierarchies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hierarchies {
    /// Mount point of version 2, if mounted (alone or beside version 1).
    pub v2: Option<PathBuf>,
    /// Mount points of version 1 by controller.
    pub v1: BTreeMap<String, PathBuf>,
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
            match m.fs_type.as_str() {
                "cgroup2" => found.v2 = Some(m.mount_point.clone()),
                // The controllers are among the super options, but the mount point is by convention
                // named after them (`blkio`, `cpu,cpuacct`), also where options are not repeated.
                "cgroup" => {
                    let names = m.mount_point.file_name().and_then(|n| n.to_str()).unwrap_or_default();
                    for c in names.split(',').filter(|c| !c.is_empty()) {
                        found.v1.insert(c.to_owned(), m.mount_point.clone());
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// The directory of this process in version 2.
    pub fn own_v2(&self, proc: &ProcFs) -> Option<PathBuf> {
        own(proc, self.v2.as_deref()?, str::is_empty)
    }

    /// The directory of this process in the version 1 hierarchy of `controller`.
    pub fn own_v1(&self, proc: &ProcFs, controller: &str) -> Option<PathBuf> {
        own(proc, self.v1.get(controller)?, |cs| cs.split(',').any(|c| c == controller))
    }
}

fn own(proc: &ProcFs, mount: &Path, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let pid = i32::try_from(std::process::id()).ok()?;
    let groups = proc.cgroups(pid).ok()?;
    let (_, _, path) = groups.into_iter().find(|(_, controllers, _)| is_it(controllers))?;
    let dir = mount.join(path.strip_prefix("/").ok()?);
    // A path that leads out of the mounted part ("/..") is of no use.
    (!path.components().any(|c| c.as_os_str() == "..") && dir.is_dir()).then_some(dir)
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

    /// Its directory.
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
