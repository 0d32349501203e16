//! Writing an imported recording: whole, whatever signal arrives meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cold_model::recording::Recording;

use crate::exit::{Exit, Failure};
use crate::interrupt::interrupt;
use crate::recorder::Directory;

/// Where a recording went.
pub(super) struct Saved {
    pub(super) directory: PathBuf,
    interrupted: Arc<AtomicBool>,
}

impl Saved {
    /// How the command ends: it was interrupted if it was asked to end, though the recording is there.
    pub(super) fn exit(&self) -> Exit {
        if self.interrupted.load(Ordering::Relaxed) { Exit::Interrupted } else { Exit::Done }
    }
}

/// Writes it as wished, or under the first free name that `stem` gives. A request to end waits until it is whole.
pub(super) fn save(
    recording: &Recording,
    wish: Option<&Path>,
    overwrite: bool,
    stem: &str,
) -> Result<Saved, Failure> {
    let interrupted = interrupt()?;
    let mut directory = Directory::chosen(wish, overwrite, stem)?;
    cold_recording::begin(directory.path(), &recording.manifest, true)?;
    cold_recording::write(directory.path(), recording)?;
    directory.keep();
    Ok(Saved { directory: directory.path().to_owned(), interrupted })
}
