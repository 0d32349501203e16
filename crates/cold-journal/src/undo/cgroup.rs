//! Removing a cgroup with its children and processes, on v1 and v2.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cold_model::FileId;
use cold_model::Shown as _;
use cold_sys::pidfd::PidFd;
use cold_sys::procfs::ProcFs;

use super::{Outcome, PATIENCE, until};
use crate::error::is_gone;
use crate::kernel::{KernelFile, locate};
use crate::{Error, Result, setting};

pub(super) fn remove(
    proc: &ProcFs,
    group: &Path,
    kernel: Option<&KernelFile>,
    identity: Option<FileId>,
) -> Result<Outcome> {
    let (Some(parent), Some(name)) = (group.parent(), group.file_name()) else { return Ok(Outcome::Gone) };
    // Only the parent was there when it was journalled.
    let Some(place) = locate(proc, kernel, parent)? else { return Ok(Outcome::Gone) };
    let path = place.path.join(name);
    let meta = match path.symlink_metadata() {
        Err(e) if is_gone(&e) => return Ok(Outcome::Gone),
        other => other.map_err(|e| Error::io("stat", group, e))?,
    };
    // Mounted anew it has another device number; its inode's stays.
    let ours = |id: FileId| if kernel.is_some() { id.ino == meta.ino() } else { id == FileId::of(&meta) };
    let others = |found: String| Ok(Outcome::ChangedByOthers { found });
    match identity {
        Some(id) if !ours(id) => return others("another cgroup of that name".to_owned()),
        // Not confirmed, it has a name that only we knew, and we had put no process into it yet.
        None if meta.uid() != rustix::process::geteuid().as_raw() => {
            return others(format!("a cgroup of user {}", meta.uid()));
        }
        None if !members(&path)?.is_empty() => return others("a cgroup with processes".to_owned()),
        _ => {}
    }
    // A process may fork while it is killed: kill until the directories can be removed.
    let removed = until(|| {
        let _ = setting::write(&path.join("cgroup.kill"), "1"); // v2, Linux 5.14
        kill_members(&path)?;
        Ok(remove_tree(&path)?.then_some(()))
    })?;
    if removed.is_some() {
        return Ok(Outcome::Restored);
    }
    let name = |pid| proc.comm(pid).unwrap_or_else(|_| "?".to_owned());
    let holders: Vec<String> = members(&path)?.iter().map(|&p| format!("{}[{p}]", name(p).shown())).collect();
    Err(Error::StillAlive {
        subject: format!("cgroup {}", group.shown()),
        holders: holders.join(", "),
        seconds: PATIENCE.as_secs(),
    })
}

/// Kills each member by descriptor, after making sure that it still is one: its pid could be another
/// process's by now. Never the calling process.
fn kill_members(path: &Path) -> Result<()> {
    let me = std::process::id().cast_signed();
    for pid in members(path)? {
        if pid != me
            && let Some(held) = PidFd::open(pid)?
            && members(path)?.contains(&pid)
        {
            held.kill()?;
        }
    }
    for child in children(path)? {
        kill_members(&child)?;
    }
    Ok(())
}

fn members(path: &Path) -> Result<Vec<i32>> {
    match fs::read_to_string(path.join("cgroup.procs")) {
        Err(e) if is_gone(&e) => Ok(Vec::new()),
        // A threaded v2 cgroup does not list its processes here; cgroup.kill has reached them.
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()) => Ok(Vec::new()),
        Err(e) => Err(Error::io("read", path.join("cgroup.procs"), e)),
        Ok(text) => Ok(text.lines().filter_map(|l| l.parse().ok()).collect()),
    }
}

fn children(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(path) {
        Err(e) if is_gone(&e) => return Ok(Vec::new()),
        other => other.map_err(|e| Error::io("list", path, e))?,
    };
    Ok(entries
        .filter_map(|e| e.ok().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())))
        .map(|e| e.path())
        .collect())
}

/// Removes the directories from the leaves up; false while one is busy.
fn remove_tree(path: &Path) -> Result<bool> {
    for child in children(path)? {
        if !remove_tree(&child)? {
            return Ok(false);
        }
    }
    match fs::remove_dir(path) {
        Ok(()) => Ok(true),
        Err(e) if is_gone(&e) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::ResourceBusy => Ok(false),
        Err(e) => Err(Error::io("remove", path, e)),
    }
}
