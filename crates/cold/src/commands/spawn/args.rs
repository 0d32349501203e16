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
The command is started again and again, and an empty program after each start. What slows down both
is the machine, not growth. The command's output is dropped, its input is empty.

Exit codes: 0 done; 1 failed, or the watched command failed; 2 wrong usage; 3 --fail-if is true;
            4 too few starts to judge that; 130 interrupted (what was measured so far is shown).";

/// Flags of `cold spawn`.
#[derive(Debug, clap::Args)]
#[command(help_template = TEMPLATE, before_help = EXAMPLES, after_help = AFTER)]
pub(crate) struct Args {
    /// The command with its arguments, exactly as they are
    #[arg(last = true, value_name = "CMD ARG", required = true)]
    pub(crate) argv: Vec<OsString>,

    /// How many starts to measure, for each method
    #[arg(short = 'n', long, value_name = "N", default_value_t = 2000, help_heading = "Starts")]
    pub(crate) starts: u32,

    /// How many processes start it at the same time
    #[arg(short, long, value_name = "J", default_value_t = 1, help_heading = "Starts")]
    pub(crate) jobs: u32,

    /// How to create processes: posix-spawn, vfork, fork, clone3 (into a cgroup), or all of them in turn
    #[arg(long, value_name = "HOW", default_value = "posix-spawn", value_parser = ["posix-spawn", "vfork", "fork", "clone3", "all"], help_heading = "Starts")]
    pub(crate) method: String,

    /// Memory that the starting process has in use, in MiB; several sizes are measured in turn
    #[arg(long, value_name = "N[,N…]", default_value = "0", value_delimiter = ',', help_heading = "Starts")]
    pub(crate) parent_mb: Vec<u32>,

    /// Let that memory be made of huge pages
    #[arg(long, requires = "parent_mb", help_heading = "Starts")]
    pub(crate) huge_pages: bool,

    /// Directory for the empty programs; programs must be executable there [default: the temporary directory]
    #[arg(long, value_name = "DIR", help_heading = "Starts")]
    pub(crate) scratch: Option<PathBuf>,

    /// Predict the cost of this many starts
    #[arg(long, value_name = "N", help_heading = "Growth")]
    pub(crate) extrapolate: Option<u64>,

    /// Record no start: growth is then judged by time alone, and its cause stays unknown
    #[arg(long, help_heading = "Growth")]
    pub(crate) no_observe: bool,

    /// Check the cause: repeat, but drop what each start left behind before the next one; growth must vanish
    #[arg(long, conflicts_with = "watch", help_heading = "Growth")]
    pub(crate) confirm: bool,

    /// Exit with 3 if starts get slower and slower
    #[arg(long, value_name = "WHAT", value_parser = ["growth"], conflicts_with = "watch", help_heading = "Growth")]
    pub(crate) fail_if: Option<String>,

    /// Run the command once and show which processes it creates (root)
    #[arg(long, conflicts_with_all = ["starts", "jobs", "method", "parent_mb", "extrapolate", "no_observe", "csv", "svg", "html"], help_heading = "Command trees")]
    pub(crate) watch: bool,

    /// Print everything as one JSON document instead of text
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
