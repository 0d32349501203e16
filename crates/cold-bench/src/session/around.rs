//! Somebody who watches a measured start from outside: a recorder.

use std::path::PathBuf;

use crate::Result;
use crate::launch::LaunchedStart;

/// Called around each measured start. `()` does nothing.
pub trait Around {
    /// The state is prepared and the supervisor waits for the order to go: whatever descends from it
    /// later is the start's tree. The quiet time and the proof follow. Called again, with another
    /// supervisor, when the state was not reached and is prepared anew; what was begun before is void.
    /// `files` are those of the observed start, as far as it is known.
    fn waiting(&mut self, supervisor: u32, files: &[PathBuf]) -> Result<()>;
    /// The tree is gone and its devices are idle.
    fn gone(&mut self, start: &LaunchedStart) -> Result<()>;
}

impl Around for () {
    fn waiting(&mut self, _supervisor: u32, _files: &[PathBuf]) -> Result<()> {
        Ok(())
    }
    fn gone(&mut self, _start: &LaunchedStart) -> Result<()> {
        Ok(())
    }
}
