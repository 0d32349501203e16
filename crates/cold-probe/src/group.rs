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
mod tests {
    use std::fs;

    use cold_sys::cgroup::Hierarchy;

    use super::*;

    /// A tree of version 2 whose kernel does nothing: files are what was written.
    fn fake(own: &str, controllers: &str) -> (tempfile::TempDir, Hierarchies, ProcFs, Journal) {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        let process = path("proc").join(std::process::id().to_string());
        fs::create_dir_all(&process).unwrap();
        fs::write(process.join("cgroup"), format!("1:cpu:/x\n0::{own}\n")).unwrap();
        fs::create_dir_all(path("v2").join(own.trim_start_matches('/'))).unwrap();
        fs::write(path("v2/cgroup.controllers"), controllers).unwrap();
        fs::write(path("v2/cgroup.subtree_control"), "cpu\n").unwrap();
        let groups = Hierarchies {
            v2: Some(Hierarchy { at: path("v2"), root: "/".into() }),
            v1: [("cpu".to_owned(), Hierarchy { at: path("v1"), root: "/".into() })].into(),
        };
        let proc = ProcFs::new(path("proc"));
        let journal = Journal::open_in(path("journal"));
        (root, groups, proc, journal)
    }

    #[test]
    fn version_2_is_limited_beside_our_own_group() {
        for own in ["/session", "/"] {
            let (root, groups, proc, journal) = fake(own, "cpu memory io\n");
            let v2 = root.path().join("v2");
            let group = Group::create_in(&groups, &proc, &journal, Bytes(8 << 20)).unwrap();
            let begins = format!("cold-{}-", std::process::id());
            let made =
                |e: fs::DirEntry| e.file_name().to_string_lossy().starts_with(&begins).then(|| e.path());
            let dir = fs::read_dir(&v2).unwrap().find_map(|e| made(e.unwrap())).unwrap();
            assert_eq!(group.version, 2);
            assert_eq!(fs::read_to_string(dir.join("memory.max")).unwrap(), "8388608");
            assert_eq!(fs::read_to_string(v2.join("cgroup.subtree_control")).unwrap().trim(), "+memory");
            // No process has this number: ending the group kills its members.
            group.add(999_999_999).unwrap();
            assert_eq!(fs::read_to_string(dir.join("cgroup.procs")).unwrap(), "999999999");
            let unknown = GroupMemory::default();
            assert_eq!(group.memory(), unknown);
            fs::write(dir.join("memory.current"), "5000\n").unwrap();
            fs::write(dir.join("memory.peak"), "6000\n").unwrap();
            fs::write(dir.join("memory.stat"), "anon 1\nfile 2\nfile_mapped 9\nworkingset_refault_file 3\n")
                .unwrap();
            let known = GroupMemory {
                used: Some(5000),
                cache: Some(2),
                anonymous: Some(1),
                peak: Some(6000),
                refaults: Some(3),
            };
            assert_eq!(group.memory(), known);
            // Undoing is the journal's business, and takes a kernel.
            fs::remove_dir_all(&dir).unwrap();
        }
    }

    #[test]
    fn without_a_memory_controller_there_is_no_limit() {
        let (_root, groups, proc, journal) = fake("/", "cpu io\n");
        let why = Group::create_in(&groups, &proc, &journal, Bytes(8 << 20)).unwrap_err().to_string();
        assert!(why.contains("no memory controller"), "{why}");
        let none = Hierarchies::default();
        let why = Group::create_in(&none, &proc, &journal, Bytes(8 << 20)).unwrap_err().to_string();
        assert!(why.contains("mounted"), "{why}");
    }

    #[test]
    fn version_1_is_limited_below_our_own_group_and_told_in_its_own_words() {
        let (root, mut groups, proc, journal) = fake("/", "memory\n");
        let v1 = root.path().join("v1");
        fs::create_dir_all(v1.join("session")).unwrap();
        let process = root.path().join("proc").join(std::process::id().to_string());
        fs::write(process.join("cgroup"), "9:memory:/session\n0::/\n").unwrap();
        groups.v1.insert("memory".into(), Hierarchy { at: v1.clone(), root: "/".into() });
        let group = Group::create_in(&groups, &proc, &journal, Bytes(8 << 20)).unwrap();
        let dir = group.cgroup.dir().to_owned();
        assert_eq!((group.version, dir.parent()), (1, Some(&*v1.join("session"))));
        assert_eq!(fs::read_to_string(dir.join("memory.limit_in_bytes")).unwrap(), "8388608");
        fs::write(dir.join("memory.usage_in_bytes"), "5000\n").unwrap();
        // What is no number is not known.
        fs::write(dir.join("memory.max_usage_in_bytes"), "max\n").unwrap();
        fs::write(dir.join("memory.stat"), "cache 2\ntotal_cache 70\nrss_huge 9\nrss 1\n").unwrap();
        let known =
            GroupMemory { used: Some(5000), cache: Some(2), anonymous: Some(1), peak: None, refaults: None };
        assert_eq!(group.memory(), known);
        fs::remove_dir_all(&dir).unwrap();
    }
}
