//! `cold service run`: hears of starts and hands them to the pool.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cold_launch::{Helpers, Weather};
use cold_model::file_system::Origin;
use cold_model::path_text;
use cold_plan::Store;
use cold_service::{Often, Recent, Storm};
use cold_sys::exec_watch::{ExecWatch, ExecutedFile, Heard};
use cold_sys::procfs::{Mount, MountEvents, ProcFs};
use cold_sys::time::monotonic;
use serde_json::json;

use super::history::{Entry, Name, now_ns};
use super::keep;
use super::learn::{self, Learner};
use super::notify::Manager;
use super::place::Place;
use super::programs::{Chosen, Programs};
use super::reader;
use super::record::Recorder;
use super::serve::{self, Counts, Job, Shared};
use super::socket::{Ear, Question};
use super::status::{Begins, Off, Own, Running, Status, Watched};
use crate::cli::TEMPLATE;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::ui::Ui;
use crate::words::plural;

const EXAMPLES: &str = "Examples:
  cold service run
  cold service run --except /home          no programs of private homes
  cold service run --no-learn              only plans that were learnt by hand
  cold service run --control-every 0       no control starts: then nothing shows what is saved
";

const AFTER: &str = "\
Root only: an ordinary user is told of executions of single files (fanotify marks on inodes), but
not by which process. Follows the system's plans: those that root has learnt
with `cold prefetch learn`, and those that it learns by itself: a program that started cold is
recorded at its next start (BPF, Linux 5.8; at most 1% of a CPU over an hour). Nobody waits for the
service: a start goes on whether it runs, hangs or dies. Some cold starts go without their plans to
compare (control starts); a plan that does harm or nothing is switched off.

Exit codes: 0 ended by Ctrl-C or SIGTERM; 1 failed, or another service runs; 2 wrong usage.";

/// Starts that are looked after at the same time; a start is watched until it is ready.
const THREADS: usize = 16;
/// Files that it may have open: some hundreds of each start that it looks after.
const OPEN_FILES: usize = 4096;
/// Starts that wait for a thread.
const QUEUE: usize = 64;
/// Between two looks at mounts, store and requests to end, when nothing is heard.
const LOOK: Duration = Duration::from_secs(1);
/// Between two looks whether programs were replaced, as by an upgrade: a `stat` for each.
const UPGRADES: Duration = Duration::from_mins(1);

/// Between two times that warm starts are written down, as a number for each program.
const COUNT: Duration = Duration::from_secs(5);

/// Flags of `cold service run`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    /// Make every K-th cold start without the plan, to measure what the plan gains; 0: never [default: 4, and 20 once a
    /// gain is shown]
    #[arg(long, value_name = "K")]
    control_every: Option<u32>,

    /// Read nothing before a start. Else, after something has emptied the cache, plans of programs that were started
    /// often and lately are read into free memory while nothing waits
    #[arg(long)]
    no_keep: bool,

    /// Learn nothing. Else a program that started cold and has no plan is recorded at its next start
    #[arg(long)]
    no_learn: bool,

    /// Have helpers in programs' own control groups made by the process behind this socket [default: make them itself]
    #[arg(long, value_name = "SOCKET")]
    reader: Option<PathBuf>,

    #[command(flatten)]
    chosen: Chosen,
}

/// Runs until asked to end.
pub(crate) fn run(args: &Args, place: &Place, ui: &Ui) -> Outcome {
    if !cold_sys::caps::is_root() {
        let why = "cold service run needs root: the kernel tells others of executions of single files only, and \
                   not by which process, so neither its arguments nor its end could be known";
        return Err(Failure::from(anyhow::anyhow!(why)).hint(
            "start it with sudo, or enable coldstart.service; without root, cold prefetch install puts plans in \
             front of chosen programs",
        ));
    }
    cold_sys::heap::keep_little();
    // First: who makes helpers is a copy of a process with one thread and nothing open.
    let helpers = reader::helpers(args.reader.as_ref(), ui);
    cold_sys::detached::make_room_for_files(OPEN_FILES);
    let store = place.plans.store()?;
    let end = interrupt()?;
    let _lock = place.lock()?;
    let watch = ExecWatch::new()
        .map_err(|e| Failure::from(e).hint("`cold doctor` tells what this machine allows"))?;
    let service = Service::begin(args, place, store, watch, helpers)?;
    let ear = service.listen(place);
    if let Err(failure) = &ear {
        ui.warn(format!("status cannot be asked: {}", failure.error));
    }
    service.tell(ui);
    let outcome = service.hear(&end);
    drop(ear);
    outcome
}

/// What the thread that hears has for itself, and shares with the one that answers.
struct Service {
    store: Store,
    chosen: Chosen,
    shared: Arc<Shared>,
    facts: Arc<Mutex<Facts>>,
    watch: ExecWatch,
    programs: Programs,
    mounts: Option<MountEvents>,
    jobs: SyncSender<Job>,
    manager: Manager,
    recent: Recent,
    storm: Storm,
    often: Often<ExecutedFile>,
    learner: Option<Learner>,
    history: String,
    began: Instant,
}

/// What an answer tells of plans and mounts.
#[derive(Debug, Default, Clone)]
struct Facts {
    watched: Vec<Watched>,
    plans: usize,
    plan_bytes: usize,
    refused: Vec<String>,
    off: Vec<Off>,
}

impl Service {
    fn begin(
        args: &Args,
        place: &Place,
        store: Store,
        watch: ExecWatch,
        helpers: Option<Helpers>,
    ) -> Result<Self, Failure> {
        let (jobs, from) = sync_channel(QUEUE);
        let shared = Arc::new(Shared {
            machine: Mutex::default(),
            counts: Mutex::new(Counts::default()),
            recorder: Recorder::start(place.history())?,
            paused: AtomicBool::new(false),
            harm: OnceLock::new(),
            control_every: args.control_every,
            busy: 0.into(),
            followed: Mutex::default(),
            helpers,
        });
        let from = Arc::new(Mutex::new(from));
        for _ in 0..THREADS {
            let (from, shared) = (Arc::clone(&from), Arc::clone(&shared));
            let thread = std::thread::Builder::new().name("start".into()).stack_size(256 << 10);
            thread.spawn(move || serve::work(&from, &shared))?;
        }
        let learner = (!args.no_learn).then(|| {
            Learner::start(store.clone(), place.plans.state()?, args.chosen.clone(), Arc::clone(&shared))
                .map_err(Failure::from)
        });
        let learner = learner.transpose()?;
        let mut service = Self {
            store,
            chosen: args.chosen.clone(),
            shared,
            facts: Arc::default(),
            watch,
            programs: Programs::default(),
            // Where changes are not told, mounts are looked at each time.
            mounts: MountEvents::new(&ProcFs::default()).ok(),
            jobs,
            manager: Manager::of_environment(),
            recent: Recent::default(),
            storm: Storm::default(),
            often: Often::default(),
            learner,
            history: path_text::encode(&place.history()),
            began: Instant::now(),
        };
        service.look_at_mounts();
        service.look_at_weather();
        service.load();
        if service.facts().watched.iter().all(|w| w.problem.is_some()) {
            let why = service.facts().watched.first().and_then(|w| w.problem.clone());
            let why = why.unwrap_or_else(|| "no file system here holds programs".to_owned());
            return Err(anyhow::anyhow!("starts cannot be heard of: {why}").into());
        }
        if let Some(booted) = booted() {
            service.shared.recorder.add(booted);
        }
        // Without a history nothing is recalled, and what is started from now on counts.
        keep::recall(service.programs.all(), &service.shared.recorder.uses().unwrap_or_default());
        let (shared, may_read) = (Arc::clone(&service.shared), !args.no_keep);
        let thread = std::thread::Builder::new().name("keep".into()).stack_size(256 << 10);
        thread.spawn(move || keep::run(&shared, may_read))?;
        let detail = plural(service.programs.plans() as u64, "plan");
        service.shared.recorder.add(Entry::Event { what: "began", detail });
        Ok(service)
    }

    fn facts(&self) -> std::sync::MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches every file system that may hold programs.
    fn look_at_mounts(&mut self) {
        let Ok(mounts) = ProcFs::default().mounts() else { return };
        let mut watched: Vec<Watched> = Vec::new();
        let mut seen = Vec::new();
        for mount in mounts.iter().filter(|m| holds_programs(m)) {
            if seen.contains(&mount.dev) {
                continue;
            }
            let problem = self.watch.watch(&mount.mount_point).err().map(|e| e.to_string());
            // Another mount of it may be reachable.
            if problem.is_none() {
                seen.push(mount.dev);
            }
            watched.push(Watched { mount_point: path_text::encode(&mount.mount_point), problem });
        }
        self.facts().watched = watched;
        self.shared.machine().mounts = Arc::new(mounts);
    }

    fn look_at_weather(&self) {
        let mounts = Arc::clone(&self.shared.machine().mounts);
        let weather = Weather::now(&mounts);
        self.shared.machine().weather = weather;
    }

    fn load(&mut self) {
        self.shared.count_warm();
        self.programs = Programs::load(&self.store, &self.chosen, &self.programs);
        for loader in loaders(self.programs.all().iter().map(|program| program.executable.as_path())) {
            // Where it cannot be left out it is heard of, and found to have no plan.
            let _ = self.watch.ignore(&loader);
        }
        if let Some(learner) = &self.learner {
            self.programs.outdated().for_each(|key| learner.is_outdated(key));
        }
        self.shared.machine().programs = self.programs.all().to_vec();
        let off = self.programs.off.iter().map(|(key, why)| Off { name: Name::of(key), why: why.clone() });
        let off = off.collect();
        let mut facts = self.facts();
        facts.off = off;
        facts.plans = self.programs.plans();
        facts.plan_bytes = self.programs.bytes;
        facts.refused.clone_from(&self.programs.refused);
    }

    fn tell(&self, ui: &Ui) {
        let facts = self.facts().clone();
        for watched in facts.watched.iter().filter_map(|w| w.problem.as_ref()) {
            ui.warn(watched);
        }
        for refused in &facts.refused {
            ui.warn(format!("a plan is not followed: {refused}"));
        }
        let mounts = facts.watched.iter().filter(|w| w.problem.is_none()).count() as u64;
        ui.note(format!(
            "following {} on {}; `cold service status` tells how it goes",
            plural(facts.plans as u64, "plan"),
            plural(mounts, "file system"),
        ));
        self.manager.tell("READY=1");
    }

    /// Hears until `end` is set.
    fn hear(mut self, end: &AtomicBool) -> Outcome {
        let (mut looked, mut upgrades, mut alive) = (Instant::now(), Instant::now(), Instant::now());
        let mut counted = Instant::now();
        let pause = self.manager.every.map_or(LOOK, |every| every.min(LOOK));
        while !end.load(Ordering::Relaxed) {
            if self.watch.wait(pause)? {
                self.hear_once()?;
                if let Some(nap) = self.storm.nap() {
                    std::thread::sleep(nap);
                }
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.often.over(monotonic()).iter().for_each(|file| self.watch.hear_again(file));
                if self.mounts.as_ref().is_none_or(MountEvents::changed) {
                    self.look_at_mounts();
                }
                self.look_at_weather();
                let moved = upgrades.elapsed() >= UPGRADES && self.programs.has_moved();
                if upgrades.elapsed() >= UPGRADES {
                    upgrades = Instant::now();
                }
                if moved || self.programs.is_old(&self.store) {
                    self.load();
                }
            }
            if counted.elapsed() >= COUNT {
                counted = Instant::now();
                self.shared.count_warm();
            }
            if self.manager.every.is_some_and(|every| alive.elapsed() >= every) {
                alive = Instant::now();
                self.manager.tell("WATCHDOG=1");
            }
        }
        self.manager.tell("STOPPING=1");
        self.shared.count_warm();
        self.shared.recorder.add(Entry::Event { what: "ended", detail: String::new() });
        // What is written before the process ends is what was added before this.
        let _ = self.shared.recorder.rows();
        Ok(Exit::Done)
    }

    fn hear_once(&mut self) -> Result<(), Failure> {
        let rests = self.shared.rests();
        let (mut heard, mut overflows, mut planned) = (0, 0, 0);
        let Self { watch, programs, recent, jobs, shared, learner, storm, often, .. } = self;
        let busy = storm.nap().is_some();
        let (heard_at, mut enough) = (monotonic(), Vec::new());
        watch.hear(&mut |what| {
            let Heard::Exec { file, pid } = what else {
                overflows += 1;
                return;
            };
            heard += 1;
            if let Some(learner) = learner.as_mut().filter(|_| !rests && pid > 0) {
                learner.heard(file, pid, monotonic(), busy);
            }
            // What has no plan costs this look, and no more.
            let program = programs.find(&file);
            let is_warm = || program.is_none_or(|program| !program.pace().asks(heard_at));
            let is_awaited = || learner.as_ref().is_some_and(|learner| learner.awaits(&file));
            if busy && is_warm() && !is_awaited() && often.is_enough(file, heard_at) {
                enough.push(file);
            }
            let Some(program) = program.filter(|_| !rests && pid > 0) else { return };
            let now = monotonic();
            // A script comes before its interpreter, which is the same start: two that follow one plan hold each other up.
            if !recent.is_new(pid, program.family, now) {
                return;
            }
            planned += 1;
            program.uses().add(1.0, now);
            if !program.pace().asks(now) {
                program.warm.fetch_add(1, Ordering::Relaxed);
                return;
            }
            shared.busy.fetch_add(1, Ordering::Relaxed);
            if jobs.try_send(Job { program: Arc::clone(program), pid, at: now }).is_err() {
                shared.busy.fetch_sub(1, Ordering::Relaxed);
                let why = "too many cold starts at once".to_owned();
                *shared.counts().tally.skipped.entry(why).or_default() += 1;
            }
        })?;
        for file in &enough {
            // Where it cannot be left out it is told on, which costs time only.
            let _ = self.watch.ignore_told(file);
        }
        self.storm.heard(heard, monotonic());
        let mut counts = self.shared.counts();
        counts.tally.heard += heard;
        counts.tally.overflows += overflows;
        counts.tally.planned += planned;
        Ok(())
    }

    /// Answers in a thread of its own.
    fn listen(&self, place: &Place) -> Result<Ear, Failure> {
        let (shared, facts) = (Arc::clone(&self.shared), Arc::clone(&self.facts));
        let (history, began) = (self.history.clone(), self.began);
        let learner = self.learner.as_ref().map(Learner::inner);
        Ear::open(&place.socket(), move |question| {
            let said = match question {
                Question::Status => {
                    let facts = facts.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    let learning = learner.as_ref().map(|learner| learner.status());
                    serde_json::to_value(status(&shared, facts, learning, &history, began))
                        .map_err(|e| e.to_string())
                }
                Question::Pause | Question::Resume => {
                    let was = shared.paused.swap(*question == Question::Pause, Ordering::Relaxed);
                    Ok(json!({ "was_paused": was }))
                }
                Question::Forget { program } => {
                    // Warm starts that are counted, but not written down yet, would be told later.
                    shared.count_warm();
                    let forgotten = shared.recorder.forget(program.clone());
                    if forgotten.is_ok() {
                        keep::forget(&shared);
                        if let Some(learner) = &learner {
                            learner.forget_checks();
                        }
                    }
                    forgotten.map(|starts| json!({ "starts": starts }))
                }
            };
            said.unwrap_or_else(|why| json!({ "error": why }))
        })
    }
}

/// The loaders of these programs and of the shell, which is that of nearly every other one: each start executes its
/// loader as well, and hearing of that costs whoever starts programs as much as hearing of the program.
fn loaders<'a>(programs: impl Iterator<Item = &'a Path>) -> BTreeSet<PathBuf> {
    let all = std::iter::once(Path::new("/bin/sh")).chain(programs);
    all.filter_map(|path| path.canonicalize().ok()).flat_map(|path| cold_doctor::interpreter(&path)).collect()
}

/// When this boot was, and the kernel's name of it; `None` where the kernel does not tell.
fn booted() -> Option<Entry> {
    let proc = ProcFs::default();
    let boot = cold_journal::boot_id(&proc).ok()?;
    let uptime = proc.read_opt("uptime").ok().flatten()?;
    let seconds: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let at_ns = now_ns().saturating_sub((seconds * 1e9) as u64);
    Some(Entry::Booted { at_ns, boot })
}

/// Programs lie on disks, or on layers over them. What a server may keep for ever is not even marked, and what may
/// not execute holds none.
fn holds_programs(mount: &Mount) -> bool {
    let kind = matches!(Origin::of(&mount.fs_type), Origin::Device | Origin::Volume | Origin::Layers);
    kind && !mount.options.split(',').any(|o| o == "noexec")
}

fn status(
    shared: &Shared,
    facts: Facts,
    learning: Option<learn::Learning>,
    history: &str,
    began: Instant,
) -> Status {
    shared.count_warm();
    let rows = shared.recorder.rows().map_err(|why| shared.recorder.problem().unwrap_or(why));
    let own = Own::since(began, shared.helpers.as_ref());
    let counts = shared.counts();
    let begins = counts.begins.clone().closed();
    let begins = begins.quantile(0.5).zip(begins.quantile(0.95)).zip(begins.max());
    let running = Running {
        pid: std::process::id(),
        seconds: began.elapsed().as_secs(),
        paused: shared.paused.load(Ordering::Relaxed),
        harm: shared.harm.get().cloned(),
        watched: facts.watched,
        tally: counts.tally.clone(),
        begins: begins.map(|((median_ns, p95_ns), max_ns)| Begins {
            starts: counts.begins.count,
            median_ns,
            p95_ns,
            max_ns,
        }),
        plans: facts.plans,
        plan_bytes: facts.plan_bytes,
        refused: facts.refused,
        learning,
        own,
    };
    drop(counts);
    Status::new(Some(running), history.to_owned(), rows, facts.off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_of_the_shell_is_left_out_before_anything_is_learnt() {
        // What the shell of this machine is called is a link on most of them.
        let shell = Path::new("/bin/sh").canonicalize().expect("a shell");
        let of_shell: BTreeSet<PathBuf> = cold_doctor::interpreter(&shell).into_iter().collect();
        assert_eq!(loaders(std::iter::empty()), of_shell);
        assert_eq!(loaders([shell.as_path(), Path::new("/nowhere")].into_iter()), of_shell, "each once");
    }
}
