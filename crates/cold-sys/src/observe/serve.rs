//! The helper process: one thread, one tree, one result.

use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};

use cold_model::observed::ObservedStart;

use super::error::{ObserveError, Result};
use super::protocol::{Order, Reply, Request};
use super::ptrace::{self, Waited};
use super::signals;
use super::spawn;
use super::tracer::{End, Tracer};
use crate::helper::Channel;

/// How long a request to stop, a deadline or the caller's death may stay unnoticed while the tree is
/// silent. Waking 100 times a second costs less than 0.1% of a CPU.
const TICK: Duration = Duration::from_millis(10);
/// Between two rounds of SIGKILL at a tree that goes on forking.
const KILL_AGAIN: Duration = Duration::from_millis(50);

/// Runs the helper until the tree is gone; `args` are the arguments after [`super::HELPER_ARGUMENT`]. To be called
/// first thing in `main`, in a process that has no other thread, child or use for `SIGALRM`.
pub fn serve(args: &[OsString]) -> crate::Result<()> {
    let mut channel = Channel::adopt(args)?;
    let fail = |e| crate::Error::io("hear from", "the process that wants a start observed", e);
    let Some(Order::Observe(request)) = channel.receive().map_err(fail)? else { return Ok(()) };
    let reply = match observe(&request, &mut channel) {
        Ok(result) => Reply::Done(Box::new(result)),
        Err(e) => Reply::Failed(e),
    };
    // A client that is gone cannot be told anything.
    let _ = channel.send(&reply);
    Ok(())
}

fn observe(request: &Request, channel: &mut Channel) -> Result<ObservedStart> {
    // Orphans of the tree become our children, so that their end can be waited for.
    // SAFETY: prctl with integers.
    if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } != 0 {
        return Err(ObserveError::os("become the reaper of orphans", &io::Error::last_os_error()));
    }
    let mask = signals::install();
    let started = Instant::now();
    let mut spawned = spawn::spawn(request, &mask)?;
    let mut tracer = Tracer::new(spawned.pid, started);
    let mut watch = Watch::new(request, started);
    signals::start_ticking(TICK);
    let mut is_told = false;
    loop {
        let waited = ptrace::wait().map_err(|e| ObserveError::trace(&e))?;
        if matches!(waited, Waited::Nothing) {
            break;
        }
        // A failure here leaves through `?`; the process ends, and the kernel kills the tree
        // (PTRACE_O_EXITKILL).
        tracer.handle(waited).map_err(|e| ObserveError::trace(&e))?;
        if tracer.has_started() && !is_told {
            is_told = true;
            if spawned.start(request).no_new_privs {
                tracer.note(
                    "observed without root: set-user-ID programs and file capabilities have no effect \
                     (no_new_privs)"
                        .to_owned(),
                );
            }
            // If the client is gone, the watch will see it.
            let _ = channel.send(&Reply::Started(spawned.pid));
        }
        if signals::ticked() {
            watch.look(&mut tracer, channel);
        }
    }
    if !is_told {
        return Err(spawned.start(request).failure.unwrap_or(ObserveError::DiedEarly));
    }
    Ok(tracer.finish())
}

/// Decides when the tree has to end.
struct Watch {
    deadline: Option<Instant>,
    grace: Duration,
    /// Why it has to end, and when force comes.
    ending: Option<(End, Instant)>,
}

impl Watch {
    fn new(request: &Request, started: Instant) -> Self {
        let deadline = request.deadline_ns.and_then(|ns| started.checked_add(Duration::from_nanos(ns)));
        Self { deadline, grace: Duration::from_nanos(request.grace_ns), ending: None }
    }

    fn look(&mut self, tracer: &mut Tracer, channel: &mut Channel) {
        let now = Instant::now();
        let asked = asked(channel);
        if asked == Some(End::Abandoned) {
            // Nobody is left to wait for a graceful end.
            self.ending = Some((End::Abandoned, now));
        } else if self.ending.is_none() {
            let over = self.deadline.is_some_and(|d| now >= d).then_some(End::Deadline);
            if let Some(why) = asked.or(over) {
                self.ending = Some((why, now + self.grace));
                tracer.ask_to_end(why);
            }
        }
        if let Some((why, force)) = self.ending
            && now >= force
        {
            tracer.kill(why);
            self.ending = Some((why, now + KILL_AGAIN));
        }
    }
}

/// What the client wants, if it said anything.
fn asked(channel: &mut Channel) -> Option<End> {
    if !channel.is_readable(Some(Duration::ZERO)).unwrap_or(true) {
        return None;
    }
    match channel.receive::<Order>() {
        Ok(Some(_)) => Some(End::Asked),
        Ok(None) | Err(_) => Some(End::Abandoned),
    }
}
