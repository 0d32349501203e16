//! Where journals lie, and whether a journal may be believed.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// `journal` in [`cold_sys::place::state_directory`].
pub fn default_directory() -> Result<PathBuf> {
    let state = cold_sys::place::state_directory(|name| std::env::var_os(name));
    state.map(|state| state.join("journal")).ok_or(Error::NoDirectory)
}

/// Creates the directory (mode 0700) where it is missing, and checks it.
pub(crate) fn prepare(dir: &Path) -> Result<()> {
    cold_sys::place::create_directory(dir, 0o700).map_err(|e| Error::io("create", dir, e))?;
    let meta = dir.metadata().map_err(|e| Error::io("stat", dir, e))?;
    trusted(dir, &meta)
}

/// Refuses what belongs to somebody else or can be written by others: undoing its records would run
/// with our rights.
pub(crate) fn trusted(path: &Path, meta: &Metadata) -> Result<()> {
    let me = rustix::process::geteuid().as_raw();
    match cold_sys::place::distrust(meta, &[me]) {
        Some(why) => Err(Error::Untrusted { path: path.to_owned(), why }),
        None => Ok(()),
    }
}
