//! A control group with a memory limit, of either version, journalled before it is made.

use std::path::PathBuf;

use cold_journal::{Guard, Journal};
use cold_model::Bytes;
use cold_sys::cgroup::{Cgroup, Hierarchies};
use cold_sys::procfs::ProcFs;

use crate::{Error, Result};

/// Memory of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupMemory {
    /// All that is charged to it.
    pub used: u64,
    /// Cached pages of files.
    pub cache: u64,
    /// Anonymous memory.
    pub anonymous: u64,
    /// Most that ever was charged; `None` where the kernel does not keep it (version 2 before 5.19).
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
        let proc = ProcFs::default();
        let none = |why: String| Error::NoLimit { why };
        if !rustix::process::geteuid().is_root() {
            return Err(none("that takes root".to_owned()));
        }
        let hierarchies = Hierarchies::find(&proc)?;
        let name = format!("cold-{}", std::process::id());
        if let Some(own) = hierarchies.own_v1(&proc, "memory") {
            let dir = free_name(&own, &name);
            let guard = journal.create_cgroup(&dir)?;
            let cgroup = Cgroup::at(dir);
            cgroup.set("memory.limit_in_bytes", &limit.0.to_string())?;
            return Ok(Self { cgroup, version: 1, limit, _guards: vec![guard] });
        }
        let Some(own) = hierarchies.own_v2(&proc) else {
            return Err(none("no control groups with a memory controller are mounted".to_owned()));
        };
        // Processes live in leaves only, so it is made beside our own group (in the root, below it).
        let root = hierarchies.v2.as_deref();
        let parent =
            if Some(own.as_path()) == root { own.clone() } else { own.parent().unwrap_or(&own).to_owned() };
        let offered = std::fs::read_to_string(parent.join("cgroup.controllers")).unwrap_or_default();
        if !offered.split_whitespace().any(|c| c == "memory") {
            return Err(none(format!("{} has no memory controller", parent.display())));
        }
        let mut guards: Vec<Guard> = journal.enable_controller(&parent, "memory")?.into_iter().collect();
        let dir = free_name(&parent, &name);
        guards.insert(0, journal.create_cgroup(&dir)?);
        let cgroup = Cgroup::at(dir);
        cgroup.set("memory.max", &limit.0.to_string())?;
        Ok(Self { cgroup, version: 2, limit, _guards: guards })
    }

    /// What was set.
    pub fn limit(&self) -> Bytes {
        self.limit
    }

    /// Moves a process in.
    pub fn add(&self, pid: u32) -> Result<()> {
        Ok(self.cgroup.set("cgroup.procs", &pid.to_string())?)
    }

    /// Begins a new high-water mark, where the kernel allows it.
    pub fn reset_peak(&self) {
        let file = if self.version == 1 { "memory.max_usage_in_bytes" } else { "memory.peak" };
        // Version 2 allows it from 6.12 on, and then per descriptor: the mark stays that of the whole run.
        let _ = self.cgroup.set(file, "0");
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
            used: self.number(used).unwrap_or(0),
            cache: stat(cache).unwrap_or(0),
            anonymous: stat(anonymous).unwrap_or(0),
            peak: self.number(peak),
            refaults: stat("workingset_refault_file"),
        }
    }
}

fn free_name(parent: &std::path::Path, name: &str) -> PathBuf {
    let names =
        (0..u32::MAX).map(|n| parent.join(if n == 0 { name.to_owned() } else { format!("{name}-{n}") }));
    names.into_iter().find(|p| !p.exists()).unwrap_or_else(|| parent.join(name))
}
