//! Looks at young processes until it is seen which of them started cold.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use cold_model::Nanos;
use cold_service::learning::{LOOKS, Look};
use cold_sys::exec_watch::ExecutedFile;
use cold_sys::procfs::ProcFs;
use cold_sys::time::monotonic;

use super::{Inner, LOOK, MOST_YOUNG, Young};

/// A file that was executed is not looked at again for so long, and
const AGAIN: Nanos = Nanos(10_000_000_000);
/// of no more files than this that is remembered.
const MOST_FILES: usize = 4096;

/// A process that is looked at.
struct Watched {
    young: Young,
    starttime: u64,
    looks: usize,
}

impl Watched {
    fn due(&self) -> Nanos {
        Nanos(self.young.at.0 + LOOKS.get(self.looks).map_or(0, |after| after.0))
    }
}

/// Looks at young processes until the service ends.
pub(super) fn notice(inner: &Inner, from: &Receiver<Young>) {
    let proc = ProcFs::default();
    let mut watched: Vec<Watched> = Vec::new();
    let mut looked: HashMap<(ExecutedFile, Option<ExecutedFile>), Nanos> = HashMap::new();
    while !inner.ends() {
        inner.look_at_followed();
        let due = watched.iter().map(Watched::due).min();
        let wait = due.map_or(LOOK, |due| Duration::from_nanos(due.saturating_sub(monotonic()).0));
        match from.recv_timeout(wait.min(LOOK)) {
            Ok(young) => {
                if looked.len() >= MOST_FILES {
                    looked.clear();
                }
                let then = looked.insert((young.file, young.before), young.at);
                let again = then.is_some_and(|then| young.at.saturating_sub(then) < AGAIN);
                if !again
                    && watched.len() < MOST_YOUNG
                    && let Ok(stat) = proc.stat(young.pid)
                {
                    watched.push(Watched { young, starttime: stat.starttime, looks: 0 });
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = monotonic();
        watched.retain_mut(|w| w.due() > now || goes_on(inner, &proc, w));
    }
}

/// Looks at it once; whether it is to be looked at again.
fn goes_on(inner: &Inner, proc: &ProcFs, w: &mut Watched) -> bool {
    let pid = w.young.pid;
    let Ok(stat) = proc.stat(pid) else { return false };
    let read_bytes = proc.process_field(pid, "io", "read_bytes").ok().flatten().unwrap_or(0);
    if stat.starttime != w.starttime {
        return false;
    }
    // Cold before it has become the program: what reads then is the exec itself, and the next look tells whose.
    if (Look { read_bytes, major_faults: stat.majflt }).is_cold()
        && let Some(key) = inner.key_of(&w.young)
    {
        if inner.is_worth(&key, proc.user(pid)) {
            inner.was_cold(&key, &w.young);
        }
        return false;
    }
    w.looks += 1;
    w.looks < LOOKS.len()
}
