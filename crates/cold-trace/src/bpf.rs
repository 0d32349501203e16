//! The BPF recorder (tiers A and B): loads the programs, follows a tree, hands on raw events.
//!
//! [`available`] says what the kernel allows; [`BpfRecorder::attach`] loads and attaches everything,
//! [`BpfRecorder::follow`] then names whose tree it is, and [`BpfRecorder::finish`] ends it. Nothing is pinned:
//! programs and links hang on file descriptors and go with the process, however it dies.
//! [`BpfRecorder::finish_and_keep`] leaves them loaded for the next recording.

use std::collections::BTreeMap;
use std::io;

use cold_model::Bytes;
use cold_model::recording::manifest::{ProgramCost, Tier};

use crate::record::CallCount;

mod consumer;
mod knobs;
mod load;
mod loaded;
mod messages;
mod recorder;
mod support;
mod telling;

pub use loaded::Loaded;
pub use recorder::BpfRecorder;
pub use support::{Support, Why, available};

/// Room for events by default. A storm of 500,000 faults a second writes 60 MB a second, and the reader
/// comes by every 20 ms (1.2 MB); the rest is for a log whose disk makes it wait for a second.
pub const DEFAULT_BUFFER: Bytes = Bytes(64 << 20);

/// What stacks are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stacks {
    /// No stacks: an event tells what happened, not from where in the program.
    None,
    /// By frame pointers, at fills and stalls.
    #[default]
    FramePointers,
    /// The same, and at stalls the registers and up to 16 KiB of the stack, to be unwound later.
    Copy,
}

/// Which processes are the start's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// Those that [`BpfRecorder::follow`] names, and their descendants.
    #[default]
    Tree,
    /// All but this one.
    Machine,
}

/// How to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BpfOptions {
    /// [`Tier::A`] or [`Tier::B`]; `None` takes the best the kernel has.
    pub tier: Option<Tier>,
    /// Which processes count as the start's own.
    pub scope: Scope,
    /// Which user stacks are taken, and how.
    pub stacks: Stacks,
    /// Room for events between kernel and reader; rounded up to a power of two.
    pub buffer: Bytes,
    /// Every system call is counted, and lookups have stacks (the first of each thread, then some).
    pub count_calls: bool,
    /// Nothing is told before somebody is followed, and programs that would slow the machine down are attached only
    /// then, which takes some milliseconds: for a recording that may wait for hours.
    pub armed: bool,
}

impl Default for BpfOptions {
    fn default() -> Self {
        Self {
            tier: None,
            scope: Scope::Tree,
            stacks: Stacks::default(),
            buffer: DEFAULT_BUFFER,
            count_calls: false,
            armed: false,
        }
    }
}

/// Whom to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// Everything that this process forks from now on, but not itself: the supervisor.
    ChildrenOf(u32),
    /// This process, its descendants, and what they will fork.
    Running(u32),
}

/// Whether this kernel and our rights allow `tier` (A or B); loads none of the programs.
///
/// # Errors
/// [`Error`]: what stands against it.
pub fn possible(tier: Tier) -> Result<(), Error> {
    support::choose(&available()?, Some(tier)).map(drop)
}

/// What a recording cost and lost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BpfCosts {
    /// Lost events per class ([`crate::raw::LOSSES`]); only classes that lost some. Exact.
    pub lost: BTreeMap<String, u64>,
    /// Runs and time per program; only programs that ran. Runs are exact, times estimated from some of them.
    pub programs: Vec<ProgramCost>,
    /// CPU time of the thread that reads the events.
    pub recorder_cpu: cold_model::Nanos,
    /// Records taken out of the ring buffer, from attaching to the end.
    pub events: u64,
    /// Bytes of these records, their headers included.
    pub bytes: Bytes,
    /// Size of the buffer.
    pub buffer: Bytes,
    /// System calls that returned, by process and number; empty where they were not counted.
    pub calls: Vec<CallCount>,
}

/// Why recording failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel or our rights do not allow it.
    #[error(transparent)]
    Unavailable(#[from] Why),
    /// This kernel lacks what the tier needs.
    #[error("tier {tier} is not possible here: this kernel has no tracepoint {}", missing.join(", "))]
    Tier {
        /// The tier that was asked for.
        tier: Tier,
        /// Tracepoints that are missing.
        missing: Vec<&'static str>,
    },
    /// Tiers C and D are not recorded by BPF.
    #[error("tier {0} is not recorded by BPF")]
    NotBpf(Tier),
    /// A step of loading or attaching failed.
    #[error("cannot {action} the BPF programs: {source}{}", messages::tail(messages))]
    Load {
        /// The step, to follow "cannot": `open`, `load`, `attach`, …
        action: &'static str,
        /// What libbpf returned.
        source: libbpf_rs::Error,
        /// The last lines that libbpf said.
        messages: Vec<String>,
    },
    /// A map of the programs could not be read or written.
    #[error("cannot {action}: {source}")]
    Map {
        /// What was attempted.
        action: &'static str,
        /// What libbpf returned.
        source: libbpf_rs::Error,
    },
    /// Events could not be written to where they should go.
    #[error("cannot write the events: {0}")]
    Sink(#[source] io::Error),
    /// The reading thread ended by itself.
    #[error("the thread that reads the events ended before its time")]
    Reader,
    /// Other kernel interfaces.
    #[error(transparent)]
    System(#[from] cold_sys::Error),
}
