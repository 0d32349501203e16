//! The lock of a store, which is also its mark: a directory with it was made to hold plans.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::{Error, Result, own};

/// The file whose lock a changing process holds.
pub(super) const NAME: &str = "lock";
/// What is in it.
const MARK: &[u8] = b"coldstart plans\n";

/// Whose a file of this name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// It holds the mark: the directory is a store.
    Ours,
    /// Empty: not marked yet.
    None,
    /// It holds something else: another program's lock.
    Others,
}

fn mark(bytes: &[u8]) -> Mark {
    match bytes {
        MARK => Mark::Ours,
        [] => Mark::None,
        _ => Mark::Others,
    }
}

/// What the file says; `None` where there is none that can be read.
pub(super) fn read(path: &Path) -> Result<Option<Mark>> {
    let bytes = own::beginning(path, MARK.len() as u64 + 1).map_err(|e| Error::io("read", path, e))?;
    Ok(bytes.map(|bytes| mark(&bytes)))
}

/// Takes the lock, waiting for whoever holds it, and marks the directory.
pub(super) fn take(path: &Path) -> Result<File> {
    let mut file = cold_sys::open::for_lock(path).map_err(|e| Error::io("open", path, e))?;
    file.lock().map_err(|e| Error::io("lock", path, e))?;
    let empty = file.metadata().map_err(|e| Error::io("stat", path, e))?.len() == 0;
    if empty {
        // Its place is ours already; a mark that a full disk keeps out is made the next time.
        let written = file.write_all(MARK);
        if written.is_err() {
            let _ = file.set_len(0);
        }
    }
    Ok(file)
}
