//! The steps, made on this machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cold_analyze::model::{Analysis, SuggestionId};
use cold_bench::command::{from_argv, line_of};
use cold_bench::config::{CommandSpec, Config, RunPolicy};
use cold_bench::{session, summary};
use cold_doctor::Status;
use cold_journal::Journal;
use cold_model::bench::{Report, State};
use cold_model::recording::Recording;
use cold_model::recording::manifest::WantedState;
use cold_model::{Bytes, Known, Nanos};
use cold_plan::Plan;
use cold_prefetch::rehearse::Rehearsal;
use cold_report::diagnosis::{self, Evidence, PlanFacts, Predicted, Step};

use super::{Args, Diagnosed, offers};
use crate::commands::bench::progress::Shown;
use crate::commands::prefetch::plans::StorePlace;
use crate::commands::prefetch::trial::Trial;
use crate::commands::prefetch::{device, learn};
use crate::commands::report::load;
use crate::exit::{Exit, Failure};
use crate::interrupt::interrupt;
use crate::progress::Line;
use crate::ui::{Ui, one_line};

type Result<T> = std::result::Result<T, Failure>;

/// Rounds of starts at most: more tell nothing that is felt.
const ROUNDS: u32 = 40;
/// Of the time, measuring gets at least one part in so many, however long learning took.
const LEAST_PART: u32 = 3;
/// Of the time for measuring, one part in so many is for reading files whole, where that is tried.
const WHOLE_PART: u32 = 4;

/// Names of the steps.
const DISTURBED: &str = "looking for what disturbs";
const LEARNT: &str = "recording a cold and a warm start, and learning a plan from them";
const PREDICTED: &str = "predicting by the model what the plan brings";
const MEASURED: &str = "measuring cold, prefetched and warm starts in turn";
const OTHER_READ_AHEAD: &str = "trying another read-ahead of the disk";
const WHOLE: &str = "trying to read whole ahead what is needed nearly whole";

/// Diagnoses the command.
pub(super) fn diagnose(args: &Args, ui: &Ui) -> Result<Diagnosed> {
    let began = Instant::now();
    let interrupt = interrupt()?;
    let mut line = Line::new(ui);
    let made = steps(args, began, &interrupt, &mut line, ui);
    line.clear();
    match made {
        Err(failure) if interrupt.load(Ordering::Relaxed) => {
            Err(Failure { exit: Exit::Interrupted, ..failure })
        }
        made => made,
    }
}

fn steps(
    args: &Args,
    began: Instant,
    interrupt: &AtomicBool,
    line: &mut Line<'_>,
    ui: &Ui,
) -> Result<Diagnosed> {
    let mut steps = Vec::new();
    let disturbing = noted(&mut steps, DISTURBED, disturbing(args, line, ui)).unwrap_or_default();
    let (dir, _guard) = Journal::open()?.create_private("cold-diagnose")?;
    let place = StorePlace::at(dir.join("plans"));
    let starts = dir.join("starts");
    let taught = learn::teach(
        &learn::Args::keeping(args.argv.clone(), args.start.clone(), starts.clone()),
        &place,
        line,
        ui,
        interrupt,
    );
    if interrupt.load(Ordering::Relaxed) || taught.as_ref().is_err_and(|f| f.exit == Exit::Usage) {
        return Err(taught.err().unwrap_or_else(|| Failure::from(anyhow::anyhow!("interrupted"))));
    }
    let failed = taught.as_ref().err().map(|f| f.exit);
    let plan = noted(&mut steps, LEARNT, taught).map(|taught| taught.plan);
    let Recorded { usual, exact, warm } = recordings(&starts, line);
    let cold = usual.as_ref().or(exact.as_ref());
    let analysed = cold.map(|r| cold_analyze::analyze(r, &load::layouts(r, line)));
    // For windows smaller than today's: only exact needs tell what was mapped around faults and not needed.
    let model = exact.as_ref().or(usual.as_ref());
    let offers = plan.as_ref().map_or_else(Vec::new, |plan| {
        let usual = cold.zip(analysed.as_ref());
        let known = offers::Known { plan, cold: model, warm: warm.as_ref(), usual };
        // Measurements of other disks are kept with this user's plans.
        StorePlace::default().state().map_or_else(|_| Vec::new(), |state| offers::of(known, &state))
    });
    let window = analysed.iter().flat_map(|a| &a.suggestions).find_map(|s| s.read_ahead);
    let window = window.filter(|_| read_ahead_may_be_set(cold, &mut steps));
    let left = args.time.saturating_sub(began.elapsed()).max(args.time / LEAST_PART);
    let whole =
        plan.as_ref().zip(cold.zip(analysed.as_ref())).and_then(|(plan, cold)| whole_files(plan, cold));
    let for_whole = whole.as_ref().map_or(Duration::ZERO, |_| left / WHOLE_PART);
    let tries = Tries { plan: plan.as_ref(), read_ahead: window, warm: true };
    let report = measure(args, tries, &place, left.saturating_sub(for_whole), interrupt, ui);
    let whole = whole.filter(|_| report.is_ok()).and_then(|whole| {
        let tries = Tries { plan: Some(&whole), read_ahead: None, warm: false };
        noted(&mut steps, WHOLE, measure(args, tries, &place, for_whole, interrupt, ui))
    });
    let whole_analysis = whole.as_ref().map(|report| summary::analyze(report, 0.0));
    let report = match noted(&mut steps, MEASURED, report) {
        None if cold.is_none() => return Err(nothing(&steps, failed)),
        report => report,
    };
    let analysis = report.as_ref().map(|r| summary::analyze(r, 0.0));
    let bench = report.as_ref().zip(analysis.as_ref());
    let warm_took = bench.and_then(|(report, analysis)| diagnosis::warm_ready(report, analysis));
    let facts = plan.as_ref().map(|plan| facts(plan, cold, warm.as_ref(), warm_took));
    if let Some(Known::Unknown { unknown }) = facts.as_ref().map(|f| &f.predicted) {
        steps.push(Step { what: PREDICTED, skipped: Some(unknown.clone()) });
    }
    // Not that the time was over, but that a series had to be given up.
    if let Some(why) =
        report.as_ref().and_then(|r| r.stopped.as_ref()).filter(|_| began.elapsed() < args.time)
    {
        steps.push(Step { what: MEASURED, skipped: Some(why.clone()) });
    }
    let diagnosis = diagnosis::diagnose(&Evidence {
        command: line_of(&args.argv),
        bench,
        cold: cold.zip(analysed.as_ref()),
        warm: warm.as_ref(),
        plan: facts,
        whole: whole.as_ref().zip(whole_analysis.as_ref()),
        offers,
        steps,
        disturbing,
        call_name: Some(cold_trace::syscalls::name),
    });
    Ok(Diagnosed { diagnosis, plan, interrupted: interrupt.load(Ordering::Relaxed) })
}

/// Whether the read-ahead of the disks that a start read from may be set for a trial; taken note of.
fn read_ahead_may_be_set(cold: Option<&Recording>, steps: &mut Vec<Step>) -> bool {
    let disks = cold.iter().flat_map(|r| &r.manifest.devices).filter(|d| d.partition_of.is_none());
    let refused = session::read_ahead_may_be_set(disks.map(|d| d.dev)).err();
    let may = refused.is_none();
    steps.push(Step { what: OTHER_READ_AHEAD, skipped: refused });
    may
}

/// Takes note of a step; what it gave, if it gave anything.
fn noted<T>(steps: &mut Vec<Step>, what: &'static str, made: Result<T>) -> Option<T> {
    let (made, skipped) = match made {
        Ok(made) => (Some(made), None),
        Err(failure) => (None, Some(one_line(&failure.error))),
    };
    steps.push(Step { what, skipped });
    made
}

/// Neither was a start recorded nor one measured.
fn nothing(steps: &[Step], failed: Option<Exit>) -> Failure {
    let why: Vec<&str> = steps.iter().filter_map(|s| s.skipped.as_deref()).collect();
    let failure = Failure::from(anyhow::anyhow!("nothing could be found out: {}", why.join("; ")))
        .hint("`cold doctor` tells what can be measured here");
    Failure { exit: failed.unwrap_or(failure.exit), ..failure }
}

/// What would disturb measurements of this command.
fn disturbing(args: &Args, line: &mut Line<'_>, ui: &Ui) -> Result<Vec<String>> {
    line.step(DISTURBED);
    let command = args.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let report = crate::commands::doctor::examine(Vec::new(), command, ui)?;
    let disturbs = report.findings.iter().filter(|f| f.status == Status::Disturbs);
    Ok(disturbs
        .map(|f| match &f.remedy {
            Some(remedy) => format!("{}; {remedy}.", f.fact),
            None => format!("{}.", f.fact),
        })
        .collect())
}

/// The last start of each kind that was recorded.
#[derive(Default)]
struct Recorded {
    /// A cold one as starts usually are.
    usual: Option<Recording>,
    /// A cold one with exact needs, which change a start.
    exact: Option<Recording>,
    warm: Option<Recording>,
}

fn recordings(directory: &Path, line: &mut Line<'_>) -> Recorded {
    let mut found = Recorded::default();
    for n in 1.. {
        let path = directory.join(format!("start-{n}.cold"));
        if !path.is_dir() {
            break;
        }
        let Ok(raw) = load::raw(&path, line) else { continue };
        let m = &raw.recording.manifest;
        let slot = match m.state.wanted {
            WantedState::Warm => &mut found.warm,
            WantedState::Cold if m.exact_need => &mut found.exact,
            WantedState::Cold => &mut found.usual,
            _ => continue,
        };
        *slot = Some(raw.recording);
    }
    found
}

/// A plan of the files that are needed nearly whole, where the advice is to ask for them at once. That is the one advice
/// to a program that can be tried without changing it.
fn whole_files(plan: &Plan, (recording, analysis): (&Recording, &Analysis)) -> Option<Plan> {
    let advice = analysis.suggestions.iter().find(|s| s.id == SuggestionId::AdviseWhole)?;
    let files = advice.files.iter().filter_map(|file| recording.files.get(*file as usize)?.place());
    let files: Vec<PathBuf> = files.collect();
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    cold_prefetch::whole(plan, &files, &device::extents)
}

/// What is known of the plan without having tried it. `warm_took`: what warm starts took, measured.
///
/// `cold` is a usual start where there is one: one with exact needs computes beside its waits what another does not (javac
/// 1.4 s instead of 0.42: 356 ms were foretold with its plan, 275 from a usual start, 253 measured), and the plan knows what
/// it needed.
fn facts(
    plan: &Plan,
    cold: Option<&Recording>,
    warm: Option<&Recording>,
    warm_took: Option<Nanos>,
) -> PlanFacts {
    let predicted = cold.map_or_else(
        || Known::unknown("no cold start was recorded"),
        |cold| {
            let rehearsal = Rehearsal::at_most(cold, Some(plan), plan.device.as_ref());
            let rehearsal = rehearsal.map(|r| r.computing_as_in(warm, warm_took));
            let asked = rehearsal.and_then(|r| {
                let in_measured_time = r.is_in_measured_time();
                Ok(Predicted { without: r.without()?, with: r.with(plan)?, in_measured_time })
            });
            asked.map_or_else(|why| Known::unknown(why.to_string()), Known::Value)
        },
    );
    let reading = plan.bound.as_ref().map(|b| Nanos(b.overlapped_ns));
    PlanFacts {
        predicted,
        reading: reading.map_or_else(|| Known::unknown("its disk was not measured"), Known::Value),
        bytes: Bytes(plan.read_bytes()),
        files: plan.files.len() as u64,
    }
}

/// What is tried beside starting as usual.
#[derive(Clone, Copy)]
struct Tries<'a> {
    plan: Option<&'a Plan>,
    read_ahead: Option<Bytes>,
    /// Warm starts, too.
    warm: bool,
}

/// Starts of all states in turn, until the time is over.
fn measure(
    args: &Args,
    Tries { plan, read_ahead, warm }: Tries<'_>,
    place: &StorePlace,
    time: Duration,
    interrupt: &AtomicBool,
    ui: &Ui,
) -> Result<Report> {
    let (program, argv) = from_argv(args.argv.clone()).map_err(|e| Failure::usage(e.to_string()))?;
    let mut spec = CommandSpec::new(program, argv);
    let mut states = vec![State::Cold];
    states.extend(warm.then_some(State::Warm));
    states.extend(read_ahead.map(State::ReadAhead));
    let trial = plan.map(|_| Trial::of(&place.store()?, &args.argv)).transpose()?;
    if let (Some(plan), Some(trial)) = (plan, &trial) {
        trial.put(plan)?;
        spec.launcher = Some(trial.launcher(plan, None)?);
        states.insert(1, State::Prefetched);
    }
    let runs = RunPolicy { min_runs: ROUNDS, max_runs: ROUNDS, max_time: Some(time), precision: None };
    let config = Config { seed: crate::values::clock_seed(), ..args.start.config(vec![spec], states, runs)? };
    let mut progress = Shown::new(ui, &config);
    let report = session::run(&config, &mut progress, interrupt);
    progress.clear();
    report.map_err(crate::commands::bench::failure)
}
