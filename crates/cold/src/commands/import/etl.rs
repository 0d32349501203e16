//! `cold import etl`: an event trace log.

use std::path::PathBuf;

use anyhow::Context as _;
use cold_model::Shown as _;
use cold_windows::etl::{Trace, gather};

use super::source;
use super::start::{self, Choice};
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::Outcome;
use crate::progress::Line;
use crate::ui::Ui;

/// Flags of `cold import etl`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold import etl app.etl                     the start with most hard faults: app.exe.cold
  cold import etl app.etl --list              who faulted and read
  cold import etl app.etl --process app.exe -o app.cold
  cold import etl app.etl --process 3676      by process id
On Windows, a trace that holds all of it:
  xperf -on PROC_THREAD+LOADER+DISK_IO+DISK_IO_INIT+HARD_FAULTS+FILENAME, then: xperf -d app.etl
")]
pub(crate) struct Args {
    /// The trace
    #[arg(value_name = "FILE.etl")]
    file: PathBuf,

    #[command(flatten)]
    choice: Choice,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let mut line = Line::new(ui);
    let shown = args.file.shown();
    let source = source::Shown::open(&args.file, &mut line)?;
    let trace = Trace::open(source).with_context(|| format!("{shown} is no event trace that can be read"))?;
    let read = gather(trace).with_context(|| format!("cannot read {shown}"))?;
    line.clear();
    if let Some(damage) = &read.losses.first {
        let n = read.losses.damaged;
        ui.warn(format!("{shown}: {n} damaged buffers were left out; the first: {damage}"));
    }
    if read.losses.marked > 0 {
        ui.warn(format!("{shown}: Windows marked {} buffers: events were lost", read.losses.marked));
    }
    start::import(&read.evidence, &args.choice, &args.file, ui)
}
