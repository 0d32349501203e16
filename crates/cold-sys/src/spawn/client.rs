//! `cold`'s side of the spawner.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{ARGUMENT, Answer, Handover, Order, Setup, Timing};
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
    socket: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Spawner {
    /// Starts a spawner and gives it its setup; its ballast is touched when this returns.
    pub fn start(setup: Setup) -> Result<Self> {
        let fail = |what, e| Error::io(what, "the spawner", e);
        let (ours, theirs) = UnixStream::pair().map_err(|e| fail("create a socket pair for", e))?;
        rustix::io::fcntl_setfd(theirs.as_fd(), rustix::io::FdFlags::empty())
            .map_err(|e| fail("pass a socket to", e.into()))?;
        let process = Command::new("/proc/self/exe")
            .arg(ARGUMENT)
            .arg(theirs.as_raw_fd().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| fail("start", e))?;
        drop(theirs);
        let reader = BufReader::new(ours.try_clone().map_err(|e| fail("duplicate the socket of", e))?);
        let mut me = Self { process, socket: ours, reader };
        match me.ask(&Order::Setup(setup))? {
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
        self.send(&Order::Run { schedule })
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
        self.send(&Order::Trace { schedule })?;
        match self.finished(interrupt)? {
            None => Ok(None),
            Some(Answer::Handovers(all)) => Ok(Some(all)),
            Some(other) => Err(unexpected(other)),
        }
    }

    fn finished(&mut self, interrupt: &AtomicBool) -> Result<Option<Answer>> {
        let mut interrupted: Option<Instant> = None;
        while !self.readable(LOOK)? {
            if interrupt.load(Ordering::Relaxed)
                && interrupted.get_or_insert_with(Instant::now).elapsed() >= GRACE
            {
                self.end();
                return Ok(None);
            }
        }
        self.answer().map(Some)
    }

    fn readable(&self, wait: Duration) -> Result<bool> {
        if !self.reader.buffer().is_empty() {
            return Ok(true);
        }
        let wait = rustix::event::Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        let mut fds = [rustix::event::PollFd::new(&self.socket, rustix::event::PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&wait)) {
            Ok(n) => Ok(n > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(e) => Err(Error::io("hear from", "the spawner", e.into())),
        }
    }

    /// Ends the spawner and everything it has started.
    fn end(&mut self) {
        let signal = rustix::process::Signal::from_named_raw(super::guard::END);
        if let Some(signal) = signal {
            // A spawner that is gone already is what is wanted.
            let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.process), signal);
        }
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let until = Instant::now() + PATIENCE;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    fn ask(&mut self, order: &Order) -> Result<Answer> {
        self.send(order)?;
        self.answer()
    }

    fn send(&mut self, order: &Order) -> Result<()> {
        let fail = |e| Error::io("speak to", "the spawner", e);
        let mut line = serde_json::to_vec(order).map_err(|e| fail(e.into()))?;
        line.push(b'\n');
        self.socket.write_all(&line).map_err(fail)
    }

    fn answer(&mut self) -> Result<Answer> {
        let fail = |e| Error::io("hear from", "the spawner", e);
        let mut line = String::new();
        if self.reader.read_line(&mut line).map_err(fail)? == 0 {
            let early = "it ended early (killed from outside, or out of memory?)";
            return Err(fail(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, early)));
        }
        serde_json::from_str(&line).map_err(|e| fail(e.into()))
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
            Error::Io { action: "start:", subject: what, source: std::io::Error::from_raw_os_error(errno) }
        }
        other => Error::io(
            "understand",
            "the spawner",
            std::io::Error::new(std::io::ErrorKind::InvalidData, format!("unexpected answer {other:?}")),
        ),
    }
}
