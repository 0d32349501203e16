//! Ending processes by identity.

use std::fs;
use std::time::{Duration, Instant};

use cold_model::Shown as _;
use cold_sys::pidfd::PidFd;
use cold_sys::procfs::ProcFs;

use super::{Outcome, PATIENCE};
use crate::change::TOKEN_VARIABLE;
use crate::{Error, Result};

/// How long programs that are just being started are waited for, because nobody can tell yet whose they are.
const EXEC: Duration = Duration::from_secs(1);

/// Kills the process, then what it started: orphans have the token too.
pub(super) fn kill(proc: &ProcFs, pid: i32, starttime: u64, token: &str) -> Result<Outcome> {
    let first = match PidFd::open_exact(proc, pid, starttime)? {
        Some(held) => end(proc, &held)?,
        None => Outcome::Gone,
    };
    match kill_by_token(proc, token)? {
        Outcome::Gone => Ok(first),
        killed => Ok(killed),
    }
}

/// Finds the process that was started with `token` in its environment, and whatever inherited it.
pub(super) fn kill_by_token(proc: &ProcFs, token: &str) -> Result<Outcome> {
    let wanted = format!("{TOKEN_VARIABLE}={token}");
    let has_token = |pid: i32| {
        // Unreadable: another user's process, which we did not start.
        fs::read(proc.path(format!("{pid}/environ")))
            .is_ok_and(|env| env.split(|&b| b == 0).any(|v| v == wanted.as_bytes()))
    };
    let me = std::process::id().cast_signed();
    // Its memory is new and has no arguments yet: whoever started it goes on from there, and may be killed before
    // anybody can read its environment.
    let in_exec = |pid: i32| {
        let empty = |name| fs::read(proc.path(format!("{pid}/{name}"))).is_ok_and(|text| text.is_empty());
        empty("environ") && empty("cmdline") && fs::read_link(proc.path(format!("{pid}/exe"))).is_ok()
    };
    let mut outcome = Outcome::Gone;
    let deadline = Instant::now() + EXEC;
    // Twice: a child may be forked while the list is read.
    for _ in 0..2 {
        while proc.pids()?.into_iter().any(in_exec) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        for pid in proc.pids()? {
            if pid != me
                && has_token(pid)
                && let Some(held) = PidFd::open(pid)?
                && has_token(pid)
            {
                end(proc, &held)?;
                outcome = Outcome::Restored;
            }
        }
    }
    Ok(outcome)
}

fn end(proc: &ProcFs, held: &PidFd) -> Result<Outcome> {
    held.kill()?;
    if held.wait(PATIENCE)? {
        return Ok(Outcome::Restored);
    }
    let name = proc.comm(held.pid()).unwrap_or_else(|_| "?".to_owned());
    let holders = format!("{}[{}]", name.shown(), held.pid());
    Err(Error::StillAlive { subject: "the system".to_owned(), holders, seconds: PATIENCE.as_secs() })
}
