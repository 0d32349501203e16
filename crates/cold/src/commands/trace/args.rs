//! The flags of `cold trace`; those that prepare a start have the names and meanings of `cold bench`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cli::TEMPLATE;
use crate::start::{Recorded, Start};

const EXAMPLES: &str = "Examples:
  cold trace -- firefox-esr --headless -screenshot /tmp/p.png file:///tmp/page.html
  cold report firefox-esr.cold --html firefox.html   what it says, and as a page
  cold trace --state warm -o warm.cold -- python3 -c 'import json'
  cold trace --ready port:8080 -- ./server            ready when it listens; then it is ended
  cold trace --exact-need --stacks dwarf -- ./app     exact pages, with the code that needed them
  cold trace --attach 4711 --duration 10              what a running process reads
  cold trace --all --duration 30 -o login.cold        all processes, for a login or a service
  cold trace --only-file vm.mem --exact-need -- ./vmm    the pages of one file, in their order
";

const AFTER: &str = "\
Tiers: A sees every page that is needed (touch) or comes into the cache (fill), every disk read and
       every wait for storage (stall): Linux 6.12, root. B the same without buffered reads of cached
       pages: Linux 5.8, root. C page faults only: root. D page faults of your own processes.
       `cold doctor` says which one you get here.

Exit codes: 0 recorded; 1 failed, or the command failed (its code is shown; the recording is kept);
            2 wrong usage; 5 the state could not be reached; 130 interrupted (it is kept).";

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

    /// How to record the program's call stacks: fp (frame pointers), dwarf (copied, unwound later) or auto (by the
    /// tier)
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = ["auto", "fp", "dwarf"], help_heading = "Recording")]
    pub(crate) stacks: String,

    /// Record no call stacks (costs less)
    #[arg(long, conflicts_with = "stacks", help_heading = "Recording")]
    pub(crate) no_stacks: bool,

    /// Keep only what concerns this file, e.g. a virtual machine's memory that a monitor maps; without call stacks
    #[arg(long, value_name = "FILE", help_heading = "Recording")]
    pub(crate) only_file: Option<PathBuf>,

    /// Size of the event buffer per CPU, e.g. 64Mi; larger if events were lost [default: estimated]
    #[arg(long, value_name = "SIZE", help_heading = "Recording")]
    pub(crate) buffer: Option<String>,

    /// Limit how fast the command and its child processes read from each disk, e.g. iops=3000,bps=125M (root;
    /// averaged over 0.1 s; not with as-is)
    #[arg(long, value_name = "LIMIT", conflicts_with_all = ["attach", "all"], help_heading = "State")]
    pub(crate) disk_limit: Option<String>,

    /// Record a running process and what it starts from now on, instead of a command
    #[arg(long, value_name = "PID", conflicts_with_all = ["argv", "all", "exact_need", "Start"], help_heading = "Recording")]
    pub(crate) attach: Option<u32>,

    /// Record every process of the machine
    #[arg(long, conflicts_with_all = ["argv", "exact_need", "Start"], help_heading = "Recording")]
    pub(crate) all: bool,

    /// End after this many seconds; without it --attach and --all end with Ctrl-C
    #[arg(long, value_name = "SECONDS", conflicts_with = "argv", help_heading = "Recording")]
    pub(crate) duration: Option<f64>,

    /// State of the cache before the start: cold, warm, or as-is (evict nothing)
    #[arg(long, value_name = "STATE", default_value = "cold", value_parser = ["cold", "warm", "as-is"], conflicts_with_all = ["attach", "all"], help_heading = "State")]
    pub(crate) state: String,

    #[command(flatten)]
    pub(crate) start: Start,

    /// Print the summary as one JSON document instead of text
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,
}
