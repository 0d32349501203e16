//! `cold import`: what Windows wrote about starts.

mod csv;
mod etl;
mod layout_ini;
mod pf;
mod save;
mod source;
mod start;

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::Outcome;
use crate::ui::Ui;

/// Flags of `cold import`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold import pf /mnt/c/Windows/Prefetch         what Windows' prefetcher knows
  cold import etl boot.etl --list                who faulted and read in a trace
  cold import etl app.etl --process app.exe      its start as a recording: app.exe.cold
  cold import csv app.csv                        the same from xperf's text
  cold report app.exe.cold --html app.html       what it waited for, as a page
")]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: ImportKind,
}

/// What is read.
#[derive(Debug, clap::Subcommand)]
enum ImportKind {
    /// Read an event trace log of the Windows kernel logger (xperf, wpr, `PerfView`)
    Etl(etl::Args),
    /// Read a trace in text: rows of xperf's dumper, or a table of WPA
    Csv(csv::Args),
    /// Read prefetch files: which pages of which files the launches of a program used
    Pf(pf::Args),
    /// List the files of a Layout.ini in their order
    LayoutIni(layout_ini::Args),
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    match &args.kind {
        ImportKind::Etl(args) => etl::run(args, ui),
        ImportKind::Csv(args) => csv::run(args, ui),
        ImportKind::Pf(args) => pf::run(args, ui),
        ImportKind::LayoutIni(args) => layout_ini::run(args, ui),
    }
}
