//! Removing files and directories that were created, and nothing that only has their names.

use std::io;
use std::path::Path;

use cold_model::Dev;
use cold_model::FileId;
use cold_model::Shown as _;
use cold_sys::procfs::ProcFs;
use cold_sys::remove::Entry;

use super::Outcome;
use crate::{Error, Result};

/// Removes what was created, by the way of its kind.
pub(super) fn remove(
    proc: &ProcFs,
    path: &Path,
    parent: FileId,
    identity: Option<FileId>,
    kind: fn(&ProcFs, &Path, Entry, bool) -> Result<Outcome>,
) -> Result<Outcome> {
    match recognise(proc, path, parent, identity)? {
        FoundTree::Ours(entry) => kind(proc, path, entry, identity.is_some()),
        FoundTree::Other(outcome) => Ok(outcome),
    }
}

/// A regular file; one that is not confirmed only while it is empty.
pub(super) fn file(_: &ProcFs, path: &Path, entry: Entry, confirmed: bool) -> Result<Outcome> {
    let meta = entry.meta();
    if !meta.is_file() {
        return Ok(others("it is no regular file"));
    }
    if !confirmed && meta.len() > 0 {
        // Killed between creating and confirming it we had written nothing yet.
        return Ok(others(format!("a file of {} bytes", meta.len())));
    }
    removed(path, entry.unlink())
}

/// A directory with all that is in it; one that is not confirmed only while it is empty.
pub(super) fn directory(proc: &ProcFs, path: &Path, entry: Entry, confirmed: bool) -> Result<Outcome> {
    if !entry.meta().is_dir() {
        return Ok(others("it is no directory"));
    }
    if !confirmed {
        // Nothing was put into it by us.
        return match entry.remove_empty() {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {
                Ok(others("a directory that is not empty"))
            }
            done => removed(path, done),
        };
    }
    // Said before anything is removed; the removal itself crosses no mount either.
    if let Some(m) = proc.mounts()?.iter().find(|m| m.mount_point.starts_with(path)) {
        let why = format!("{} is still mounted; unmount it and repair again", m.mount_point.shown());
        return Err(Error::refused("remove", path, why));
    }
    removed(path, entry.remove_tree())
}

fn removed(path: &Path, done: io::Result<bool>) -> Result<Outcome> {
    if done.map_err(|e| Error::io("remove", path, e))? {
        return Ok(Outcome::Restored);
    }
    Ok(others(format!("{} is another one", path.shown())))
}

fn others(found: impl Into<String>) -> Outcome {
    Outcome::ChangedByOthers { found: found.into() }
}

enum FoundTree {
    Ours(Entry),
    Other(Outcome),
}

/// Whether the name still is in the directory it was created in, and still is what was created. Not confirmed, it
/// has a name that only we knew; what somebody else moved there since is not taken for ours either.
fn recognise(proc: &ProcFs, path: &Path, parent: FileId, identity: Option<FileId>) -> Result<FoundTree> {
    let found = Entry::find(path).map_err(|e| Error::io("look for", path, e))?;
    let Some(entry) = found.filter(|entry| entry.parent() == parent) else {
        let dir = path.parent().unwrap_or(Path::new("/"));
        return Ok(match dir.symlink_metadata() {
            Ok(meta) if FileId::of(&meta) == parent => FoundTree::Other(Outcome::Gone),
            other => {
                still_there(proc, path, parent)?;
                FoundTree::Other(
                    other.map_or(Outcome::Gone, |_| others(format!("{} is another one", dir.shown()))),
                )
            }
        });
    };
    if identity.is_some_and(|id| id != entry.id()) {
        return Ok(FoundTree::Other(others(format!("{} is another one", path.shown()))));
    }
    let (owner, me) = (std::os::unix::fs::MetadataExt::uid(entry.meta()), rustix::process::geteuid());
    if identity.is_none() && owner != me.as_raw() {
        return Ok(FoundTree::Other(others(format!("it belongs to user {owner}"))));
    }
    Ok(FoundTree::Ours(entry))
}

/// An error when the directory is not where it was because the disk it lies on is not mounted now: then what was
/// made is still there.
fn still_there(proc: &ProcFs, path: &Path, parent: FileId) -> Result<()> {
    let dev = Dev::of_number(parent.dev);
    let size = std::fs::read_to_string(format!("/sys/dev/block/{dev}/size"));
    let disk = !dev.is_anonymous() && size.is_ok_and(|size| size.trim() != "0");
    if disk && proc.mounts()?.iter().all(|m| m.dev != dev) {
        let why = format!("the disk {dev} on which it lies is not mounted; mount it and repair again");
        return Err(Error::refused("remove", path, why));
    }
    Ok(())
}
