//! `cold report`: what a recording says.

mod compare;
mod exports;
pub(crate) mod load;
mod page_map;
mod text;

use std::path::PathBuf;

use cold_analyze::model::Headline;

use crate::cli::TEMPLATE;
use crate::exit::{Exit, Failure, Outcome};
use crate::progress::Line;
use crate::ui::Ui;
use load::Loaded;
use text::View;

/// What the exit code says here.
const AFTER: &str = "\
Exit codes: 0 shown and written, also of an incomplete recording; 1 failed; 2 wrong usage.";

/// Rows of the table of files, and of the others where not all is wanted.
const ROWS: usize = 10;
const FEW: usize = 4;

/// Flags of `cold report`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = AFTER)]
#[command(before_help = "Examples:
  cold report firefox-esr.cold                       what cost most, why, and what would help
  cold report firefox-esr.cold --details             and everything that it rests on
  cold report firefox-esr.cold --html firefox.html   as a page: every page needed and read
  cold report firefox-esr.cold --file libxul         which parts of one file
  cold report before.cold after.cold                 what changed, file by file
  cold report firefox-esr.cold --perfetto f.pftrace  for ui.perfetto.dev
  cold report firefox-esr.cold --json | jq .headline
")]
pub(crate) struct Args {
    /// The recording, or two to compare
    #[arg(value_name = "NAME.cold", required = true, num_args = 1..=2)]
    pub(crate) recordings: Vec<PathBuf>,

    /// Rows per table [default: 10 files, 4 of everything else; with --details 10]
    #[arg(short = 'n', long, value_name = "N", help_heading = "Text")]
    pub(crate) limit: Option<usize>,

    /// Also packages, stacks, sections, functions, every check, and how each gain was estimated
    #[arg(short, long, help_heading = "Text")]
    pub(crate) details: bool,

    /// Details of the files with this text in their path: sections, functions, a map of their pages
    #[arg(long, value_name = "TEXT", help_heading = "Text")]
    pub(crate) file: Option<String>,

    /// Do not read the recorded files for sections, symbols and source lines (quicker)
    #[arg(long, help_heading = "Text")]
    pub(crate) no_symbols: bool,

    /// The analysis as one JSON document on stdout instead of text
    #[arg(long, conflicts_with = "file", help_heading = "Results")]
    pub(crate) json: bool,

    /// Write one self-contained page with pictures and tables
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) html: Option<PathBuf>,

    /// Write the main picture: offset in the files over time
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) svg: Option<PathBuf>,

    /// Write every table as CSV into a new directory
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub(crate) csv: Option<PathBuf>,

    /// Write the recording itself (Parquet tables) into a new directory, recovered if it was cut short
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub(crate) parquet: Option<PathBuf>,

    /// Write a trace for ui.perfetto.dev
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) perfetto: Option<PathBuf>,

    /// Write a profile for profiler.firefox.com, compressed if the name ends in .gz
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) firefox_profile: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    exports::check(args)?;
    let mut line = Line::new(ui);
    let loaded = args.recordings.iter().map(|dir| load::load(dir, !args.no_symbols, &mut line));
    let loaded: Result<Vec<Loaded>, Failure> = loaded.collect();
    line.clear();
    let loaded = loaded?;
    for l in &loaded {
        l.warnings.iter().for_each(|w| ui.warn(w));
    }
    let [first, rest @ ..] = loaded.as_slice() else {
        return Err(Failure::usage("no recording is named"));
    };
    if let Some(pattern) = &args.file
        && !page_map::matches(&first.analysis, pattern)
    {
        return Err(Failure::usage(format!("no file of {} has {pattern:?} in its path", first.name)));
    }
    exports::write(args, &loaded, ui)?;
    if args.json {
        return Ok(Exit::Done);
    }
    let few = if args.details { ROWS } else { FEW };
    let view = View {
        limit: args.limit.unwrap_or(ROWS),
        few: args.limit.unwrap_or(few),
        details: args.details,
        ..text_view(ui)
    };
    let lines = match (&args.file, rest) {
        (Some(pattern), _) => {
            page_map::lines(&first.recording, &first.layouts, &first.analysis, pattern, view)
        }
        (None, [second]) => {
            compare::lines(&load::comparison(first, second), [&first.name, &second.name], view)
        }
        (None, _) => text::lines(&first.analysis, view),
    };
    for l in lines {
        ui.line(l);
    }
    Ok(Exit::Done)
}

/// The room there is on this terminal.
pub(super) fn text_view(ui: &Ui) -> View {
    View {
        columns: ui.width().min(text::MOST_COLUMNS),
        table: crate::table::width(),
        limit: ROWS,
        few: FEW,
        details: false,
    }
}

/// The headline alone, for a summary.
pub(super) fn headline(h: &Headline, view: View) -> Vec<String> {
    text::headline::lines(h, view)
}
