//! For programs that read their own plan at their start, without a launcher.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cold_sys::shared::SharedWords;

use crate::engine::{Engine, Tally};
use crate::load;
use crate::options::{Options, Skip, Source};
use crate::prepare::{self, Conditions, Surroundings};
use crate::progress::Progress;

/// A replay going on in a thread of this process.
#[derive(Debug)]
pub struct Replay {
    shared: Arc<SharedWords>,
    thread: JoinHandle<Tally>,
}

impl Replay {
    /// Waits until what is needed first has been read ahead (or has arrived, if the plan says so); false
    /// when `limit` passed before.
    pub fn wait_critical(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while !Progress(&self.shared).is_open() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            Progress(&self.shared).wait_for_gate(left);
        }
        true
    }

    /// Waits until it is done and says what it did; `None` if it panicked.
    pub fn join(self) -> Option<Tally> {
        self.thread.join().ok()
    }
}

/// Replays the plan in the file `plan` from a thread of this process: for a program that calls this first
/// in its `main`. Of `options` the guards, the budget, the deadline and the gate count. The thread need not
/// be joined; it ends with the process, or at the deadline.
///
/// # Errors
/// Why the plan is not followed now, of which [`Skip::Warm`] is the usual one.
pub fn replay_self(plan: &Path, options: &Options) -> Result<Replay, Skip> {
    let began = Instant::now();
    let options = Options { source: Source::File(plan.to_owned()), ..options.clone() };
    let loaded = load::find(&options, None)?;
    let (places, limits) = {
        let view = loaded.view()?;
        prepare::usable(view)?;
        let (places, mounts) = prepare::places(view)?;
        let around = Surroundings { mounts: &mounts, weather: None };
        let limits = prepare::limits(view, &places, around, &options, began, &mut Conditions::default())?;
        (places, limits)
    };
    let shared = Arc::new(SharedWords::new()?);
    let gate = Arc::clone(&shared);
    let work = move || {
        // Checked above; the bytes are the same.
        let Ok(view) = loaded.view() else { return Tally::default() };
        let engine = Engine::new(view, &places, &gate, limits);
        engine.run();
        engine.tally()
    };
    let thread = std::thread::Builder::new().name("cold-launch".to_owned()).spawn(work);
    let thread = thread.map_err(|e| cold_sys::Error::io("start", "a thread", e))?;
    Ok(Replay { shared, thread })
}
