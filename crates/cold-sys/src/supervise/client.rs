//! `cold`'s side of the supervisor.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cold_model::Nanos;
use cold_model::Shown as _;

use super::ARGUMENT;
use super::protocol::{Order, Pauses, SupervisorEvent};
use crate::helper::{self, Channel};
use crate::{Error, Result};

/// What to start, and how.
#[derive(Debug)]
pub struct StartSpec {
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
    /// The command leads a process group of its own, which the supervisor stops so until the command has ended.
    pub pauses: Option<Pauses>,
    /// Standard input of the supervisor, which the command inherits.
    pub stdin: Stdio,
    /// Standard output, as `stdin`.
    pub stdout: Stdio,
    /// Standard error, as `stdin`.
    pub stderr: Stdio,
}

/// A supervisor that waits for the order to go, or watches a running tree.
///
/// Dropping it ends the tree by force.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Child,
    channel: Channel,
    gone: bool,
}

impl Supervised {
    /// Starts the supervisor and waits until it is ready. The command does not run yet.
    pub fn prepare(spec: StartSpec) -> Result<Self> {
        let name = spec.program.shown().to_string();
        let set_up = |command: &mut Command| {
            let streams = command.stdin(spec.stdin).stdout(spec.stdout).stderr(spec.stderr);
            streams.args(&spec.argv).envs(spec.env);
        };
        let started = helper::start(OsStr::new("/proc/self/exe"), ARGUMENT, set_up);
        let (supervisor, channel) = started.map_err(|e| Error::io("start the supervisor of", &name, e))?;
        let mut me = Self { supervisor, channel, gone: false };
        let StartSpec { program, cgroups, helper, pauses, .. } = spec;
        me.order(&Order::Prepare { program, cgroups, helper, pauses })?;
        match me.event(None)? {
            Some(SupervisorEvent::Ready) => Ok(me),
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
            Some(SupervisorEvent::Started { pid, at }) => Ok((pid, at)),
            other => Err(Self::unexpected(other)),
        }
    }

    /// The next event, or `None` when none came within `wait` (`None`: for ever).
    pub fn event(&mut self, wait: Option<Duration>) -> Result<Option<SupervisorEvent>> {
        let fail = |e| Error::io("hear from", "the supervisor", e);
        while !self.channel.is_readable(wait).map_err(fail)? {
            if wait.is_some() {
                return Ok(None);
            }
        }
        let Some(event) = self.channel.receive::<SupervisorEvent>().map_err(fail)? else {
            self.gone = true;
            let early = "it ended early (killed from outside?)";
            return Err(fail(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, early)));
        };
        if matches!(event, SupervisorEvent::TreeGone { .. } | SupervisorEvent::Failed { .. }) {
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

    fn order(&self, order: &Order) -> Result<()> {
        self.channel.send(order).map_err(|e| Error::io("speak to", "the supervisor", e))
    }

    fn unexpected(event: Option<SupervisorEvent>) -> Error {
        match event {
            Some(SupervisorEvent::Failed { what, errno }) => Error::Io {
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
        self.channel.close();
        if self.gone {
            let _ = self.supervisor.wait();
        }
    }
}
