//! How a start is prepared, run, recorded and ended: the flags that several commands share, so that one name
//! has one meaning.

use std::ffi::OsString;
use std::time::Duration;

use cold_bench::command::from_argv;
use cold_bench::config::{CommandSpec, Config, RunPolicy};
use cold_bench::ready::Ready;
use cold_model::bench::State;
use cold_model::recording::manifest::Tier;

use crate::exit::Failure;
use crate::values::{eviction, seconds, stream};

/// Untimed starts before a warm one.
pub(crate) const WARMUP: u32 = 3;
/// Quiet time between preparation and start in milliseconds.
pub(crate) const IDLE_GAP_MS: u64 = 100;

/// How a start is recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct Recorded {
    /// How much to record: auto (the best this machine allows), A, B, C or D
    #[arg(long, value_name = "TIER", default_value = "auto", ignore_case = true, value_parser = ["auto", "A", "B", "C", "D"])]
    tier: String,

    /// Make touches exact: map and read nothing around faults (root; slower, machine-wide, put back)
    #[arg(long)]
    pub(crate) exact_need: bool,
}

impl Recorded {
    /// The tier that is wanted; `None`: the best.
    pub(crate) fn tier(&self) -> Option<Tier> {
        match self.tier.to_ascii_uppercase().as_str() {
            "A" => Some(Tier::A),
            "B" => Some(Tier::B),
            "C" => Some(Tier::C),
            "D" => Some(Tier::D),
            _ => None,
        }
    }
}

/// Flags of one start.
#[derive(Debug, clap::Args)]
pub(crate) struct Start {
    /// How to evict: auto, all (the whole machine; root), files (only what the command uses)
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = ["auto", "all", "files"], help_heading = "State")]
    evict: String,

    /// Stop with exit code 5 when a cold start cannot be proved cold
    #[arg(long, help_heading = "State")]
    require_cold: bool,

    // As `help`, not as a comment: rustdoc takes `file:PATH` for an address.
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "exit",
        help_heading = "Start",
        help = "What ends a start: exit, stdout:REGEX, stderr:REGEX, port:N, unix:PATH, file:PATH, notify, http://…"
    )]
    pub(crate) ready: String,

    /// Time limit of a start in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, help_heading = "Start")]
    timeout: f64,

    /// Time between SIGTERM and SIGKILL when the tree is ended, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, help_heading = "Start")]
    grace: f64,

    /// Accept a command that fails
    #[arg(short, long, help_heading = "Start")]
    pub(crate) ignore_failure: bool,

    /// Standard input of the command: null, inherit or a file
    #[arg(long, value_name = "FROM", default_value = "null", help_heading = "Start")]
    input: String,

    /// Its output: null, pipe, inherit or a file
    #[arg(long, value_name = "TO", default_value = "null", help_heading = "Start")]
    output: String,
}

impl Start {
    /// Starts of one command, from these states, one at a time. Without states it can be started as found.
    pub(crate) fn single(&self, argv: &[OsString], states: Vec<State>) -> Result<Config, Failure> {
        let (program, argv) = from_argv(argv.to_vec()).map_err(|e| Failure::usage(e.to_string()))?;
        let once = RunPolicy { min_runs: 1, max_runs: 1, max_time: None, precision: None };
        self.config(vec![CommandSpec::new(program, argv)], states, once)
    }

    /// These flags with what each command has of its own; the rest as by default.
    pub(crate) fn config(
        &self,
        commands: Vec<CommandSpec>,
        states: Vec<State>,
        runs: RunPolicy,
    ) -> Result<Config, Failure> {
        Ok(Config {
            commands,
            states,
            runs,
            warmup: WARMUP,
            ready: Ready::parse(&self.ready).map_err(|e| Failure::usage(e.to_string()))?,
            eviction: eviction(&self.evict),
            require_cold: self.require_cold,
            seed: 0,
            timeout: seconds("--timeout", self.timeout)?,
            grace: seconds("--grace", self.grace)?,
            idle_gap: Duration::from_millis(IDLE_GAP_MS),
            disk_limit: None,
            ignore_failure: self.ignore_failure,
            input: stream("--input", &self.input)?,
            output: stream("--output", &self.output)?,
        })
    }
}
