//! `cold launch`: start a program by its plan, by becoming it.

use std::path::PathBuf;
use std::time::Duration;

use cold_launch::{Decision, Explanation, Options, Source};
use cold_model::Shown as _;
use cold_model::{Bytes, Nanos};
use cold_sys::exec::Command;

use crate::cli::TEMPLATE;
use crate::commands::prefetch::plans::Planned;
use crate::exit::{Exit, Failure, Outcome};
use crate::ui::{FAINT, GOOD, Ui, WARN, paint};
use crate::words::plural;

const EXAMPLES: &str = "Examples:
  cold launch -- firefox-esr
  cold launch --scenario db -- postgres -D /srv/db
  cold launch --explain -- python3 app.py      what would be done, and why; starts nothing
";

const AFTER: &str = "\
cold becomes the program (exec): process id and exit code are the program's own. A helper process
reads ahead. Whatever is wrong with a plan, the program starts. `cold-launch` does the same and is
much smaller; use it in scripts.

Exit codes: the program's; 126 it cannot be executed, 127 it is not there; 2 wrong usage.";

/// Flags of `cold launch`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    #[command(flatten)]
    planned: Planned,

    /// Directory of the plans [default: the user's own, then /var/lib/coldstart/plans]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,

    /// Make every K-th cold start without the plan, to measure what the plan gains; 0: never
    #[arg(long, value_name = "K", default_value_t = 0)]
    control_every: u32,

    /// Stop reading ahead after this time, in ms
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    deadline: u64,

    /// Show what would be done, and why; start nothing
    #[arg(long)]
    explain: bool,
}

/// Becomes the program, or explains.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let Planned { argv, scenario } = &args.planned;
    if let Some(name) = scenario {
        cold_plan::scenario::check_name(name).map_err(|e| Failure::usage(e.to_string()))?;
    }
    let options = Options {
        source: Source::Store { dir: args.store.clone(), scenario: scenario.clone() },
        control_every: args.control_every,
        deadline: Duration::from_millis(args.deadline),
        ..Options::new(argv.clone())
    };
    if args.explain {
        explain(ui, &cold_launch::explain(&options));
        return Ok(Exit::Done);
    }
    // From here on the program starts, whatever becomes of this one.
    if let Some(command) = Command::of(argv) {
        cold_sys::emergency::arm(command);
    }
    let error = cold_launch::launch(&options, &mut |e| {
        if let Decision::Skip(skip) = &e.decision
            && skip.is_problem()
            // Nor is a message a reason to wait, or to be ended by a signal.
            && cold_sys::stdio::takes_a_line()
        {
            ui.warn(format!("no plan followed: {skip}"));
        }
    });
    let missing = error.kind() == std::io::ErrorKind::NotFound;
    let program = argv.first().map(|a| a.shown().to_string()).unwrap_or_default();
    ui.error(&Failure::from(anyhow::anyhow!("cannot execute {program}: {error}")));
    // As shells, env and nohup have it.
    crate::exit::now(if missing { 127 } else { 126 })
}

fn explain(ui: &Ui, e: &Explanation) {
    match &e.plan {
        Some(path) => ui.line(format!("plan {}", path.shown())),
        None => ui.line("no plan"),
    }
    if let Some(s) = &e.seen.sample {
        let places = plural(u64::from(s.looked), "place");
        ui.line(paint(FAINT, format!("  looked at {places} of what it reads: {} not cached", s.absent)));
    }
    if let Some(room) = e.seen.room {
        ui.line(paint(FAINT, format!("  {} of memory may be used", Bytes(room))));
    }
    let (style, text) = match &e.decision {
        Decision::Replay => {
            let all = Bytes(e.seen.plan_bytes);
            (GOOD, format!("would be followed: {} of {all} read ahead", Bytes(e.seen.bytes)))
        }
        Decision::Control => (WARN, "would be a control start, without the plan".to_owned()),
        Decision::Skip(skip) => (WARN, format!("would not be followed: {skip}")),
    };
    ui.line(format!("  {} ({} to find out)", paint(style, text), Nanos::from(e.took)));
}
