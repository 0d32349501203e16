//! One module per command: `Args` (the flags) and `run`.

pub(crate) mod bench;
pub(crate) mod cache;
pub(crate) mod diagnose;
pub(crate) mod doctor;
pub(crate) mod fleet;
pub(crate) mod generate;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod launch;
pub(crate) mod layout;
pub(crate) mod prefetch;
pub(crate) mod probe;
pub(crate) mod report;
pub(crate) mod service;
pub(crate) mod simulate;
pub(crate) mod spawn;
pub(crate) mod trace;

use crate::cli::Command;
use crate::exit::Outcome;
use crate::leftovers;
use crate::ui::Ui;

/// Runs the chosen command.
pub(crate) fn run(command: Command, ui: &Ui) -> Outcome {
    if matches!(
        command,
        Command::Bench(_)
            | Command::Trace(_)
            | Command::Cache(_)
            | Command::Layout(_)
            | Command::Prefetch(_)
            | Command::Probe(_)
            | Command::Simulate(_)
            | Command::Spawn(_)
    ) {
        leftovers::repair(ui);
    }
    match command {
        Command::Bench(args) => bench::run(&args, ui),
        Command::Trace(args) => trace::run(&args, ui),
        Command::Report(args) => report::run(&args, ui),
        Command::History(args) => history::run(&args, ui),
        Command::Fleet(args) => fleet::run(&args, ui),
        Command::Simulate(args) => simulate::run(&args, ui),
        Command::Spawn(args) => spawn::run(&args, ui),
        Command::Cache(args) => cache::run(*args.0, ui),
        Command::Import(args) => import::run(&args, ui),
        Command::Launch(args) => launch::run(&args, ui),
        Command::Layout(args) => layout::run(&args, ui),
        Command::Prefetch(args) => prefetch::run(*args.0, ui),
        Command::Service(args) => service::run(&args, ui),
        Command::Probe(args) => probe::run(&args, ui),
        Command::Diagnose(args) => diagnose::run(&args, ui),
        Command::Doctor(args) => doctor::run(*args.0, ui),
        Command::Completions(args) => Ok(generate::completions(&args, ui)),
        Command::Man(args) => generate::man(&args),
    }
}
