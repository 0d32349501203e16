//! `cold spawn`: how fast a program can be started again and again, whether that gets slower, and why.

mod args;
mod build;
mod confirm;
mod exports;
mod observer;
mod show;
mod stacks;
mod watch;

use std::sync::atomic::{AtomicBool, Ordering};

use cold_journal::Journal;
use cold_model::figures::cpus;
use cold_spawn::report::{self, Report, SCHEMA};
use cold_spawn::session::{self, Config, Measured, Progress};
use cold_sys::procfs::ProcFs;
use cold_sys::spawn::Method;

use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::progress::Line;
use crate::ui::Ui;
use observer::Recorder;

pub(crate) use args::Args;

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    if args.watch {
        return watch::run(args, ui);
    }
    let program = build::program(args)?;
    exports::check(args)?;
    let journal = Journal::open()?;
    let place = build::Scratch::new(args, &journal)?;
    let interrupt = interrupt()?;
    let mut report = Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").into(),
        command: args.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        started: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        machine: machine(),
        series: Vec::new(),
    };
    let mut line = Line::new(ui);
    for kind in build::kinds(args) {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        let config = build::config(args, program.clone(), kind, &place, ui);
        let series = one(args, &config, &place, &mut line, &interrupt)?;
        report.series.push(series);
    }
    line.clear();
    drop(place);
    exports::write(args, &report)?;
    if args.json {
        ui.json_line(&report);
    } else {
        show::report(ui, &report, args.extrapolate);
    }
    Ok(exit(args, &report, ui, interrupt.load(Ordering::Relaxed)))
}

/// One method's series, and its confirmation if that was asked for and something grows.
fn one(
    args: &Args,
    config: &Config,
    place: &build::Scratch,
    line: &mut Line<'_>,
    interrupt: &AtomicBool,
) -> Result<report::Series, Failure> {
    let began = std::time::SystemTime::now();
    let mut recorder = Recorder::new(place.recording(), args.no_observe);
    let mut measured = measure(config, &mut recorder, line, interrupt)?;
    let mut series = report::series(config, &measured, args.extrapolate);
    if let Some(recording) = measured.recording.take() {
        line.step("reading symbols");
        stacks::name(&mut series.judged.causes, recording);
    }
    if args.confirm && series.judged.verdict.grows() && !interrupt.load(Ordering::Relaxed) {
        line.step("repeating without what starts leave behind");
        series.confirmation = Some(confirm::confirm(config, &series, place, began, line, interrupt));
    }
    Ok(series)
}

fn measure(
    config: &Config,
    recorder: &mut Recorder<'_>,
    line: &mut Line<'_>,
    interrupt: &AtomicBool,
) -> Result<Measured, Failure> {
    session::run(config, recorder, &mut Shown { line, method: config.method }, interrupt).map_err(failure)
}

fn failure(e: cold_spawn::Error) -> Failure {
    let cause = match &e {
        cold_spawn::Error::Spawner(cold_sys::Error::Io { source, .. })
        | cold_spawn::Error::Scratch(_, source) => Some(source.kind()),
        cold_spawn::Error::Spawner(_) => None,
    };
    let failure = Failure::from(e);
    if cause == Some(std::io::ErrorKind::PermissionDenied) {
        failure.hint("check that the file may be executed and does not lie on a noexec mount; see --scratch")
    } else {
        failure
    }
}

struct Shown<'a, 'b> {
    line: &'a mut Line<'b>,
    method: Method,
}

impl Progress for Shown<'_, '_> {
    fn starts(&mut self, done: usize, of: usize) {
        self.line.step(&format!("{}: {done} of {of} starts", self.method.name()));
    }
    fn observing(&mut self) {
        self.line.step("recording some starts");
    }
}

fn machine() -> String {
    let proc = ProcFs::default();
    let release = proc.kernel_release();
    let n = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("Linux {release}, {}", cpus(n, &proc.cpu_model()))
}

fn exit(args: &Args, report: &Report, ui: &Ui, interrupted: bool) -> Exit {
    if interrupted {
        return Exit::Interrupted;
    }
    if args.fail_if.is_none() {
        return Exit::Done;
    }
    let grows = report.series.iter().any(|s| s.judged.verdict.grows());
    let undecided = report.series.iter().any(|s| s.judged.verdict.from == cold_spawn::verdict::From::Nothing);
    if grows {
        ui.note("gate failed: starts get slower");
        return Exit::GateFailed;
    }
    if undecided {
        ui.warn("too few starts to judge growth: at least 100 are needed");
        return Exit::Inconclusive;
    }
    Exit::Done
}
