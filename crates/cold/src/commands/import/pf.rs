//! `cold import pf`: prefetch files, one or a directory of them.

mod files;
mod show;
mod table;

use std::path::{Path, PathBuf};

use cold_model::Shown as _;

use super::save::{Saved, save};
use crate::cli::TEMPLATE;
use crate::exit::{Exit, Failure, Outcome};
use crate::progress::Line;
use crate::results;
use crate::ui::Ui;
use crate::words::{count, plural};
use files::Found;

const AFTER: &str = "\
Exit codes: 0 all files were read; 1 some could not be read (each has a line on stderr, the others
            are shown), or something could not be written; 2 wrong usage.";

/// Flags of `cold import pf`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = AFTER)]
#[command(before_help = "Examples:
  cold import pf CHROME.EXE-B3BA7868.pf              what its starts need
  cold import pf CHROME.EXE-B3BA7868.pf --pages      file by file, launch by launch
  cold import pf /mnt/c/Windows/Prefetch             all programs, and sums
  cold import pf Prefetch --csv pf.csv --timeline runs.csv     for spreadsheets
  cold import pf CHROME.EXE-B3BA7868.pf -o chrome.cold         a recording of the latest start
  cold import pf Prefetch --json | jq .executable
")]
pub(crate) struct Args {
    /// Prefetch files, or directories that are searched for them
    #[arg(value_name = "FILE|DIR", required = true)]
    paths: Vec<PathBuf>,

    /// Each file's pages, and which of the last eight launches used them
    #[arg(long, conflicts_with = "json")]
    pages: bool,

    /// Everything as JSON on stdout instead of text, one document in a line for each file
    #[arg(long)]
    json: bool,

    /// Write a row for each prefetch file, with the columns of PECmd and more behind them
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write a row for each run that is told, the latest first
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,

    /// Write a recording of the latest start: which pages of which files it needed, in the order that is told
    #[arg(short, long, value_name = "NAME.cold")]
    output_directory: Option<PathBuf>,

    /// Replace a recording of that name
    #[arg(long, requires = "output_directory")]
    overwrite: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    for path in [&args.csv, &args.timeline].into_iter().flatten() {
        results::check(path)?;
    }
    let mut line = Line::new(ui);
    let (found, failed) = files::read(&args.paths, &mut line)?;
    line.clear();
    for (path, why) in &failed {
        ui.warn(format!("{}: {why}", path.shown()));
    }
    // Before anything is written: with wrong usage nothing is done.
    let asked = args.output_directory.as_ref();
    let one = asked.map(|dir| only(&found, &failed).map(|one| (one, dir))).transpose()?;
    if let Some(path) = &args.csv {
        results::save(path, table::csv(&found, &failed))?;
    }
    if let Some(path) = &args.timeline {
        results::save(path, table::timeline(&found))?;
    }
    let saved = one.map(|(found, dir)| record(found, dir, args.overwrite)).transpose()?;
    if args.json {
        for f in &found {
            ui.json_line(&show::document(f));
        }
    } else {
        text(args, &found, failed.len(), ui);
    }
    match saved.map(|saved| saved.exit()) {
        Some(Exit::Interrupted) => Ok(Exit::Interrupted),
        _ if failed.is_empty() => Ok(Exit::Done),
        _ => Ok(Exit::Failed),
    }
}

fn text(args: &Args, found: &[Found], failed: usize, ui: &Ui) {
    let mut lines = match found {
        [] => Vec::new(),
        [one] => show::one(one),
        all => show::all(all),
    };
    if args.pages {
        for f in found {
            lines.push(String::new());
            if found.len() > 1 {
                lines.push(f.path.shown().to_string());
            }
            lines.extend(show::pages(f, ui.unicode()));
        }
    }
    if failed > 0 {
        let files = plural((found.len() + failed) as u64, "file");
        lines.push(format!("{} of {files} could not be read", count(failed as u64)));
    }
    lines.extend(args.output_directory.iter().map(|dir| format!("next: cold report {}", dir.shown())));
    for line in lines {
        ui.line(line);
    }
}

/// The one file that a recording is to be made of.
fn only<'a>(found: &'a [Found], failed: &[(PathBuf, String)]) -> Result<&'a Found, Failure> {
    match (found, failed) {
        ([one], _) => Ok(one),
        ([], [(path, _)]) => {
            Err(anyhow::anyhow!("no recording was made: {} cannot be read", path.shown()).into())
        }
        _ => Err(Failure::usage("-o makes a recording of one prefetch file: name one that can be read")),
    }
}

/// The recording of a file that was read.
fn record(Found { path, prefetch, .. }: &Found, dir: &Path, overwrite: bool) -> Result<Saved, Failure> {
    let name =
        path.file_name().map_or_else(|| path.shown().to_string(), |n| n.to_string_lossy().into_owned());
    let recording = cold_windows::start_of(prefetch, env!("CARGO_PKG_VERSION"), &name);
    save(&recording, Some(dir), overwrite, &prefetch.executable.text())
}
