//! How a start is prepared, run, recorded and ended: the flags that several commands share, so that one name
//! has one meaning.

use std::ffi::OsString;
use std::time::Duration;

use cold_bench::command::from_argv;
use cold_bench::config::{CommandSpec, Config, RunPolicy};
use cold_bench::ready::{HttpTarget, Ready};
use cold_model::bench::State;
use cold_model::recording::manifest::{READY_AT_EXIT, Tier};

use crate::exit::Failure;
use crate::values::{eviction, seconds, stream};

/// Untimed starts before a warm one.
pub(crate) const WARMUP: u32 = 3;
/// Quiet time between preparation and start in milliseconds.
pub(crate) const IDLE_GAP_MS: u64 = 100;

/// What holds where no flag says anything else.
const EVICT: &str = "auto";
const READY: &str = "exit";
const TIMEOUT: f64 = 300.0;
const GRACE: f64 = 5.0;
const STREAM: &str = "null";

/// How a start is recorded.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Recorded {
    /// How much to record: from A (everything) to D (least), or auto, the best that this machine allows
    #[arg(long, value_name = "TIER", default_value = "auto", ignore_case = true, value_parser = ["auto", "A", "B", "C", "D"])]
    tier: String,

    /// Show exactly which pages are needed: the kernel maps and reads no neighbours of a faulting page meanwhile
    /// (root; slows the whole machine down; put back afterwards)
    #[arg(long)]
    pub(crate) exact_need: bool,
}

impl Default for Recorded {
    /// As no flag is given.
    fn default() -> Self {
        Self { tier: "auto".into(), exact_need: false }
    }
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
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Start {
    /// What to evict before a cold start: all (caches of the whole machine; root), files (only those that the
    /// command uses), or auto (all where that is allowed, else files)
    #[arg(long, value_name = "HOW", default_value = EVICT, value_parser = ["auto", "all", "files"], help_heading = "State")]
    evict: String,

    /// Stop with exit code 5 if a cold start cannot be proved cold, page by page
    #[arg(long, help_heading = "State")]
    require_cold: bool,

    // As `help`, not as a comment: rustdoc takes `file:PATH` for an address.
    #[arg(
        long,
        value_name = "WHEN",
        default_value = READY,
        help_heading = "Start",
        help = "When a start is over: exit (the command and every process it started have ended), stdout:REGEX or stderr:REGEX (a line of output), port:N, unix:PATH (a socket), file:PATH, notify (sd_notify) or http://… (a 200 answer). A command that goes on is then ended"
    )]
    ready: String,

    /// Once it is ready, ask for this page (http://HOST:PORT/PATH): the start is over when the whole answer is there,
    /// and both times are told. Without --ready it is ready when the port of the page listens
    #[arg(long, value_name = "URL", help_heading = "Start")]
    first_request: Option<String>,

    /// Longest time for a start, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT, help_heading = "Start")]
    timeout: f64,

    /// Seconds from SIGTERM to SIGKILL when the command and its child processes are ended
    #[arg(long, value_name = "SECONDS", default_value_t = GRACE, help_heading = "Start")]
    grace: f64,

    /// Accept a start whose command fails
    #[arg(short, long, help_heading = "Start")]
    pub(crate) ignore_failure: bool,

    /// Standard input of the command: null, inherit or a file
    #[arg(long, value_name = "FROM", default_value = STREAM, help_heading = "Start")]
    input: String,

    /// Standard output and error of the command: null, pipe, inherit or a file
    #[arg(long, value_name = "TO", default_value = STREAM, help_heading = "Start")]
    output: String,
}

impl Default for Start {
    /// As no flag is given.
    fn default() -> Self {
        Self {
            evict: EVICT.into(),
            require_cold: false,
            ready: READY.into(),
            first_request: None,
            timeout: TIMEOUT,
            grace: GRACE,
            ignore_failure: false,
            input: STREAM.into(),
            output: STREAM.into(),
        }
    }
}

impl Start {
    /// Those of these flags that are not as by default, as they are typed for the same start elsewhere.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let usual = Self::default();
        let mut words: Vec<OsString> = Vec::new();
        let mut flag = |name: &str, value: &str, usual: &str| {
            if value != usual {
                words.extend([name.into(), value.into()]);
            }
        };
        flag("--evict", &self.evict, &usual.evict);
        flag("--ready", &self.ready, &usual.ready);
        flag("--first-request", self.first_request.as_deref().unwrap_or_default(), "");
        flag("--timeout", &self.timeout.to_string(), &usual.timeout.to_string());
        flag("--grace", &self.grace.to_string(), &usual.grace.to_string());
        flag("--input", &self.input, &usual.input);
        flag("--output", &self.output, &usual.output);
        for (name, set) in [("--require-cold", self.require_cold), ("--ignore-failure", self.ignore_failure)]
        {
            words.extend(set.then(|| name.into()));
        }
        words
    }

    /// What ready means, as recordings name it.
    pub(crate) fn ready_means(&self) -> String {
        match &self.first_request {
            Some(page) => format!("the first answer of {page}"),
            None if self.ready == READY => READY_AT_EXIT.to_owned(),
            None => self.ready.clone(),
        }
    }

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
        let first_request = self.first_request.as_deref().map(HttpTarget::parse).transpose();
        let first_request = first_request.map_err(|why| {
            Failure::usage(format!(
                "bad URL in --first-request {:?}: {why}",
                self.first_request.as_deref().unwrap_or_default()
            ))
        })?;
        let ready = match &first_request {
            Some(page) if self.ready == READY => Ready::Port(page.port()),
            _ => Ready::parse(&self.ready).map_err(|e| Failure::usage(e.to_string()))?,
        };
        Ok(Config {
            commands,
            states,
            runs,
            warmup: WARMUP,
            ready,
            first_request,
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        start: Start,
    }

    fn words(typed: &[&str]) -> Vec<OsString> {
        let typed = std::iter::once("cold").chain(typed.iter().copied());
        Cli::try_parse_from(typed).expect("parses").start.words()
    }

    #[test]
    fn what_was_typed_for_a_start_is_typed_again() {
        assert_eq!(words(&[]), [""; 0]);
        let all = [
            "--evict",
            "files",
            "--ready",
            "port:8099",
            "--first-request",
            "http://localhost:8099/a",
            "--timeout",
            "2.5",
            "--grace",
            "1",
            "--input",
            "/tmp/a b",
            "--output",
            "inherit",
            "--require-cold",
            "--ignore-failure",
        ];
        assert_eq!(words(&all), all);
        assert_eq!(words(&["-i", "--ready", "exit"]), ["--ignore-failure"]);
    }
}
