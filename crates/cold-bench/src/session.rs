//! A whole benchmark: observe, then rounds of every command in every state, until enough is known.
//!
//! Start reading at [`run`]. The order within a round is drawn from the seed; a disturbed run is kept
//! and replaced in its own round, so that ratios stay paired.

mod around;
mod cgroups;
mod exact;
mod machine;
mod measure;
mod observe;
pub mod patience;
mod policy;
mod read_ahead;
pub mod single;
pub mod starts;
mod state;

use std::sync::atomic::{AtomicBool, Ordering};

use cold_journal::Journal;
use cold_model::bench::{Command, Report, Run, SCHEMA, Series, State, UsedFile};
use cold_model::observed::ObservedStart;
use cold_model::{Bytes, Known, Shown as _};
use cold_stats::Pcg;
use cold_sys::procfs::ProcFs;

use crate::config::{CommandSpec, Config, Eviction};
use crate::fileset::{BlockDevices, FileSet, block_devices};
use crate::{Error, Result, hooks};

use cgroups::TreeCgroups;
use policy::Policy;
use state::Preparer;

pub use around::Around;
pub use exact::{ExactNeed, window as fault_around};
pub use read_ahead::{Changed, may_be_set as read_ahead_may_be_set};

/// What happens, for whoever shows it. Times and results are in the report; this is for waiting people.
pub trait Progress {
    /// A step begins ("observing one start of firefox").
    fn step(&mut self, what: &str);
    /// A run is done; `report` already holds it.
    fn run_done(&mut self, report: &Report, run: &Run);
    /// Something the user should know.
    fn warn(&mut self, what: &str);
}

/// One command with all that is known about its starts.
struct Subject<'a> {
    spec: &'a CommandSpec,
    /// `None` when the start could not be observed; the reason is in `why_no_set`.
    set: Option<FileSet>,
    why_no_set: String,
    devices: BlockDevices,
    observed: Option<ObservedStart>,
}

impl<'a> Subject<'a> {
    fn unobserved(spec: &'a CommandSpec, why_no_set: String) -> Self {
        Self { spec, set: None, why_no_set, devices: BlockDevices::default(), observed: None }
    }
}

/// Runs the benchmark. On [`AtomicBool`] `interrupt` the current start is ended and the report so far
/// is returned with [`Report::stopped`] set. Cleanup hooks run in every case.
pub fn run(config: &Config, progress: &mut dyn Progress, interrupt: &AtomicBool) -> Result<Report> {
    let mut set_up = 0;
    let result = run_inner(config, progress, interrupt, &mut set_up);
    let mut cleaned = Ok(());
    for spec in config.commands.iter().take(set_up) {
        if let Some(line) = &spec.cleanup {
            cleaned = cleaned.and(hooks::run("cleanup", line, None));
        }
    }
    let report = result?;
    cleaned?;
    Ok(report)
}

fn run_inner(
    config: &Config,
    progress: &mut dyn Progress,
    interrupt: &AtomicBool,
    set_up: &mut usize,
) -> Result<Report> {
    let proc = ProcFs::default();
    let journal = Journal::open()?;
    needs_launcher(config)?;
    let mut preparer = Preparer::new(config, &journal)?;
    for spec in &config.commands {
        *set_up += 1;
        if let Some(line) = &spec.setup {
            hooks::run("setup", line, None)?;
        }
    }
    let mut subjects = Vec::new();
    let mut commands = Vec::new();
    for spec in &config.commands {
        progress.step(&format!("observing one start of {}", spec.name));
        let (subject, command) = subject(config, spec, &proc, progress, interrupt)?;
        for note in &command.notes {
            progress.warn(&format!("{}: {note}", spec.name));
        }
        subjects.push(subject);
        commands.push(command);
    }
    let cgroups = TreeCgroups::create(config, &proc, &journal, &subjects)?;
    let series: Vec<Series> = (0..commands.len())
        .flat_map(|command| config.states.iter().map(move |state| Series { command, state: state.clone() }))
        .collect();
    let mut report = Report {
        schema: SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started: machine::now(),
        seed: config.seed,
        machine: machine::facts(&proc, &subjects, preparer.method()),
        commands,
        series,
        stopped: None,
        runs: Vec::new(),
    };
    preparer.observed(&subjects);
    let policy = Policy::new(config, report.series.len());
    let outcome = Rounds {
        config,
        around: &mut (),
        as_found: false,
        proc: &proc,
        journal: &journal,
        subjects: &subjects,
        preparer: &mut preparer,
        cgroups: &cgroups,
        interrupt,
    }
    .all(&mut report, policy, progress);
    let removed = cgroups.remove();
    outcome?;
    removed?;
    preparer.method().clone_into(&mut report.machine.eviction);
    Ok(report)
}

/// A prefetched start needs a plan and who replays it.
fn needs_launcher(config: &Config) -> Result<()> {
    let without = config.commands.iter().find(|c| c.launcher.is_none());
    match without.filter(|_| config.states.contains(&State::Prefetched)) {
        None => Ok(()),
        Some(c) => Err(Error::State {
            state: State::Prefetched.to_string(),
            why: format!("there is no plan for {}", c.name),
        }),
    }
}

/// Observes one start and looks up what it needs.
fn subject<'a>(
    config: &Config,
    spec: &'a CommandSpec,
    proc: &ProcFs,
    progress: &mut dyn Progress,
    interrupt: &AtomicBool,
) -> Result<(Subject<'a>, Command)> {
    let observed = observe::observe(config, spec, progress, interrupt)?;
    if interrupt.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let mut command = Command {
        name: spec.name.clone(),
        line: spec.line.clone(),
        parameters: spec.parameters.clone(),
        files: Known::unknown("the start was not observed"),
        file_bytes: Known::unknown("the start was not observed"),
        misses: Known::unknown("the start was not observed"),
        processes: Known::unknown("the start was not observed"),
        file_names: None,
        missed_in: None,
        plan: spec.launcher.as_ref().map(|l| l.plan.clone()),
        notes: Vec::new(),
    };
    let mut subject = Subject::unobserved(spec, String::new());
    match observed {
        Ok(o) => {
            let mut set = FileSet::of(&o);
            command.files = Known::Value(o.files.len() as u64);
            command.file_bytes = Known::Value(o.file_bytes());
            command.misses = Known::Value(o.misses);
            command.processes = Known::Value(o.processes);
            command.missed_in = Some(o.misses_by_dir.clone());
            let mut names: Vec<UsedFile> =
                o.files.iter().map(|f| UsedFile { path: f.path.clone(), bytes: f.size }).collect();
            names.sort_by(|a, b| a.path.cmp(&b.path));
            command.file_names = Some(names);
            command.notes.clone_from(&o.notes);
            if set.out_of_reach > 0 {
                command.notes.push(format!(
                    "{} of its files lie in another mount namespace and cannot be checked",
                    Bytes(set.out_of_reach)
                ));
            }
            subject.devices = block_devices(proc, &set);
            // After the devices: those of a plan's own file are not the command's.
            set.add(spec.launcher.as_ref().map_or(&[], |l| &l.files));
            if config.eviction == Eviction::Program && !set.evict_only(&spec.program) {
                let why = format!("{} is not among the files that a start of it uses", spec.program.shown());
                return Err(Error::State { state: State::Cold.to_string(), why });
            }
            subject.set = Some(set);
            subject.observed = Some(o);
        }
        Err(why) => {
            command.notes.push(format!("its files are unknown, so cold cannot be proved: {why}"));
            subject.why_no_set = why;
        }
    }
    Ok((subject, command))
}

/// The measuring part.
struct Rounds<'a> {
    config: &'a Config,
    proc: &'a ProcFs,
    journal: &'a Journal,
    subjects: &'a [Subject<'a>],
    preparer: &'a mut Preparer,
    cgroups: &'a TreeCgroups,
    interrupt: &'a AtomicBool,
    /// Who else watches each measured start.
    around: &'a mut dyn Around,
    /// Leave the cache as it is.
    as_found: bool,
}

impl Rounds<'_> {
    fn all(&mut self, report: &mut Report, mut policy: Policy, progress: &mut dyn Progress) -> Result<()> {
        let mut round = 0;
        while let Some(series) = policy.next_round(report) {
            let mut queue = series;
            // A stream of its own per round: adding a round never changes an earlier one.
            Pcg::new(self.config.seed, u64::from(round)).shuffle(&mut queue);
            let mut next = 0;
            while let Some(&index) = queue.get(next) {
                next += 1;
                let Some(run) = self.one(report, index, round, progress)? else {
                    report.stopped = Some("interrupted".into());
                    return Ok(());
                };
                let good = run.counts();
                report.runs.push(run);
                if let Some(run) = report.runs.last() {
                    progress.run_done(report, run);
                }
                if policy.note(report, index, good, round) {
                    queue.push(index); // its replacement, in the same round
                }
            }
            round += 1;
        }
        report.stopped = policy.stopped(report);
        Ok(())
    }

    fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
