//! The caller's side: starts the helper, asks, stops, gets the result.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cold_model::observed::ObservedStart;
use cold_model::order::{TracedStart, Tracing};

use super::error::{ObserveError, Result};
use super::protocol::{Order, Reply, Request};
use crate::helper::{self, Channel};

/// The hidden first argument with which the program that contains [`super::serve`] is started; the
/// second is the number of the socket.
pub const HELPER_ARGUMENT: &str = "__observe";

/// What to observe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObserveSpec {
    /// Command and arguments; the command is searched in PATH as by execvp(3).
    pub argv: Vec<OsString>,
    /// The whole environment; `None` for the caller's own.
    pub env: Option<Vec<(OsString, OsString)>>,
    /// Working directory; `None` for the caller's own.
    pub cwd: Option<PathBuf>,
    /// When the tree is ended at the latest.
    pub deadline: Option<Duration>,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
}

/// The three standard streams of the command.
#[derive(Debug)]
pub struct Streams {
    /// Standard input of the helper, which the command inherits.
    pub stdin: Stdio,
    /// Standard output, as `stdin`.
    pub stdout: Stdio,
    /// Standard error, as `stdin`.
    pub stderr: Stdio,
}

impl Streams {
    /// All at `/dev/null`.
    pub fn null() -> Self {
        Self { stdin: Stdio::null(), stdout: Stdio::null(), stderr: Stdio::null() }
    }
}

/// A command under observation. Dropping it kills the command's whole tree and waits for its end.
#[derive(Debug)]
pub struct Client {
    helper: Child,
    channel: Channel,
    pid: i32,
}

impl Client {
    /// Starts `spec` under a helper process, which is `program` (normally `/proc/self/exe`) called with
    /// [`HELPER_ARGUMENT`]. Returns when the command's program runs.
    pub fn start(program: &OsStr, spec: &ObserveSpec, streams: Streams) -> Result<Self> {
        Self::begin(program, &Order::Observe(request(spec)), streams)
    }

    /// The same, but the functions that it enters are followed (`observe::entries`); the result comes from [`Client::wait_entries`].
    pub fn start_entries(
        program: &OsStr,
        spec: &ObserveSpec,
        tracing: &Tracing,
        streams: Streams,
    ) -> Result<Self> {
        Self::begin(program, &Order::Entries(request(spec), tracing.clone()), streams)
    }

    fn begin(program: &OsStr, order: &Order, streams: Streams) -> Result<Self> {
        let set_up = |command: &mut Command| {
            command.stdin(streams.stdin).stdout(streams.stdout).stderr(streams.stderr);
        };
        let started = helper::start(program, HELPER_ARGUMENT, set_up);
        let (helper, channel) = started.map_err(|e| ObserveError::os("start the observing process", &e))?;
        // The pid is filled in below; until then Drop already cleans up on every error.
        let mut client = Self { helper, channel, pid: 0 };
        let sent = client.channel.send(order);
        sent.map_err(|e| ObserveError::os("write to the observing process", &e))?;
        match client.reply()? {
            Reply::Started(pid) => client.pid = pid,
            Reply::Failed(e) => return Err(e),
            Reply::Done(_) | Reply::Entered(_) => {
                return Err(ObserveError::protocol("a result before a start"));
            }
        }
        Ok(client)
    }

    /// The command's process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The process that observes: whatever descends from it is the command's.
    pub fn observer(&self) -> i32 {
        self.helper.id().cast_signed()
    }

    /// Asks for the end of the tree: SIGTERM, and SIGKILL after the grace time. Returns at once.
    pub fn stop(&mut self) {
        // If the helper is gone already, the reply (or its absence) tells.
        let _ = self.channel.send(&Order::End);
    }

    /// Waits until the whole tree is gone.
    pub fn wait(mut self) -> Result<ObservedStart> {
        self.result()
    }

    /// Waits until the whole tree is gone; for what [`Client::start_entries`] began. `poll` is asked now and then
    /// whether it is to be ended; false ends it.
    pub fn wait_entries(mut self, mut poll: impl FnMut() -> bool) -> Result<TracedStart> {
        const LOOK: Duration = Duration::from_millis(50);
        let mut is_asked = false;
        while !self.channel.is_readable(Some(LOOK)).unwrap_or(true) {
            if !is_asked && !poll() {
                is_asked = true;
                self.stop();
            }
        }
        match self.reply()? {
            Reply::Entered(result) => Ok(*result),
            Reply::Failed(e) => Err(e),
            Reply::Started(_) | Reply::Done(_) => Err(ObserveError::protocol("another kind of result")),
        }
    }

    /// The result, if the tree is gone within `limit`. After `Some` or an error nothing more comes.
    pub fn wait_timeout(&mut self, limit: Duration) -> Result<Option<ObservedStart>> {
        // An error is told by the reply, too. An interruption counts as nothing yet.
        if !self.channel.is_readable(Some(limit)).unwrap_or(true) {
            return Ok(None);
        }
        self.result().map(Some)
    }

    fn result(&mut self) -> Result<ObservedStart> {
        match self.reply()? {
            Reply::Done(result) => Ok(*result),
            Reply::Failed(e) => Err(e),
            Reply::Started(_) | Reply::Entered(_) => Err(ObserveError::protocol("another kind of result")),
        }
    }

    fn reply(&mut self) -> Result<Reply> {
        match self.channel.receive() {
            Ok(Some(reply)) => return Ok(reply),
            Err(e) if e.raw_os_error().is_none() => return Err(ObserveError::protocol(e)),
            Ok(None) | Err(_) => {}
        }
        let status = self.helper.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
        Err(ObserveError::HelperDied { status })
    }
}

impl AsFd for Client {
    /// Becomes readable when the result is there.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // The helper sees the end of the stream and kills what is left of the tree.
        self.channel.close();
        let _ = self.helper.wait();
    }
}

fn request(spec: &ObserveSpec) -> Request {
    let pair = |(name, value): (OsString, OsString)| {
        let mut text = name;
        text.push("=");
        text.push(value);
        text
    };
    let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    Request {
        argv: spec.argv.clone(),
        env: match &spec.env {
            Some(env) => env.iter().cloned().map(pair).collect(),
            None => std::env::vars_os().map(pair).collect(),
        },
        cwd: spec.cwd.iter().cloned().collect(),
        deadline_ns: spec.deadline.map(nanos),
        grace_ns: nanos(spec.grace),
    }
}
