//! Starting a program many times: baselines, a control program in between, observed starts at intervals.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use cold_model::Nanos;
use cold_model::recording::Recording;
use cold_sys::spawn::client::Spawner;
use cold_sys::spawn::{Fresh, Handover, Method, Program, Setup, Timing};
use cold_sys::whole;

use crate::evidence::{self, Evidence, Seen};
use crate::{Error, Result};

/// Pairs of starts per order to the spawners, at most: progress and interrupts are looked at between them.
const BATCH: usize = 50;
/// Pairs of the first order, before anything is known of their time.
const FIRST_BATCH: usize = 2;
/// Time that an order should take.
const ORDER_TIME: Nanos = Nanos(300_000_000);
/// Starts of each baseline.
const BASELINE_STARTS: usize = 40;
/// Observed starts come in groups, the first before all timed starts, the last after them: a line, a
/// parabola and a logarithm differ between groups, a step within none. Five of four starts make enough
/// points for the rank test wherever a step lies.
const OBSERVED_GROUPS: usize = 5;
/// Starts of one group.
const OBSERVED_EACH: usize = 4;
/// Starts under ptrace, after all others: for where loading ends and the program begins.
const TRACED: usize = 7;

/// What to do.
#[derive(Debug, Clone)]
pub struct Config {
    /// What is started again and again.
    pub program: Program,
    /// How processes are created.
    pub method: Method,
    /// Starts of the program that are timed; observed and traced ones come on top.
    pub starts: usize,
    /// Spawners that start programs at the same time, at least 1.
    pub jobs: usize,
    /// Touched memory of each spawner, bytes.
    pub ballast: u64,
    /// That memory may be made of huge pages.
    pub huge_pages: bool,
    /// cgroup v2 directory for [`Method::Clone3`].
    pub cgroup: Option<PathBuf>,
    /// Where the empty programs may be written; they are named `empty-static` and `empty-dynamic`.
    pub scratch: PathBuf,
    /// What every start of the program shall find as the first one did.
    pub fresh: Vec<Fresh>,
}

/// Something that costs as much as creating a process must cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// Create a process that exits at once, without exec.
    Create,
    /// An empty static program.
    EmptyStatic,
    /// An empty program that needs the C library.
    EmptyDynamic,
}

/// Everything that was measured.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The program's starts in the order in which they began, with their index among all starts (observed
    /// ones count, since they leave behind what starts leave behind).
    pub starts: Vec<(u64, Timing)>,
    /// The control program's start that followed each of them. Same length.
    pub control: Vec<Timing>,
    /// Baselines, measured before.
    pub baselines: Vec<(Baseline, Vec<Timing>)>,
    /// Observed starts with their index; empty when none could be observed.
    pub observed: Vec<(u64, Evidence)>,
    /// Recording of the last of them, for the stacks of what they did.
    pub recording: Option<Recording>,
    /// Traced starts of the program.
    pub traced: Vec<Handover>,
    /// The same of the empty static program: what a stop takes.
    pub stops: Vec<Handover>,
    /// Why none could be traced.
    pub not_traced: Option<String>,
    /// Why none, or no more, could be observed.
    pub not_observed: Option<String>,
    /// Wall time in which the timed starts and their controls ran.
    pub wall: Nanos,
    /// It was interrupted: fewer starts than asked for.
    pub interrupted: bool,
}

/// Sees what starts do: a recorder.
pub trait Observer {
    /// Records what descends from this process, from now on.
    fn begin(&mut self, spawner: u32) -> std::result::Result<(), String>;
    /// Ends, and tells.
    fn end(&mut self) -> std::result::Result<Seen, String>;
}

/// Hears how far it is.
pub trait Progress {
    /// Of `of` starts, `done` are done.
    fn starts(&mut self, done: usize, of: usize);
    /// A group of starts is being observed.
    fn observing(&mut self);
}

/// Runs it all.
pub fn run(
    config: &Config,
    observer: &mut dyn Observer,
    progress: &mut dyn Progress,
    interrupt: &AtomicBool,
) -> Result<Measured> {
    let mut session = Session::new(config, observer, progress, interrupt)?;
    session.baselines()?;
    for group in 0..OBSERVED_GROUPS {
        session.observe()?;
        if group + 1 < OBSERVED_GROUPS {
            let until = config.starts * (group + 1) / (OBSERVED_GROUPS - 1);
            session.time_until(until)?;
        }
    }
    session.trace();
    Ok(session.measured)
}

/// Only the baselines, each with its timings.
pub fn baselines(config: &Config, interrupt: &AtomicBool) -> Result<Vec<(Baseline, Vec<Timing>)>> {
    let (mut observer, mut progress) = (Nobody, Nobody);
    let mut session = Session::new(config, &mut observer, &mut progress, interrupt)?;
    session.baselines()?;
    Ok(session.measured.baselines)
}

struct Nobody;

impl Observer for Nobody {
    fn begin(&mut self, _: u32) -> std::result::Result<(), String> {
        Err("nobody observes".into())
    }
    fn end(&mut self) -> std::result::Result<Seen, String> {
        Err("nobody observes".into())
    }
}

impl Progress for Nobody {
    fn starts(&mut self, _: usize, _: usize) {}
    fn observing(&mut self) {}
}

/// Index of the program, the control, and the first baseline, in every spawner's setup.
const PROGRAM: usize = 0;
const CONTROL: usize = 1;
const FIRST_BASELINE: usize = 2;

struct Session<'a> {
    config: &'a Config,
    observer: &'a mut dyn Observer,
    progress: &'a mut dyn Progress,
    interrupt: &'a AtomicBool,
    spawners: Vec<Spawner>,
    baselines: Vec<Baseline>,
    next: u64,
    batch: usize,
    measured: Measured,
}

impl<'a> Session<'a> {
    fn new(
        config: &'a Config,
        observer: &'a mut dyn Observer,
        progress: &'a mut dyn Progress,
        interrupt: &'a AtomicBool,
    ) -> Result<Self> {
        let (programs, baselines) = programs(config)?;
        let setup = Setup {
            method: config.method,
            programs,
            ballast: config.ballast,
            huge_pages: config.huge_pages,
            cgroup: config.cgroup.clone(),
            fresh: config.fresh.clone(),
        };
        let spawners = (0..config.jobs.max(1))
            .map(|_| Spawner::start(setup.clone()))
            .collect::<std::result::Result<_, _>>()
            .map_err(Error::Spawner)?;
        let measured = Measured::default();
        Ok(Self {
            config,
            observer,
            progress,
            interrupt,
            spawners,
            baselines,
            next: 0,
            batch: FIRST_BATCH,
            measured,
        })
    }

    /// Baselines in turn, so that drift falls on all of them alike.
    fn baselines(&mut self) -> Result<()> {
        let kinds = self.baselines.len();
        let schedule = (0..BASELINE_STARTS * kinds).map(|i| FIRST_BASELINE + i % kinds).collect();
        let timings = self.alone(schedule)?;
        for (i, kind) in self.baselines.iter().enumerate() {
            let own = timings.iter().filter(|t| t.program == FIRST_BASELINE + i).copied().collect();
            self.measured.baselines.push((*kind, own));
        }
        Ok(())
    }

    /// Starts that tell where loading ends, each followed by the control: what a stop costs drifts as well.
    fn trace(&mut self) {
        if self.stopped() {
            return;
        }
        match self.spawners[0].trace([PROGRAM, CONTROL].repeat(TRACED), self.interrupt) {
            Ok(Some(all)) => {
                let (own, control) = all.into_iter().partition(|h| h.program == PROGRAM);
                (self.measured.traced, self.measured.stops) = (own, control);
            }
            Ok(None) => self.measured.interrupted = true,
            Err(e) => self.measured.not_traced = Some(e.to_string()),
        }
        self.next += TRACED as u64;
    }

    fn stopped(&mut self) -> bool {
        self.measured.interrupted |= self.interrupt.load(Ordering::Relaxed);
        self.measured.interrupted
    }

    /// A schedule for the first spawner only.
    fn alone(&mut self, schedule: Vec<usize>) -> Result<Vec<Timing>> {
        self.spawners[0].begin(schedule).map_err(Error::Spawner)?;
        Ok(self.finish(0)?.unwrap_or_default())
    }

    /// None after an interrupt.
    fn finish(&mut self, spawner: usize) -> Result<Option<Vec<Timing>>> {
        let timings = self.spawners[spawner].finish(self.interrupt).map_err(Error::Spawner)?;
        self.measured.interrupted |= timings.is_none();
        Ok(timings)
    }

    fn time_until(&mut self, until: usize) -> Result<()> {
        while self.measured.starts.len() < until && !self.stopped() {
            let left = until - self.measured.starts.len();
            let jobs = self.spawners.len();
            let each = left.div_ceil(jobs).min(self.batch);
            let counts: Vec<usize> = (0..jobs).map(|j| each.min(left.saturating_sub(j * each))).collect();
            let at = cold_sys::time::monotonic();
            for (spawner, count) in self.spawners.iter_mut().zip(&counts) {
                spawner.begin([PROGRAM, CONTROL].repeat(*count)).map_err(Error::Spawner)?;
            }
            let mut pairs = Vec::new();
            for spawner in 0..jobs {
                let Some(timings) = self.finish(spawner)? else { break };
                pairs.extend(timings.chunks_exact(2).map(|pair| (pair[0], pair[1])));
            }
            let took = cold_sys::time::monotonic().saturating_sub(at);
            self.measured.wall += took;
            let fitting = each as u64 * ORDER_TIME.0 / took.0.max(1);
            self.batch = usize::try_from(fitting).unwrap_or(BATCH).clamp(1, BATCH);
            pairs.sort_by_key(|(own, _)| own.began);
            for (own, control) in pairs {
                self.measured.starts.push((self.next, own));
                self.measured.control.push(control);
                self.next += 1;
            }
            self.progress.starts(self.measured.starts.len(), self.config.starts);
        }
        Ok(())
    }

    /// A group of starts under observation; after the first failure none is tried again.
    fn observe(&mut self) -> Result<()> {
        if self.measured.not_observed.is_some() || self.stopped() {
            return Ok(());
        }
        self.progress.observing();
        if let Err(why) = self.observer.begin(self.spawners[0].pid()) {
            self.measured.not_observed = Some(why);
            return Ok(());
        }
        let timings = self.alone(vec![PROGRAM; OBSERVED_EACH]);
        let seen = self.observer.end();
        let timings = timings?;
        if self.stopped() {
            return Ok(());
        }
        let told = seen.and_then(|seen| {
            let each = evidence::per_start(&seen, &timings, self.spawners[0].pid())?;
            Ok((seen.recording, each))
        });
        match told {
            Ok((recording, each)) => {
                self.measured.observed.extend((self.next..).zip(each));
                self.measured.recording = Some(recording);
            }
            Err(why) => self.measured.not_observed = Some(why),
        }
        self.next += OBSERVED_EACH as u64;
        Ok(())
    }
}

fn programs(config: &Config) -> Result<(Vec<Program>, Vec<Baseline>)> {
    let plain = |path: PathBuf| Program { argv: vec![b"empty".to_vec()], path, env: Vec::new(), cwd: None };
    let mut baselines = vec![(Baseline::Create, plain(PathBuf::new()))];
    for (kind, name, image) in [
        (Baseline::EmptyStatic, "empty-static", crate::empty::static_image()),
        (Baseline::EmptyDynamic, "empty-dynamic", crate::empty::dynamic_image()),
    ] {
        if let Some(image) = image {
            let path = config.scratch.join(name);
            whole::write(&path, whole::Ownership::Own(0o755), &image)
                .map_err(|e| Error::Scratch(path.clone(), e))?;
            baselines.push((kind, plain(path)));
        }
    }
    // Creation without exec controls as well where no empty program could be made.
    let control = baselines.get(1).unwrap_or(&baselines[0]).1.clone();
    let mut programs = vec![config.program.clone(), control];
    let mut kinds = Vec::new();
    for (kind, program) in baselines {
        kinds.push(kind);
        programs.push(program);
    }
    Ok((programs, kinds))
}
