//! Files that a user asked for: looked at before the work, written whole after it.

use std::path::Path;

use anyhow::Context as _;
use cold_model::Shown as _;
use cold_sys::whole::{self, Ownership};

use crate::exit::Failure;

/// Fails when a file of this name could not be written later on, as far as that can be known.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    let cannot = |why: String| Err(Failure::usage(format!("cannot write {}: {why}", path.shown())));
    let dir = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match dir.metadata() {
        Ok(meta) if meta.is_dir() => {}
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            let failed = anyhow::Error::new(e).context(format!("cannot look at {}", dir.shown()));
            return Err(Failure::from(failed));
        }
        _ => return cannot(format!("there is no directory {}", dir.shown())),
    }
    if path.is_dir() {
        return cannot("it is a directory".to_owned());
    }
    Ok(())
}

/// Writes it. What had this name before stays as it was until all of the new file is on the disk.
pub(crate) fn save(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), Failure> {
    let written = whole::write(path, Ownership::Result, bytes.as_ref());
    Ok(written.with_context(|| format!("cannot write {}", path.shown()))?)
}
