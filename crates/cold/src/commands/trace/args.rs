//! The flags of `cold trace`; those that prepare a start have the names and meanings of `cold bench`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cli::TEMPLATE;
use crate::start::{Recorded, Start};

const EXAMPLES: &str = "Examples:
  cold trace -- firefox-esr --headless -screenshot /tmp/p.png file:///tmp/page.html
  cold report firefox-esr.cold --html firefox.html   what it says, and as a page
  cold trace --state warm -o warm.cold -- python3 -c 'import json'
  cold trace --ready port:8080 -- ./server            until it listens, then it is ended
  cold trace --exact-need --stacks dwarf -- ./app     each touch, with the code that made it
  cold trace --attach 4711 --duration 10              what a running process reads
  cold trace --all --duration 30 -o login.cold        everybody, for a login or a service
";

const AFTER: &str = "\
Tiers: A every touch, fill, device read and stall (Linux 6.12, root); B without touches of cached
       pages (5.8); C perf events: faults only; D the same for an ordinary user. `cold doctor`
       tells which one this machine allows.

Exit codes: 0 recorded; 1 failed, or the command failed (its code is told; the recording is kept);
            2 wrong usage; 5 the state could not be reached; 130 interrupted (recording kept).";

/// Flags of `cold trace`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    /// The command with its arguments, exactly as they are
    #[arg(last = true, value_name = "CMD ARG", required_unless_present_any = ["attach", "all"])]
    pub(crate) argv: Vec<OsString>,

    /// Directory to write [default: from the program's name: firefox-esr.cold, firefox-esr-2.cold, …]
    #[arg(short, long, value_name = "NAME.cold", help_heading = "Recording")]
    pub(crate) output_directory: Option<PathBuf>,

    /// Replace a recording of that name
    #[arg(long, requires = "output_directory", help_heading = "Recording")]
    pub(crate) overwrite: bool,

    #[command(flatten, next_help_heading = "Recording")]
    pub(crate) recorded: Recorded,

    /// How to take user stacks: fp (frame pointers), dwarf (a copy, unwound later) or auto (by the tier)
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = ["auto", "fp", "dwarf"], help_heading = "Recording")]
    pub(crate) stacks: String,

    /// Take no user stacks (cheaper)
    #[arg(long, conflicts_with = "stacks", help_heading = "Recording")]
    pub(crate) no_stacks: bool,

    /// Size of the kernel's event buffer per CPU, e.g. 64Mi [default: by an estimate]
    #[arg(long, value_name = "SIZE", help_heading = "Recording")]
    pub(crate) buffer: Option<String>,

    /// Limit the tree's reads per device, e.g. iops=3000,bps=125M (root; averages over 0.1 s; not with as-is)
    #[arg(long, value_name = "LIMIT", conflicts_with_all = ["attach", "all"], help_heading = "State")]
    pub(crate) disk_limit: Option<String>,

    /// Follow a running process and what it starts from now on, instead of a command
    #[arg(long, value_name = "PID", conflicts_with_all = ["argv", "all", "exact_need", "Start"], help_heading = "Recording")]
    pub(crate) attach: Option<u32>,

    /// Follow every process of the machine
    #[arg(long, conflicts_with_all = ["argv", "exact_need", "Start"], help_heading = "Recording")]
    pub(crate) all: bool,

    /// End after this many seconds; without it --attach and --all end with Ctrl-C
    #[arg(long, value_name = "SECONDS", conflicts_with = "argv", help_heading = "Recording")]
    pub(crate) duration: Option<f64>,

    /// State of the cache before the start: cold, warm, or as-is
    #[arg(long, value_name = "STATE", default_value = "cold", value_parser = ["cold", "warm", "as-is"], conflicts_with_all = ["attach", "all"], help_heading = "State")]
    pub(crate) state: String,

    #[command(flatten)]
    pub(crate) start: Start,

    /// The summary as one JSON document on stdout instead of text
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
}
