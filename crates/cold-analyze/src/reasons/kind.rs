//! The reasons.

use cold_model::recording::{OffCpuReason, StallCause};
use serde::Serialize;

/// Why a piece of the path to ready took its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Waited for the disk: a page of a mapped file.
    DiskFault,
    /// Waited for the disk: a read.
    DiskRead,
    /// Waited for the disk: directories and inodes, in a lookup.
    DiskLookup,
    /// Waited for the disk: loading a program.
    DiskExec,
    /// Waited for the disk: writing, or the file system's journal.
    DiskWrite,
    /// Waited for the disk, and it is not known for what.
    DiskOther,
    /// On a CPU, in the kernel, only because pages were missing: making requests, adding folios, ending faults.
    Reading,
    /// In a call that resolves a path, and found it.
    Lookup,
    /// In a call that resolves a path, and found nothing.
    LookupMissed,
    /// The kernel's work for processes: between the making of one and its program's first instruction, and after its end
    /// until whoever waits for it hears of that.
    Processes,
    /// In the loader, before the program's own code: libraries, relocations.
    Loader,
    /// The program's own work, and the kernel's for it.
    Program,
    /// Ready to run, while others had the CPUs.
    Runnable,
    /// Waited for a lock of the kernel.
    Lock,
    /// Slept because it asked to.
    Sleep,
    /// Waited for something outside the start: a timer, the network, another program.
    Outside,
    /// What passed then is not known.
    Unknown,
}

/// Kinds that have one remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// The disk, and work that only missing pages make.
    Disk,
    /// Paths were resolved: directories, names and inodes.
    Lookups,
    /// Making processes, the loader.
    Loading,
    /// The program's own work.
    Program,
    /// Others had the CPUs.
    Runnable,
    /// Locks, sleep, and what lies outside the start.
    Waiting,
    /// What passed then is not known.
    Unknown,
}

impl Kind {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 17] = [
        Self::DiskFault,
        Self::DiskRead,
        Self::DiskLookup,
        Self::DiskExec,
        Self::DiskWrite,
        Self::DiskOther,
        Self::Reading,
        Self::Lookup,
        Self::LookupMissed,
        Self::Processes,
        Self::Loader,
        Self::Program,
        Self::Runnable,
        Self::Lock,
        Self::Sleep,
        Self::Outside,
        Self::Unknown,
    ];

    /// The group under which reports sum it.
    pub const fn group(self) -> Group {
        match self {
            Self::DiskFault
            | Self::DiskRead
            | Self::DiskLookup
            | Self::DiskExec
            | Self::DiskWrite
            | Self::DiskOther
            | Self::Reading => Group::Disk,
            Self::Lookup | Self::LookupMissed => Group::Lookups,
            Self::Processes | Self::Loader => Group::Loading,
            Self::Program => Group::Program,
            Self::Runnable => Group::Runnable,
            Self::Lock | Self::Sleep | Self::Outside => Group::Waiting,
            Self::Unknown => Group::Unknown,
        }
    }

    /// As reports say it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::DiskFault => "waited for the disk: pages of mapped files",
            Self::DiskRead => "waited for the disk: reads",
            Self::DiskLookup => "waited for the disk: directories and inodes",
            Self::DiskExec => "waited for the disk: loading programs",
            Self::DiskWrite => "waited for the disk: writing and the journal",
            Self::DiskOther => "waited for the disk: not known for what",
            Self::Reading => "the kernel's work for missing pages",
            Self::Lookup => "looking up paths",
            Self::LookupMissed => "looking up paths that do not exist",
            Self::Processes => "making and ending processes",
            Self::Loader => "the loader: libraries and relocations",
            Self::Program => "the program's own work",
            Self::Runnable => "waited for a CPU",
            Self::Lock => "waited for a lock of the kernel",
            Self::Sleep => "slept because it asked to",
            Self::Outside => "waited for something outside the start",
            Self::Unknown => "not known",
        }
    }

    /// What a wait for storage was for.
    pub(super) const fn of_stall(cause: StallCause) -> Self {
        match cause {
            StallCause::Fault => Self::DiskFault,
            StallCause::Read => Self::DiskRead,
            StallCause::Lookup => Self::DiskLookup,
            StallCause::Exec => Self::DiskExec,
            StallCause::Write | StallCause::Journal => Self::DiskWrite,
            StallCause::OtherStorage => Self::DiskOther,
            StallCause::Lock => Self::Lock,
            StallCause::Other => Self::Unknown,
        }
    }

    /// A time off the CPU that no other task of the start ended.
    pub(super) const fn of_off_cpu(reason: OffCpuReason) -> Self {
        match reason {
            OffCpuReason::Storage => Self::DiskOther,
            OffCpuReason::Lock => Self::Lock,
            OffCpuReason::Event => Self::Outside,
            OffCpuReason::Sleep => Self::Sleep,
            OffCpuReason::Runnable => Self::Runnable,
            OffCpuReason::Other => Self::Unknown,
        }
    }
}

impl Group {
    /// As reports say it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Disk => "the disk",
            Self::Lookups => "looking up paths",
            Self::Loading => "starting and loading programs",
            Self::Program => "the program's own work",
            Self::Runnable => "waiting for a CPU",
            Self::Waiting => "locks, sleep and what lies outside the start",
            Self::Unknown => "not known",
        }
    }
}
