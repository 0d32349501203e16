//! `cold prefetch verify`: does the plan still fit the files?

use cold_bench::session::starts::Starts;
use cold_model::Bytes;
use cold_model::Shown as _;
use cold_model::bench::State;
use cold_model::path_text;
use cold_plan::fit::{Fit, Stale};
use cold_plan::{Plan, Store};
use cold_prefetch::Waste;
use serde::Serialize;

use super::plans::{self, StorePlace, Which};
use super::replay;
use super::trial::Trial;
use crate::cli::TEMPLATE;
use crate::commands::bench::failure;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::interrupt;
use crate::progress::Line;
use crate::start::Start;
use crate::ui::{BAD, GOOD, Ui, WARN, paint};
use crate::words::{percent, plural};

const EXAMPLES: &str = "Examples:
  cold prefetch verify firefox-esr
  cold prefetch verify --replay -- python3 app.py     how much of what it reads is used
";

const AFTER: &str = "\
Exit codes: 0 the plan fits; 1 failed; 2 wrong usage; 3 it should be learnt again: the program was
            replaced, or a tenth of what the plan reads lies in files that changed.";

/// Flags of `cold prefetch verify`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,

    /// Record one prefetched start of the command, and show how much of what the plan reads it used
    #[arg(long, requires = "argv")]
    replay: bool,

    #[command(flatten)]
    start: Start,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, place: &StorePlace, ui: &Ui) -> Outcome {
    let store = place.store()?;
    let listed = args.which.find(&store)?;
    let waste = if args.replay { replayed(args, &store, &listed.plan, ui)? } else { None };
    if let Some(waste) = &waste {
        replay::keep(&store, &listed.plan, waste)?;
    }
    let fit = Fit::of(&listed.plan, &plans::build_id);
    let again = fit.should_be_learnt_again();
    if args.json {
        ui.json(&VerifiedDocument {
            schema: "coldstart.plan-verified/1",
            name: plans::name(&listed.path),
            executable: fit.executable.map_or("unchanged".to_owned(), |why| why.to_string()),
            bytes: fit.bytes,
            stale_bytes: fit.stale_bytes,
            stale: fit.stale.iter().map(StaleFile::of).collect(),
            learn_again: again,
            replay: waste.as_ref(),
        });
    } else {
        print(ui, &listed.plan, &fit, again);
        match &waste {
            Some(waste) => replay::print_waste(ui, waste, 20),
            None if args.replay => ui.warn("nothing on this machine shows which prefetched pages are used"),
            None => {}
        }
    }
    Ok(if again { Exit::GateFailed } else { Exit::Done })
}

/// What `--json` prints.
#[derive(Serialize)]
struct VerifiedDocument<'a> {
    schema: &'static str,
    name: String,
    executable: String,
    bytes: u64,
    stale_bytes: u64,
    stale: Vec<StaleFile>,
    learn_again: bool,
    replay: Option<&'a Waste>,
}

#[derive(Serialize)]
struct StaleFile {
    path: String,
    why: String,
    bytes: u64,
}

impl StaleFile {
    fn of(Stale { path, why, bytes }: &Stale<'_>) -> Self {
        Self { path: path_text::encode(path), why: why.to_string(), bytes: *bytes }
    }
}

/// One recorded start that follows the plan.
fn replayed(args: &Args, store: &Store, plan: &Plan, ui: &Ui) -> Result<Option<Waste>, Failure> {
    let (argv, scenario) = args.which.command();
    let trial = Trial::of(store, argv)?;
    trial.put(plan)?;
    let mut config = args.start.single(argv, vec![State::Prefetched])?;
    let launcher = trial.launcher(plan, scenario)?;
    for command in &mut config.commands {
        command.launcher = Some(launcher.clone());
    }
    let interrupt = interrupt()?;
    let mut line = Line::new(ui);
    let mut starts = Starts::begin(&config, &mut line, &interrupt).map_err(failure)?;
    let waste = replay::start(&mut starts, plan, &trial, &args.start.ready_means(), &mut line);
    let ended = starts.end().map_err(failure);
    line.clear();
    let waste = waste?;
    ended?;
    Ok(waste)
}

fn print(ui: &Ui, plan: &Plan, fit: &Fit<'_>, again: bool) {
    if let Some(why) = fit.executable {
        ui.line(paint(BAD, format!("{} {why}: the plan is of another program", plan.key.executable.shown())));
    }
    for Stale { path, why, bytes } in &fit.stale {
        ui.line(format!("  {} {why} ({})", path.shown(), Bytes(*bytes)));
    }
    let of = percent(fit.stale_bytes, fit.bytes);
    let text = format!(
        "{} of {} no longer fit: {of} of the {} that the plan reads",
        plural(fit.stale.len() as u64, "file"),
        super::show::named(plan),
        Bytes(fit.bytes)
    );
    match (fit.stale.is_empty(), again) {
        (true, false) => ui.line(paint(GOOD, format!("all {} fit", super::show::named(plan)))),
        (_, false) => ui.line(paint(WARN, text)),
        (_, true) => ui.line(paint(BAD, format!("{text}; learn it again"))),
    }
}
