//! Programs as steps of the simulation, and the same steps done.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::{Barrier, Condvar, Mutex};
use std::time::Instant;

use cold_model::{Bytes, Extent};
use cold_sim::Cache;
use cold_sim::disk::{Disk, Layout, Model};
use cold_sim::engine::{
    Blocks, Costs, Event, Gate, Input, Machine, Outcome, PlanStep, Replay, Step, Task, TaskStart, TaskTimes,
    run,
};
use cold_sim::op::{FileId, Op, OpenId};
use cold_stats::{Pcg, median_u64};
use cold_testbed::disk::Request;
use cold_testbed::{SlowDisk, until};

const PAGE: u64 = 4096;
/// What the programs' only file is open as, by all of them.
const OPEN: OpenId = OpenId(0);
pub(crate) const DISK: Bytes = Bytes(256 << 20);
/// Pages of the file that programs read.
const PAGES: u64 = 16_384;
const US: u64 = 1000;
/// Pages that one of the test disk's requests has at most, and how many such blocks one call asks for.
const BLOCK: u64 = 128;
const BLOCKS: u64 = 16;

/// What loop, FUSE and the kernel's part of a read add to what the model says of a test disk: for each request, and
/// for each byte. It changes with what else the machine does.
#[derive(Debug)]
pub(crate) struct Way {
    request_ns: u64,
    bytes_per_second: Option<u64>,
}

impl Way {
    /// The model of a test disk as a program sees it.
    pub(crate) fn model(&self, model: Model) -> Model {
        let copied = self.bytes_per_second;
        // What has passed the bus is copied: the times add up.
        let both = |bus: u64| {
            copied.map_or(bus, |n| (1.0 / (1.0 / n.max(1) as f64 + 1.0 / bus.max(1) as f64)) as u64)
        };
        let (channel_bandwidth, bandwidth) = (copied, model.bandwidth.map(both));
        Model { channel_bandwidth, bandwidth, ..model.behind(self.request_ns, 0) }
    }
}

/// A program: its tasks, and the plan of a helper beside them.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    tasks: Vec<Task>,
    pub(crate) helper: Option<Replay>,
}

/// What a run came to.
pub(crate) struct Ran {
    pub(crate) took_ns: u64,
    pub(crate) log: Vec<Request>,
    /// The program's tasks, with the time that their computing really took, on a machine that others use.
    tasks: Vec<Task>,
}

/// A file on a test disk, and where it lies.
pub(crate) struct Truth {
    file: File,
    extents: Vec<Extent>,
}

impl Truth {
    pub(crate) fn new(slow: &SlowDisk) -> Self {
        let path = slow.mount_point().join("data");
        let mut rng = Pcg::new(1, 1);
        let bytes: Vec<u8> = (0..PAGES * PAGE / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
        fs::write(&path, bytes).expect("write");
        let file = File::open(path).expect("open");
        file.sync_all().expect("sync");
        cold_sys::evict::advise_random(&file).expect("fadvise");
        let extents = cold_sys::extents::extents(&file).expect("FIEMAP").expect("extents");
        Self { file, extents }
    }

    /// Whether this byte of the disk is the file's.
    pub(crate) fn holds(&self, offset: u64) -> bool {
        self.extents.iter().any(|e| (e.physical..e.physical + e.bytes).contains(&offset))
    }

    fn evict(&self) {
        until("the file's pages to go", || {
            cold_sys::evict::advise_dontneed(&self.file).expect("fadvise");
            let left = cold_sys::residency::cachestat(&self.file, 0, 0).expect("cachestat");
            left.is_none_or(|s| s.cached == 0).then_some(())
        });
    }

    fn read(&self, offset: u64, bytes: u64) {
        let mut buffer = vec![0; bytes as usize];
        self.file.read_exact_at(&mut buffer, offset).expect("read");
    }

    /// By single reads of a few sizes, each with the model's time for it in the disk's log, after a little computing as in
    /// the programs.
    pub(crate) fn way(&self, slow: &SlowDisk) -> Way {
        let more = |pages: u64| {
            self.evict();
            slow.reset_log().expect("reset");
            let took = places(pages, 256).into_iter().map(|at| {
                compute(300 * US);
                let began = Instant::now();
                self.read(at * PAGE, pages * PAGE);
                began.elapsed().as_nanos() as u64
            });
            let took: Vec<u64> = took.collect();
            let mut log = slow.log().expect("log");
            log.retain(|r| r.len.0 == pages * PAGE);
            log.sort_by_key(|r| r.arrival);
            let more = took.iter().zip(&log).map(|(took, r)| took.saturating_sub(r.model.0));
            median_u64(more.collect::<Vec<_>>()).expect("some")
        };
        let (small, large) = (more(4), more(32));
        let bytes = 28 * PAGE * 1_000_000_000;
        Way { request_ns: small, bytes_per_second: (large > small).then(|| bytes / (large - small)) }
    }

    /// Runs it from an empty cache.
    pub(crate) fn run(&self, slow: &SlowDisk, program: &Program) -> Ran {
        self.evict();
        let helper: Vec<Task> = program.helper.iter().map(helper_steps).collect();
        let tasks: Vec<&Task> = program.tasks.iter().chain(&helper).collect();
        let (happened, changed) = (Mutex::new(BTreeSet::new()), Condvar::new());
        let signal = |event: Event| {
            happened.lock().expect("lock").insert(event.0);
            changed.notify_all();
        };
        let wait = |event: Event| {
            let all = happened.lock().expect("lock");
            drop(changed.wait_while(all, |all| !all.contains(&event.0)).expect("lock"));
        };
        let together = Barrier::new(tasks.len() + 1);
        slow.reset_log().expect("reset");
        let thread = |task: &Task| {
            together.wait();
            if let TaskStart::On(event) = task.start {
                wait(event);
            }
            let mut done = Vec::with_capacity(task.steps.len());
            for step in &task.steps {
                let began = Instant::now();
                match *step {
                    Step::Compute(ns) => compute(ns),
                    Step::Access(Op::Read { offset, bytes, .. }) => self.read(offset, bytes),
                    Step::Access(Op::WillNeed { first, pages, .. }) => {
                        cold_sys::readahead::read_ahead(&self.file, first * PAGE, pages * PAGE)
                            .expect("readahead");
                    }
                    Step::Signal(event) => signal(event),
                    Step::Await(event) => wait(event),
                    Step::Sleep(ns) => std::thread::sleep(std::time::Duration::from_nanos(ns)),
                    Step::Access(Op::Open { .. }) => {}
                    ref other => panic!("nobody knows how to do {other:?}"),
                }
                done.push(match step {
                    Step::Compute(_) | Step::Sleep(_) => Step::Sleep(began.elapsed().as_nanos() as u64),
                    other => *other,
                });
            }
            (Instant::now(), Task { start: task.start, steps: done })
        };
        let (took_ns, tasks) = std::thread::scope(|scope| {
            let all: Vec<_> = tasks.iter().map(|task| scope.spawn(|| thread(task))).collect();
            together.wait();
            let began = Instant::now();
            let mut all: Vec<_> = all.into_iter().map(|t| t.join().expect("a thread")).collect();
            // A helper is no part of the program.
            all.truncate(program.tasks.len());
            let end = all.iter().map(|(end, _)| *end).max().expect("some");
            (end.duration_since(began).as_nanos() as u64, all.into_iter().map(|(_, task)| task).collect())
        });
        Ran { took_ns, log: slow.log().expect("log"), tasks }
    }

    /// One call asks for 8 MiB: when the last page of each block of 512 KiB has come, milliseconds after the call.
    pub(crate) fn blocks_come(&self) -> Result<Vec<f64>, String> {
        self.evict();
        let began = Instant::now();
        cold_sys::readahead::read_ahead(&self.file, 0, BLOCKS * BLOCK * PAGE).expect("readahead");
        let mut came = Vec::new();
        while (came.len() as u64) < BLOCKS {
            let last = ((came.len() as u64 + 1) * BLOCK - 1) * PAGE;
            if cold_sys::readahead::page_is_ready(&self.file, last) == Some(true) {
                came.push(began.elapsed().as_secs_f64() * 1e3);
            } else if began.elapsed().as_secs() > 5 {
                return Err("somebody has taken pages away".to_owned());
            } else {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        }
        Ok(came)
    }

    /// The same in the simulation.
    pub(crate) fn blocks_simulated(&self, model: Model) -> Vec<f64> {
        let open = Step::Access(Op::Open { open: OPEN, file: FileId(0) });
        let ask = Step::Access(Op::WillNeed { open: OPEN, first: 0, pages: BLOCKS * BLOCK });
        let asked = Event(0);
        let mut tasks = vec![Task { start: TaskStart::AtOnce, steps: vec![open, ask, Step::Signal(asked)] }];
        let waits =
            |n: u64| Task { start: TaskStart::On(asked), steps: vec![read(((n + 1) * BLOCK - 1) * PAGE, 1)] };
        tasks.extend((0..BLOCKS).map(waits));
        let outcome = self.outcome(&tasks, None, model);
        let end = |t: &TaskTimes| t.lived.map_or(0.0, |(_, end)| end as f64 / 1e6);
        outcome.tasks.iter().skip(1).map(end).collect()
    }

    /// Simulates what ran on such a disk, with the time between reads that it took. What reading costs the processors
    /// is part of the way that was measured.
    pub(crate) fn simulate(&self, program: &Program, ran: &Ran, model: Model) -> Outcome {
        self.outcome(&ran.tasks, program.helper.as_ref(), model)
    }

    fn outcome(&self, tasks: &[Task], replay: Option<&Replay>, model: Model) -> Outcome {
        let mut layout = Layout::new(PAGE);
        layout.add(0, PAGES * PAGE, Some(&self.extents));
        let input = Input { tasks, replay, layout: &layout };
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let machine = Machine { processors, costs: Costs::NONE };
        let mut disks = [Disk::new(model, DISK.0, 0)];
        run(&input, &machine, &mut Cache::exact(&layout), &mut disks).expect("an outcome")
    }
}

/// Computes for so much CPU time.
fn compute(ns: u64) {
    let now = || {
        let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        t.tv_sec.unsigned_abs() * 1_000_000_000 + t.tv_nsec.unsigned_abs()
    };
    let end = now() + ns;
    while now() < end {
        std::hint::spin_loop();
    }
}

/// What a helper of one thread does, by the rules of `cold-launch`.
fn helper_steps(plan: &Replay) -> Task {
    let (mut steps, mut chunks, mut pages) = (Vec::new(), std::collections::VecDeque::new(), 0);
    for step in &plan.steps {
        let PlanStep::Read { first, pages: all, .. } = *step else { continue };
        for at in (first..first + all).step_by(plan.chunk_pages as usize) {
            let chunk = plan.chunk_pages.min(first + all - at);
            while pages > 0 && pages + chunk > plan.in_flight_pages {
                let (first, n): (u64, u64) = chunks.pop_front().expect("a chunk");
                pages -= n;
                steps.push(read((first + n - 1) * PAGE, 1));
            }
            steps.push(Step::Access(Op::WillNeed { open: OPEN, first: at, pages: chunk }));
            chunks.push_back((at, chunk));
            pages += chunk;
        }
    }
    Task { start: TaskStart::AtOnce, steps }
}

fn read(offset: u64, bytes: u64) -> Step {
    Step::Access(Op::Read { open: OPEN, offset, bytes })
}

/// Places of so many pages, each once, in an order of a seed.
fn places(seed: u64, every: u64) -> Vec<u64> {
    let mut places: Vec<u64> = (0..PAGES).step_by(every as usize).collect();
    Pcg::new(seed, 0).shuffle(&mut places);
    places
}

/// Reads of `pages` at scattered places, each after so much thinking.
fn scattered(places: &[u64], pages: u64, think: Step) -> Vec<Step> {
    places.iter().flat_map(|at| [think, read(at * PAGE, pages * PAGE)]).collect()
}

/// All of them. The number of reads fits a disk of 100 requests per second.
pub(crate) fn programs() -> Vec<Program> {
    let program = |name, steps: Vec<Vec<Step>>| {
        let open = Step::Access(Op::Open { open: OPEN, file: FileId(0) });
        let task = |steps: Vec<Step>| Task { start: TaskStart::AtOnce, steps: [vec![open], steps].concat() };
        Program { name, tasks: steps.into_iter().map(task).collect(), helper: None }
    };
    let some = places(7, 64);
    let few: Vec<u64> = some[..120].to_vec();
    let computing = Step::Compute(300 * US);
    // Several that compute would take the processors from the disk's own server.
    let asleep = Step::Sleep(300 * US);
    let of = |n: usize| scattered(&some[n * 30..n * 30 + 30], 4, asleep);
    let gate = Event(0);
    let plan = Replay {
        steps: few
            .iter()
            .map(|at| PlanStep::Read {
                file: FileId(0),
                open: OPEN,
                first: *at,
                pages: 8,
                blocks: Blocks::default(),
                critical: false,
            })
            .collect(),
        blocks: Vec::new(),
        threads: 1,
        lookup_threads: 0,
        chunk_pages: 32,
        in_flight_pages: 64,
        gate: Gate::None,
        opens: gate,
    };
    let handed = |n: u32| {
        let from = n as usize * 20;
        let mut steps = vec![Step::Await(Event(n))];
        steps.extend(scattered(&some[from..from + 20], 4, computing));
        steps.push(Step::Signal(Event(n + 1)));
        steps
    };
    vec![
        program("scattered", vec![scattered(&few, 4, computing)]),
        program(
            "in order",
            vec![(0..120).flat_map(|n| [Step::Compute(200 * US), read(n * 32 * PAGE, 32 * PAGE)]).collect()],
        ),
        program("two threads", vec![of(0), of(1)]),
        program("four threads", (0..4).map(of).collect()),
        program("handed on", vec![vec![Step::Signal(Event(0))], handed(0), handed(1), handed(2)]),
        Program { helper: Some(plan), ..program("with a helper", vec![scattered(&few, 8, computing)]) },
    ]
}
