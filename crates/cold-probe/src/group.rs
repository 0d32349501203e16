//! A control group with a memory limit, of either version, journalled before it is made.

use std::path::Path;

use cold_journal::{Guard, Journal};
use cold_model::Bytes;
use cold_model::Shown as _;
use cold_sys::cgroup::{Cgroup, Hierarchies};
use cold_sys::procfs::ProcFs;

use crate::{Error, Result};

/// Memory of a group, in bytes; `None` where the kernel does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupMemory {
    /// All that is charged to it.
    pub used: Option<u64>,
    /// Cached pages of files.
    pub cache: Option<u64>,
    /// Memory of no file: `rss` of version 1, `anon` of version 2.
    pub anonymous: Option<u64>,
    /// Most that ever was charged (version 2: from 5.19 on).
    pub peak: Option<u64>,
    /// Refaults of file pages: those evicted and wanted again.
    pub refaults: Option<u64>,
}

/// A limited group; it goes, with its processes, when this is dropped.
#[derive(Debug)]
pub struct Group {
    cgroup: Cgroup,
    version: u8,
    limit: Bytes,
    _guards: Vec<Guard>,
}

impl Group {
    /// Makes one below the group of this process.
    pub fn create(journal: &Journal, limit: Bytes) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::NoLimit { why: "that takes root".to_owned() });
        }
        let proc = ProcFs::default();
        Self::create_in(&Hierarchies::find(&proc)?, &proc, journal, limit)
    }

    fn create_in(groups: &Hierarchies, proc: &ProcFs, journal: &Journal, limit: Bytes) -> Result<Self> {
        if let Some(own) = groups.own_v1(proc, "memory") {
            let (cgroup, guard) = limited(journal, &own, "memory.limit_in_bytes", limit)?;
            return Ok(Self { cgroup, version: 1, limit, _guards: vec![guard] });
        }
        let none = |why: String| Error::NoLimit { why };
        let Some(own) = groups.own_v2(proc) else {
            return Err(none("no control groups with a memory controller are mounted".to_owned()));
        };
        // Processes live in leaves only, so it is made beside our own group (in the root, below it).
        let is_root = groups.v2.as_ref().is_some_and(|v2| v2.at == own);
        let parent = if is_root { &*own } else { own.parent().unwrap_or(&own) };
        let offered = std::fs::read_to_string(parent.join("cgroup.controllers")).unwrap_or_default();
        if !offered.split_whitespace().any(|c| c == "memory") {
            return Err(none(format!("{} has no memory controller", parent.shown())));
        }
        let controller = journal.enable_controller(parent, "memory")?;
        let (cgroup, guard) = limited(journal, parent, "memory.max", limit)?;
        // The group has to go before the controller is switched off.
        Ok(Self {
            cgroup,
            version: 2,
            limit,
            _guards: [Some(guard), controller].into_iter().flatten().collect(),
        })
    }

    /// What was set.
    pub fn limit(&self) -> Bytes {
        self.limit
    }

    /// Moves a process in.
    pub fn add(&self, pid: u32) -> Result<()> {
        Ok(self.cgroup.set("cgroup.procs", &pid.to_string())?)
    }

    fn number(&self, file: &str) -> Option<u64> {
        std::fs::read_to_string(self.cgroup.dir().join(file)).ok()?.trim().parse().ok()
    }

    /// What it uses now.
    pub fn memory(&self) -> GroupMemory {
        let text = std::fs::read_to_string(self.cgroup.dir().join("memory.stat")).unwrap_or_default();
        let stat = |name: &str| {
            text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
        };
        let (used, peak, cache, anonymous) = if self.version == 1 {
            ("memory.usage_in_bytes", "memory.max_usage_in_bytes", "cache", "rss")
        } else {
            ("memory.current", "memory.peak", "file", "anon")
        };
        GroupMemory {
            used: self.number(used),
            cache: stat(cache),
            anonymous: stat(anonymous),
            peak: self.number(peak),
            refaults: stat("workingset_refault_file"),
        }
    }
}

/// A new group in `parent` with its limit in `file`.
fn limited(journal: &Journal, parent: &Path, file: &str, limit: Bytes) -> Result<(Cgroup, Guard)> {
    let (dir, guard) = journal.create_cgroup(parent, "cold")?;
    let cgroup = Cgroup::at(dir);
    cgroup.set(file, &limit.0.to_string())?;
    Ok((cgroup, guard))
}

#[cfg(test)]
mod tests;
