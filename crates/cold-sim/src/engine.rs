//! Discrete events: programs compute, access files, wait for each other and for disks, on so many processors.
//!
//! - A [`PageCache`](crate::op::PageCache) says what an access reads and which page it waits for; the layout
//!   makes requests of it; a disk says when each is done; then the cache hears that the pages are there, and who
//!   waited goes on.
//! - Time passes for computing, for reading (the CPU time that requests and pages cost), for waiting. Each task's
//!   time from its beginning to the end is divided among the [`Kind`]s without a remainder.
//! - A helper that replays a plan is one more set of tasks ([`Replay`]).
//! - The end is the mark [`Step::Ready`], or else the end of the last task of the program.
//!
//! Simulating takes as long as there are steps, requests and, while more tasks compute than there are processors,
//! slices of a millisecond.
//!
//! The same input gives the same outcome, to the nanosecond. Start reading at [`run`], then `core.rs`.

mod cooling;
mod core;
mod flight;
mod input;
mod log;
mod outcome;
mod processors;
mod replay;
#[cfg(test)]
mod tests;

pub use self::core::run;
pub use input::{Costs, Event, Input, Machine, Step, Task, TaskStart};
pub use outcome::{Done, Error, FileReads, Filled, Kind, Outcome, Sent, TaskTimes, Times};
pub use replay::{Block, Blocks, Gate, PlanStep, Replay, helpers_open};
