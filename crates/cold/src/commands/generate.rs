//! `cold completions` and `cold man`: made from the same definitions as `--help`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::CommandFactory;
use cold_model::Shown as _;

use crate::cli::{Cli, EXIT_CODES, TEMPLATE};
use crate::exit::{Exit, Failure, Outcome};
use crate::results;
use crate::ui::Ui;

/// Flags of `cold completions`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES, before_help = "Examples:
  cold completions bash > ~/.local/share/bash-completion/completions/cold
  cold completions fish > ~/.config/fish/completions/cold.fish
")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Flags of `cold man`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, after_help = EXIT_CODES, before_help = "Examples:
  cold man ~/.local/share/man/man1
")]
pub(crate) struct ManArgs {
    /// Directory to write cold.1, cold-bench.1, … into
    dir: PathBuf,
}

/// Prints the completion script.
pub(crate) fn completions(args: &CompletionsArgs, ui: &Ui) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "cold", &mut text);
    ui.text(&String::from_utf8_lossy(&text));
    Exit::Done
}

/// Writes one page per command.
pub(crate) fn man(args: &ManArgs) -> Outcome {
    std::fs::create_dir_all(&args.dir).with_context(|| format!("cannot create {}", args.dir.shown()))?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    pages(&with_examples(command), &args.dir)?;
    Ok(Exit::Done)
}

/// The page of a command and those of its subcommands.
fn pages(command: &clap::Command, dir: &Path) -> Result<(), Failure> {
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text).context("cannot make the manual page")?;
    results::save(&dir.join(page.get_filename()), &text)?;
    command.get_subcommands().filter(|c| !c.is_hide_set()).try_for_each(|c| pages(c, dir))
}

/// Moves the examples, which pages do not show where `--help` has them, to the section that they do.
fn with_examples(command: clap::Command) -> clap::Command {
    let text = [command.get_before_help(), command.get_after_help()];
    let text: Vec<String> = text.into_iter().flatten().map(ToString::to_string).collect();
    let command = if text.is_empty() { command } else { command.after_help(text.join("\n\n")) };
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    names.into_iter().fold(command, |c, name| c.mut_subcommand(name, with_examples))
}
