//! The flags of `cold bench`. Where hyperfine has a flag of that meaning, ours has its name.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::Styles;

use crate::cli::{EXIT_CODES, TEMPLATE};
use crate::commands::prefetch::plans::StorePlace;
use crate::start::{IDLE_GAP_MS, Start, WARMUP};

const EXAMPLES: &str = "Examples:
  cold bench -- firefox-esr --headless -screenshot /tmp/p.png file:///tmp/page.html
  cold bench --states cold,light,warm -r 20 -- python3 -c 'import json'
  cold bench --states cold,prefetched,warm -- python3 app.py   after cold prefetch learn
  cold bench 'git --version' 'hg --version'          two commands, compared
  cold bench --ready port:8080 -- ./server           ready when it listens; then it is ended
  cold bench --disk-limit iops=3000,bps=125M -- ./app     as on a small cloud disk
  cold bench -L jobs 1,2,4 'make -j{jobs}' --prepare 'make clean'
  cold bench --json > base.json -- ./app             then, after a change, in CI:
  cold bench --baseline base.json --fail-if 'cold.median > 1.10x' -- ./app
";

/// Flags of `cold bench`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = EXIT_CODES, styles = Styles::plain())]
pub(crate) struct Args {
    /// Command lines to compare, each as one argument (split into words; no shell unless --shell)
    #[arg(value_name = "COMMAND", conflicts_with = "argv")]
    pub(crate) lines: Vec<String>,

    /// One command with its arguments, exactly as they are
    #[arg(last = true, value_name = "CMD ARG")]
    pub(crate) argv: Vec<OsString>,

    /// States of the cache to measure: cold, prefetched (cold, but started by its plan), light (started once since
    /// eviction), warm, snapshot=FILE (what `cold cache save` wrote)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "cold,warm",
        help_heading = "State"
    )]
    pub(crate) states: Vec<String>,

    /// Name under which the plan of a prefetched start was learnt [default: derived from the arguments]
    #[arg(long, value_name = "NAME", help_heading = "State")]
    pub(crate) scenario: Option<String>,

    #[command(flatten, next_help_heading = "State")]
    pub(crate) place: StorePlace,

    /// How many starts, not measured, make a program warm after an eviction
    #[arg(short, long, value_name = "N", default_value_t = WARMUP, help_heading = "State")]
    pub(crate) warmup: u32,

    /// Limit how fast the command and its child processes read from each disk, e.g. iops=3000,bps=125M (root;
    /// averaged over 0.1 s)
    #[arg(long, value_name = "LIMIT", help_heading = "State")]
    pub(crate) disk_limit: Option<String>,

    /// Quiet time between preparation and start in ms, the same for every state
    #[arg(long, value_name = "MS", default_value_t = IDLE_GAP_MS, help_heading = "State")]
    pub(crate) idle_gap: u64,

    /// Number of runs of every command in every state; disturbed runs do not count and are replaced
    #[arg(short, long, value_name = "N", conflicts_with_all = ["min_runs", "max_runs", "precision"], help_heading = "Runs")]
    pub(crate) runs: Option<u32>,

    /// Least number of runs of each [default: 10]
    #[arg(short, long, value_name = "N", help_heading = "Runs")]
    pub(crate) min_runs: Option<u32>,

    /// Greatest number of runs of each [default: --min-runs, or 200 with --precision]
    #[arg(short = 'M', long, value_name = "N", help_heading = "Runs")]
    pub(crate) max_runs: Option<u32>,

    /// Begin no new round (every command in every state once) after this many seconds
    #[arg(long, value_name = "SECONDS", help_heading = "Runs")]
    pub(crate) max_time: Option<f64>,

    /// Go on until every 95 % interval is at most ± this share of its median, e.g. 2%
    #[arg(long, value_name = "PERCENT", help_heading = "Runs")]
    pub(crate) precision: Option<String>,

    /// Seed of the random order and of the statistics [default: from the clock; printed]
    #[arg(long, value_name = "N", help_heading = "Runs")]
    pub(crate) seed: Option<u64>,

    #[command(flatten)]
    pub(crate) start: Start,

    /// Shell line to run before each start (once for all commands, or one per command)
    #[arg(short, long, value_name = "LINE", help_heading = "Hooks")]
    pub(crate) prepare: Vec<String>,

    /// Shell line to run after each start (once for all commands, or one per command)
    #[arg(short, long, visible_short_alias = 'C', value_name = "LINE", help_heading = "Hooks")]
    pub(crate) conclude: Vec<String>,

    /// Shell line to run once per command before its first start
    #[arg(short, long, value_name = "LINE", help_heading = "Hooks")]
    pub(crate) setup: Option<String>,

    /// Shell line to run once per command at the end, also after a failure or Ctrl-C
    #[arg(long, value_name = "LINE", help_heading = "Hooks")]
    pub(crate) cleanup: Option<String>,

    /// Name of a command in reports (give it once per command)
    #[arg(short = 'n', long, value_name = "NAME", help_heading = "Commands")]
    pub(crate) command_name: Vec<String>,

    /// Values of {VAR} in command lines, names and hooks: -L VAR a,b,c. Several lists give all combinations
    #[arg(short = 'L', long, num_args = 2, value_names = ["VAR", "VALUES"], action = clap::ArgAction::Append, help_heading = "Commands")]
    pub(crate) parameter_list: Vec<String>,

    /// Numbers from MIN to MAX for {VAR}
    #[arg(short = 'P', long, num_args = 3, value_names = ["VAR", "MIN", "MAX"], allow_hyphen_values = true, help_heading = "Commands")]
    pub(crate) parameter_scan: Vec<String>,

    /// Step of --parameter-scan [default: 1]
    #[arg(
        short = 'D',
        long,
        value_name = "STEP",
        requires = "parameter_scan",
        allow_hyphen_values = true,
        help_heading = "Commands"
    )]
    pub(crate) parameter_step_size: Option<String>,

    /// Run command lines with this shell; none splits them into words and executes them directly
    #[arg(short = 'S', long, value_name = "SHELL", default_value = "none", help_heading = "Commands")]
    pub(crate) shell: String,

    /// The same as --shell=none
    #[arg(short = 'N', conflicts_with = "shell", help_heading = "Commands")]
    pub(crate) no_shell: bool,

    /// Smallest difference that matters, e.g. 2%; a smaller one counts as the same
    #[arg(long, value_name = "PERCENT", default_value = "0%", help_heading = "Verdict")]
    pub(crate) margin: String,

    /// Compare with an earlier result, written by `cold bench --json`
    #[arg(long, value_name = "FILE", help_heading = "Verdict")]
    pub(crate) baseline: Option<PathBuf>,

    /// Exit with 3 if this is true, e.g. 'cold.median > 1.10x' or 'files > +20' or 'read > +20MiB' (against the
    /// baseline or the first command), 'files > 300', 'cold/warm > 3'. Several: if any is true
    #[arg(long, value_name = "CONDITION", help_heading = "Verdict")]
    pub(crate) fail_if: Vec<String>,

    /// With --fail-if: write the answers as JUnit XML
    #[arg(long, value_name = "FILE", requires = "fail_if", help_heading = "Verdict")]
    pub(crate) junit: Option<PathBuf>,

    /// With --fail-if: write the answers as Markdown, for the page of a CI job
    #[arg(long, value_name = "FILE", requires = "fail_if", help_heading = "Verdict")]
    pub(crate) markdown: Option<PathBuf>,

    /// Print the full report as one JSON document instead of text
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,

    /// Write JSON as hyperfine does (version 1; v2:FILE for version 2; - is stdout)
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) export_json: Vec<String>,

    /// Write CSV as hyperfine does
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) export_csv: Option<PathBuf>,

    /// Write a Markdown table as hyperfine does
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) export_markdown: Option<PathBuf>,

    /// Also put the figures into this history, for `cold history`
    #[arg(long, value_name = "HISTORY.db", help_heading = "Results")]
    pub(crate) record: Option<PathBuf>,

    /// With --record: the commit that was measured [default: that of the directory's git repository]
    #[arg(long, value_name = "ID", requires = "record", help_heading = "Results")]
    pub(crate) commit: Option<String>,

    /// Write a picture of the runs: FILE.svg or FILE.html
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) plot: Vec<PathBuf>,
}
