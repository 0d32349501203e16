//! `cold service`: every start is followed up without anybody asking for it, and the gain is counted.

mod arguments;
mod ask;
mod history;
mod keep;
mod learn;
mod lesson;
mod loans;
mod notify;
mod place;
mod programs;
mod reader;
mod record;
mod replay;
mod run;
mod serve;
mod show;
mod socket;
mod status;
mod why;

use crate::cli::{EXIT_CODES, LAST, TEMPLATE};
use crate::exit::Outcome;
use crate::ui::Ui;

const EXAMPLES: &str = "Examples:
  cold service run                                     every start is made faster, until Ctrl-C
  cold prefetch learn -- firefox-esr --headless …      learnt now, not by its next two starts
  cold service status                                  what that saved, by control starts
  cold service why firefox-esr                         what was done for its last starts
  cold service replay                                  how good its rule for reading ahead is
";

/// Subcommands of `cold service`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES)]
#[command(mut_arg("store", |flag| flag.display_order(LAST)), mut_arg("state", |flag| flag.display_order(LAST)))]
pub(crate) struct Args {
    #[command(flatten)]
    place: place::Place,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Hear of every start and read ahead by its plan, until interrupted
    Run(run::Args),
    /// Show what the service did, what it saved, and what it costs
    Status(show::Args),
    /// Let starts go without their plans until resume
    Pause(ask::PauseArgs),
    /// Follow plans again
    Resume(ask::ResumeArgs),
    /// Forget the history of a program, or all of it
    Forget(ask::ForgetArgs),
    /// Compare rules of what is read before a start, on a log of starts
    Replay(replay::Args),
    /// Show what was done for a program's last starts, and why
    Why(why::Args),
    /// Make helpers for a service under systemd, which starts this
    Reader(reader::Args),
}

/// Runs the chosen one.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let place = &args.place;
    match &args.command {
        Command::Run(args) => run::run(args, place, ui),
        Command::Status(args) => show::run(args, place, ui),
        Command::Pause(_) => ask::pause(place, ui),
        Command::Resume(_) => ask::resume(place, ui),
        Command::Forget(args) => ask::forget(args, place, ui),
        Command::Replay(args) => replay::run(args, place, ui),
        Command::Why(args) => why::run(args, place, ui),
        Command::Reader(_) => reader::run(),
    }
}
