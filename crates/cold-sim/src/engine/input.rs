//! What programs do, and on what machine.

use cold_model::Cooling;

use crate::disk::Layout;
use crate::op::Op;

use super::replay::Replay;

/// Something that happens once: a lock is given, a message sent, a child started, or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Event(pub u32);

/// What a task does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Computes for so many nanoseconds of a processor.
    Compute(u64),
    /// Does something with a file.
    Access(Op),
    /// Lets those go on who wait for the event, now or later. A second time it does nothing.
    Signal(Event),
    /// Waits for an event that has not happened yet.
    Await(Event),
    /// Sleeps for so many nanoseconds: a timer, or something outside the start that takes its time.
    Sleep(u64),
    /// The start is ready: here the simulation ends.
    Ready,
}

/// When a task begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStart {
    /// At the beginning.
    AtOnce,
    /// When the event happens (a clone, a gate).
    On(Event),
}

/// A thread with all that it does, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// When it begins.
    pub start: TaskStart,
    /// What it does, in order.
    pub steps: Vec<Step>,
}

/// CPU time that reading takes from the task that reads, beyond what it computes for itself and beside what passes while
/// the disk works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// Of each request: made, sent, completed. Nanoseconds.
    pub request_ns: u64,
    /// Of each page: allocated, put into the cache, marked. Nanoseconds.
    pub page_ns: u64,
    /// Of each wait: falling asleep, waking up, the fault or call a second time. Nanoseconds.
    pub wait_ns: u64,
    /// What work takes longer after a wait, by the wait's length.
    pub cooling: Cooling,
}

impl Costs {
    /// Reading takes no CPU time.
    pub const NONE: Self = Self { request_ns: 0, page_ns: 0, wait_ns: 0, cooling: Cooling::NONE };
}

impl Default for Costs {
    /// Measured on a virtual machine with Linux 6.18 (docs/concepts/simulation.md says how). Each
    /// request that finds its device idle, and each interrupt, is an exit to the hypervisor there. Of the 35 to 53 µs of
    /// CPU time that a waiting read takes there, about half passes between the driver and the request's end, where it delays
    /// nobody; on a loop device 9 to 16 µs are left of it. What long waits cost differs from machine to machine more than
    /// by a little: nothing, where nobody has measured it.
    fn default() -> Self {
        Self { request_ns: 4_500, page_ns: 900, wait_ns: 10_000, cooling: Cooling::NONE }
    }
}

/// What it runs on, besides disks and cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Processors, at least 1.
    pub processors: usize,
    /// What reading costs them.
    pub costs: Costs,
}

/// A start that is to be simulated.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The program's threads, of all its processes.
    pub tasks: &'a [Task],
    /// A helper that reads ahead by a plan. It begins at once; its [`Replay::gate`] is an event that tasks can
    /// begin on.
    pub replay: Option<&'a Replay>,
    /// Where the files lie.
    pub layout: &'a Layout,
}
