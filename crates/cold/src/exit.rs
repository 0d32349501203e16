//! Exit codes, and failures that know theirs.

use std::process::ExitCode;

/// How `cold` ends. The numbers are documented in `--help` and docs/reference/exit-codes.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    /// Something failed that has no code of its own.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// A gate (`--fail-if`) failed.
    GateFailed = 3,
    /// The evidence does not decide.
    Inconclusive = 4,
    /// The required state (cold, evicted, restored) could not be reached.
    StateNotReached = 5,
    /// Ctrl-C, or another request to end (128 + SIGINT, as shells expect).
    Interrupted = 130,
}

/// Ends this process at once, without undoing anything: the journal is for that.
#[allow(clippy::exit)] // the one place; asked for by a second signal
pub(crate) fn now(code: i32) -> ! {
    std::process::exit(code)
}

impl From<Exit> for ExitCode {
    fn from(e: Exit) -> Self {
        Self::from(e as u8)
    }
}

/// An error with its exit code and, where there is one, the next step.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Which code to end with.
    pub(crate) exit: Exit,
    /// What failed, on what, and why.
    pub(crate) error: anyhow::Error,
    /// What to do now.
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// A command line that cannot be carried out.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, error: anyhow::Error::msg(message.into()), hint: None }
    }
    /// Adds the next step.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(e: E) -> Self {
        Self { exit: Exit::Failed, error: e.into(), hint: None }
    }
}

/// Result of a command.
pub(crate) type Outcome = Result<Exit, Failure>;
