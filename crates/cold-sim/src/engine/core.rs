//! The loop: what happens next, and what follows from it.

mod reading;

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::disk::Disk;
use crate::op::{Access, Op, PageCache, PageRead, Progress};

use super::cooling::Warmth;
use super::flight::{Flight, OnWay, Request};
use super::input::{Event, Input, Machine, Step, TaskStart};
use super::log::{self, Life};
use super::outcome::{Done, Error, FileReads, Filled, Kind, Outcome, Sent, TaskTimes};
use super::processors::Processors;
use super::replay::{self, Shared, Thread};

/// Simulates a start.
pub fn run<C: PageCache + ?Sized>(
    input: &Input<'_>,
    machine: &Machine,
    cache: &mut C,
    disks: &mut [Disk],
) -> Result<Outcome, Error> {
    let mut engine = Engine::new(input, machine, cache, disks);
    engine.begin();
    engine.run()?;
    Ok(engine.outcome())
}

/// Where a task's steps come from.
enum Source<'a> {
    Program(std::slice::Iter<'a, Step>),
    Helper(Thread),
}

/// Where a task stands when it gets a processor.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Before its next step.
    Next,
    /// It has done without what its processor lost, and computes for so long.
    Warm(u64),
    /// It has paid for its requests and sends them.
    Sending(Op, Access),
    /// What it waited for is there: it does the access again.
    Again(Op),
}

struct RunningTask<'a> {
    source: Source<'a>,
    phase: Phase,
    progress: Progress,
    /// What its processor does for it.
    doing: Kind,
    /// Requests to be sent.
    pending: VecDeque<Request>,
    /// The page that it waits for was asked for by this very access.
    own: bool,
    fruitless: u8,
    /// When the present access began, and whether it has waited for storage.
    access: (u64, bool),
}

/// What is going to happen.
enum Due {
    Came(Request),
    Timer(usize),
}

#[derive(Default)]
struct Latch {
    happened: bool,
    waiting: Vec<usize>,
}

struct Engine<'a, C: ?Sized> {
    input: Input<'a>,
    machine: Machine,
    cache: &'a mut C,
    disks: &'a mut [Disk],
    now: u64,
    due: BTreeMap<(u64, u64), Due>,
    number: u64,
    processors: Processors,
    warmth: Warmth,
    tasks: Vec<RunningTask<'a>>,
    lives: Vec<Life>,
    helper: Option<Shared<'a>>,
    events: HashMap<Event, Latch>,
    flight: Flight,
    /// Of each disk: requests under way, and tasks that wait until it takes one more.
    queues: Vec<(usize, VecDeque<usize>)>,
    /// Tasks of the program that have not ended.
    left: usize,
    /// Who made the end, once it is there.
    ended_by: Option<usize>,
    reads: Vec<PageRead>,
    files: Vec<FileReads>,
    sent: Vec<Sent>,
    filled: Vec<Filled>,
    done: Vec<Done>,
}

impl<'a, C: PageCache + ?Sized> Engine<'a, C> {
    fn new(input: &Input<'a>, machine: &Machine, cache: &'a mut C, disks: &'a mut [Disk]) -> Self {
        let (helper, threads) = match input.replay {
            Some(replay) => {
                let (shared, threads) = replay::threads(replay, input.layout.page_bytes());
                (Some(shared), threads)
            }
            None => (None, Vec::new()),
        };
        let program = input.tasks.iter().map(|t| Source::Program(t.steps.iter()));
        let tasks: Vec<RunningTask<'a>> = program
            .chain(threads.into_iter().map(Source::Helper))
            .map(|source| RunningTask {
                source,
                phase: Phase::Next,
                progress: Progress::default(),
                doing: Kind::Computing,
                pending: VecDeque::new(),
                own: false,
                fruitless: 0,
                access: (0, false),
            })
            .collect();
        Self {
            input: *input,
            machine: *machine,
            cache,
            now: 0,
            due: BTreeMap::new(),
            number: 0,
            processors: Processors::new(machine.processors, tasks.len()),
            warmth: Warmth::new(machine.costs.cooling, machine.processors.min(tasks.len()).max(1)),
            lives: vec![Life::default(); tasks.len()],
            tasks,
            helper,
            events: HashMap::new(),
            flight: Flight::default(),
            queues: disks.iter().map(|_| (0, VecDeque::new())).collect(),
            disks,
            left: input.tasks.len(),
            ended_by: None,
            reads: Vec::new(),
            files: vec![FileReads::default(); input.layout.files()],
            sent: Vec::new(),
            filled: Vec::new(),
            done: Vec::new(),
        }
    }

    /// The helper first: it is there before the program.
    fn begin(&mut self) {
        for task in self.input.tasks.len()..self.tasks.len() {
            self.begin_task(task, None);
        }
        for (task, given) in self.input.tasks.iter().enumerate() {
            match given.start {
                TaskStart::AtOnce => self.begin_task(task, None),
                TaskStart::On(event) => self.events.entry(event).or_default().waiting.push(task),
            }
        }
    }

    fn begin_task(&mut self, task: usize, by: Option<usize>) {
        let slot = self.processors.wants(self.now, task, 0, true);
        self.lives[task].begin(self.now, by, if slot.is_some() { Kind::Computing } else { Kind::Processor });
        self.runs(slot);
    }

    fn run(&mut self) -> Result<(), Error> {
        while self.ended_by.is_none() && self.left > 0 {
            let due = self.due.first_key_value().map(|(key, _)| key.0);
            let (end, swap) = (self.processors.next_end(), self.processors.next_swap());
            let Some(next) = due.into_iter().chain(end.map(|e| e.0)).chain(swap.map(|s| s.0)).min() else {
                return Err(self.stuck());
            };
            self.now = next;
            match (end, swap) {
                _ if due == Some(next) => self.happen(),
                (Some((at, slot)), _) if at == next => self.advance(slot)?,
                (_, Some((_, slot))) => self.swap(slot),
                _ => {}
            }
        }
        Ok(())
    }

    fn happen(&mut self) {
        match self.due.pop_first() {
            Some((_, Due::Timer(task))) => self.wake(task, Kind::Computing, 0, usize::MAX),
            Some((_, Due::Came(request))) => self.came(&request),
            None => {}
        }
    }

    fn came(&mut self, request: &Request) {
        for bio in &request.bios {
            let Some(done) = self.flight.came(*bio) else { continue };
            self.cache.arrived(&done.read);
            self.count_waits(&done);
            for task in done.waiting {
                self.wake(task, Kind::Reading, self.machine.costs.wait_ns, usize::MAX);
            }
        }
        if let Some((under_way, waiting)) = self.queues.get_mut(request.disk) {
            *under_way = under_way.saturating_sub(1);
            if let Some(task) = waiting.pop_front() {
                self.wake(task, Kind::Reading, 0, usize::MAX);
            }
        }
    }

    /// Adds what the program's tasks have waited for these pages.
    fn count_waits(&mut self, bio: &OnWay) {
        let waited = bio.waiting.iter().filter(|task| **task < self.input.tasks.len());
        let ns = waited
            .fold(0_u64, |sum, task| sum.saturating_add(self.now.saturating_sub(self.lives[*task].since())));
        if let Some(file) = self.files.get_mut(bio.read.file.0 as usize) {
            file.waited_ns = file.waited_ns.saturating_add(ns);
        }
    }

    fn plan(&mut self, at: u64, due: Due) {
        self.number += 1;
        self.due.insert((at, self.number), due);
    }

    /// A task that waited wants a processor for `ns` of this kind.
    fn wake(&mut self, task: usize, doing: Kind, ns: u64, by: usize) {
        self.tasks[task].doing = doing;
        if task < self.input.tasks.len() && self.lives[task].waits_for_storage() {
            self.warmth.waits_no_longer(self.now);
        }
        let slot = self.processors.wants(self.now, task, ns, false);
        self.lives[task].turn(self.now, if slot.is_some() { doing } else { Kind::Processor }, by);
        self.runs(slot);
    }

    /// Somebody runs on this processor from now on.
    fn runs(&mut self, slot: Option<usize>) {
        if let Some(slot) = slot {
            self.warmth.runs(self.now, slot);
        }
    }

    /// The task in a slot waits.
    fn block(&mut self, slot: usize, task: usize, kind: Kind) {
        self.lives[task].turn(self.now, kind, usize::MAX);
        self.lives[task].waits += u64::from(kind.is_storage());
        self.tasks[task].access.1 |= kind.is_storage();
        if task < self.input.tasks.len() && kind.is_storage() {
            self.warmth.waits(self.now);
        }
        self.leave(slot);
    }

    fn leave(&mut self, slot: usize) {
        match self.processors.leaves(self.now, slot) {
            Some(next) => self.lives[next].turn(self.now, self.tasks[next].doing, usize::MAX),
            None => self.warmth.sleeps(self.now, slot),
        }
    }

    fn swap(&mut self, slot: usize) {
        if let Some((out, next)) = self.processors.swap(self.now, slot) {
            self.lives[out].turn(self.now, Kind::Processor, usize::MAX);
            self.lives[next].turn(self.now, self.tasks[next].doing, usize::MAX);
        }
    }

    /// The task in a slot computes for `ns`. True: nothing else happens before that is over, and it is.
    fn pass(&mut self, slot: usize, ns: u64) -> bool {
        let until = self.now.saturating_add(ns);
        let due = self.due.first_key_value().map_or(u64::MAX, |(key, _)| key.0);
        if until < due.min(self.processors.next_beside(slot)) {
            self.now = until;
            return true;
        }
        self.processors.goes_on(self.now, slot, ns);
        false
    }

    /// The task in a slot has computed what it wanted, and goes on until it waits or computes longer than until
    /// the next thing that happens.
    fn advance(&mut self, slot: usize) -> Result<(), Error> {
        let Some(task) = self.processors.task_in(slot) else { return Ok(()) };
        loop {
            let goes_on = match self.tasks[task].phase {
                Phase::Next => {
                    let Some(step) = self.step(task) else {
                        self.end(slot, task);
                        return Ok(());
                    };
                    self.take(slot, task, step)?
                }
                Phase::Warm(ns) => {
                    self.compute_again(task);
                    self.tasks[task].phase = Phase::Next;
                    self.pass(slot, ns)
                }
                Phase::Sending(op, then) => {
                    self.compute_again(task);
                    self.send(slot, task)? && self.then(slot, task, op, then)?
                }
                Phase::Again(op) => {
                    self.compute_again(task);
                    self.access(slot, task, &op)?
                }
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    fn compute_again(&mut self, task: usize) {
        if self.tasks[task].doing != Kind::Computing {
            self.tasks[task].doing = Kind::Computing;
            self.lives[task].turn(self.now, Kind::Computing, usize::MAX);
        }
    }

    fn step(&mut self, task: usize) -> Option<Step> {
        match &mut self.tasks[task].source {
            Source::Program(steps) => steps.next().copied(),
            Source::Helper(thread) => self.helper.as_mut().and_then(|shared| thread.next(shared)),
        }
    }

    /// Takes a step. False: the task has left its slot, or computes.
    fn take(&mut self, slot: usize, task: usize, step: Step) -> Result<bool, Error> {
        match step {
            Step::Compute(ns) => Ok(self.compute(slot, task, ns)),
            Step::Access(op) => {
                self.tasks[task].progress = Progress::default();
                self.tasks[task].access = (self.now, false);
                self.access(slot, task, &op)
            }
            Step::Signal(event) => {
                self.signal(task, event);
                Ok(true)
            }
            Step::Await(event) => {
                let latch = self.events.entry(event).or_default();
                if latch.happened {
                    return Ok(true);
                }
                latch.waiting.push(task);
                self.block(slot, task, Kind::Tasks);
                Ok(false)
            }
            Step::Sleep(0) => Ok(true),
            Step::Sleep(ns) => {
                self.plan(self.now.saturating_add(ns), Due::Timer(task));
                self.block(slot, task, Kind::Timer);
                Ok(false)
            }
            Step::Ready => {
                self.ended_by = Some(task);
                Ok(false)
            }
        }
    }

    /// First comes what the processor owes for this work, which is no work of the program.
    fn compute(&mut self, slot: usize, task: usize, ns: u64) -> bool {
        let owed = self.warmth.pays(slot, ns);
        if owed == 0 {
            return ns == 0 || self.pass(slot, ns);
        }
        self.tasks[task].phase = Phase::Warm(ns);
        self.tasks[task].doing = Kind::Reading;
        self.lives[task].turn(self.now, Kind::Reading, usize::MAX);
        self.pass(slot, owed)
    }

    fn signal(&mut self, task: usize, event: Event) {
        let latch = self.events.entry(event).or_default();
        latch.happened = true;
        for waiting in std::mem::take(&mut latch.waiting) {
            if self.lives[waiting].lived().is_none() {
                self.begin_task(waiting, Some(task));
            } else {
                self.wake(waiting, Kind::Computing, 0, task);
            }
        }
    }

    fn end(&mut self, slot: usize, task: usize) {
        self.lives[task].end(self.now);
        self.leave(slot);
        if task < self.input.tasks.len() {
            self.left -= 1;
            if self.left == 0 {
                self.ended_by = Some(task);
            }
        }
    }

    fn stuck(&self) -> Error {
        let mut waiting: Vec<(usize, Event)> =
            self.events.iter().flat_map(|(e, latch)| latch.waiting.iter().map(|t| (*t, *e))).collect();
        waiting.sort_unstable();
        let (task, event) = waiting.first().copied().unwrap_or((0, Event(0)));
        Error::Stuck { task, event: event.0, others: waiting.len().saturating_sub(1) }
    }

    fn outcome(mut self) -> Outcome {
        for bio in std::mem::take(&mut self.flight).all() {
            self.count_waits(&bio);
        }
        for life in &mut self.lives {
            life.end(self.now);
        }
        let times = |life: &Life| TaskTimes { lived: life.lived(), times: life.times(), waits: life.waits };
        let (program, helpers) = self.lives.split_at(self.input.tasks.len());
        Outcome {
            time_ns: self.now,
            path: self.ended_by.map(|task| log::path(&self.lives, task, self.now)).unwrap_or_default(),
            tasks: program.iter().map(times).collect(),
            helpers: helpers.iter().map(times).collect(),
            files: self.files,
            sent: self.sent,
            filled: self.filled,
            done: self.done,
        }
    }
}
