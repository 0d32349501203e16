//! The process that does the work of a [`Crew`]: one of its own, so that it can be put below a memory
//! limit, has figures of its own, and takes nobody along when its file is cut short under a mapping.
//!
//! It talks with its caller over a [`Channel`]: a [`Crew`] comes in, [`WorkerAnswer::Ready`] goes out, `Order::Go` comes
//! in, [`WorkerAnswer::Done`] goes out. `Order::Stop`, or the caller's end, ends the work early.

mod compute;
mod file;
mod thread;

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cold_stats::Histogram;
use cold_sys::helper::{Channel, any_is_readable};
use cold_sys::usage::ThreadUsage;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::gate::Gate;
use crate::spec::Crew;

pub use compute::Speed;

/// The hidden first argument that makes `cold` a worker.
pub const ARGUMENT: &str = "__probe-worker";

/// What happened in one interval of a thread's time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Tick {
    /// Records read or written in it.
    pub records: u64,
    /// Their time less the probe's own cost, nanoseconds.
    pub ns: f64,
    /// Records that were asked about.
    pub asked: u64,
    /// Of these, not cached before.
    pub missed: u64,
}

/// What one thread did in the part that counts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ThreadReport {
    /// Time of each record's action, less the probe's own cost.
    pub records: Histogram,
    /// Time of each cycle without its pause, less the probe's own cost: the Response Probe's response time.
    pub cycles: Histogram,
    /// Time of the counted part, nanoseconds.
    pub ns: u64,
    /// What the thread used in it.
    pub used: ThreadUsed,
    /// Records that were asked about before they were used; `None` where nothing was asked: past the cache, not
    /// wanted, or the kernel cannot tell.
    pub asked: Option<u64>,
    /// Of these, not (wholly) in the cache before.
    pub missed: Option<u64>,
    /// Bytes of different pages that were used, in the whole trial.
    pub touched_bytes: u64,
    /// The probe's own cost (clock, finding pages), which was taken off each time, nanoseconds.
    pub own_ns: f64,
    /// Mean time between two actions, in no response time: choosing the place, asking, counting.
    pub between_ns: f64,
    /// Intervals since the start, where wanted.
    pub ticks: Vec<Tick>,
    /// Time of `fdatasync` afterwards, nanoseconds, for those that wrote.
    pub flush_ns: Option<u64>,
    /// The kernel refused the priority that was asked for.
    pub nice_refused: bool,
}

/// [`ThreadUsage`] that can be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThreadUsed {
    /// Faults that waited for the device.
    pub major_faults: u64,
    /// Faults that did not.
    pub minor_faults: u64,
    /// Bytes it asked the device for.
    pub read_bytes: u64,
    /// Times it slept.
    pub waits: u64,
    /// CPU time, microseconds.
    pub cpu_us: u64,
}

impl From<ThreadUsage> for ThreadUsed {
    fn from(u: ThreadUsage) -> Self {
        Self {
            major_faults: u.major_faults,
            minor_faults: u.minor_faults,
            read_bytes: u.read_bytes,
            waits: u.waits,
            cpu_us: u.cpu_us,
        }
    }
}

/// What a process did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CrewReport {
    /// Its threads, in order.
    pub threads: Vec<ThreadReport>,
    /// Turns of the computing loop per millisecond; `None` when nothing was computed.
    pub loops_per_ms: Option<f64>,
}

/// What the caller says after the [`Crew`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    Go,
    Stop,
}

/// Answers to the caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerAnswer {
    /// All is open and calibrated.
    Ready,
    /// All threads have ended; what they did.
    Done(CrewReport),
    /// It could not be done.
    Failed(String),
}

/// Serves as a worker until the work is done. `args` are the arguments after [`ARGUMENT`].
///
/// # Errors
/// They name no socket, or the caller says no [`Crew`], or is gone when the answer is there.
pub fn serve(args: &[OsString]) -> crate::Result<()> {
    answered(ARGUMENT, args, |crew: Crew, channel| match work(&crew, channel) {
        Ok(report) => WorkerAnswer::Done(report),
        Err(why) => WorkerAnswer::Failed(why),
    })
}

/// Serves the caller as the helper process `name`, which dies with it: does what it says first, and sends the answer.
pub(crate) fn answered<Said: DeserializeOwned, WorkerAnswer: Serialize>(
    name: &str,
    args: &[OsString],
    perform: impl FnOnce(Said, &mut Channel) -> WorkerAnswer,
) -> crate::Result<()> {
    let failed = |e: io::Error| Error::Worker { name: name.to_owned(), why: e.to_string() };
    // This ends us when the caller is killed.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|e| failed(e.into()))?;
    let mut channel = Channel::adopt(args)?;
    let said: Option<Said> = channel.receive().map_err(failed)?;
    let Some(said) = said else { return Ok(()) };
    let answer = perform(said, &mut channel);
    channel.send(&answer).map_err(failed)
}

/// Sets `stop` at the caller's next word, or its end.
fn watch(channel: &Channel, stop: &Arc<AtomicBool>) -> io::Result<()> {
    // It may have come with the last one.
    if channel.is_readable(Some(Duration::ZERO))? {
        stop.store(true, Ordering::Relaxed);
    }
    let (fd, stop) = (channel.as_fd().try_clone_to_owned()?, Arc::clone(stop));
    let waits = std::thread::Builder::new().spawn(move || {
        while let Ok(false) = any_is_readable(&[fd.as_fd()], None) {}
        stop.store(true, Ordering::Relaxed);
    });
    waits.map(drop)
}

fn work(crew: &Crew, channel: &mut Channel) -> Result<CrewReport, String> {
    // The memory of the computing loop belongs to the process, so its speed is measured once.
    let computes = crew.threads.iter().any(|t| !t.cpu.is_zero());
    let speed = computes.then(Speed::measure);
    let stop = Arc::new(AtomicBool::new(false));
    let gate = Gate::default();
    let mut prepared = Vec::new();
    for (n, work) in crew.threads.iter().enumerate() {
        let stream = crew.stream + n as u64;
        prepared.push(thread::Prepared::new(work, crew, stream, speed).map_err(|e| e.to_string())?);
    }
    channel.send(&WorkerAnswer::Ready).map_err(|e| e.to_string())?;
    match channel.receive() {
        Ok(Some(Order::Go)) => {}
        Ok(Some(Order::Stop) | None) => return Err("it was ended before it began".to_owned()),
        Err(e) => return Err(e.to_string()),
    }
    let refused = |e: io::Error| format!("cannot start a thread: {e}");
    watch(channel, &stop).map_err(refused)?;
    std::thread::scope(|scope| {
        let (gate, stop) = (&gate, &*stop);
        let running = prepared
            .into_iter()
            .map(|p| std::thread::Builder::new().spawn_scoped(scope, move || p.run(gate, stop)))
            .collect::<io::Result<Vec<_>>>();
        let running = running.inspect_err(|_| gate.give_up()).map_err(refused)?;
        gate.open(running.len());
        let mut threads = Vec::new();
        for t in running {
            threads.push(t.join().map_err(|_| "a thread failed".to_owned())?.map_err(|e| e.to_string())?);
        }
        Ok(CrewReport { threads, loops_per_ms: speed.map(|s| s.loops_per_ms) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_says_is_one_line_and_is_read_back() {
        let mut cycles = Histogram::default();
        (1..=100).for_each(|n| cycles.add(n * 1000));
        let thread = ThreadReport {
            cycles: cycles.closed(),
            asked: Some(5),
            flush_ns: None,
            ..ThreadReport::default()
        };
        let report = CrewReport { threads: vec![thread], loops_per_ms: Some(0.1) };
        for answer in
            [WorkerAnswer::Ready, WorkerAnswer::Failed("two\nlines".into()), WorkerAnswer::Done(report)]
        {
            let sent = serde_json::to_string(&answer).unwrap();
            assert!(!sent.contains('\n'), "{answer:?}");
            assert_eq!(serde_json::from_str::<WorkerAnswer>(&sent).unwrap(), answer);
        }
    }
}
