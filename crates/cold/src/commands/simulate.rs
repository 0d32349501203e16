//! `cold simulate`: the same start under another read-around, on another disk, with a plan.

mod args;
mod disks;
mod pauses;
mod pictures;
mod show;
mod verify;

use std::path::Path;

use cold_analyze::replay;
use cold_analyze::simulate::sweep::{Choice, Reader, Row, WINDOWS_KIB, WindowAdvice};
use cold_analyze::simulate::{Observed, Recorded, WaitsKnown, Windows};
use cold_model::figures::{percent, plural};
use cold_model::recording::manifest::Tier;
use cold_model::recording::{FileIdx, Recording};
use cold_model::{Bytes, Nanos};
use cold_plan::Plan;
use cold_prefetch::predict::Asked;
use cold_sim::engine::Replay;
use cold_sim::op::FileId;
use cold_sim::{Placed, Policy};

use crate::commands::prefetch::plans;
use crate::commands::report::load::{self, Raw};
use crate::exit::{Exit, Failure, Outcome};
use crate::progress::Line;
use crate::results;
use crate::ui::Ui;
use args::Named;
use disks::NamedDisk;

pub(crate) use args::Args;

/// A disk with what the start comes to on it.
struct OnDisk {
    disk: NamedDisk,
    /// Today's setting first.
    rows: Vec<Row>,
    advice: Option<WindowAdvice>,
    /// The model of the start with the windows in force during the recording.
    as_recorded: Row,
}

/// A recording under all settings.
struct Simulation {
    name: String,
    recording: Recording,
    start: Recorded,
    observed: Observed,
    disks: Vec<OnDisk>,
    /// The plan that was asked for, as a helper's.
    replay: Option<Replay>,
    /// What the reader has to know before any figure.
    notes: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    if args.verify {
        return verify::run(args, ui);
    }
    let Some(dir) = &args.recording else {
        return Err(Failure::usage("no recording is named"));
    };
    for path in [&args.html, &args.svg].into_iter().flatten() {
        results::check(path)?;
    }
    let mut line = Line::new(ui);
    let simulation = simulate(args, dir, &mut line, ui);
    line.clear();
    let simulation = simulation?;
    pictures::write(args, &simulation, ui)?;
    if args.json {
        ui.json(&show::json(&simulation));
    } else {
        show::text(ui, &simulation);
    }
    Ok(Exit::Done)
}

fn simulate(args: &Args, dir: &Path, line: &mut Line<'_>, ui: &Ui) -> Result<Simulation, Failure> {
    let Raw { name, recording, warnings } = load::raw(dir, line)?;
    for warning in &warnings {
        ui.warn(warning);
    }
    let plan = args.plan.as_ref().map(|name| plans::named(&args.store.store()?, name)).transpose()?;
    let plan = plan.map(|listed| listed.plan);
    // Where faults were not exact, what was mapped around them counts as needed, as in reports.
    let usage = replay(&recording);
    let start = cold_prefetch::predict::at_most(&recording, plan.as_ref(), || usage.clone());
    let mut start = start.map_err(|why| {
        Failure::from(why).hint("record the start again: sudo cold trace --exact-need -- COMMAND")
    })?;
    let warmed = args.warm.as_ref().map(|warm| warm_start(warm, &recording, &mut start, line)).transpose()?;
    if let Some(path) = &args.pauses {
        start.cool(pauses::law(path, &recording)?);
    }
    start.memory = args.memory;
    let asked = plan.as_ref().map(|plan| cold_prefetch::predict::asked(plan, &recording, &mut start));
    let mut choices = choices(args, &start)?;
    if asked.is_some() {
        choices.push(Choice { reader: Reader::Plan, ..start.today() });
    }
    let files =
        args.file.as_ref().map(|text| files_with(&recording, &start, text)).transpose()?.unwrap_or_default();
    let mut disks = Vec::new();
    for disk in disks::all(args, &recording, &start, line)? {
        let begins = |choice: &Choice| line.step(&format!("{}: {choice}", disk.name));
        let rows = start.sweep(&choices, &disk.model, asked.as_ref().map(|a| &a.replay), &files, begins)?;
        let as_recorded = start.as_recorded(&rows, &disk.model)?;
        disks.push(OnDisk { advice: start.advice(&rows), disk, rows, as_recorded });
    }
    let mut notes = notes(&recording, &start, plan.as_ref());
    notes.extend(warmed);
    notes.push(pauses::told(&start));
    notes.extend(asked.as_ref().and_then(left_out));
    let replay = asked.map(|a| a.replay);
    Ok(Simulation {
        name,
        observed: Observed::of(&recording, &usage),
        recording,
        start,
        disks,
        replay,
        notes,
    })
}

/// Takes what the program computes from a warm recording, and says what that came to.
fn warm_start(
    dir: &Path,
    recording: &Recording,
    start: &mut Recorded,
    line: &mut Line<'_>,
) -> Result<String, Failure> {
    let Raw { name, recording: warm, .. } = load::raw(dir, line)?;
    let warmed = start.warm(recording, &warm, None).map_err(|why| {
        Failure::usage(format!("{name} does not tell what the start computes warm: {why}"))
            .hint("record it: sudo cold trace --state warm -- COMMAND")
    })?;
    Ok(format!(
        "the program computes as in {name}: {} of what it computed here; besides, the CPU takes {} for each wait, and {} \
         for the first use of a page that the program had to read itself ({})",
        percent(100.0 * warmed.part),
        Nanos(warmed.wait_ns),
        Nanos(warmed.first_use_ns),
        plural(warmed.first_uses, "page"),
    ))
}

/// Those whose path has this text.
fn files_with(recording: &Recording, start: &Recorded, text: &str) -> Result<Vec<FileId>, Failure> {
    let has = |name: &FileIdx| {
        let path = recording.files.get(*name as usize).and_then(|f| f.path.as_deref());
        path.is_some_and(|path| path.contains(text))
    };
    let ids = (0..).map(FileId).zip(&start.names).filter(|(_, name)| has(name)).map(|(id, _)| id);
    let ids: Vec<FileId> = ids.collect();
    if ids.is_empty() {
        return Err(Failure::usage(format!("no file that the start needs has {text:?} in its path")));
    }
    Ok(ids)
}

/// Pages of the clusters that are tried of starts of other systems: 16 KiB to 2 MiB.
const CLUSTERS: [u64; 5] = [4, 8, 16, 32, 512];

/// What is tried: each policy, Linux with each window.
fn choices(args: &Args, start: &Recorded) -> Result<Vec<Choice>, Failure> {
    let is_linux = |policy: &Policy| matches!(policy, Policy::Linux(_));
    let names_linux = args.policy.iter().any(|n| matches!(n, Named::Policy(policy) if is_linux(policy)));
    if args.read_ahead_kb.is_some() && !is_linux(&start.policy) && !names_linux {
        return Err(Failure::usage("only Linux has windows of read-ahead, and this start is of another system")
            .hint("name a policy of Linux beside them: --policy linux-6.18, or clusters of pages: --policy aligned:16"));
    }
    let windows = match &args.read_ahead_kb {
        Some(given) => given.0.clone(),
        None if args.policy.is_empty() => WINDOWS_KIB.iter().map(|kib| Bytes(kib << 10)).collect(),
        None => Vec::new(),
    };
    let all = [Policy::Windows, Policy::FreeBsd, Policy::Nothing, Policy::Whole].map(Named::Policy);
    let own = Named::Policy(start.policy);
    // Of another system the size of clusters is what could be another.
    let clusters = CLUSTERS.into_iter().filter(|_| !is_linux(&start.policy));
    let clusters = clusters.map(|pages| Named::Policy(Policy::Fixed { pages, placed: Placed::Aligned }));
    let named: Vec<Named> = match (args.policy.is_empty(), &args.read_ahead_kb) {
        (false, _) => args.policy.clone(),
        (true, Some(_)) => vec![own],
        (true, None) => std::iter::once(own).chain(all).chain(clusters).chain([Named::Exact]).collect(),
    };
    let mut out: Vec<Choice> = Vec::new();
    for name in named {
        let choice = |policy, windows, reader| Choice { policy, windows, reader };
        match name {
            Named::Exact => out.push(choice(start.policy, Windows::Usual, Reader::Exact)),
            Named::Policy(policy @ Policy::Linux(_)) if !windows.is_empty() => {
                out.extend(windows.iter().map(|w| choice(policy, Windows::Of(*w), Reader::Kernel)));
            }
            Named::Policy(policy) => out.push(choice(policy, Windows::Usual, Reader::Kernel)),
        }
    }
    out.dedup();
    Ok(out)
}

/// What of a plan is not in its figures.
fn left_out(asked: &Asked) -> Option<String> {
    (asked.left_out.0 > 0).then(|| {
        format!(
            "{} of the plan are not simulated: of files that have changed since the recording",
            asked.left_out
        )
    })
}

fn notes(recording: &Recording, start: &Recorded, plan: Option<&Plan>) -> Vec<String> {
    let mut notes = Vec::new();
    let m = &recording.manifest;
    if recording.tells_only_pages() {
        notes.push(
            "a prefetch file tells no order within a launch and no times: pages are needed part by part of the launch, file \
             by file, from front to back, as fast as they come. Compare requests and bytes"
                .to_owned(),
        );
    } else if recording.tells_only_reads() {
        notes.push(
            "which page a hard fault wanted is not told: all that it read count as needed, one after the other, and pages \
             that were in memory as not needed. Windows smaller than the recorded clusters read at most this"
                .to_owned(),
        );
    } else if !m.exact_need {
        let plan_knows = plan.is_some_and(|plan| plan.files.iter().any(|file| file.exact));
        let known = if plan_knows {
            " (of files whose needs the plan knows exactly, those that are in it)"
        } else {
            ""
        };
        notes.push(format!(
            "pages that the kernel mapped around a fault count as needed{known}, though not all of them were: windows \
             smaller than the recorded one read at most this. A recording made with --exact-need knows"
        ));
    }
    if m.tier == Tier::Imported {
        notes.push(
            "how large the files are is not told: none is read behind its last page that is known".to_owned(),
        );
    }
    match start.waits_known {
        WaitsKnown::All => {}
        WaitsKnown::Storage => notes.push(
            "who waited for whom is not in the recording: waits for other threads take the time they took".to_owned(),
        ),
        WaitsKnown::None if recording.tells_only_pages() => {}
        WaitsKnown::None => notes.push(
            "no waits are in the recording: what was waited for storage counts as computing, so times are too long \
             and only requests and bytes can be compared"
                .to_owned(),
        ),
    }
    let lost = m.lost_events();
    if lost > 0 {
        notes.push(format!("{lost} events were lost: what they told is missing in every setting"));
    }
    if !m.complete {
        notes.push("the recording is incomplete: the simulated start ends where it does".to_owned());
    }
    notes
}
