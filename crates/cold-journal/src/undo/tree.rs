//! Removing files and directories that were created, and nothing that only has their names.

use std::fs::{self, Metadata};
use std::path::Path;

use cold_model::FileId;
use cold_sys::procfs::ProcFs;

use super::{Outcome, is_gone};
use crate::{Error, Result};

pub(super) fn remove_file(path: &Path, parent: FileId, identity: Option<FileId>) -> Result<Outcome> {
    let meta = match recognise(path, parent, identity)? {
        Found::Ours(meta) => meta,
        Found::Other(outcome) => return Ok(outcome),
    };
    if !meta.is_file() {
        return Ok(Outcome::ChangedByOthers { found: "it is no regular file".to_owned() });
    }
    if identity.is_none() && meta.len() > 0 {
        // Killed between creating and confirming it we had written nothing yet.
        return Ok(Outcome::ChangedByOthers { found: format!("a file of {} bytes", meta.len()) });
    }
    fs::remove_file(path).map_err(|e| Error::io("remove", path, e))?;
    Ok(Outcome::Restored)
}

pub(super) fn remove_directory(
    proc: &ProcFs,
    path: &Path,
    parent: FileId,
    identity: Option<FileId>,
) -> Result<Outcome> {
    let meta = match recognise(path, parent, identity)? {
        Found::Ours(meta) => meta,
        Found::Other(outcome) => return Ok(outcome),
    };
    if !meta.is_dir() {
        return Ok(Outcome::ChangedByOthers { found: "it is no directory".to_owned() });
    }
    if identity.is_none() {
        // Not confirmed, so nothing was put into it by us.
        return match fs::remove_dir(path) {
            Ok(()) => Ok(Outcome::Restored),
            Err(e) if e.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
                Ok(Outcome::ChangedByOthers { found: "a directory that is not empty".to_owned() })
            }
            Err(e) => Err(Error::io("remove", path, e)),
        };
    }
    // Removing must not reach through a mount into another file system.
    if let Some(m) = proc.mounts()?.iter().find(|m| m.mount_point.starts_with(path)) {
        let why = format!("{} is still mounted; unmount it and repair again", m.mount_point.display());
        return Err(Error::refused("remove", path, why));
    }
    // Does not follow symbolic links, also not ones put there meanwhile.
    fs::remove_dir_all(path).map_err(|e| Error::io("remove", path, e))?;
    Ok(Outcome::Restored)
}

enum Found {
    Ours(Metadata),
    Other(Outcome),
}

/// Whether the name still is in the directory it was created in, and still is what was created.
fn recognise(path: &Path, parent: FileId, identity: Option<FileId>) -> Result<Found> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    for (of, wanted) in [(dir, Some(parent)), (path, identity)] {
        match of.symlink_metadata() {
            Err(e) if is_gone(&e) => return Ok(Found::Other(Outcome::Gone)),
            Err(e) => return Err(Error::io("stat", of, e)),
            Ok(meta) if wanted.is_some_and(|w| w != FileId::of(&meta)) => {
                let found = format!("{} is another one", of.display());
                return Ok(Found::Other(Outcome::ChangedByOthers { found }));
            }
            Ok(meta) if of == path => return Ok(Found::Ours(meta)),
            Ok(_) => {}
        }
    }
    Ok(Found::Other(Outcome::Gone))
}
