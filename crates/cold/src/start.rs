//! The flags by which `cold trace` and `cold prefetch` prepare, end and connect a start; they have the names
//! and meanings of those of `cold bench`.

use std::ffi::OsString;
use std::time::Duration;

use cold_bench::command::from_argv;
use cold_bench::config::{CommandSpec, Config, RunPolicy};
use cold_bench::ready::Ready;
use cold_model::bench::State;

use crate::exit::Failure;
use crate::values::{eviction, seconds, stream};

/// Starts before a warm one; as `cold bench`.
const WARMUP: u32 = 3;
/// Quiet time between preparation and start; as `cold bench`.
const IDLE_GAP: Duration = Duration::from_millis(100);

/// How a start is prepared, ended and connected.
#[derive(Debug, clap::Args)]
pub(crate) struct StartFlags {
    /// How to evict: auto, all (the whole machine; root), files (only what the command uses)
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = ["auto", "all", "files"], help_heading = "State")]
    pub(crate) evict: String,

    /// Stop with exit code 5 when a cold start cannot be proved cold
    #[arg(long, help_heading = "State")]
    pub(crate) require_cold: bool,

    // As `help`, not as a comment: rustdoc takes `file:PATH` for an address.
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "exit",
        help_heading = "Start",
        help = "What ends the start: exit, stdout:REGEX, stderr:REGEX, port:N, unix:PATH, file:PATH, notify, http://…"
    )]
    pub(crate) ready: String,

    /// Time limit of the start in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0, help_heading = "Start")]
    pub(crate) timeout: f64,

    /// Time between SIGTERM and SIGKILL when the tree is ended, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, help_heading = "Start")]
    pub(crate) grace: f64,

    /// Accept a command that fails
    #[arg(short, long, help_heading = "Start")]
    pub(crate) ignore_failure: bool,

    /// Standard input of the command: null, inherit or a file
    #[arg(long, value_name = "FROM", default_value = "null", help_heading = "Start")]
    pub(crate) input: String,

    /// Its output: null, pipe, inherit or a file
    #[arg(long, value_name = "TO", default_value = "null", help_heading = "Start")]
    pub(crate) output: String,
}

impl StartFlags {
    /// Starts of one command, from these states, one at a time. Without states it can be started as found.
    pub(crate) fn config(&self, argv: &[OsString], states: Vec<State>) -> Result<Config, Failure> {
        let (program, argv) = from_argv(argv.to_vec()).map_err(|e| Failure::usage(e.to_string()))?;
        Ok(Config {
            commands: vec![CommandSpec::new(program, argv)],
            states,
            runs: RunPolicy { min_runs: 1, max_runs: 1, max_time: None, precision: None },
            warmup: WARMUP,
            ready: Ready::parse(&self.ready).map_err(|e| Failure::usage(e.to_string()))?,
            eviction: eviction(&self.evict),
            require_cold: self.require_cold,
            seed: 0, // their order is the caller's
            timeout: seconds("--timeout", self.timeout)?,
            grace: seconds("--grace", self.grace)?,
            idle_gap: IDLE_GAP,
            disk_limit: None,
            ignore_failure: self.ignore_failure,
            input: stream("--input", &self.input)?,
            output: stream("--output", &self.output)?,
        })
    }
}
