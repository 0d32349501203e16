//! Whether a replay can help now. Each question costs some tens of microseconds; the commonest case, that
//! all is cached, is asked first and ends the asking.

mod busy;
mod memory;
mod warm;
mod weather;

pub(crate) use busy::{Hunger, Waits, is_busy};
pub(crate) use memory::{room, room_of};
pub use warm::Sample;
pub(crate) use warm::{Look, absent_runs, sample};
pub use weather::Weather;

/// Which questions are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guards {
    /// Skip when the plan's pages are cached already.
    pub warm: bool,
    /// Look for that at more places: for who holds no program up by it.
    pub finely: bool,
    /// Read no more than half of the memory that is free for it, also by the control group's limits.
    pub memory: bool,
    /// Skip when tasks wait for memory, or for a disk that is busy with others' requests.
    pub pressure: bool,
}

impl Default for Guards {
    fn default() -> Self {
        Self { warm: true, finely: false, memory: true, pressure: true }
    }
}
