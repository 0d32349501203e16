//! One trial: processes that work side by side, and what the block layer saw of it.

use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cold_model::Dev;
use cold_sys::helper::{self, Channel, any_is_readable};
use cold_sys::procfs::{DiskStat, ProcFs};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::group::Group;
use crate::log::Log;
use crate::spec::Crew;
use crate::worker::{ARGUMENT, CrewReport, Order, WorkerAnswer};
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

    pub(crate) fn since(self, before: Self) -> Self {
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
    channel: Channel,
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Worker {
    fn spawn(program: &Path, argument: &str, name: &str) -> Result<Self> {
        let set_up = |command: &mut std::process::Command| {
            // A Ctrl-C of the terminal is ours to handle.
            command.arg0(name).process_group(0);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        };
        let started = helper::start(program.as_os_str(), argument, set_up);
        let (child, channel) = started.map_err(Error::io("start", program))?;
        Ok(Self { name: name.to_owned(), child, channel })
    }

    fn start(program: &Path, crew: &Crew, group: Option<&Group>) -> Result<Self> {
        let mut me = Self::spawn(program, ARGUMENT, &crew.name)?;
        // Before it touches anything, so that its pages are charged to the group.
        if let Some(group) = group {
            group.add(me.child.id())?;
        }
        me.send(crew)?;
        match me.answer()? {
            WorkerAnswer::Ready => Ok(me),
            WorkerAnswer::Failed(why) => Err(failed(crew, why)),
            WorkerAnswer::Done(_) => Err(failed(crew, "it was done before it began".to_owned())),
        }
    }

    fn send(&mut self, message: &impl Serialize) -> Result<()> {
        self.channel.send(message).map_err(|e| self.died(&e.to_string()))
    }

    fn answer<T: DeserializeOwned>(&mut self) -> Result<T> {
        match self.channel.receive() {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(self.died("it ended without an answer")),
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

    /// Starts a helper of its own, tells it one task, and waits for its answer.
    pub(crate) fn ask<T: DeserializeOwned>(
        &self,
        argument: &str,
        name: &str,
        task: &impl Serialize,
    ) -> Result<T> {
        self.check()?;
        let mut worker = Worker::spawn(&self.program, argument, name)?;
        // One that was ended with us is no failure of its own.
        let ours = |e: Error| self.check().err().unwrap_or(e);
        worker.send(task).map_err(ours)?;
        while !worker.channel.is_readable(Some(LOOK)).map_err(Error::io("wait for", &self.program))? {
            // Dropped, it is killed.
            self.check()?;
        }
        worker.answer().map_err(ours)
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
            w.send(&Order::Go)?;
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
        let mut found: Vec<Option<CrewReport>> = vec![None; workers.len()];
        let mut failed = None;
        let mut working: Vec<usize> = (0..workers.len()).collect();
        while !working.is_empty() {
            // Dropped, they are killed.
            self.check()?;
            let fds: Vec<_> = working.iter().map(|n| workers[*n].channel.as_fd()).collect();
            any_is_readable(&fds, Some(LOOK)).map_err(Error::io("wait for", &self.program))?;
            for n in std::mem::take(&mut working) {
                let Some(worker) = workers.get_mut(n) else { continue };
                if !worker.channel.is_readable(Some(Duration::ZERO)).unwrap_or(true) {
                    working.push(n);
                    continue;
                }
                let why = match worker.answer() {
                    Ok(WorkerAnswer::Done(report)) => {
                        found[n] = Some(report);
                        None
                    }
                    Ok(WorkerAnswer::Failed(why)) => Some(Error::Worker { name: worker.name.clone(), why }),
                    Ok(WorkerAnswer::Ready) => {
                        let why = "it began twice".to_owned();
                        Some(Error::Worker { name: worker.name.clone(), why })
                    }
                    Err(e) => Some(e),
                };
                failed = failed.or(why);
                // The first to end ends all. One that is gone says so itself.
                for other in &workers {
                    let _ = other.channel.send(&Order::Stop);
                }
            }
        }
        self.check()?;
        failed.map_or_else(|| Ok(found.into_iter().flatten().collect()), Err)
    }
}

#[cfg(test)]
mod tests;
