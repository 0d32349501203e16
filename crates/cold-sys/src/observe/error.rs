//! Why an observation could not be made. Crosses the pipe from the helper, hence plain numbers.

use std::io;
use std::path::PathBuf;

use cold_model::Shown as _;
use cold_model::path_text;
use serde::{Deserialize, Serialize};

/// Why an observation could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum ObserveError {
    /// An empty argument vector.
    #[error("no command to observe")]
    NoCommand,
    /// A NUL byte in an argument, the environment or the directory.
    #[error("an argument, variable or directory contains a NUL byte, which no command can be given")]
    Nul,
    /// Not in PATH.
    #[error("{command}: command not found in PATH")]
    NotFound {
        /// First word of the command, a name without a slash.
        command: String,
    },
    /// The kernel refused to run it.
    #[error("cannot run {}: {}", path.shown(), io::Error::from_raw_os_error(*errno))]
    Exec {
        /// The file as it was found in PATH or given with a slash.
        #[serde(with = "path_text")]
        path: PathBuf,
        /// Of execve(2); `EACCES` too where PATH has the file but it cannot be executed.
        errno: i32,
    },
    /// The working directory cannot be entered.
    #[error("cannot change to directory {}: {}", path.shown(), io::Error::from_raw_os_error(*errno))]
    Chdir {
        /// The directory that was asked for.
        #[serde(with = "path_text")]
        path: PathBuf,
        /// What chdir(2) answered.
        errno: i32,
    },
    /// Tracing is not allowed here.
    #[error(
        "cannot observe the command with ptrace: {}; check kernel.yama.ptrace_scope (0 and 1 allow it, 2 needs \
         CAP_SYS_PTRACE) and the container's seccomp profile",
        io::Error::from_raw_os_error(*errno)
    )]
    Denied {
        /// Of ptrace(2) when it was to attach to the new process.
        errno: i32,
    },
    /// The filter cannot be installed.
    #[error(
        "cannot install the seccomp filter for the observed start: {}; the kernel needs CONFIG_SECCOMP_FILTER, \
         and a container must not forbid seccomp()",
        io::Error::from_raw_os_error(*errno)
    )]
    Filter {
        /// What seccomp(2) answered.
        errno: i32,
    },
    /// A request to the kernel failed while following the tree.
    #[error("following the command failed: {}; it needs Linux 5.3 or later", io::Error::from_raw_os_error(*errno))]
    Trace {
        /// Of ptrace(2) or waitpid(2).
        errno: i32,
    },
    /// Anything else the kernel refused.
    #[error("cannot {action}: {}", io::Error::from_raw_os_error(*errno))]
    Os {
        /// As a verb phrase.
        action: String,
        /// What the kernel answered; `EIO` where it gave no number.
        errno: i32,
    },
    /// The command died before its program ran.
    #[error("the command was killed before its program ran; try again")]
    DiedEarly,
    /// The helper process is gone.
    #[error("the observing helper process ended without a result ({status}); its tree was killed with it")]
    HelperDied {
        /// Its exit code or signal, in words.
        status: String,
    },
    /// The helper and its caller do not understand each other.
    #[error("the observing helper process sent something unexpected: {detail}")]
    Protocol {
        /// What came, or why it cannot be read.
        detail: String,
    },
}

/// Result with [`ObserveError`].
pub(super) type Result<T> = std::result::Result<T, ObserveError>;

impl ObserveError {
    pub(super) fn os(action: &str, e: &io::Error) -> Self {
        Self::Os { action: action.to_owned(), errno: e.raw_os_error().unwrap_or(libc::EIO) }
    }
    pub(super) fn trace(e: &io::Error) -> Self {
        Self::Trace { errno: e.raw_os_error().unwrap_or(libc::EIO) }
    }
    pub(super) fn protocol(detail: impl std::fmt::Display) -> Self {
        Self::Protocol { detail: detail.to_string() }
    }
}
