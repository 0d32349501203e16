//! `cold import csv`: rows of `xperf -a dumper`, and tables of WPA.

use std::path::PathBuf;

use anyhow::Context as _;
use cold_model::Shown as _;
use cold_windows::text::{Map, gather};

use super::source;
use super::start::{self, Choice};
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Failure, Outcome};
use crate::progress::Line;
use crate::ui::Ui;
use crate::words::plural;

/// Flags of `cold import csv`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold import csv app.csv --process app.exe          rows of: xperf -i app.etl -o app.csv -a dumper
  cold import csv disk.csv --list                    a table that wpaexporter or WPA wrote
  cold import csv own.csv --map process=Wer --map size=Bytes --map 'end=Ende (ms)' …
Fields of --map: process, thread, path, disk-offset, file-offset, size, begin, end, took, disk,
type. A row with a file offset is a hard fault, one with a disk offset a disk read.
")]
pub(crate) struct Args {
    /// The text, in UTF-8 or UTF-16
    #[arg(value_name = "FILE.csv")]
    file: PathBuf,

    /// Title of the column that tells this, where a table has other titles than WPA's own; may be repeated
    #[arg(long, value_name = "FIELD=TITLE")]
    map: Vec<String>,

    #[command(flatten)]
    choice: Choice,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let mut map = Map::default();
    for text in &args.map {
        map.add(text).map_err(|why| Failure::usage(format!("--map: {why}")))?;
    }
    let mut line = Line::new(ui);
    let shown = args.file.shown();
    let source = source::Shown::open(&args.file, &mut line)?;
    let read = gather(source, &map).with_context(|| format!("cannot read {shown}"))?;
    line.clear();
    if !args.map.is_empty() && !read.is_table {
        ui.warn(format!("{shown} has rows of xperf, which name their columns: --map is not used"));
    }
    if let Some((number, why)) = &read.first_bad {
        let rows = plural(read.bad, "row");
        ui.warn(format!(
            "{shown}: {rows} of {} could not be read; the first in line {number}: {why}",
            read.rows
        ));
    }
    start::import(&read.evidence, &args.choice, &args.file, ui)
}
