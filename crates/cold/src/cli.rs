//! The command line: one definition per flag, from which help, man pages and completions are made.

use clap::{Parser, Subcommand};

use crate::commands;

/// Help that opens with examples.
pub(crate) const TEMPLATE: &str = "\
{name} {version}: {about-with-newline}
{before-help}{usage-heading} {usage}

{all-args}{after-help}";

/// Exit codes, at the end of every help text.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 failed; 2 wrong usage; 3 a gate failed; 4 inconclusive;
            5 the required state could not be reached; 130 interrupted.";

/// Place of the flags of every command in its help: after its own, before --help.
pub(crate) const LAST: usize = 998;

/// Measures, explains and removes the slowness of a program's first start.
#[derive(Debug, Parser)]
#[command(name = "cold", version, help_template = TEMPLATE, after_help = EXIT_CODES, propagate_version = true, max_term_width = 100)]
#[command(before_help = "Examples:
  cold diagnose -- python3 -c 'import json'    why a first start is slow, and what helps
  cold doctor                                  what can be measured here, what would disturb it
  cold bench -- firefox-esr --headless -screenshot /tmp/p.png file:///tmp/p.html
  cold bench --states cold,light,warm -- python3 -c 'import json'
  cold trace -- python3 -c 'import json'       then: cold report python3.cold
  cold simulate python3.cold                   the same start with other windows, systems, disks
  cold prefetch learn -- python3 -c 'import json'     then: cold launch -- python3 …
  cold service run                             every start by its plan, nothing wrapped
  cold layout trace -- ./rg foo t.txt           then: cold layout order rg.order -o rg.txt
  cold cache show --holders /usr/lib/firefox-esr
  cold probe table                             mapped, buffered or direct: which is faster here
")]
pub(crate) struct Cli {
    /// Print only results and errors: no progress, notes or warnings
    #[arg(short, long, global = true, display_order = LAST)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What `cold` is asked to do.
///
/// Flags are made of the one command that is asked for (`defer`): all 350 of them took a warm start of `cold launch`
/// 1.8 of its 5.0 ms, and 180 of its 475 page faults.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Tell how slow a first start is, why, and what would help; try that and prove it
    Diagnose(Flags<commands::diagnose::Args>),
    /// Measure cold and warm starts repeatably, and prove that they were cold
    Bench(Flags<commands::bench::Args>),
    /// Record one start: pages needed, pages read, why, and how long it waited
    Trace(Flags<commands::trace::Args>),
    /// Tell what a recording says: text, HTML, SVG, CSV, Perfetto, Firefox Profiler
    Report(Flags<commands::report::Args>),
    /// Tell how benchmarks and budgets went from commit to commit
    History(Flags<commands::history::Args>),
    /// Ask the recordings of many machines: consensus plans, regressions, outliers
    Fleet(Flags<commands::fleet::Args>),
    /// Work out the same start with another read-ahead, system, disk or plan
    Simulate(Flags<commands::simulate::Args>),
    /// Learn which pages a start needs, keep them as a plan, prove that the plan helps
    Prefetch(Flags<commands::prefetch::Args>),
    /// Start a program and read ahead the pages of its plan
    Launch(Flags<commands::launch::Args>),
    /// Read ahead for every start that has a plan, and count what that saves
    Service(Flags<commands::service::Args>),
    /// Order a program's functions by first use, for its linker
    Layout(Flags<commands::layout::Args>),
    /// Measure whether a program starts slower with every start, and why
    Spawn(Flags<commands::spawn::Args>),
    /// Show, evict, save and restore what the page cache holds
    Cache(Flags<commands::cache::Args>),
    /// Measure mapped against buffered access, memory pressure, prefetch calls, devices
    Probe(Flags<commands::probe::Args>),
    /// Read what Windows wrote about starts: prefetch files, event traces, their text
    Import(Flags<commands::import::Args>),
    /// Show what can be measured on this machine, and what would disturb a measurement
    Doctor(Flags<commands::doctor::Args>),
    /// Print the completion script of a shell
    Completions(Flags<commands::generate::CompletionsArgs>),
    /// Write the manual pages
    Man(Flags<commands::generate::ManArgs>),
}

/// The flags of a command, made when it is asked for: its own description stays, whatever describes the flags.
#[derive(Debug)]
pub(crate) struct Flags<A>(pub(crate) Box<A>);

impl<A> std::ops::Deref for Flags<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.0
    }
}

impl<A: clap::Args> clap::Args for Flags<A> {
    fn group_id() -> Option<clap::Id> {
        A::group_id()
    }

    fn augment_args(command: clap::Command) -> clap::Command {
        let about = command.get_about().cloned();
        A::augment_args(command).about(about.unwrap_or_default())
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        let about = command.get_about().cloned();
        A::augment_args_for_update(command).about(about.unwrap_or_default())
    }
}

impl<A: clap::FromArgMatches> clap::FromArgMatches for Flags<A> {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches(matches).map(|args| Self(Box::new(args)))
    }

    fn from_arg_matches_mut(matches: &mut clap::ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches_mut(matches).map(|args| Self(Box::new(args)))
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Texts that are laid out by hand must not be laid out again.
    fn check(command: &clap::Command, path: &str) {
        for text in [command.get_before_help(), command.get_after_help()] {
            let text = text.unwrap_or_else(|| panic!("{path} has examples and exit codes")).to_string();
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{path}: too long for a help text: {line}");
            }
        }
        for sub in command.get_subcommands() {
            check(sub, &format!("{path} {}", sub.get_name()));
        }
    }

    #[test]
    fn commands_are_described_alike_before_and_after_their_flags_are_made() {
        let about = |c: &clap::Command| -> Vec<(String, String)> {
            let of = |c: &clap::Command| c.get_about().map(ToString::to_string).unwrap_or_default();
            c.get_subcommands()
                .filter(|c| c.get_name() != "help")
                .map(|c| (c.get_name().to_owned(), of(c)))
                .collect()
        };
        let listed = Cli::command();
        let mut made = listed.clone();
        made.build();
        assert_eq!(about(&listed), about(&made));
        assert!(about(&made).iter().all(|(_, about)| !about.is_empty()));
    }

    #[test]
    fn examples_and_exit_codes_are_there_and_not_wrapped() {
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        check(&command, "cold");
    }
}
