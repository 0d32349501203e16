//! `cold prefetch`: learn what a start needs, keep it as a plan, prove that the plan helps.

pub(crate) mod device;
pub(crate) mod install;
pub(crate) mod launcher;
pub(crate) mod learn;
mod list;
pub(crate) mod plans;
mod portable;
mod replay;
mod shell;
mod show;
mod status;
pub(crate) mod trial;
mod tune;
mod verify;
mod windows;

use crate::cli::{EXIT_CODES, LAST, TEMPLATE};
use crate::exit::Outcome;
use crate::ui::Ui;

const EXAMPLES: &str = "Examples:
  cold prefetch learn -- firefox-esr --headless -screenshot /tmp/p.png file:///tmp/p.html
  cold bench --states cold,prefetched,warm -- firefox-esr --headless …     the proof
  cold launch -- firefox-esr --headless …                                  from now on
  cold prefetch list                                  plans, and what they gained
";

/// Subcommands of `cold prefetch`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES)]
#[command(mut_arg("store", |flag| flag.display_order(LAST)))]
pub(crate) struct Args {
    #[command(flatten)]
    place: plans::StorePlace,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Record starts of a command and make a plan: which pages to read ahead
    Learn(learn::Args),
    /// List the plans
    List(list::Args),
    /// Show one plan: its files, what is read when, what it gained
    Show(show::Args),
    /// Check whether a plan still fits the files on disk
    Verify(verify::Args),
    /// Compare settings of a plan, and no plan; keep the best, or switch it off
    Tune(tune::Args),
    /// Show how the plans did in daily use
    Status(status::Args),
    /// Write a plan as JSON, for another machine, or for a builder of images
    Export(portable::ExportArgs),
    /// Make a plan from what another machine exported
    Import(portable::ImportArgs),
    /// Remove a plan and its history
    Remove(list::RemoveArgs),
    /// Remove plans by age and size
    Prune(list::PruneArgs),
    /// Make a desktop entry, a service or a command in PATH start by plan
    Install(install::Args),
    /// Remove what install wrote
    Uninstall(install::RemoveArgs),
    /// Print shell functions that start programs by their plans
    ShellFunction(shell::Args),
}

/// Runs the chosen one.
pub(crate) fn run(args: Args, ui: &Ui) -> Outcome {
    let place = &args.place;
    match args.command {
        Command::Learn(args) => learn::run(&args, place, ui),
        Command::List(args) => list::run(&args, place, ui),
        Command::Show(args) => show::run(&args, place, ui),
        Command::Verify(args) => verify::run(&args, place, ui),
        Command::Tune(args) => tune::run(&args, place, ui),
        Command::Status(args) => status::run(&args, place, ui),
        Command::Export(args) => portable::export(&args, place, ui),
        Command::Import(args) => portable::import(&args, place, ui),
        Command::Remove(args) => list::remove(&args, place, ui),
        Command::Prune(args) => list::prune(&args, place, ui),
        Command::Install(args) => install::run(&args, place, ui),
        Command::Uninstall(args) => install::remove(&args, ui),
        Command::ShellFunction(args) => shell::run(&args, place, ui),
    }
}
