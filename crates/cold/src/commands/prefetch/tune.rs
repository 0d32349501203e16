//! `cold prefetch tune`: rival settings of a plan against each other and against no plan, live.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use cold_bench::config::Config;
use cold_bench::session::patience::{self, Patience};
use cold_bench::session::single::Single;
use cold_bench::session::starts::Starts;
use cold_model::bench::State;
use cold_model::recording::Recording;
use cold_plan::document::Document;
use cold_plan::plan::Standing;
use cold_plan::{Plan, Store};
use cold_prefetch::tune::{Arm, Limits, Made, Space, Tried};
use cold_prefetch::{Forecast, Latest, Tuner, TuningVerdict, Waste};
use serde::Serialize;

use super::plans::{self, Planned, StorePlace};
use super::trial::Trial;
use super::{device, replay, show};
use crate::cli::TEMPLATE;
use crate::commands::bench::failure;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::progress::Line;
use crate::start::Start;
use crate::table::{Table, width};
use crate::ui::{FAINT, STRONG, Ui, paint};
use crate::words::plural;

type Result<T> = std::result::Result<T, Failure>;

const EXAMPLES: &str = "Examples:
  cold prefetch tune -- firefox-esr --headless -screenshot /tmp/p.png file:///tmp/p.html
  cold prefetch tune --trial-only --pairs 10 -- python3 app.py     only: does it help?
";

const AFTER: &str = "\
One start is recorded first, where this machine allows it to see waits (BPF). Settings that a
simulation of it calls clearly worse (by more than 15%) are not tried.

Every start is prepared and proved cold. One that other programs slowed down is made again: each at
most twice, six repeats in all. If they go on, such starts count, with and without the plan alike.

Written into the plan: the best settings, the gain against starts without the plan with its 95%
interval, and whether the plan may be used. If the plan was learnt again meanwhile, it stays as it
is and nothing is decided.

Exit codes: 0 the plan helps; 1 failed; 2 wrong usage; 3 it does not help and was switched off;
            4 not decided; 5 the state could not be reached; 130 interrupted.";

/// Warm starts that are measured for the report.
const WARM: u32 = 3;

/// Flags of `cold prefetch tune`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    #[command(flatten, next_help_heading = "Trial")]
    planned: Planned,

    /// At most this many pairs of starts with and without the plan in the final comparison
    #[arg(long, value_name = "N", default_value_t = 20, help_heading = "Trial")]
    pairs: u32,

    /// At most this many starts in all
    #[arg(long, value_name = "N", default_value_t = 200, help_heading = "Trial")]
    starts: u32,

    /// Smallest gain that counts
    #[arg(long, value_name = "PERCENT", default_value = "1%", help_heading = "Trial")]
    margin: String,

    /// Compare the plan as it is with starts without it; change no setting
    #[arg(long, help_heading = "Trial")]
    trial_only: bool,

    /// Seed of the random order within pairs [default: from the clock; printed]
    #[arg(long, value_name = "N", help_heading = "Trial")]
    seed: Option<u64>,

    #[command(flatten)]
    start: Start,

    /// Print the result as one JSON document instead of text
    #[arg(long, help_heading = "Results")]
    json: bool,
}

/// Tunes and saves.
pub(crate) fn run(args: &Args, place: &StorePlace, ui: &Ui) -> Outcome {
    let store = place.store()?;
    store.recognise()?;
    let flags = [place.words()?, args.start.words()].concat();
    let scenario = args.planned.scenario.as_deref();
    let plan = plans::of_command(&store, &args.planned.argv, scenario, &flags)?.plan;
    let limits = Limits {
        starts: args.starts,
        proof_pairs: args.pairs,
        margin: crate::values::percent("--margin", &args.margin)?,
        seed: args.seed.unwrap_or_else(plans::now),
        ..Limits::default()
    };
    let trial = Trial::of(&store, &args.planned.argv)?;
    trial.put(&plan)?;
    let mut config =
        args.start.single(&args.planned.argv, vec![State::Cold, State::Prefetched, State::Warm])?;
    let launcher = trial.launcher(&plan, args.planned.scenario.as_deref())?;
    for command in &mut config.commands {
        command.launcher = Some(launcher.clone());
    }
    let space =
        if args.trial_only { Space::none() } else { Space::new(plan.device.as_ref(), plan.learnt.starts) };
    let interrupt = interrupt()?;
    let mut line = Line::new(ui);
    // What the model knows is of use where there is something to choose, or a bound of many threads to find.
    let is_rehearsed = !args.trial_only || !plan.learnt.one_thread;
    let ready = args.start.ready_means();
    let live = Live { config: &config, plan: &plan, trial: &trial, ready: &ready, is_rehearsed, ui };
    let tuned = live.run((space, limits), &mut line, &interrupt);
    line.clear();
    let Tuning { verdict, waste, latest } = tuned?;
    if interrupt.load(Ordering::Relaxed) {
        ui.warn("interrupted: the plan stays as it is");
        return Ok(Exit::Interrupted);
    }
    let saved = save(&store, &plan, &verdict, latest.as_ref())?;
    let applied = || verdict.applied_to(&plan, device::GROUND, latest.as_ref());
    let better = saved.clone().unwrap_or_else(applied);
    if let (Some(saved), Some(waste)) = (&saved, &waste) {
        replay::keep(&store, saved, waste)?;
    }
    let saved = saved.is_some();
    let result =
        TunedPlan { plan: &better, verdict: &verdict, waste: waste.as_ref(), seed: limits.seed, saved };
    print(ui, args, &result, &store.path_of(&better.key));
    if !saved {
        ui.warn("the plan was learnt again meanwhile, or removed: it stays as it is; tune it again");
        return Ok(Exit::Inconclusive);
    }
    Ok(match verdict.standing {
        Standing::Proven => Exit::Done,
        Standing::Off(_) => Exit::GateFailed,
        Standing::Untried => Exit::Inconclusive,
    })
}

/// Writes what was found into the plan as it is by now, and gives that. `None` where it says something else of what
/// starts need than the one that was tuned: then nothing was found about it.
fn save(
    store: &Store,
    tuned: &Plan,
    verdict: &TuningVerdict,
    latest: Option<&Latest>,
) -> Result<Option<Plan>> {
    let locked = store.lock()?;
    let Some(now) = store.load(&tuned.key)?.filter(|now| now.needs_the_same(tuned)) else {
        return Ok(None);
    };
    let better = verdict.applied_to(&now, device::GROUND, latest);
    locked.save(&better)?;
    Ok(Some(better))
}

struct Live<'a> {
    config: &'a Config,
    plan: &'a Plan,
    trial: &'a Trial,
    ready: &'a str,
    /// A start is recorded first, for the model.
    is_rehearsed: bool,
    ui: &'a Ui,
}

/// What all starts came to.
struct Tuning {
    verdict: TuningVerdict,
    waste: Option<Waste>,
    /// When the recorded start needed its pages.
    latest: Option<Latest>,
}

impl Live<'_> {
    /// All starts: a recorded one, the tuner's, a few warm ones, and a recorded one with what was found.
    fn run(
        &self,
        (space, limits): (Space, Limits),
        line: &mut Line<'_>,
        interrupt: &AtomicBool,
    ) -> Result<Tuning> {
        let mut starts = Starts::begin(self.config, line, interrupt).map_err(failure)?;
        let recording = self.rehearsed(&mut starts, line);
        line.step("asking the model");
        let latest = recording.as_ref().and_then(|cold| Latest::of(cold, None));
        let forecast = recording.as_ref().and_then(|recording| self.forecast(recording));
        let mut tuner = Tuner::new(self.plan.knobs, space, limits, forecast);
        let searched = self.search(&mut tuner, &mut starts, line, interrupt);
        let warm = searched.and_then(|()| warm_starts(&mut starts, line, interrupt));
        let waste = match warm {
            Ok(_) if interrupt.load(Ordering::Relaxed) => Ok(None),
            Ok(_) => self.recorded(&tuner, &mut starts, line),
            Err(_) => Ok(None),
        };
        let ended = starts.end().map_err(failure);
        let warm = warm?;
        ended?;
        let waste = waste.unwrap_or_else(|e| {
            self.ui.note(format!("late and unused bytes are not known: {}", e.error));
            None
        });
        Ok(Tuning { verdict: tuner.verdict(plans::now(), &warm), waste, latest })
    }

    /// A recorded start without a plan. `None` where nobody needs one, it was interrupted or could not be made: then
    /// everything is measured.
    fn rehearsed(&self, starts: &mut Starts<'_>, line: &mut Line<'_>) -> Option<Recording> {
        if !self.is_rehearsed {
            return None;
        }
        replay::record(starts, &State::Cold, self.ready, line).unwrap_or_else(|e| {
            self.ui.note(format!("the model is not asked: {}", e.error));
            None
        })
    }

    fn forecast<'r>(&'r self, recording: &'r Recording) -> Option<Forecast<'r>> {
        match Forecast::of(recording, self.plan, &device::extents) {
            Ok(forecast) => Some(forecast),
            Err(why) => {
                self.ui.note(format!("the model is not asked: {why}"));
                None
            }
        }
    }

    fn recorded(
        &self,
        tuner: &Tuner<'_>,
        starts: &mut Starts<'_>,
        line: &mut Line<'_>,
    ) -> Result<Option<Waste>> {
        let mut best = self.plan.clone();
        device::steps(&mut best, tuner.best(), self.plan.device.as_ref());
        self.trial.put(&best)?;
        replay::start(starts, &best, self.trial, self.ready, line)
    }

    fn search(
        &self,
        tuner: &mut Tuner<'_>,
        starts: &mut Starts<'_>,
        line: &mut Line<'_>,
        interrupt: &AtomicBool,
    ) -> Result<()> {
        let mut patience = Patience::default();
        while let Some(wanted) = tuner.next() {
            if interrupt.load(Ordering::Relaxed) {
                return Ok(());
            }
            let state = match wanted.arm {
                Arm::Plain => State::Cold,
                Arm::With(knobs) => {
                    let mut candidate = self.plan.clone();
                    device::steps(&mut candidate, &knobs, self.plan.device.as_ref());
                    self.trial.put(&candidate)?;
                    State::Prefetched
                }
            };
            let mut step = TunerStep { line, what: &wanted.why };
            let made = starts.one(Some(&state), false, &mut (), &mut step).map_err(failure)?;
            let Some(single) = made else { return Ok(()) };
            tuner.record(self.outcome(&single, &wanted.why, &mut patience));
        }
        Ok(())
    }
}

impl Live<'_> {
    /// What a start came to. One that others only slowed down is made again; where they go on it counts: starts
    /// with and without the plan come in random order, so that it hits both alike.
    fn outcome(&self, single: &Single, what: &str, patience: &mut Patience) -> Made {
        let (why, lasting) = (patience::all(single).join("; "), patience::lasting(single));
        if why.is_empty() {
            patience.next();
        } else if !lasting.is_empty() || patience.again() {
            self.ui.note(format!("{what}: does not count: {why}"));
            return Made::Void;
        } else {
            self.ui.note(format!("{what}: counts all the same: {why}"));
        }
        Made::Ready(single.run.ready.0)
    }
}

/// Times of a few warm starts, of those that count.
fn warm_starts(starts: &mut Starts<'_>, line: &mut Line<'_>, interrupt: &AtomicBool) -> Result<Vec<u64>> {
    let mut times = Vec::new();
    for _ in 0..WARM {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        let mut step = TunerStep { line, what: "a warm start" };
        let made = starts.one(Some(&State::Warm), false, &mut (), &mut step).map_err(failure)?;
        times.extend(made.filter(|s| s.run.counts()).map(|s| s.run.ready.0));
    }
    Ok(times)
}

/// Shows what the tuner wants instead of which command is started.
struct TunerStep<'a, 'b> {
    line: &'a mut Line<'b>,
    what: &'a str,
}

impl cold_bench::session::Progress for TunerStep<'_, '_> {
    fn step(&mut self, _what: &str) {
        self.line.step(self.what);
    }
    fn run_done(&mut self, _: &cold_model::bench::Report, _: &cold_model::bench::Run) {}
    fn warn(&mut self, what: &str) {
        cold_bench::session::Progress::warn(self.line, what);
    }
}

/// What is told at the end.
struct TunedPlan<'a> {
    plan: &'a Plan,
    verdict: &'a TuningVerdict,
    waste: Option<&'a Waste>,
    seed: u64,
    /// It stands in the plan.
    saved: bool,
}

/// The same for programs.
#[derive(Serialize)]
struct Tuned<'a> {
    schema: &'static str,
    #[serde(flatten)]
    plan: Document<'a>,
    starts: u32,
    seed: u64,
    saved: bool,
    foretold: Option<f64>,
    tried: &'a [Tried],
    waste: Option<&'a Waste>,
}

fn print(ui: &Ui, args: &Args, found: &TunedPlan<'_>, path: &Path) {
    let TunedPlan { plan, verdict, waste, seed, saved } = found;
    if args.json {
        let name = plans::name(path);
        ui.json(&Tuned {
            schema: cold_plan::document::SCHEMA,
            plan: Document::brief(plan, &name, path),
            starts: verdict.starts,
            seed: *seed,
            saved: *saved,
            foretold: verdict.foretold,
            tried: &verdict.tried,
            waste: *waste,
        });
        return;
    }
    ui.line(format!("{}  {}", paint(STRONG, plans::name(path)), plans::what(&plan.key)));
    print_tried(ui, &verdict.tried);
    let (style, text) = show::standing(plan);
    ui.line(format!("  {}", paint(style, text)));
    if let Some((foretold, trial)) = verdict.foretold.zip(verdict.trial) {
        let (model, seen) = (ratio(Some(foretold)), ratio(Some(trial.ratio)));
        ui.line(paint(
            FAINT,
            format!("  time with the plan, without is 1.000: {seen}; by the model {model}"),
        ));
    }
    if let Some(waste) = waste {
        replay::print_waste(ui, waste, 10);
    }
    ui.line(paint(FAINT, format!("  {} made; seed {seed}", plural(u64::from(verdict.starts), "start"))));
}

/// What was varied and what came of it: a table for people, one line for logs.
fn print_tried(ui: &Ui, tried: &[Tried]) {
    if tried.is_empty() {
        return;
    }
    if !std::io::stdout().is_terminal() {
        return ui.line(format!("  {}", in_one_line(tried)));
    }
    let mut table = Table::new(&["TIME", "BY MODEL", "PAIRS", "OUTCOME", "VARIED"]);
    for t in tried {
        let outcome = match t.ratio {
            None => "not tried",
            Some(_) if t.taken => "taken over",
            Some(_) => "no better",
        };
        let (time, model) = (ratio(t.ratio), ratio(t.foretold));
        table.row(vec![time, model, t.pairs.to_string(), outcome.to_owned(), t.what.clone()], Vec::new());
    }
    ui.line(paint(FAINT, "  settings tried, each compared with the best before it (1.000: takes as long):"));
    for line in table.lines(width()) {
        ui.line(paint(FAINT, format!("  {line}")));
    }
}

/// One time as a multiple of another.
fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"))
}

fn in_one_line(tried: &[Tried]) -> String {
    let taken = || tried.iter().filter(|t| t.taken);
    let name = |t: &Tried| match t.foretold {
        Some(_) => format!("{} ({}, by the model {})", t.what, ratio(t.ratio), ratio(t.foretold)),
        None => format!("{} ({})", t.what, ratio(t.ratio)),
    };
    let names: Vec<String> = taken().map(name).collect();
    let names = if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) };
    let hopeless = tried.iter().filter(|t| t.ratio.is_none()).count();
    let left_out = if hopeless == 0 { String::new() } else { format!(", {hopeless} left out by the model") };
    let measured = (tried.len() - hopeless) as u64;
    format!("{} tried, {} taken over{names}{left_out}", plural(measured, "setting"), taken().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_varied_is_told_in_one_line() {
        let knobs = cold_prefetch::default_knobs(None);
        let tried = |what: &str, ratio, taken| {
            let (what, ratio) = (what.into(), Some(ratio));
            Tried { what, knobs, pairs: 3, ratio, foretold: None, taken }
        };
        let all = [tried("gap 0 B", 1.2, false), tried("gate none", 0.9, true)];
        assert_eq!(in_one_line(&all), "2 settings tried, 1 taken over: gate none (0.900)");
        assert_eq!(in_one_line(&all[..1]), "1 setting tried, 0 taken over");
        let mut foretold = all.clone();
        (foretold[0].ratio, foretold[0].foretold, foretold[1].foretold) = (None, Some(1.3), Some(0.85));
        let text =
            "1 setting tried, 1 taken over: gate none (0.900, by the model 0.850), 1 left out by the model";
        assert_eq!(in_one_line(&foretold), text);
    }
}
