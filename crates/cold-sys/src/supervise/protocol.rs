//! Messages between `cold` and the supervisor (`helper`).
//!
//! Arguments and environment do not travel here: they are the supervisor's own, so they need not be
//! UTF-8.

use std::path::PathBuf;

use cold_model::Nanos;
use serde::{Deserialize, Serialize};

/// From `cold` to the supervisor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Join these cgroup directories and get ready.
    Prepare {
        /// The program's file.
        program: PathBuf,
        /// Directories with a `cgroup.procs` file.
        cgroups: Vec<PathBuf>,
        /// Name (`comm`) of helpers that are not the program: their use counts, their end does not.
        helper: Option<String>,
        /// The command leads a process group of its own, which is stopped so.
        pauses: Option<Pauses>,
    },
    /// Start the command now.
    Go,
    /// End the tree: SIGTERM to every process, after the grace time SIGKILL.
    End {
        /// Time between the two; 0 means by force at once.
        grace: Nanos,
    },
}

/// How the command's process group is stopped (SIGSTOP) again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pauses {
    /// After so much running.
    pub after: Nanos,
    /// For so long; then it goes on (SIGCONT).
    pub length: Nanos,
}

/// From the supervisor to `cold`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SupervisorEvent {
    /// Waiting for the order to go.
    Ready,
    /// The command was started.
    Started {
        /// Process id of the command.
        pid: i32,
        /// Just before the clone, on `CLOCK_MONOTONIC`.
        at: Nanos,
    },
    /// Preparation or exec failed; nothing is running.
    Failed {
        /// What was attempted ("execute /x", "join cgroup /y").
        what: String,
        /// The kernel's answer.
        errno: i32,
    },
    /// The command's own process ended.
    MainEnded {
        /// When this was noticed, on `CLOCK_MONOTONIC`.
        at: Nanos,
        /// Raw wait status.
        status: i32,
        /// CPU time that it used itself, without its children.
        cpu: Option<Nanos>,
    },
    /// Every process of the tree is gone and was waited for.
    TreeGone {
        /// When the end of the last one that is no helper was noticed, on `CLOCK_MONOTONIC`.
        at: Nanos,
        /// What the tree used.
        usage: Usage,
    },
}

/// Resources used by the tree, summed over every process that was waited for (getrusage(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// User CPU time.
    pub user: Nanos,
    /// System CPU time.
    pub system: Nanos,
    /// Faults without input or output (`ru_minflt`).
    pub minor_faults: u64,
    /// Faults that had to wait for storage (`ru_majflt`).
    pub major_faults: u64,
    /// Bytes whose reading from block devices the tree caused (`ru_inblock`, 512-byte units).
    pub read_bytes: u64,
    /// Peak resident set of the largest process, in bytes.
    pub peak_memory: u64,
    /// The supervisor's own peak: a smaller `peak_memory` cannot be told from it.
    pub peak_memory_floor: u64,
    /// Processes waited for by the supervisor: the command and every orphan. (Others were waited for
    /// by their parents and are inside their figures.)
    pub reaped: u64,
    /// Processes that were alive when force had to be used.
    pub killed_by_force: u64,
    /// How often the command's group was stopped ([`Pauses`]).
    pub pauses: u64,
    /// For how long, in all.
    pub paused: Nanos,
    /// Whether the tree was ended on order (or because `cold` died) rather than by itself.
    pub ended: bool,
}
