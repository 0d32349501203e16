//! One trial: processes that work side by side, and what the block layer saw of it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use cold_model::Dev;
use cold_sys::procfs::{DiskStat, ProcFs};
use serde::Serialize;

use crate::group::Group;
use crate::log::Log;
use crate::spec::Crew;
use crate::worker::{ARGUMENT, Answer, CrewReport, LONGEST_LINE};
use crate::{Error, Result};

/// How often a running trial looks for an interruption.
const LOOK: Duration = Duration::from_millis(20);
/// Longest wait for requests that are under way when a trial ends.
const SETTLE: Duration = Duration::from_millis(300);

/// What the block layer counted of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DeviceCount {
    /// Read requests, after merging.
    pub reads: u64,
    /// Bytes that these requests brought.
    pub read_bytes: u64,
    /// Write requests, after merging.
    pub writes: u64,
    /// Bytes that these requests wrote.
    pub write_bytes: u64,
}

impl DeviceCount {
    /// The counters of a device now; `None` where this process does not see them.
    pub fn of(dev: Dev) -> Option<Self> {
        Self::with_those_under_way(dev).map(|(count, _)| count)
    }

    /// The counters once nothing is under way: requests are counted when they end, and what was asked for
    /// ahead may end after the last record. A device that is never idle is not waited for.
    pub fn settled(dev: Dev) -> Option<Self> {
        let began = Instant::now();
        loop {
            let (count, under_way) = Self::with_those_under_way(dev)?;
            if under_way == 0 || began.elapsed() > SETTLE {
                return Some(count);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn with_those_under_way(dev: Dev) -> Option<(Self, u64)> {
        let all = ProcFs::default().diskstats().ok()?;
        let d = all.iter().find(|d| d.dev == dev)?;
        let DiskStat { reads, read_bytes, writes, write_bytes, .. } = *d;
        Some((Self { reads, read_bytes, writes, write_bytes }, d.in_flight))
    }

    fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            writes: self.writes.saturating_sub(before.writes),
            write_bytes: self.write_bytes.saturating_sub(before.write_bytes),
        }
    }
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// Of each crew, in order.
    pub crews: Vec<CrewReport>,
    /// Of the whole device, so also of others that used it; `None` where it is not known.
    pub device: Option<DeviceCount>,
    /// From the start signal to the last answer, nanoseconds.
    pub ns: u64,
}

/// Starts workers and runs trials with them.
#[derive(Clone)]
pub struct Runner {
    /// The program that is a worker when its first argument says so: `cold` itself.
    pub program: PathBuf,
    /// Set when the user wants to end.
    pub interrupt: Arc<AtomicBool>,
    /// The device to count.
    pub dev: Option<Dev>,
}

/// A worker process. It is killed when this is dropped.
struct Worker {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Worker {
    fn start(program: &PathBuf, crew: &Crew, group: Option<&Group>) -> Result<Self> {
        let mut child = Command::new(program)
            .arg0(&crew.name)
            .arg(ARGUMENT)
            // A Ctrl-C of the terminal is ours to handle.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::io("start", program))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let Some(output) = output else { return Err(failed(crew, "it has no output".to_owned())) };
        let mut me = Self { name: crew.name.clone(), child, input, output: BufReader::new(output) };
        // Before it touches anything, so that its pages are charged to the group.
        if let Some(group) = group {
            group.add(me.child.id())?;
        }
        let text = serde_json::to_string(crew).map_err(|e| failed(crew, e.to_string()))?;
        me.send(&text)?;
        match me.answer()? {
            Answer::Ready => Ok(me),
            Answer::Failed(why) => Err(failed(crew, why)),
            Answer::Done(_) => Err(failed(crew, "it was done before it began".to_owned())),
        }
    }

    fn send(&mut self, text: &str) -> Result<()> {
        let Some(input) = &mut self.input else { return Ok(()) };
        let sent = input.write_all(text.as_bytes()).and_then(|()| input.write_all(b"\n"));
        match sent.and_then(|()| input.flush()) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.died(&e.to_string())),
        }
    }

    fn answer(&mut self) -> Result<Answer> {
        let mut text = String::new();
        let read = std::io::Read::take(&mut self.output, LONGEST_LINE).read_line(&mut text);
        match read {
            Ok(n) if n > 0 => serde_json::from_str(&text).map_err(|e| self.died(&e.to_string())),
            Ok(_) => Err(self.died("it ended without an answer")),
            Err(e) => Err(self.died(&e.to_string())),
        }
    }

    fn died(&mut self, why: &str) -> Error {
        let _ = self.child.kill();
        let status = self.child.wait().map_or_else(|e| e.to_string(), |s| s.to_string());
        Error::Worker { name: self.name.clone(), why: format!("{why} ({status})") }
    }
}

fn failed(crew: &Crew, why: String) -> Error {
    Error::Worker { name: crew.name.clone(), why }
}

impl Runner {
    /// Whether the user wants to end.
    pub fn check(&self) -> Result<()> {
        if self.interrupt.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Runs the crews at the same time, in `group` where there is one; the first to end ends all. A `log`
    /// is told of the processes, and of what they did in each interval.
    pub fn run(&self, crews: &[Crew], group: Option<&Group>, log: &Log) -> Result<Trial> {
        self.check()?;
        let workers: Result<Vec<Worker>> =
            crews.iter().map(|c| Worker::start(&self.program, c, group)).collect();
        // A worker that was ended with us is no failure of its own.
        let mut workers = workers.map_err(|e| self.check().err().unwrap_or(e))?;
        let watched = workers.iter().map(|w| (w.name.clone(), w.child.id())).collect();
        log.begin(watched);
        let before = self.dev.and_then(DeviceCount::of);
        let began = Instant::now();
        for w in &mut workers {
            w.send("\"go\"")?;
        }
        let reports = self.collect(workers);
        let ns = began.elapsed().as_nanos() as u64;
        let after = self.dev.and_then(DeviceCount::settled);
        log.end();
        let reports = reports?;
        for (crew, report) in crews.iter().zip(&reports) {
            log.ticks(began, crew, report);
        }
        let device = before.zip(after).map(|(b, a)| a.since(b));
        Ok(Trial { crews: reports, device, ns })
    }

    fn collect(&self, mut workers: Vec<Worker>) -> Result<Vec<CrewReport>> {
        let (send, receive) = mpsc::channel();
        let names: Vec<String> = workers.iter().map(|w| w.name.clone()).collect();
        let mut inputs: Vec<Option<ChildStdin>> = workers.iter_mut().map(|w| w.input.take()).collect();
        std::thread::scope(|scope| {
            let mut children = Vec::new();
            for (n, worker) in workers.iter_mut().enumerate() {
                children.push(rustix::process::Pid::from_child(&worker.child));
                let (answers, refused) = (send.clone(), send.clone());
                let waits = std::thread::Builder::new().spawn_scoped(scope, move || {
                    let _ = answers.send((n, worker.answer()));
                });
                if let Err(e) = waits {
                    // Its end is as good as an answer: it ends all.
                    let why = format!("no thread to listen to it: {e}");
                    let _ = refused.send((n, Ok(Answer::Failed(why))));
                }
            }
            drop(send);
            let mut found: Vec<Option<CrewReport>> = vec![None; children.len()];
            let mut failed = None;
            loop {
                match receive.recv_timeout(LOOK) {
                    Ok((n, answer)) => {
                        match answer {
                            Ok(Answer::Done(report)) => found[n] = Some(report),
                            Ok(Answer::Failed(why)) => failed = failed.or(Some((n, why))),
                            Ok(Answer::Ready) => failed = failed.or(Some((n, "it began twice".to_owned()))),
                            Err(e) => failed = failed.or(Some((n, e.to_string()))),
                        }
                        // Closing an input tells its worker to stop.
                        inputs.clear();
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) if self.interrupt.load(Ordering::Relaxed) => {
                        inputs.clear();
                        for pid in &children {
                            let _ = rustix::process::kill_process(*pid, rustix::process::Signal::KILL);
                        }
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
            }
            self.check()?;
            if let Some((n, why)) = failed {
                return Err(Error::Worker { name: names.get(n).cloned().unwrap_or_default(), why });
            }
            Ok(found.into_iter().flatten().collect())
        })
    }
}
