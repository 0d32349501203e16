//! `cold prefetch`: learn what a start needs, keep it as a plan, prove that the plan helps.

mod install;
pub(crate) mod launcher;
mod shell;

use crate::cli::TEMPLATE;
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
#[command(help_template = TEMPLATE, before_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Make a desktop entry, a service or a wrapper start its program through the launcher
    Install(install::Args),
    /// Remove what install wrote
    Uninstall(install::RemoveArgs),
    /// Print shell functions that start programs through the launcher
    ShellFunction(shell::Args),
}

/// Runs the chosen one.
pub(crate) fn run(args: Args, ui: &Ui) -> Outcome {
    match args.command {
        Command::Install(args) => install::run(&args, ui),
        Command::Uninstall(args) => install::remove(&args, ui),
        Command::ShellFunction(args) => shell::run(&args, ui),
    }
}
