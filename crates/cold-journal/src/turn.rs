//! What belongs to the whole machine is changed by one process at a time.
//!
//! The journals are the truth: a setting is taken when the journal of another process says that it has to be put
//! back. Who looks and then writes his own record holds a lock on the directory meanwhile, for some milliseconds.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::change::Change;
use crate::file::{JournalFile, SUFFIX};
use crate::record::Owner;
use crate::{Error, Result, place};

/// The lock; it goes with this.
pub(crate) struct Turn {
    _directory: File,
}

/// Waits for the turn of this process.
pub(crate) fn take(dir: &Path) -> Result<Turn> {
    place::prepare(dir)?;
    let directory = File::open(dir).map_err(|e| Error::io("open", dir, e))?;
    directory.lock().map_err(|e| Error::io("lock", dir, e))?;
    Ok(Turn { _directory: directory })
}

/// Another journal in which a change of the same thing is not undone.
pub(crate) struct Holder {
    pub(crate) journal: PathBuf,
    pub(crate) owner: Option<Owner>,
}

/// The first journal beside `own` in which a change of the same thing as `change` is not undone.
pub(crate) fn holder(dir: &Path, own: Option<&Path>, change: &Change) -> Result<Option<Holder>> {
    for entry in std::fs::read_dir(dir).map_err(|e| Error::io("list", dir, e))? {
        let path = entry.map_err(|e| Error::io("list", dir, e))?.path();
        if path.extension().is_none_or(|e| e != SUFFIX) || Some(&*path) == own {
            continue;
        }
        let Some(content) = JournalFile::peek(&path)? else { continue };
        if content.pending.iter().any(|p| p.change.shares(change)) {
            return Ok(Some(Holder { journal: path, owner: content.owner }));
        }
    }
    Ok(None)
}
