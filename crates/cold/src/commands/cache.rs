//! `cold cache`.

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Outcome};
use crate::ui::Ui;

/// Flags of `cold cache`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES)]
pub(crate) struct Args {
    /// One documented JSON document on stdout instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(_args: Args, _ui: &Ui) -> Outcome {
    Ok(Exit::Done)
}
