//! `cold import layout-ini`: the list of files that Windows' defragmenter was to lay out for the boot.

use std::path::PathBuf;

use anyhow::Context as _;
use cold_model::Shown as _;
use cold_windows::text::layout_ini;

use super::source;
use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Outcome};
use crate::progress::Line;
use crate::ui::Ui;

/// Flags of `cold import layout-ini`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
#[command(before_help = "Examples:
  cold import layout-ini /mnt/c/Windows/Prefetch/Layout.ini
  cold import layout-ini Layout.ini --json | jq length
")]
pub(crate) struct Args {
    /// The file, in UTF-16 or UTF-8
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// A JSON array on stdout instead of a path per line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args, ui: &Ui) -> Outcome {
    let mut line = Line::new(ui);
    let source = source::Shown::open(&args.file, &mut line)?;
    let paths = layout_ini(source).with_context(|| format!("cannot read {}", args.file.shown()))?;
    line.clear();
    if args.json {
        ui.json(&paths);
    } else {
        paths.iter().for_each(|path| ui.line(path.as_str().shown()));
    }
    Ok(Exit::Done)
}
