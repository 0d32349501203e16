//! Stopping the command's process group again and again, as a slow disk would have stopped it.
//!
//! The supervisor does it, and no `cold` that may be killed in a pause: it waits for the command, so it knows that the
//! group's number is still the command's, and what is stopped ends with the tree.

use cold_model::Nanos;

use super::super::protocol::{Pauses, Usage};

/// The pauses of one command that runs.
pub(super) struct Pacer {
    pauses: Pauses,
    group: libc::pid_t,
    /// It is stopped.
    stopped: bool,
    /// Since when it has been stopped, or has run.
    since: Nanos,
}

impl Pacer {
    /// Of the group of this child, which was not waited for and began to run at `since`.
    pub(super) fn new(pauses: Pauses, group: libc::pid_t, since: Nanos) -> Self {
        Self { pauses, group, stopped: false, since }
    }

    /// A stop is no end: this process is not to be woken by it, least of all where the command runs.
    pub(super) fn sleep_through_stops() {
        // SAFETY: sigaction is plain data for which zero is valid; the flag only spares signals.
        unsafe {
            let mut act: libc::sigaction = std::mem::zeroed();
            act.sa_sigaction = libc::SIG_DFL;
            act.sa_flags = libc::SA_NOCLDSTOP;
            libc::sigaction(libc::SIGCHLD, &raw const act, std::ptr::null_mut());
        }
    }

    /// When the group is to be stopped next, or to go on.
    pub(super) fn due(&self) -> Nanos {
        let lasts = if self.stopped { self.pauses.length } else { self.pauses.after };
        Nanos(self.since.0.saturating_add(lasts.0))
    }

    /// Stops the group, or lets it go on, where that is due. `clock` tells the time.
    pub(super) fn turn(&mut self, usage: &mut Usage, clock: impl Fn() -> Nanos) {
        let now = clock();
        if now < self.due() {
            return;
        }
        if self.stopped {
            self.signal(libc::SIGCONT);
            usage.paused += now.saturating_sub(self.since);
            // Counted with its length: one that met the command's end stopped nobody.
            usage.pauses += 1;
        } else {
            // Not waited for: one who has just made a child by vfork stops only when that has become a program.
            self.signal(libc::SIGSTOP);
        }
        self.stopped = !self.stopped;
        self.since = clock();
    }

    fn signal(&self, signal: libc::c_int) {
        // SAFETY: integers only. Whoever owns this drops it before the group's leader is waited for.
        unsafe { libc::kill(-self.group, signal) };
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;
    use crate::procfs::ProcFs;

    #[test]
    fn a_group_stops_and_goes_on_when_it_is_due_and_not_before() {
        let mut child = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        let pid = child.id().cast_signed();
        let state = || ProcFs::default().stat(pid).unwrap().state;
        let until = |wanted: bool| {
            let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
            while (state() == 'T') != wanted && std::time::Instant::now() < end {
                std::thread::yield_now();
            }
            assert_eq!(state() == 'T', wanted);
        };
        let clock = Cell::new(Nanos(1000));
        let mut usage = Usage::default();
        let mut pacer = Pacer::new(Pauses { after: Nanos(500), length: Nanos(70) }, pid, Nanos(1000));
        let mut at = |time, usage: &mut Usage| {
            clock.set(Nanos(time));
            pacer.turn(usage, || clock.get());
            pacer.due()
        };
        assert_eq!(at(1499, &mut usage), Nanos(1500));
        until(false);
        assert_eq!(at(1510, &mut usage), Nanos(1580), "from when it was stopped");
        until(true);
        assert_eq!(at(1579, &mut usage), Nanos(1580));
        until(true);
        assert_eq!((usage.pauses, usage.paused), (0, Nanos(0)), "it is not over");
        assert_eq!(at(1600, &mut usage), Nanos(2100));
        until(false);
        assert_eq!((usage.pauses, usage.paused), (1, Nanos(90)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
