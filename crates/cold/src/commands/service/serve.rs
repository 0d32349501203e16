//! What is done for one start: a thread of the pool looks at it, reads ahead, watches, writes down.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cold_launch::{Began, Charged, Held, Helpers, Options, Served, Skip, Weather};
use cold_model::{Nanos, path_text};
use cold_plan::history::LaunchKind;
use cold_service::pace;
use cold_stats::Histogram;
use cold_sys::procfs::{Mount, ProcFs};

use super::arguments::{self, Given};
use super::history::{Entry, Name, What, now_ns};
use super::programs::{Planned, Program};
use super::record::Recorder;
use super::status::Tally;

/// A process that has not become its program by then never will (a disk that does not answer).
const BECOMES: Duration = Duration::from_secs(10);
/// Between two looks whether it has: at first, and after [`SOON`].
const LOOK: Duration = Duration::from_micros(200);
const LOOK_LATER: Duration = Duration::from_millis(2);
const SOON: Duration = Duration::from_millis(20);

/// A start that was heard of.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) program: Arc<Program>,
    pub(crate) pid: i32,
    /// When it was heard (`CLOCK_MONOTONIC`).
    pub(crate) at: Nanos,
}

/// Since the service began.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) tally: Tally,
    /// From hearing of a cold start to the first request for pages.
    pub(crate) begins: Histogram,
}

/// What starts need to know of the machine, as it was when the service last looked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Machine {
    pub(crate) mounts: Arc<Vec<Mount>>,
    pub(crate) weather: Weather,
    /// Programs that have plans.
    pub(crate) programs: Vec<Arc<Program>>,
}

/// What all threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) machine: Mutex<Machine>,
    pub(crate) counts: Mutex<Counts>,
    pub(crate) recorder: Recorder,
    pub(crate) paused: AtomicBool,
    /// Why no plan is followed any more, as long as this service runs: all together do harm.
    pub(crate) harm: OnceLock<String>,
    /// Every so many cold starts are controls; by what is known of the plan where none is given.
    pub(crate) control_every: Option<u32>,
    /// Jobs that wait for a thread, or have one.
    pub(crate) busy: AtomicU64,
    /// Starts that followed their plans, and that nobody has looked at yet to see whether the plan was ever checked.
    pub(crate) followed: Mutex<Vec<FollowedPlan>>,
    /// Who makes helpers that read in programs' own control groups.
    pub(crate) helpers: Option<Helpers>,
}

/// A start that followed its plan.
#[derive(Debug)]
pub(crate) struct FollowedPlan {
    pub(crate) name: Name,
    /// The plan's number.
    pub(crate) plan: u64,
    pub(crate) pid: i32,
    pub(crate) at: Nanos,
}

impl Shared {
    /// No plan is followed now.
    pub(crate) fn rests(&self) -> bool {
        self.paused.load(Ordering::Relaxed) || self.harm.get().is_some()
    }

    /// Writes down how often programs were started warm.
    pub(crate) fn count_warm(&self) {
        let programs = self.machine().programs.clone();
        for program in programs {
            let starts = program.warm.swap(0, Ordering::Relaxed);
            if starts > 0 {
                // Of which scenario is not asked of a warm start, except where there is one only.
                let scenario = match &program.plans[..] {
                    [one] => &one.held.key().scenario,
                    _ => "~any",
                };
                let name = Name::new(&program.executable, program.script.as_deref(), scenario);
                self.recorder.add(Entry::Warm { name, starts });
            }
        }
    }

    /// Those of [`Self::followed`], which forgets them.
    pub(crate) fn take_followed(&self) -> Vec<FollowedPlan> {
        std::mem::take(&mut *self.followed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where nobody takes them (nothing is learnt) no more than these are kept.
    fn add_followed(&self, start: FollowedPlan) {
        const MOST: usize = 64;
        let mut all = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST {
            all.push(start);
        }
    }

    pub(crate) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread of the pool: takes jobs until there are no more.
pub(crate) fn work(jobs: &Mutex<Receiver<Job>>, shared: &Shared) {
    loop {
        // Waiting holds the lock; whoever gets a job lets the next one wait.
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        let machine = {
            let now = shared.machine();
            Machine { programs: Vec::new(), ..now.clone() }
        };
        let mut start = FollowedStart { job: &job, shared, machine, control: None, first: None, bytes: 0 };
        start.follow_up();
        // Whatever became of it.
        shared.counts().tally.bytes += start.bytes;
        shared.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

struct FollowedStart<'a> {
    job: &'a Job,
    shared: &'a Shared,
    machine: Machine,
    /// Whether it is a control; not asked before it is found cold.
    control: Option<bool>,
    /// When pages were first asked for.
    first: Option<Nanos>,
    /// Bytes asked for, so far.
    bytes: u64,
}

impl FollowedStart<'_> {
    fn follow_up(&mut self) {
        let program = &self.job.program;
        self.shared.counts().tally.looked += 1;
        let Some(began) = Began::of(self.job.pid, self.job.at) else {
            return self.skipped("it had ended before it could be looked at");
        };
        let mut given = self.given();
        if let (Given::NotYet, Some(common)) = (&given, &program.common) {
            match self.read_common(common) {
                Ok(by_now) => given = by_now,
                Err(skip) => return self.not_followed(&skip, common),
            }
        }
        let looked = Instant::now();
        while matches!(given, Given::NotYet) {
            let pause = if looked.elapsed() < SOON { LOOK } else { LOOK_LATER };
            if began.has_ended(pause) || looked.elapsed() > BECOMES {
                return self.unknown();
            }
            given = self.given();
        }
        let Given::Plan(key) = given else { return self.unknown() };
        match program.plan(&key) {
            Some(planned) => self.follow(planned, &began),
            None => self.unknown(),
        }
    }

    fn given(&self) -> Given {
        let program = &self.job.program;
        arguments::given(self.job.pid, &program.executable, program.script.as_deref(), &self.machine.mounts)
    }

    /// Reads what all scenarios share, where that is not cached, until it is known that the start has a plan: this one
    /// knows what is needed first. What the process was given, as far as that was asked.
    fn read_common(&mut self, common: &Held) -> Result<Given, Skip> {
        let mut given = Given::NotYet;
        let mounts = Arc::clone(&self.machine.mounts);
        let prospect = match common.prospect(&mounts, self.machine.weather, &options()) {
            Ok(prospect) => prospect,
            // The rest may be cold all the same.
            Err(Skip::Warm) => return Ok(given),
            Err(skip) => return Err(skip),
        };
        if self.is_control() {
            return Ok(given);
        }
        let mut looked = Instant::now();
        let tally = prospect.read_until(&mut || {
            if matches!(given, Given::NotYet) && looked.elapsed() >= LOOK {
                given = self.given();
                looked = Instant::now();
            }
            matches!(&given, Given::Plan(key) if self.job.program.plan(key).is_some())
        })?;
        self.note_first(tally.first);
        self.bytes = tally.bytes;
        Ok(given)
    }

    /// Asked once for a start, and only for a cold one.
    fn is_control(&mut self) -> bool {
        let program = &self.job.program;
        let every =
            self.shared.control_every.map_or_else(|| pace::control_every(program.is_proven()), u64::from);
        *self.control.get_or_insert_with(|| program.pace().is_control(every))
    }

    fn follow(&mut self, planned: &Planned, began: &Began) {
        if planned.is_followed.swap(true, Ordering::AcqRel) {
            return self.not_alone(planned);
        }
        let served = self.serve(planned.of_user(ProcFs::default().user(began.pid())), began);
        planned.is_followed.store(false, Ordering::Release);
        match served {
            Ok(served) => self.served(&planned.held, &served),
            Err(skip) => self.not_followed(&skip, &planned.held),
        }
    }

    fn serve(&mut self, held: &Held, began: &Began) -> Result<Served, Skip> {
        let mut options = options();
        // Both were asked before what all share was read: it was absent, so the start is cold, and the requests that a
        // disk has by now are our own.
        let is_asked = self.control.is_some();
        options.guards.warm = !is_asked;
        options.guards.pressure = !is_asked;
        let mounts = Arc::clone(&self.machine.mounts);
        let prospect = held.prospect(&mounts, self.machine.weather, &options)?;
        let control = self.is_control() && prospect.can_be_entered();
        prospect.serve(began, control, self.shared.helpers.as_ref())
    }

    fn served(&mut self, held: &Held, served: &Served) {
        if let Some(charged) = &served.charged {
            self.charged(charged);
        }
        self.note_first(served.tally.and_then(|t| t.first));
        let record = &served.record;
        // What all scenarios share is part of it.
        self.bytes = record.bytes;
        let (what, why) = match record.kind {
            LaunchKind::Prefetched => (What::Followed, None),
            LaunchKind::Control => (What::Control, None),
            LaunchKind::Skipped(why) => (What::Skipped, Some(why.words().to_owned())),
        };
        match what {
            What::Followed => {
                self.shared.counts().tally.followed += 1;
                let name = Name::of(held.key());
                let Job { pid, at, .. } = *self.job;
                self.shared.add_followed(FollowedPlan { name, plan: held.id(), pid, at });
            }
            What::Control => self.shared.counts().tally.controls += 1,
            What::Common => self.shared.counts().tally.common += 1,
            What::Skipped => self.skipped(why.as_deref().unwrap_or_default()),
        }
        self.shared.recorder.add(Entry::Start {
            name: Name::of(held.key()),
            at_ns: now_ns(),
            what,
            why,
            wall_ns: record.mark.map(|m| m.wall_ns),
            cpu_ns: record.mark.map(|m| m.cpu_ns),
            first_read_ns: self.first.map(|at| at.0),
            bytes: self.bytes,
            requests: record.requests,
            late: record.late,
        });
        if let Some(judgement) = &served.judgement
            && let Ok(Some(standing)) = cold_launch::apply(held, judgement)
        {
            let (_, why) = judgement.words();
            let what = match standing {
                cold_plan::plan::Standing::Off(_) => "switched off",
                _ => "proven",
            };
            let detail = format!("{}: {why}", path_text::encode(held.path()));
            self.shared.recorder.add(Entry::Event { what, detail });
        }
    }

    fn charged(&self, charged: &Charged) {
        let charging = &mut self.shared.counts().tally.charged;
        match charged {
            Charged::Own(bytes) => {
                charging.own_starts += 1;
                charging.own_bytes += bytes;
            }
            Charged::Service(why) => *charging.service.entry(why.words()).or_default() += 1,
        }
    }

    fn note_first(&mut self, at: Option<Nanos>) {
        if let (None, Some(at)) = (self.first, at) {
            let after = at.saturating_sub(self.job.at);
            self.first = Some(after);
            self.shared.counts().begins.add(after.0);
        }
    }

    fn not_followed(&self, skip: &Skip, held: &Held) {
        if matches!(skip, Skip::Warm) {
            self.warm();
        } else {
            // Sentences with figures would each be counted by themselves.
            let why = match skip {
                Skip::Memory { .. } => "too little memory was free".to_owned(),
                other => other.to_string(),
            };
            self.skipped(&why);
            self.write(Name::of(held.key()), What::Skipped, Some(why));
        }
    }

    /// Another start is followed by the same plan at the moment.
    fn not_alone(&self, planned: &Planned) {
        let why = "another start was following it";
        self.skipped(why);
        // Else nobody has looked whether it is cold.
        if self.control.is_some() {
            self.write(Name::of(planned.held.key()), What::Skipped, Some(why.to_owned()));
        }
    }

    /// Its arguments have no plan, or cannot be told.
    fn unknown(&self) {
        let program = &self.job.program;
        let name = || Name::new(&program.executable, program.script.as_deref(), "~common");
        match self.control {
            Some(false) => {
                self.shared.counts().tally.common += 1;
                self.write(name(), What::Common, None);
            }
            Some(true) => {
                let why = "a control, but its arguments have no plan";
                self.skipped(why);
                self.write(name(), What::Skipped, Some(why.to_owned()));
            }
            None => self.warm(),
        }
    }

    fn warm(&self) {
        self.job.program.pace().was_warm(self.job.at);
        self.job.program.warm.fetch_add(1, Ordering::Relaxed);
        self.shared.counts().tally.warm += 1;
    }

    fn skipped(&self, why: &str) {
        *self.shared.counts().tally.skipped.entry(why.to_owned()).or_default() += 1;
    }

    fn write(&self, name: Name, what: What, why: Option<String>) {
        self.shared.recorder.add(Entry::Start {
            name,
            at_ns: now_ns(),
            what,
            why,
            wall_ns: None,
            cpu_ns: None,
            first_read_ns: self.first.map(|at| at.0),
            bytes: self.bytes,
            requests: 0,
            late: false,
        });
    }
}

/// Nobody waits for the answers, so they may be exact.
pub(crate) fn options() -> Options {
    let mut options = Options::new(Vec::new());
    options.guards.finely = true;
    options
}
