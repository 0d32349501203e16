//! The flags of `cold spawn`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cli::TEMPLATE;

const EXAMPLES: &str = "Examples:
  cold spawn -- /bin/true                       starts per second, latency, what a start consists of
  cold spawn -n 5000 --extrapolate 30000 -- ./tool --log   does it get slower, and why?
  cold spawn --confirm -- ./tool --log          … and is what it leaves behind the cause?
  cold spawn --method all --parent-mb 0,256 -- /bin/true   fork copies the parent's page tables
  cold spawn --fail-if growth -- ./tool         a gate for CI
  cold spawn --watch -- make -j2                how much of a build is creating processes
";

const AFTER: &str = "\
The command is started one after the other, an empty program after each of them: what slows both is
the machine's drift and no growth. Its output goes nowhere, its input is empty.

Exit codes: 0 done; 1 failed, or the watched command failed; 2 wrong usage; 3 --fail-if holds;
            4 too few starts to judge that; 130 interrupted (what was measured until then is shown).";

/// Flags of `cold spawn`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    /// The command with its arguments, exactly as they are
    #[arg(last = true, value_name = "CMD ARG", required = true)]
    pub(crate) argv: Vec<OsString>,

    /// Timed starts of each method
    #[arg(short = 'n', long, value_name = "N", default_value_t = 2000, help_heading = "Starts")]
    pub(crate) starts: u32,

    /// Processes that start it at the same time
    #[arg(short, long, value_name = "J", default_value_t = 1, help_heading = "Starts")]
    pub(crate) jobs: u32,

    /// How to create processes: posix-spawn, vfork, fork, clone3 (into a cgroup), or all of them in turn
    #[arg(long, value_name = "HOW", default_value = "posix-spawn", value_parser = ["posix-spawn", "vfork", "fork", "clone3", "all"], help_heading = "Starts")]
    pub(crate) method: String,

    /// Touched memory that the starting process holds, in MiB; several sizes are measured in turn
    #[arg(long, value_name = "N[,N…]", default_value = "0", value_delimiter = ',', help_heading = "Starts")]
    pub(crate) parent_mb: Vec<u32>,

    /// That memory may be made of huge pages; otherwise it is not
    #[arg(long, requires = "parent_mb", help_heading = "Starts")]
    pub(crate) huge_pages: bool,

    /// Directory for the empty programs; must allow execution [default: the temporary directory]
    #[arg(long, value_name = "DIR", help_heading = "Starts")]
    pub(crate) scratch: Option<PathBuf>,

    /// Predict the cost of so many starts
    #[arg(long, value_name = "N", help_heading = "Growth")]
    pub(crate) extrapolate: Option<u64>,

    /// Record no start: growth is judged by time alone, and its cause stays unknown
    #[arg(long, help_heading = "Growth")]
    pub(crate) no_observe: bool,

    /// Repeat with what starts leave behind dropped before each of them: growth must vanish
    #[arg(long, conflicts_with = "watch", help_heading = "Growth")]
    pub(crate) confirm: bool,

    /// Exit with 3 if this holds: growth
    #[arg(long, value_name = "WHAT", value_parser = ["growth"], conflicts_with = "watch", help_heading = "Growth")]
    pub(crate) fail_if: Option<String>,

    /// Run the command once and tell of the processes that it creates (root)
    #[arg(long, conflicts_with_all = ["starts", "jobs", "method", "parent_mb", "extrapolate", "no_observe", "csv", "svg", "html"], help_heading = "Command trees")]
    pub(crate) watch: bool,

    /// Everything as one JSON document on stdout instead of text
    #[arg(long, help_heading = "Results")]
    pub(crate) json: bool,

    /// Write every start as a line of CSV
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) csv: Option<PathBuf>,

    /// Write a picture of the series
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) svg: Option<PathBuf>,

    /// Write a page with the picture and all figures
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) html: Option<PathBuf>,
}
