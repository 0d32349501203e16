//! Starting a program many times from a process made for it, and timing each start.
//!
//! The *spawner* is a fresh, single-threaded process (`cold` itself, called with [`ARGUMENT`]): fork copies
//! the page tables of its parent, so the parent's size is a parameter of the experiment and must not be
//! that of `cold`. It has `/dev/null` as standard streams, starts what a schedule says one after the other,
//! waits for each, and reports all timings of the schedule at its end, so that nothing is written between
//! two starts. It is a child subreaper; when `cold` dies or gives up, it kills what descends from it.
//!
//! [`client`] is the side inside `cold`, [`serve`] the spawner's, `methods` the ways to create a process.

pub mod client;
mod fresh;
mod guard;
mod handover;
mod methods;
pub mod serve;

pub use fresh::Fresh;
pub use handover::Handover;

use std::path::PathBuf;

use cold_model::Nanos;
use serde::{Deserialize, Serialize};

/// First argument that makes `cold` a spawner.
pub const ARGUMENT: &str = "__spawn";

/// How a process is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// `clone(CLONE_VM | CLONE_VFORK)` and exec: the parent's memory is shared until the exec.
    Vfork,
    /// The C library's `posix_spawn`.
    PosixSpawn,
    /// `fork` and exec: the parent's page tables are copied.
    Fork,
    /// `clone3(CLONE_INTO_CGROUP | CLONE_VFORK)` and exec, straight into a cgroup v2. Memory is not shared,
    /// so page tables are copied as by fork; the parent waits for the exec.
    Clone3,
}

impl Method {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vfork => "vfork",
            Self::PosixSpawn => "posix-spawn",
            Self::Fork => "fork",
            Self::Clone3 => "clone3",
        }
    }
}

/// What is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The program's file; empty: no exec, the child exits at once (the cost of creation alone).
    pub path: PathBuf,
    /// Arguments, argv\[0\] first, as bytes: they need not be UTF-8.
    pub argv: Vec<Vec<u8>>,
    /// Variables set beside the spawner's own.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Directory it starts in; the spawner's own when none.
    pub cwd: Option<PathBuf>,
}

/// What the spawner is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// How processes are created.
    pub method: Method,
    /// What may be started; schedules name it by index.
    pub programs: Vec<Program>,
    /// Touched private memory the spawner holds, bytes.
    pub ballast: u64,
    /// It may be made of huge pages.
    pub huge_pages: bool,
    /// cgroup v2 directory for [`Method::Clone3`].
    pub cgroup: Option<PathBuf>,
    /// Renewed before each start of program 0, outside of its time.
    pub fresh: Vec<Fresh>,
}

/// One start, times of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Index of the program.
    pub program: usize,
    /// Just before the call that creates the process.
    pub began: Nanos,
    /// The parent went on: after the exec (vfork, `posix_spawn`, clone3), after the fork otherwise.
    pub created: Nanos,
    /// It was gone and waited for.
    pub ended: Nanos,
    /// As wait4(2) fills it in: exit code or signal, not yet told apart.
    pub status: i32,
    /// CPU time of it and the descendants it waited for, in user mode.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
    /// `ru_minflt` of it and the descendants it waited for.
    pub minor_faults: u64,
    /// `ru_majflt` of the same: faults that had to wait for storage.
    pub major_faults: u64,
}

#[derive(Debug, Serialize, Deserialize)]
enum SpawnOrder {
    Setup(Setup),
    Run { schedule: Vec<usize> },
    Trace { schedule: Vec<usize> },
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Ready,
    Timings(Vec<Timing>),
    Handovers(Vec<Handover>),
    Failed { what: String, errno: i32 },
}
