//! Waiting for conditions instead of for time.
#![allow(clippy::panic)] // for tests only

use std::time::{Duration, Instant};

/// No test waits longer for anything; generous, because machines that test are busy.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Waits until `condition` gives a value.
///
/// # Panics
/// After [`PATIENCE`], naming `what`.
#[track_caller]
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
