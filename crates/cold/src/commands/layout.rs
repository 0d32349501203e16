//! `cold layout`: the order of a program's functions, and of its files' blocks on the disk.

mod choice;
mod compare;
mod data;
pub(crate) mod disk;
mod link;
mod names;
mod order;
mod predict;
mod trace;

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::Outcome;
use crate::ui::Ui;

/// Flags of `cold layout`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold layout trace --scenario search -o search.order -- ./rg foo t.txt
  cold layout trace --scenario version -o version.order -- ./rg --version
  cold layout order search.order version.order -o rg.txt   for lld: --symbol-ordering-file
  cold layout predict search.order version.order           what that would bring
  cold layout order --hold-out version *.order -o rg.txt   the gain of one it has not seen
  cold layout link --order rg.txt --keep-old rg.old -- cargo build --release
  cold layout compare rg.old target/release/rg -- foo t.txt   what it brought
  cold layout disk --plan firefox-esr --dry-run            what a plan reads, together on the disk
")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Trace the order in which a start enters functions
    Trace(trace::Args),
    /// Merge traces into an order file for a linker
    Order(order::Args),
    /// Predict what an order and the link's flags would bring, before any link
    Predict(predict::Args),
    /// Run a build with an order handed to its linker, and verify the program
    Link(link::Args),
    /// Compare starts of a program as it was and linked anew, with a control
    Compare(Box<compare::Args>),
    /// Put what a plan reads one behind the other on the disk
    Disk(disk::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    match &args.action {
        Action::Trace(args) => trace::run(args, ui),
        Action::Order(args) => order::run(args, ui),
        Action::Predict(args) => predict::run(args, ui),
        Action::Link(args) => link::run(args, ui),
        Action::Compare(args) => compare::run(args, ui),
        Action::Disk(args) => disk::run(args, ui),
    }
}
