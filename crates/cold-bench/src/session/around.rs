//! Somebody who watches a measured start from outside: a recorder.

use crate::Result;

/// Called around each measured start. `()` does nothing.
pub trait Around {
    /// The state is prepared and the supervisor waits for the order to go: whatever descends from it
    /// later is the start's tree. The quiet time and the proof follow. Called again, with another
    /// supervisor, when the state was not reached and is prepared anew; what was begun before is void.
    fn waiting(&mut self, supervisor: u32) -> Result<()>;
    /// The tree is gone and its devices are idle.
    fn gone(&mut self) -> Result<()>;
}

impl Around for () {
    fn waiting(&mut self, _supervisor: u32) -> Result<()> {
        Ok(())
    }
    fn gone(&mut self) -> Result<()> {
        Ok(())
    }
}
