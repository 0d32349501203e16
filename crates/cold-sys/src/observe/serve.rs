//! The helper process: one thread, one tree, one result.

use std::ffi::OsString;
use std::io;
use std::time::{Duration, Instant};

use cold_model::bench::Ending;

use super::entries::{self, Entries, FunctionTables};
use super::error::{ObserveError, Result};
use super::protocol::{Order, Reply, Request};
use super::ptrace::{self, Waited};
use super::tracer::Tracer;
use super::watch::{Act, Watch};
use super::{filter, signals, spawn};
use crate::helper::Channel;

/// How long a request to stop, a deadline or the caller's death may stay unnoticed while the tree is
/// silent. Waking 100 times a second costs less than 0.1% of a CPU.
const TICK: Duration = Duration::from_millis(10);

/// Who follows a tree, one report of `waitpid` after the other.
pub(super) trait Follower {
    /// A thread is gone.
    fn gone(&mut self, tid: i32, how: Ending);
    /// Enters a thread that is seen for the first time.
    fn known(&mut self, tid: i32);
    /// A thread has stopped, and is to run on.
    fn stopped(&mut self, tid: i32, signal: i32, event: i32) -> io::Result<()>;
    /// Whether the command's program runs.
    fn has_started(&self) -> bool;
    /// Keeps a remark for the reader.
    fn note(&mut self, text: String);
    /// Ends the tree.
    fn act(&mut self, act: Act);

    /// Takes one report and lets its thread run on. Threads that die meanwhile are no error.
    fn handle(&mut self, waited: Waited) -> io::Result<()> {
        match waited {
            Waited::Exited(tid, code) => self.gone(tid, Ending::Code(code)),
            Waited::Killed(tid, signal) => self.gone(tid, Ending::Signal(signal)),
            Waited::Stopped { tid, signal, event } => {
                self.known(tid);
                return match self.stopped(tid, signal, event) {
                    Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Ok(()),
                    other => other,
                };
            }
            Waited::Interrupted | Waited::Nothing => {}
        }
        Ok(())
    }
}

/// Runs the helper until the tree is gone; `args` are the arguments after [`super::HELPER_ARGUMENT`], `tables` reads
/// the functions of files. To be called first thing in `main`, in a process that has no other thread, child or use
/// for `SIGALRM`.
pub fn serve(args: &[OsString], tables: &mut dyn FunctionTables) -> crate::Result<()> {
    let mut channel = Channel::adopt(args)?;
    let fail = |e| crate::Error::io("hear from", "the process that wants a start observed", e);
    let done = match channel.receive().map_err(fail)? {
        Some(Order::Observe(request)) => follow(&request, &filter::program(), &mut channel, Tracer::new)
            .map(|tracer| Reply::Done(Box::new(tracer.finish()))),
        Some(Order::Entries(request, tracing)) => {
            let unbound = entries::bind();
            let new = |root, _| Entries::new(root, tables, tracing, unbound);
            follow(&request, &entries::filter(), &mut channel, new)
                .map(|entries| Reply::Entered(Box::new(entries.finish())))
        }
        Some(Order::End) | None => return Ok(()),
    };
    // A client that is gone cannot be told anything.
    let _ = channel.send(&done.unwrap_or_else(Reply::Failed));
    Ok(())
}

fn follow<T: Follower>(
    request: &Request,
    filter: &[libc::sock_filter],
    channel: &mut Channel,
    new: impl FnOnce(i32, Instant) -> T,
) -> Result<T> {
    // Orphans of the tree become our children, so that their end can be waited for.
    // SAFETY: prctl with integers.
    if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } != 0 {
        return Err(ObserveError::os("become the reaper of orphans", &io::Error::last_os_error()));
    }
    let mask = signals::install();
    let started = Instant::now();
    let mut spawned = spawn::spawn(request, &mask, filter)?;
    let mut follower = new(spawned.pid, started);
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
        follower.handle(waited).map_err(|e| ObserveError::trace(&e))?;
        if follower.has_started() && !is_told {
            is_told = true;
            if spawned.start(request).no_new_privs {
                follower.note(
                    "observed without root: set-user-ID programs and file capabilities have no effect \
                     (no_new_privs)"
                        .to_owned(),
                );
            }
            // If the client is gone, the watch will see it.
            let _ = channel.send(&Reply::Started(spawned.pid));
        }
        if signals::ticked()
            && let Some(act) = watch.look(channel)
        {
            follower.act(act);
        }
    }
    if !is_told {
        return Err(spawned.start(request).failure.unwrap_or(ObserveError::DiedEarly));
    }
    Ok(follower)
}
