//! Processes held by descriptor, so that a reused pid is never signalled (`pidfd_open(2)`).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::helper::is_readable;
use crate::procfs::ProcFs;
use crate::{Error, Result};

/// A process that stays the same one, however often its pid is reused.
#[derive(Debug)]
pub struct PidFd {
    pid: i32,
    fd: OwnedFd,
}

impl PidFd {
    /// Holds the process that has `pid` now; `None` if there is none.
    pub fn open(pid: i32) -> Result<Option<Self>> {
        // Negative numbers and 0 mean process groups elsewhere; here they are nobody.
        let Some(raw) = Some(pid).filter(|pid| *pid > 0).and_then(Pid::from_raw) else { return Ok(None) };
        match rustix::process::pidfd_open(raw, PidfdFlags::empty()) {
            Ok(fd) => Ok(Some(Self { pid, fd })),
            Err(Errno::SRCH) => Ok(None),
            Err(e) => Err(Error::io("open", format!("pid {pid}"), e.into())),
        }
    }

    /// Holds the process with this pid and start time (field 22 of `/proc/PID/stat`, clock ticks since
    /// boot); `None` if it has ended, also when the pid belongs to another process by now.
    pub fn open_exact(proc: &ProcFs, pid: i32, starttime: u64) -> Result<Option<Self>> {
        let Some(held) = Self::open(pid)? else { return Ok(None) };
        // Read after holding it: what stat says now is about the held process or about no one.
        Ok(proc.stat(pid).is_ok_and(|s| s.starttime == starttime).then_some(held))
    }

    /// Another hold on the same process.
    pub fn duplicate(&self) -> Result<Self> {
        let fd = self.fd.try_clone().map_err(|e| Error::io("hold", format!("pid {}", self.pid), e))?;
        Ok(Self { pid: self.pid, fd })
    }

    /// The pid it had when it was opened.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Kills it with `SIGKILL`. A process that has already ended is no error.
    pub fn kill(&self) -> Result<()> {
        match rustix::process::pidfd_send_signal(&self.fd, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(e) => Err(Error::io("kill", format!("pid {}", self.pid), e.into())),
        }
    }

    /// Waits until it has ended (it may still be a zombie); false when `limit` passed first.
    pub fn wait(&self, limit: Duration) -> Result<bool> {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let ended = is_readable(self.fd.as_fd(), Some(left));
            if ended.map_err(|e| Error::io("wait for", format!("pid {}", self.pid), e))? {
                return Ok(true);
            }
            // Before it a signal has ended the wait.
            if Instant::now() >= deadline {
                return Ok(false);
            }
        }
    }
}

impl AsFd for PidFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    /// Ends with its test, however that ends.
    struct Sleeper(Child);

    impl Sleeper {
        fn end(&mut self) {
            let _ = self.0.kill();
            self.0.wait().expect("waited for");
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.end();
        }
    }

    fn child() -> (Sleeper, i32) {
        let child = Command::new("sleep").arg("1000").spawn().expect("started");
        let pid = child.id().cast_signed();
        (Sleeper(child), pid)
    }

    #[test]
    fn numbers_of_groups_and_of_nobody_are_no_process() {
        for pid in [0, -1, i32::MIN, i32::MAX] {
            assert!(PidFd::open(pid).expect("no error").is_none(), "{pid}");
        }
    }

    #[test]
    fn another_start_of_the_same_number_is_another_process() {
        let (mut child, pid) = child();
        let proc = ProcFs::default();
        let started = proc.stat(pid).expect("lives").starttime;
        assert!(PidFd::open_exact(&proc, pid, started + 1).expect("no error").is_none());
        let held = PidFd::open_exact(&proc, pid, started).expect("no error").expect("lives");
        held.kill().expect("killed");
        child.end();
        assert!(PidFd::open_exact(&proc, pid, started).expect("no error").is_none(), "it has ended");
    }

    #[test]
    fn the_end_of_a_process_is_seen_before_and_after_it_is_waited_for() {
        let (mut child, pid) = child();
        let held = PidFd::open(pid).expect("no error").expect("lives");
        assert!(!held.wait(Duration::ZERO).expect("looked"), "it lives");
        held.kill().expect("killed");
        assert!(held.wait(Duration::from_mins(1)).expect("looked"));
        held.kill().expect("a zombie is no error");
        child.end();
        held.kill().expect("nor is one that is gone");
        assert!(held.wait(Duration::ZERO).expect("looked"));
    }
}
