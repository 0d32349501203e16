//! What to measure and how: the command line as plain values.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use cold_model::bench::State;
use cold_model::order::Text;

use crate::ready::{HttpTarget, Ready};

/// One command of the comparison, with everything resolved.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// Name in reports.
    pub name: String,
    /// The command line as a person would type it.
    pub line: String,
    /// The program's file.
    pub program: PathBuf,
    /// Arguments, argv\[0\] first.
    pub argv: Vec<OsString>,
    /// Parameters that were put in, by name.
    pub parameters: Vec<(String, String)>,
    /// Shell line to run before each start.
    pub prepare: Option<String>,
    /// Shell line to run after each start.
    pub conclude: Option<String>,
    /// Shell line to run once before the first start of this command.
    pub setup: Option<String>,
    /// Shell line to run once at the end, also after a failure.
    pub cleanup: Option<String>,
    /// Parts of the program's file that hold code, of which each run tells how much is cached after it
    /// ([`cold_model::bench::Run::code`]); none: it is not asked.
    pub code: Vec<Text>,
    /// How it is started with its plan; needed for [`State::Prefetched`] only.
    pub launcher: Option<Launcher>,
}

impl CommandSpec {
    /// A command with its arguments and nothing else. `program` is its file, `argv` begins with its name.
    pub fn new(program: PathBuf, argv: Vec<OsString>) -> Self {
        let line = crate::command::line_of(&argv);
        Self {
            name: line.clone(),
            line,
            program,
            argv,
            parameters: Vec::new(),
            prepare: None,
            conclude: None,
            setup: None,
            cleanup: None,
            code: Vec::new(),
            launcher: None,
        }
    }
}

/// A program that reads what a plan says and then becomes the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The launcher's executable file, started in place of the command's.
    pub program: PathBuf,
    /// Its arguments, argv\[0\] first; the command's own follow, argv\[0\] first.
    pub arguments: Vec<OsString>,
    /// Name of the plan, for the report.
    pub plan: String,
    /// What it reads (its own file, the plan, the files of the plan): evicted and proved absent as the
    /// command's own files are. Those that are not there are left out.
    pub files: Vec<PathBuf>,
    /// Where it enters what it did ([`cold_plan::history`]), a record per start.
    pub history: PathBuf,
    /// Name (`comm`) of the process it leaves beside the command: no part of the tree whose end may be
    /// waited for, though its reads are the start's.
    pub helper: String,
}

/// How to get pages out of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    /// `All` where that is allowed, else `Files`.
    Auto,
    /// Page cache, dentries and inodes of the whole machine, also pages mapped by sleeping processes.
    All,
    /// Only the pages of the command's file set.
    Files,
    /// Only the pages of the command's program; of what else it uses nothing may go missing.
    Program,
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunPolicy {
    /// Counted runs per series at least.
    pub min_runs: u32,
    /// Counted runs per series at most.
    pub max_runs: u32,
    /// No new round after this time.
    pub max_time: Option<Duration>,
    /// Stop when every series' interval is this narrow: half its width relative to the median.
    pub precision: Option<f64>,
}

/// Where a standard stream of the command goes or comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stream {
    /// `/dev/null`.
    Null,
    /// The terminal, or whatever `cold` has.
    Inherit,
    /// A pipe that `cold` empties (programs that notice `/dev/null`).
    Pipe,
    /// A file: read for input; for output created, or emptied, at each start.
    File(PathBuf),
}

/// A limit on the tree's reads from each device of its file set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskLimit {
    /// Read operations per second.
    pub iops: Option<u64>,
    /// Bytes read per second.
    pub bps: Option<u64>,
}

/// A whole benchmark.
#[derive(Debug, Clone)]
pub struct Config {
    /// Commands to compare; relative gates without a baseline refer to the first.
    pub commands: Vec<CommandSpec>,
    /// The states each is measured in.
    pub states: Vec<State>,
    /// When to stop.
    pub runs: RunPolicy,
    /// Untimed starts since the last eviction that make a program warm.
    pub warmup: u32,
    /// What ready means.
    pub ready: Ready,
    /// A page to ask for once it is ready; then the start is over when the whole answer is there.
    pub first_request: Option<HttpTarget>,
    /// How to evict.
    pub eviction: Eviction,
    /// Stop with an error when a run that should be cold is not.
    pub require_cold: bool,
    /// Seed of the order and the bootstraps.
    pub seed: u64,
    /// Time limit of one start.
    pub timeout: Duration,
    /// Time between SIGTERM and SIGKILL when the tree is ended.
    pub grace: Duration,
    /// Quiet time between preparation and start, the same for every state.
    pub idle_gap: Duration,
    /// Throttle of the tree's reads.
    pub disk_limit: Option<DiskLimit>,
    /// Count runs whose command fails.
    pub ignore_failure: bool,
    /// Standard input of the commands.
    pub input: Stream,
    /// Standard output and error of the commands.
    pub output: Stream,
}
