//! Waiting for conditions instead of for time.
#![allow(clippy::panic)] // for tests only

use std::collections::BTreeMap;
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

/// Tries a scenario five times, and for two minutes, until it says what it came to: on a machine with other
/// users any single one may be disturbed, and a compiler beside it disturbs all of them until it is done.
/// What no stranger can have done the scenario does not return but panics about.
///
/// # Panics
/// When each attempt was disturbed, with all their reasons.
#[track_caller]
pub fn attempts<T>(mut scenario: impl FnMut() -> Result<T, String>) -> T {
    let (began, mut tries, mut reasons) = (Instant::now(), 0, BTreeMap::<String, u32>::new());
    while tries < 5 || began.elapsed() < PATIENCE * 2 {
        tries += 1;
        match scenario() {
            Ok(value) => return value,
            Err(why) => *reasons.entry(why).or_default() += 1,
        }
    }
    let reasons: Vec<_> = reasons.iter().map(|(why, n)| format!("{n} times: {why}")).collect();
    panic!("never undisturbed:\n{}", reasons.join("\n"));
}
