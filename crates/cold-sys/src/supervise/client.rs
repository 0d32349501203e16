//! `cold`'s side of the supervisor.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cold_model::Nanos;
use cold_model::Shown as _;

use super::ARGUMENT;
use super::protocol::{Event, Order};
use crate::{Error, Result};

/// What to start, and how.
#[derive(Debug)]
pub struct Spec {
    /// The program's file (already searched for in PATH).
    pub program: PathBuf,
    /// Arguments, argv\[0\] first.
    pub argv: Vec<OsString>,
    /// Variables to add to this process's environment.
    pub env: Vec<(OsString, OsString)>,
    /// cgroup directories the tree starts in.
    pub cgroups: Vec<PathBuf>,
    /// Name (`comm`, at most 15 bytes) of helpers of the tree that are not the program: what they use
    /// counts, and they are waited for, but the time of the tree's end is without them.
    pub helper: Option<String>,
    /// Standard input.
    pub stdin: Stdio,
    /// Standard output.
    pub stdout: Stdio,
    /// Standard error.
    pub stderr: Stdio,
}

/// A supervisor that waits for the order to go, or watches a running tree.
///
/// Dropping it ends the tree by force.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Child,
    socket: UnixStream,
    reader: BufReader<UnixStream>,
    gone: bool,
}

impl Supervised {
    /// Starts the supervisor and waits until it is ready. The command does not run yet.
    pub fn prepare(spec: Spec) -> Result<Self> {
        let name = spec.program.shown().to_string();
        let (ours, theirs) =
            UnixStream::pair().map_err(|e| Error::io("create a socket pair for", &name, e))?;
        // Only the supervisor's end crosses the exec; it gets its own close-on-exec there.
        let theirs = inheritable(theirs.into())?;
        let mut supervisor = Command::new("/proc/self/exe");
        supervisor
            .arg(ARGUMENT)
            .arg(theirs.as_raw_fd().to_string())
            .args(&spec.argv)
            .envs(spec.env)
            .stdin(spec.stdin)
            .stdout(spec.stdout)
            .stderr(spec.stderr);
        let supervisor = supervisor.spawn().map_err(|e| Error::io("start the supervisor of", &name, e))?;
        drop(theirs);
        let reader = ours.try_clone().map_err(|e| Error::io("duplicate the socket of", &name, e))?;
        let mut me = Self { supervisor, socket: ours, reader: BufReader::new(reader), gone: false };
        let Spec { program, cgroups, helper, .. } = spec;
        me.order(&Order::Prepare { program, cgroups, helper })?;
        match me.event(None)? {
            Some(Event::Ready) => Ok(me),
            other => Err(Self::unexpected(other)),
        }
    }

    /// Pid of the supervisor: from now until the tree is gone, all its descendants are the tree.
    pub fn pid(&self) -> u32 {
        self.supervisor.id()
    }

    /// Starts the command. Returns its pid and the time just before the clone.
    pub fn go(&mut self) -> Result<(i32, Nanos)> {
        self.order(&Order::Go)?;
        match self.event(None)? {
            Some(Event::Started { pid, at }) => Ok((pid, at)),
            other => Err(Self::unexpected(other)),
        }
    }

    /// The next event, or `None` when none came within `wait` (`None`: for ever).
    pub fn event(&mut self, wait: Option<Duration>) -> Result<Option<Event>> {
        // A zero time-out would mean "for ever" to the socket.
        let wait = wait.map(|w| w.max(Duration::from_micros(1)));
        let fail = |e| Error::io("hear from", "the supervisor", e);
        while self.reader.buffer().is_empty() && !readable(self.socket.as_fd(), wait) {
            if wait.is_some() {
                return Ok(None);
            }
        }
        let mut line = String::new();
        let n = self.reader.read_line(&mut line).map_err(fail)?;
        if n == 0 {
            self.gone = true;
            return Err(fail(std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                "it ended early (killed from outside?)",
            )));
        }
        let event: Event = serde_json::from_str(&line).map_err(|e| fail(e.into()))?;
        if matches!(event, Event::TreeGone { .. } | Event::Failed { .. }) {
            self.gone = true;
        }
        Ok(Some(event))
    }

    /// Asks for the tree's end: SIGTERM to all, SIGKILL after `grace`. The events go on.
    pub fn end(&mut self, grace: Duration) -> Result<()> {
        match self.order(&Order::End { grace: grace.into() }) {
            // The tree has ended by itself meanwhile; the last event, still to be read, says so.
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }

    fn order(&mut self, order: &Order) -> Result<()> {
        let fail = |e| Error::io("speak to", "the supervisor", e);
        let mut line = serde_json::to_vec(order).map_err(|e| fail(e.into()))?;
        line.push(b'\n');
        self.socket.write_all(&line).map_err(fail)
    }

    fn unexpected(event: Option<Event>) -> Error {
        match event {
            Some(Event::Failed { what, errno }) => Error::Io {
                action: "start:",
                subject: what,
                source: std::io::Error::from_raw_os_error(errno),
            },
            other => Error::io(
                "understand",
                "the supervisor",
                std::io::Error::other(format!("unexpected event {other:?}")),
            ),
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        if !self.gone {
            let _ = self.end(Duration::ZERO);
            while !self.gone {
                if self.event(Some(Duration::from_secs(10))).is_ok_and(|e| e.is_none()) {
                    break; // something cannot be killed (state D); the supervisor goes on trying
                }
            }
        }
        // Closing the socket releases a supervisor that still waits for orders.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        if self.gone {
            let _ = self.supervisor.wait();
        }
    }
}

fn inheritable(fd: OwnedFd) -> Result<OwnedFd> {
    // SAFETY: fcntl on a descriptor we own.
    if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) } < 0 {
        return Err(Error::last_os("pass on", "the supervisor's socket"));
    }
    Ok(fd)
}

/// Whether `fd` becomes readable within `wait`.
fn readable(fd: std::os::fd::BorrowedFd<'_>, wait: Option<Duration>) -> bool {
    let (ts, ptr);
    let ptr = match wait {
        None => std::ptr::null(),
        Some(w) => {
            ts = libc::timespec {
                tv_sec: w.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: w.subsec_nanos().into(),
            };
            ptr = &raw const ts;
            ptr
        }
    };
    let mut p = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd; the time-out is null or points to a live timespec.
    // A signal ends the wait with -1: nothing is readable then, and reading would block for ever.
    unsafe { libc::ppoll(&raw mut p, 1, ptr, std::ptr::null()) > 0 }
}
