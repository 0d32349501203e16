//! `cold bench`: measure starts, tell what was found, decide.

mod args;
pub(super) mod build;
mod exports;
pub(super) mod progress;
pub(crate) mod show;

use std::sync::atomic::Ordering;

use cold_bench::command::line_of;
use cold_bench::config::Config;
use cold_bench::gate::{self, Gate, Outcome as GateOutcome};
use cold_bench::summary::Analysis;
use cold_bench::{Error, baseline, point, session, summary};
use cold_model::Shown as _;
use cold_model::bench::{Report, State};

use super::history::store::Store;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::ui::Ui;

pub(crate) use args::Args;

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let mut config = build::config(args)?;
    let margin = crate::values::percent("--margin", &args.margin)?;
    let old = args.baseline.as_deref().map(read_baseline).transpose()?;
    let gates = gates(args, &config, old.is_some())?;
    let exports = exports::Exports::check(args)?;
    let mut history = Store::to_record(args.record.as_deref())?;
    let _trials = build::launchers(args, &mut config, ui)?; // the plans that are followed, until the end

    let interrupt = interrupt()?;
    let mut progress = progress::Shown::new(ui, &config);
    let report = session::run(&config, &mut progress, &interrupt).map_err(failure)?;
    progress.clear();

    let analysis = summary::analyze(&report, margin);
    let results: Vec<_> = gates.iter().flat_map(|g| g.evaluate(&report, old.as_ref())).collect();
    exports.write(&report, &analysis, &results, ui)?;
    if let Some(store) = &mut history {
        point::of_report(&report, &analysis).iter().try_for_each(|p| store.add(p, args.commit.as_deref()))?;
    }
    if !exports.take_stdout() {
        show::report(ui, &report, &analysis, old.as_ref(), &results);
        if let Some(line) = explanation(args, &config, &report, &analysis) {
            show::next(ui, &line);
        }
    }
    Ok(exit(&report, &results, interrupt.load(Ordering::Relaxed)))
}

/// The command that says why the slowest cold start takes as long as it does, as it is typed for the same start. None
/// where nothing was measured cold, and where hooks prepare a start: `cold trace` has none.
fn explanation(args: &Args, config: &Config, report: &Report, analysis: &Analysis) -> Option<String> {
    if report.stopped.is_some() {
        return None;
    }
    let slowest = analysis.slowest(report, &State::Cold).and_then(|i| config.commands.get(i));
    let command = slowest.filter(|c| c.setup.is_none() && c.prepare.is_none())?;
    let mut words = args.start.words();
    if let Some(limit) = &args.disk_limit {
        words.extend(["--disk-limit".into(), limit.into()]);
    }
    words.push("--".into());
    words.extend(command.argv.iter().cloned());
    Some(format!("cold trace {}", line_of(&words)))
}

/// How the benchmark ends: a failed gate first, then what makes the rest doubtful.
fn exit(report: &Report, results: &[gate::GateResult], interrupted: bool) -> Exit {
    if interrupted {
        return Exit::Interrupted;
    }
    match gate::overall(results) {
        GateOutcome::Fail => Exit::GateFailed,
        GateOutcome::Inconclusive { .. } => Exit::Inconclusive,
        GateOutcome::Pass if report.stopped.is_some() => Exit::Inconclusive,
        GateOutcome::Pass => Exit::Done,
    }
}

fn gates(args: &Args, config: &Config, has_baseline: bool) -> Result<Vec<Gate>, Failure> {
    let names: Vec<String> = config.commands.iter().map(|c| c.name.clone()).collect();
    let mut gates = Vec::new();
    for text in &args.fail_if {
        let gate = Gate::parse(text).map_err(|e| Failure::usage(e.to_string()))?;
        gate.check(&names, &config.states, has_baseline).map_err(|e| Failure::usage(e.to_string()))?;
        gates.push(gate);
    }
    Ok(gates)
}

fn read_baseline(path: &std::path::Path) -> Result<Report, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::usage(format!("cannot read the baseline {}: {e}", path.shown())))?;
    baseline::parse(&text).map_err(|e| Failure::usage(format!("{}: {e}", path.shown())))
}

/// What to do about a start that did not get ready in time: to ignore that would only make it happen again.
pub(super) fn ready_hint(port: Option<u16>, by_exit: bool) -> String {
    match (port, by_exit) {
        (Some(port), _) => format!("a server? With --ready port:{port} a start is over when it listens"),
        (None, true) => {
            "say with --ready when it is ready, if it does not end by itself (stdout:REGEX, port:N, …); or give it \
             more time with --timeout"
                .to_owned()
        }
        (None, false) => {
            "what --ready waits for did not come: see the command's output with --output inherit, or give it more \
             time with --timeout"
                .to_owned()
        }
    }
}

/// The exit code and the next step of a benchmark that could not be made.
pub(super) fn failure(error: Error) -> Failure {
    let (exit, hint) = match &error {
        Error::NotCold { .. } => (
            Exit::StateNotReached,
            Some(
                "end the processes that hold the files, or leave out --require-cold to measure all the same",
            ),
        ),
        Error::State { .. } => (Exit::StateNotReached, None),
        Error::DiskLimit(_) => {
            (Exit::StateNotReached, Some("`cold doctor` tells which control groups can limit"))
        }
        Error::Program { .. } => (Exit::Usage, None),
        Error::Interrupted => (Exit::Interrupted, None),
        Error::Command { .. } => (
            Exit::Failed,
            Some("see its output with --output inherit; --ignore-failure measures it all the same"),
        ),
        Error::NotReady { port, by_exit, .. } => {
            return Failure {
                exit: Exit::Failed,
                hint: Some(ready_hint(*port, *by_exit)),
                error: error.into(),
            };
        }
        Error::NeverReady { .. } => {
            (Exit::Failed, Some("see its output with --output inherit, and check what --ready waits for"))
        }
        Error::Ready(_) => (Exit::Failed, Some("stop what is there, or remove it with --prepare")),
        _ => (Exit::Failed, None),
    };
    Failure { exit, error: error.into(), hint: hint.map(str::to_owned) }
}
