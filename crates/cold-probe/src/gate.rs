//! A start for threads that begin together, or not at all.

use std::sync::{Condvar, Mutex, PoisonError};

/// As a barrier, but one that can be given up: where the kernel refuses a thread (`EAGAIN`, `ENOMEM`), those that
/// came before would wait for it forever.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    waiting: usize,
    /// Decided: they go, or they do not.
    go: Option<bool>,
}

impl Gate {
    /// Waits until it is decided. False: there is nothing to be done.
    pub(crate) fn pass(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        self.changed.notify_all();
        loop {
            if let Some(go) = state.go {
                return go;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets all go as soon as so many wait.
    pub(crate) fn open(&self, threads: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.waiting < threads {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.decide(state, true);
    }

    /// Sends all home, also those that are still to come.
    pub(crate) fn give_up(&self) {
        self.decide(self.state.lock().unwrap_or_else(PoisonError::into_inner), false);
    }

    fn decide(&self, mut state: std::sync::MutexGuard<'_, GateState>, go: bool) {
        state.go = Some(go);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_go_together_or_none_does() {
        for wanted in [true, false] {
            let gate = Gate::default();
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| gate.pass())).collect();
                if wanted {
                    gate.open(4);
                } else {
                    gate.give_up();
                }
                assert!(threads.into_iter().all(|t| t.join().ok() == Some(wanted)));
            });
            assert_eq!(gate.pass(), wanted, "decided once");
        }
    }
}
