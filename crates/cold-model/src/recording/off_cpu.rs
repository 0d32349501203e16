//! When tasks did not run, and who ended that.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Why a task was off the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OffCpuReason {
    /// It waited for storage.
    Storage,
    /// It waited for a lock of the kernel.
    Lock,
    /// In a system call, for what another task, a timer or a network does: pipe, socket, futex, poll, a child's end.
    Event,
    /// It asked to sleep for some time.
    Sleep,
    /// For nothing but a CPU: it was preempted, or let others run.
    Runnable,
    /// None of these, or not known.
    Other,
}

/// An interval in which a task did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffCpu {
    /// When the task left the CPU.
    pub began: Nanos,
    /// When it was woken; from then on it waited for a CPU. `None`: not seen, or it was runnable all the time.
    pub woken: Option<Nanos>,
    /// When it ran again.
    pub ended: Nanos,
    /// Process of the task.
    pub pid: u32,
    /// Its thread id.
    pub tid: u32,
    /// Why it was off the CPU.
    pub reason: OffCpuReason,
    /// Number of the system call in progress; `None`: none was, or it is not known.
    pub system_call: Option<u32>,
    /// Thread id of the task that woke it, or made it: a new task's first interval lasts until it first runs.
    /// `None`: an interrupt did (a timer, a device), or it is not known.
    pub waker: Option<u32>,
}
