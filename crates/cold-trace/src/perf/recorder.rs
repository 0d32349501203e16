//! Perf events, live: opened per CPU, drained into the log.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cold_model::Nanos;
use cold_sys::perf_event::{self, EventKind, OpenPerfEvent, PerfSpec, Ring, UserStacks, Whom};
use cold_sys::procfs::ProcFs;

use super::record;
use crate::blocks::{self, Fact, PerfClass, PerfEvent, Sink};

/// Where all recorders append their blocks.
pub type SharedSink = Arc<Mutex<dyn Sink + Send>>;

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerfPlan {
    /// Page faults too, not only mappings, names, forks and exits.
    pub faults: bool,
    /// Nothing that happens in kernel mode.
    pub user_only: bool,
    /// Stacks of faults. Copies are taken of major ones only: 8 KiB of each minor one would cost more
    /// than the fault.
    pub stack: UserStacks,
    /// Bytes of the buffer of each CPU; less where the user may not lock so much.
    pub buffer: usize,
}

/// Smallest buffer per CPU that is tried.
const LEAST_BUFFER: usize = 64 << 10;
/// How long a record may wait in a buffer where a process' command line is read when its exec is noticed,
/// and where it is not: looking takes the CPU from the start (50 to 70 µs a time, with what it finds). A buffer of which a quarter is full ends the
/// wait.
const PATIENCE: Duration = Duration::from_millis(10);
const PATIENCE_WITHOUT: Duration = Duration::from_millis(250);

/// The open events of all CPUs.
#[derive(Debug)]
pub struct Rings {
    plan: PerfPlan,
    cpus: Vec<u32>,
    buffers: Vec<Ring>,
    /// Events that write into the rings of others.
    others: Vec<OpenPerfEvent>,
    described: Vec<PerfEvent>,
}

impl Rings {
    /// Opens nothing yet; `cpus` are those online.
    pub fn new(plan: PerfPlan, cpus: Vec<u32>) -> Self {
        Self { plan, cpus, buffers: Vec::new(), others: Vec::new(), described: Vec::new() }
    }

    /// Opens the events of the plan for this thread and all that it creates, or for everybody.
    ///
    /// The buffers are mapped by the first call, all of one size: that is halved until the kernel lets the
    /// user lock so much (`kernel.perf_event_mlock_kb` of each CPU and `RLIMIT_MEMLOCK` make one allowance,
    /// of which the first CPUs must not take everything).
    pub fn add(&mut self, whom: Whom) -> io::Result<()> {
        let mapped = !self.buffers.is_empty();
        loop {
            match self.add_everywhere(whom) {
                Err(e)
                    if e.kind() == ErrorKind::QuotaExceeded && !mapped && self.plan.buffer > LEAST_BUFFER =>
                {
                    (self.buffers, self.others, self.described) = Default::default();
                    self.plan.buffer /= 2;
                }
                other => return other,
            }
        }
    }

    fn add_everywhere(&mut self, whom: Whom) -> io::Result<()> {
        for cpu in self.cpus.clone() {
            match self.add_on(whom, cpu) {
                // It went offline since the list was read.
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn add_on(&mut self, whom: Whom, cpu: u32) -> io::Result<()> {
        let copies = matches!(self.plan.stack, UserStacks::Copy(_));
        let minor = if copies { UserStacks::None } else { self.plan.stack };
        let kinds = [
            (EventKind::SideBand, PerfClass::SideBand, UserStacks::None),
            (EventKind::MinorFaults, PerfClass::Minor, minor),
            (EventKind::MajorFaults, PerfClass::Major, self.plan.stack),
        ];
        for (kind, class, stack) in kinds {
            if kind != EventKind::SideBand && !self.plan.faults {
                continue;
            }
            let wake_at = (self.plan.buffer / 4) as u32;
            let spec = PerfSpec { kind, whom, user_only: self.plan.user_only, stack, wake_at };
            let event = OpenPerfEvent::open(&spec, cpu)?;
            self.described.push(PerfEvent { id: event.id(), class, sample_type: spec.sample_type() });
            match self.buffers.iter().find(|r| r.event().cpu() == cpu) {
                Some(ring) => {
                    event.write_into(ring)?;
                    self.others.push(event);
                }
                None => self.buffers.push(Ring::map(event, self.plan.buffer).map_err(too_much)?),
            }
        }
        Ok(())
    }

    /// What the records mean.
    pub fn described(&self) -> &[PerfEvent] {
        &self.described
    }

    /// Bytes of all buffers.
    pub fn bytes(&self) -> u64 {
        self.buffers.iter().map(|r| r.size() as u64).sum()
    }

    /// Appends everything that is in the buffers. Returns the processes that called exec.
    pub fn drain(&mut self, sink: &SharedSink) -> io::Result<BTreeSet<u32>> {
        let mut execs = BTreeSet::new();
        let mut result = Ok(());
        for ring in &mut self.buffers {
            ring.drain(|bytes| {
                let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(e) = sink.append(blocks::PERF, bytes) {
                    result = Err(e);
                }
                execs.extend(record::split(bytes).filter_map(record::exec_of));
            });
        }
        sink.lock().unwrap_or_else(PoisonError::into_inner).tick()?;
        result.map(|()| execs)
    }
}

/// A mapping is refused where it would lock more memory than the user may.
fn too_much(e: io::Error) -> io::Error {
    let why = "no memory may be locked for its buffers; other recordings of this user may hold what \
               kernel.perf_event_mlock_kb and `ulimit -l` allow";
    if e.raw_os_error() == Some(libc::EPERM) { io::Error::new(ErrorKind::QuotaExceeded, why) } else { e }
}

/// Drains in a thread of its own until it is stopped.
#[derive(Debug)]
pub struct PerfRecorder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Nanos>>>,
}

impl Drop for PerfRecorder {
    fn drop(&mut self) {
        // A recording that is given up: its thread ends at its next look, and the events with it.
        self.stop.store(true, Ordering::Release);
    }
}

impl PerfRecorder {
    /// Starts; `arguments`: command lines are to be read when an exec is noticed.
    pub fn start(mut rings: Rings, sink: SharedSink, proc: ProcFs, arguments: bool) -> io::Result<Self> {
        let patience = if arguments { PATIENCE } else { PATIENCE_WITHOUT };
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("cold-perf".to_owned()).spawn(move || {
            loop {
                // Read before draining: what was written until then is drained once more.
                let last = stopped.load(Ordering::Acquire);
                let execs = rings.drain(&sink)?;
                if arguments {
                    for pid in execs {
                        command_line(&proc, pid, &sink)?;
                    }
                }
                if last {
                    return Ok(cold_sys::time::thread_cpu());
                }
                let began = Instant::now();
                perf_event::wait(&rings.buffers, patience);
                // An event whose thread has ended ends every wait at once.
                if began.elapsed() < PATIENCE / 10 {
                    std::thread::sleep(PATIENCE / 10);
                }
            }
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Drains the rest and closes the events. Returns the CPU time that reading took.
    pub fn finish(mut self) -> io::Result<Nanos> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Ok(Nanos(0)) };
        thread.join().map_err(|_| io::Error::other("the thread that reads perf events died"))?
    }
}

/// Best effort: the process may be gone, or have called exec again.
fn command_line(proc: &ProcFs, pid: u32, sink: &SharedSink) -> io::Result<()> {
    let Ok(arguments) = proc.cmdline(pid.cast_signed()) else { return Ok(()) };
    if arguments.is_empty() {
        return Ok(());
    }
    let fact = Fact::CommandLine { at: cold_sys::time::monotonic().0, pid, arguments };
    blocks::fact(&mut *sink.lock().unwrap_or_else(PoisonError::into_inner), &fact)
}
