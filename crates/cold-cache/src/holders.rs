//! Who holds a file: processes that map or open it, loop devices over it, swap on it.
//!
//! A mapping keeps its pages in the cache against every eviction except reclaim; an open descriptor
//! alone does not, but tells who will read next. Files are found by device and inode. On btrfs and
//! overlayfs the device in `/proc/PID/maps` is not the one `stat` reports: such candidates (same inode,
//! or same file name) are settled by a `stat` through `/proc/PID/map_files`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cold_model::FileId;
use cold_sys::procfs::{MapEntry, ProcFs};

use crate::Result;

/// A process that holds a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Process id, as `/proc` names it.
    pub pid: i32,
    /// Command name (at most 15 bytes, as the kernel keeps it).
    pub name: String,
    /// Bytes of address space that map the file.
    pub mapped: u64,
    /// Bytes of these mappings in the process's working set (smaps `Rss`; private copies of written
    /// pages included); `None` when smaps could not be read.
    pub resident: Option<u64>,
    /// Bytes of these mappings locked by mlock (smaps `Locked`).
    pub locked: u64,
    /// Open descriptors on the file.
    pub open: u64,
    /// It is the program the process runs.
    pub executes: bool,
}

/// A holder that is no process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemHolder {
    /// The file backs a loop device (`loop0`).
    Loop(String),
    /// The file is active swap.
    Swap,
}

impl From<SystemHolder> for crate::Reason {
    fn from(holder: SystemHolder) -> Self {
        match holder {
            SystemHolder::Loop(device) => Self::Loop { device },
            SystemHolder::Swap => Self::Swap,
        }
    }
}

/// All holders of one file; processes with the most resident bytes first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileHolders {
    /// Processes that map it or have it open.
    pub processes: Vec<Holder>,
    /// Loop devices and swap.
    pub system: Vec<SystemHolder>,
}

impl FileHolders {
    /// Bytes of the file in the working sets of its processes, added up; of a process that may not be looked at, all
    /// that it maps.
    pub fn weight(&self) -> u64 {
        self.processes.iter().map(|p| p.resident.unwrap_or(p.mapped)).sum()
    }
}

/// Holders of several files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holders {
    /// Files that somebody holds; a file without entry is held by none of the inspected processes.
    pub by_file: HashMap<FileId, FileHolders>,
    /// Processes that could not be inspected for lack of permission.
    pub uninspected: u64,
}

impl Holders {
    /// The processes that map `id`.
    pub fn mapping(&self, id: FileId) -> impl Iterator<Item = &Holder> {
        self.by_file.get(&id).into_iter().flat_map(|h| &h.processes).filter(|h| h.mapped > 0)
    }
}

/// The files sought, by the keys that mappings show.
pub(crate) struct Wanted {
    ids: HashSet<FileId>,
    inodes: HashSet<u64>,
    names: HashSet<OsString>,
}

impl Wanted {
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a Path, FileId)>) -> Self {
        let mut wanted = Self { ids: HashSet::new(), inodes: HashSet::new(), names: HashSet::new() };
        for (path, id) in files {
            wanted.ids.insert(id);
            wanted.inodes.insert(id.ino);
            wanted.names.extend(path.file_name().map(OsString::from));
        }
        wanted
    }

    /// Whether a descriptor is worth a `stat`. A `stat` of every descriptor would hang on the first one
    /// whose file system does not answer (a dead NFS or FUSE server), so the kernel's own notes decide:
    /// the inode in `fdinfo` (5.14+), or the file's name where overlayfs shows another inode.
    fn may_be_open(&self, proc: &ProcFs, pid: i32, fd: i32, target: &Path) -> bool {
        if !target.is_absolute() {
            return false; // a socket, pipe or other thing without a path
        }
        let inode = proc.process_field(pid, &format!("fdinfo/{fd}"), "ino").ok().flatten();
        inode.is_some_and(|i| self.inodes.contains(&i)) || self.has_name(target)
    }

    fn has_name(&self, path: &Path) -> bool {
        path.file_name().is_some_and(|n| self.names.contains(n))
    }

    /// The wanted file that `map` of process `pid` maps, if any.
    pub(crate) fn of_mapping(&self, proc: &ProcFs, pid: i32, map: &MapEntry) -> Option<FileId> {
        if map.inode == 0 {
            return None;
        }
        let shown = FileId { dev: map.dev.number(), ino: map.inode };
        if self.ids.contains(&shown) {
            return Some(shown);
        }
        let name = map.path.as_deref().and_then(Path::file_name);
        if !self.inodes.contains(&map.inode) && !name.is_some_and(|n| self.names.contains(n)) {
            return None;
        }
        let link = proc.path(format!("{pid}/map_files/{:x}-{:x}", map.start, map.end));
        // The link needs CAP_CHECKPOINT_RESTORE; without it the path must do, seen from that process.
        let meta = std::fs::metadata(link).or_else(|e| match &map.path {
            Some(path) if !map.deleted => {
                let inside = path.strip_prefix("/").unwrap_or(path);
                std::fs::metadata(proc.path(format!("{pid}/root")).join(inside))
            }
            _ => Err(e),
        });
        meta.ok().map(|m| FileId::of(&m)).filter(|id| self.ids.contains(id))
    }
}

/// How closely processes are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Who maps and opens; working sets only of processes that lock memory.
    Mappings,
    /// Also how much of it each has in its working set. The kernel walks all page tables of every such
    /// process for this: 20 ms and more for each GiB.
    WorkingSets,
}

/// Finds who holds `files`, given as path and identity. `sys` is the root of sysfs (`/sys`).
///
/// Processes that end meanwhile are skipped; those that may not be inspected are counted.
pub fn holders<'a>(
    proc: &ProcFs,
    sys: &Path,
    files: impl IntoIterator<Item = (&'a Path, FileId)>,
) -> Result<Holders> {
    find(proc, sys, files, Detail::WorkingSets)
}

/// As [`holders`], as closely as asked for.
pub(crate) fn find<'a>(
    proc: &ProcFs,
    sys: &Path,
    files: impl IntoIterator<Item = (&'a Path, FileId)>,
    detail: Detail,
) -> Result<Holders> {
    let wanted = Wanted::new(files);
    let mut found = Holders::default();
    if wanted.ids.is_empty() {
        return Ok(found);
    }
    for pid in proc.pids()? {
        match inspect(proc, pid, &wanted, detail) {
            Ok(per_file) => {
                for (id, holder) in per_file {
                    found.by_file.entry(id).or_default().processes.push(holder);
                }
            }
            Err(e) if matches!(e.errno(), Some(EACCES | EPERM)) => found.uninspected += 1,
            Err(_) => {} // it has ended
        }
    }
    for (id, holder) in system_holders(proc, sys, &wanted) {
        if wanted.ids.contains(&id) {
            found.by_file.entry(id).or_default().system.push(holder);
        }
    }
    for holders in found.by_file.values_mut() {
        holders.processes.sort_by_key(|h| (std::cmp::Reverse((h.resident, h.mapped)), h.pid));
    }
    Ok(found)
}

pub(crate) const EPERM: i32 = 1;
pub(crate) const EACCES: i32 = 13;

/// What process `pid` holds of the wanted files.
fn inspect(
    proc: &ProcFs,
    pid: i32,
    wanted: &Wanted,
    detail: Detail,
) -> cold_sys::Result<BTreeMap<FileId, Holder>> {
    let mut held: BTreeMap<FileId, Holder> = BTreeMap::new();
    let mut by_start: HashMap<u64, FileId> = HashMap::new();
    for map in proc.maps(pid)? {
        if let Some(id) = wanted.of_mapping(proc, pid, &map) {
            held.entry(id).or_insert_with(|| nobody(pid)).mapped += map.end - map.start;
            by_start.insert(map.start, id);
        }
    }
    for fd in proc.fds(pid)? {
        if wanted.may_be_open(proc, pid, fd.fd, &fd.target)
            && let Ok(meta) = std::fs::metadata(proc.path(format!("{pid}/fd/{}", fd.fd)))
            && wanted.ids.contains(&FileId::of(&meta))
        {
            held.entry(FileId::of(&meta)).or_insert_with(|| nobody(pid)).open += 1;
        }
    }
    if held.is_empty() {
        return Ok(held);
    }
    let name = proc.comm(pid)?;
    let exe = std::fs::metadata(proc.path(format!("{pid}/exe"))).ok().map(|m| FileId::of(&m));
    for (id, holder) in &mut held {
        holder.name.clone_from(&name);
        holder.executes = exe == Some(*id);
    }
    let look = detail == Detail::WorkingSets
        || proc.process_field(pid, "status", "VmLck").is_ok_and(|locked| locked != Some(0));
    if look
        && !by_start.is_empty()
        && let Ok(parts) = proc.smaps(pid)
    {
        for holder in held.values_mut() {
            holder.resident = Some(0);
        }
        for part in parts {
            if let Some(holder) = by_start.get(&part.start).and_then(|id| held.get_mut(id)) {
                holder.resident = holder.resident.map(|r| r + part.resident);
                holder.locked += part.locked;
            }
        }
    }
    Ok(held)
}

fn nobody(pid: i32) -> Holder {
    Holder { pid, name: String::new(), mapped: 0, resident: None, locked: 0, open: 0, executes: false }
}

/// Backing files of loop devices and swap files.
fn system_holders(proc: &ProcFs, sys: &Path, wanted: &Wanted) -> Vec<(FileId, SystemHolder)> {
    // By name first, for the same reason as descriptors.
    let id_of = |path: &Path| {
        let meta = wanted.has_name(path).then(|| std::fs::metadata(path).ok()).flatten();
        meta.map(|m| FileId::of(&m))
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(sys.join("block")).into_iter().flatten().flatten() {
        let file = entry.path().join("loop/backing_file");
        if let Ok(backing) = std::fs::read_to_string(file)
            && let Some(id) = id_of(Path::new(backing.trim_end_matches('\n')))
        {
            found.push((id, SystemHolder::Loop(entry.file_name().to_string_lossy().into_owned())));
        }
    }
    for line in proc.read("swaps").unwrap_or_default().lines().skip(1) {
        let mut words = line.split_whitespace();
        if let (Some(path), Some("file")) = (words.next(), words.next())
            && let Some(id) = id_of(&PathBuf::from(path.replace("\\040", " ")))
        {
            found.push((id, SystemHolder::Swap));
        }
    }
    found
}

#[cfg(test)]
mod tests;
