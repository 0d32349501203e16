//! `cold report`: what a recording says.

mod budget;
mod compare;
mod exports;
pub(crate) mod load;
mod orders;
mod page_map;
mod text;

use std::path::PathBuf;

use cold_analyze::model::{Analysis, Headline};
use cold_model::recording::FileIdx;

use super::history::store::Store;
use crate::cli::TEMPLATE;
use crate::exit::{Failure, Outcome};
use crate::progress::Line;
use crate::ui::Ui;
use load::Loaded;
use text::View;

/// What the exit code says here.
const AFTER: &str = "\
Quantities of --fail-if, from the start to ready: files, files-needed, libraries, needed, read,
unused, metadata, direct, requests, faults, lookups, lookups-missed, processes, execs, threads.
Sizes need a unit. Of two recordings also growth, of B against A: 'files > +0', 'needed > +1MiB',
'faults > 1.1x'. Times have no interval in one recording: `cold bench --fail-if` judges them.
A line of --allow is a pattern (* within a name, ** across names) and what limits it: pages=N
margin=10% optional.

Exit codes: 0 shown and written, also of an incomplete recording; 1 failed; 2 wrong usage; 3 a
budget (--fail-if, --allow) failed; 4 a budget cannot be decided.";

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
  cold report rg.cold --order rg.order               functions by first entry (cold layout trace)
  cold report before.cold after.cold                 what changed, file by file
  cold report firefox-esr.cold --perfetto f.pftrace  for ui.perfetto.dev
  cold report firefox-esr.cold --json | jq .headline
  cold report app.cold --fail-if 'files > 120' --fail-if 'lookups-missed > 50'     budgets for CI
  cold report a.cold b.cold c.cold --write-allow app.allow    a list of the files these used
  cold report app.cold --allow app.allow --junit out.xml      any other file fails, by name
")]
pub(crate) struct Args {
    /// The recording, or two to compare; with --write-allow any number
    #[arg(value_name = "NAME.cold", required = true, num_args = 1..)]
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

    /// A trace of first entries by `cold layout trace`, of the same build as a recorded file: functions by first entry,
    /// and what linking in that order would bring; may be given more than once [default: those beside the recording]
    #[arg(long, value_name = "NAME.order", help_heading = "Text")]
    pub(crate) order: Vec<PathBuf>,

    /// Do not read the recorded files for sections, symbols and source lines (quicker)
    #[arg(long, help_heading = "Text")]
    pub(crate) no_symbols: bool,

    /// Exit with 3 if this is true, e.g. 'files > 120', 'needed > 20MiB', 'lookups-missed > +0'; may be
    /// given more than once
    #[arg(long, value_name = "CONDITION", help_heading = "Budgets")]
    pub(crate) fail_if: Vec<String>,

    /// Exit with 3 if the start uses a file that no line of this list allows, or more pages of one
    #[arg(long, value_name = "FILE", help_heading = "Budgets")]
    pub(crate) allow: Option<PathBuf>,

    /// Write such a list: the files of all these recordings, with the most pages one of them needed
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["allow", "fail_if", "json", "junit", "markdown"],
        help_heading = "Budgets"
    )]
    pub(crate) write_allow: Option<PathBuf>,

    /// Count up to this moment instead of ready: end (of the recording), serving (a server could be asked
    /// for the first time), or exec:NAME, the first exec of a program of that name
    #[arg(long, value_name = "MARKER", help_heading = "Budgets")]
    pub(crate) until: Option<String>,

    /// Count from one marker to another: start, or one of those of --until; e.g. serving..ready
    #[arg(long, value_name = "FROM..UNTIL", conflicts_with = "until", help_heading = "Budgets")]
    pub(crate) phase: Option<String>,

    /// Write the answers as JUnit XML
    #[arg(long, value_name = "FILE", help_heading = "Budgets")]
    pub(crate) junit: Option<PathBuf>,

    /// Write the answers as Markdown, for the page of a CI job
    #[arg(long, value_name = "FILE", help_heading = "Budgets")]
    pub(crate) markdown: Option<PathBuf>,

    /// Also put the counts (of the second of two recordings) into this history, for `cold history`
    #[arg(long, value_name = "HISTORY.db", conflicts_with = "write_allow", help_heading = "Budgets")]
    pub(crate) record: Option<PathBuf>,

    /// With --record: the commit that was recorded [default: that of the directory's git repository]
    #[arg(long, value_name = "ID", requires = "record", help_heading = "Budgets")]
    pub(crate) commit: Option<String>,

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
    let budgets = budget::Budgets::check(args)?;
    let mut line = Line::new(ui);
    let loaded = args.recordings.iter().map(|dir| {
        let raw = load::raw(dir, &mut line)?;
        let raw = load::until(raw, args.until.as_deref())?;
        let raw = load::phase(raw, args.phase.as_deref())?;
        load::analysed(raw, dir, !args.no_symbols, &args.order, &mut line)
    });
    let loaded: Result<Vec<Loaded>, Failure> = loaded.collect();
    line.clear();
    let loaded = loaded?;
    for l in &loaded {
        l.warnings.iter().for_each(|w| ui.warn(w));
    }
    if let Some(path) = &args.write_allow {
        return budget::write_list(path, &loaded, ui);
    }
    let [first, rest @ ..] = loaded.as_slice() else {
        return Err(Failure::usage("no recording is named"));
    };
    if let Some(pattern) = &args.file
        && !page_map::matches(&first.analysis, pattern)
    {
        return Err(Failure::usage(format!("no file of {} has {pattern:?} in its path", first.name)));
    }
    if let Some(mut store) = Store::to_record(args.record.as_deref())? {
        let own = rest.first().unwrap_or(first);
        store.add(&cold_analyze::budget::point(own.start()), args.commit.as_deref())?;
    }
    let answers = budgets.answers(&loaded);
    exports::write(args, &loaded, &answers, ui)?;
    if !args.json {
        for l in lines(args, first, rest, ui) {
            ui.line(l);
        }
        answers.show(ui);
    }
    Ok(answers.exit())
}

/// The report as text.
fn lines(args: &Args, first: &Loaded, rest: &[Loaded], ui: &Ui) -> Vec<String> {
    let few = if args.details { ROWS } else { FEW };
    let view = View {
        limit: args.limit.unwrap_or(ROWS),
        few: args.limit.unwrap_or(few),
        details: args.details,
        ..text_view(ui)
    };
    match (&args.file, rest) {
        (Some(pattern), _) => {
            page_map::lines(&first.recording, &first.layouts, &first.analysis, pattern, view)
        }
        (None, [second]) => {
            compare::lines(&load::comparison(first, second), [&first.name, &second.name], view)
        }
        (None, _) => text::lines(&first.analysis, view),
    }
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

/// The data of one file, by section and symbol.
pub(super) fn data(analysis: &Analysis, file: FileIdx, view: View) -> Vec<String> {
    text::data(analysis, file, view)
}

/// The headline alone, for a summary.
pub(super) fn headline(h: &Headline, view: View) -> Vec<String> {
    text::headline::lines(h, view)
}
