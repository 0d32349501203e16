//! `cold`'s side of the spawner.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{ARGUMENT, Answer, Handover, Setup, SpawnOrder, Timing};
use crate::helper::{self, Channel};
use crate::{Error, Result};

/// How often an interrupt is looked for while starts run.
const LOOK: Duration = Duration::from_millis(100);
/// A start in progress gets so long to end after an interrupt before it is killed.
const GRACE: Duration = Duration::from_secs(1);
/// A spawner gets so long to end its tree.
const PATIENCE: Duration = Duration::from_secs(6);

/// A spawner that waits for schedules. Dropping it ends it, and the program it runs.
#[derive(Debug)]
pub struct Spawner {
    process: Child,
    channel: Channel,
}

impl Spawner {
    /// Starts a spawner and gives it its setup; its ballast is touched when this returns.
    pub fn start(setup: Setup) -> Result<Self> {
        let set_up = |command: &mut Command| {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        };
        let started = helper::start(OsStr::new("/proc/self/exe"), ARGUMENT, set_up);
        let (process, channel) = started.map_err(|e| Error::io("start", "the spawner", e))?;
        let mut me = Self { process, channel };
        match me.ask(&SpawnOrder::Setup(setup))? {
            Answer::Ready => Ok(me),
            other => Err(unexpected(other)),
        }
    }

    /// Pid of the spawner.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Starts the programs in the order of their indices, one after the other, each waited for;
    /// [`Spawner::finish`] gets the timings. For several spawners at once.
    pub fn begin(&mut self, schedule: Vec<usize>) -> Result<()> {
        self.send(&SpawnOrder::Run { schedule })
    }

    /// Timings of the schedule that was begun. None: `interrupt` was set and the schedule did not end soon
    /// after; then the spawner is gone, with what it had started.
    pub fn finish(&mut self, interrupt: &AtomicBool) -> Result<Option<Vec<Timing>>> {
        match self.finished(interrupt)? {
            None => Ok(None),
            Some(Answer::Timings(all)) => Ok(Some(all)),
            Some(other) => Err(unexpected(other)),
        }
    }

    /// Starts the programs in that order under ptrace, which tells when the loader hands over to each. None
    /// as of [`Spawner::finish`].
    pub fn trace(&mut self, schedule: Vec<usize>, interrupt: &AtomicBool) -> Result<Option<Vec<Handover>>> {
        self.send(&SpawnOrder::Trace { schedule })?;
        match self.finished(interrupt)? {
            None => Ok(None),
            Some(Answer::Handovers(all)) => Ok(Some(all)),
            Some(other) => Err(unexpected(other)),
        }
    }

    fn finished(&mut self, interrupt: &AtomicBool) -> Result<Option<Answer>> {
        let mut interrupted: Option<Instant> = None;
        while !self.channel.is_readable(Some(LOOK)).map_err(|e| Error::io("hear from", "the spawner", e))? {
            if interrupt.load(Ordering::Relaxed)
                && interrupted.get_or_insert_with(Instant::now).elapsed() >= GRACE
            {
                self.end();
                return Ok(None);
            }
        }
        self.answer().map(Some)
    }

    /// Ends the spawner and everything it has started.
    fn end(&mut self) {
        let signal = rustix::process::Signal::from_named_raw(super::guard::END);
        if let Some(signal) = signal {
            // A spawner that is gone already is what is wanted.
            let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.process), signal);
        }
        self.channel.close();
        let until = Instant::now() + PATIENCE;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn ask(&mut self, order: &SpawnOrder) -> Result<Answer> {
        self.send(order)?;
        self.answer()
    }

    fn send(&self, order: &SpawnOrder) -> Result<()> {
        self.channel.send(order).map_err(|e| Error::io("speak to", "the spawner", e))
    }

    fn answer(&mut self) -> Result<Answer> {
        let early = "it ended early (killed from outside, or out of memory?)";
        let early = || io::Error::new(io::ErrorKind::UnexpectedEof, early);
        let answer = self.channel.receive().and_then(|answer| answer.ok_or_else(early));
        answer.map_err(|e| Error::io("hear from", "the spawner", e))
    }
}

impl Drop for Spawner {
    fn drop(&mut self) {
        self.end();
    }
}

fn unexpected(answer: Answer) -> Error {
    match answer {
        Answer::Failed { what, errno } => {
            Error::Io { action: "start:", subject: what, source: io::Error::from_raw_os_error(errno) }
        }
        other => Error::io(
            "understand",
            "the spawner",
            io::Error::new(io::ErrorKind::InvalidData, format!("unexpected answer {other:?}")),
        ),
    }
}
