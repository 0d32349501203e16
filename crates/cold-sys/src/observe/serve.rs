//! The helper process: one thread, one tree, one result.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use cold_model::observed::ObservedStart;

use super::error::{ObserveError, Result};
use super::protocol::{self, Reply, Request};
use super::ptrace::{self, Waited};
use super::signals;
use super::spawn;
use super::tracer::{End, Tracer};

/// How long a request to stop, a deadline or the caller's death may stay unnoticed while the tree is
/// silent. Waking 100 times a second costs less than 0.1% of a CPU.
const TICK: Duration = Duration::from_millis(10);
/// Between two rounds of SIGKILL at a tree that goes on forking.
const KILL_AGAIN: Duration = Duration::from_millis(50);

/// Runs the helper on the socket that [`super::Client`] gave it, until the tree is gone. To be called
/// first thing in `main`, in a process that has no other thread, child or use for `SIGALRM`.
pub fn serve(socket: RawFd) -> io::Result<()> {
    let stream = adopt(socket)?;
    let Some(request) = protocol::receive::<Request>(&stream).map_err(io::Error::other)? else {
        return Ok(());
    };
    let reply = match observe(&request, &stream) {
        Ok(result) => Reply::Done(Box::new(result)),
        Err(e) => Reply::Failed(e),
    };
    // A client that is gone cannot be told anything.
    protocol::send(&stream, &reply).or(Ok(()))
}

/// Takes the inherited descriptor over, after making sure that it is a socket.
fn adopt(socket: RawFd) -> io::Result<UnixStream> {
    let (mut kind, mut size) = (0i32, std::mem::size_of::<i32>() as libc::socklen_t);
    // SAFETY: `kind` and `size` are live local variables of the sizes given.
    let r = unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut kind).cast(), &raw mut size)
    };
    // SAFETY: fcntl with integers.
    if r != 0 || unsafe { libc::fcntl(socket, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open, was inherited for this purpose, and nobody else in this process
    // knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) }.into())
}

fn observe(request: &Request, stream: &UnixStream) -> Result<ObservedStart> {
    // Orphans of the tree become our children, so that their end can be waited for.
    // SAFETY: prctl with integers.
    if unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } != 0 {
        return Err(ObserveError::os("become the reaper of orphans", &io::Error::last_os_error()));
    }
    let mask = signals::install();
    let started = Instant::now();
    let mut spawned = spawn::spawn(request, &mask)?;
    let mut tracer = Tracer::new(spawned.pid, started);
    let mut watch = Watch::new(request, stream, started);
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
            let _ = protocol::send(stream, &Reply::Started(spawned.pid));
        }
        if signals::ticked() {
            watch.look(&mut tracer);
        }
    }
    if !is_told {
        return Err(spawned.start(request).failure.unwrap_or(ObserveError::DiedEarly));
    }
    Ok(tracer.finish())
}

/// Decides when the tree has to end.
struct Watch<'a> {
    stream: &'a UnixStream,
    deadline: Option<Instant>,
    grace: Duration,
    /// Why it has to end, and when force comes.
    ending: Option<(End, Instant)>,
}

impl<'a> Watch<'a> {
    fn new(request: &Request, stream: &'a UnixStream, started: Instant) -> Self {
        let deadline = request.deadline_ns.and_then(|ns| started.checked_add(Duration::from_nanos(ns)));
        Self { stream, deadline, grace: Duration::from_nanos(request.grace_ns), ending: None }
    }

    fn look(&mut self, tracer: &mut Tracer) {
        let now = Instant::now();
        let asked = self.asked();
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

    /// What the client wants, if it said anything.
    fn asked(&self) -> Option<End> {
        let mut byte = 0u8;
        // SAFETY: receives at most one byte into a live variable, without waiting.
        let n = unsafe { libc::recv(self.stream.as_raw_fd(), (&raw mut byte).cast(), 1, libc::MSG_DONTWAIT) };
        match n {
            0 => Some(End::Abandoned),
            1 => Some(End::Asked),
            _ => None,
        }
    }
}
