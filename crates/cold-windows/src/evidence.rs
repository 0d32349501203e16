//! What a trace of Windows tells about starts, whatever kind of file it was read from: processes, threads, images,
//! disk reads and hard faults, with names in place of numbers. [`Builder`] joins what arrives in the order of time;
//! names may come last.

mod activity;
mod builder;
mod lives;
mod names;
mod tree;

use std::collections::{BTreeMap, HashMap};

pub use activity::Activity;
pub use builder::{Builder, FaultEvent as RawFault, Named, ReadEvent as RawRead};
pub use tree::{Tree, Wanted, WhyNot};

/// Row of [`Evidence::files`].
pub type FileId = u32;

/// Everything that one trace told. Times are nanoseconds from the beginning of the trace; what began before it has
/// negative ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// The system that was traced.
    pub system: System,
    /// When the trace ended, ns.
    pub ended: i64,
    /// Paths with `/` in place of `\`, drive letters where the trace tells them. Two spellings of one name that differ
    /// in case only are one file, spelt as it came first.
    pub files: Vec<String>,
    /// In the order in which they were first seen.
    pub processes: Vec<Process>,
    /// In the order in which they were first seen.
    pub threads: Vec<Thread>,
    /// Programs and libraries in address spaces, in the order of time.
    pub images: Vec<Image>,
    /// Disk reads in the order of their completion.
    pub reads: Vec<Read>,
    /// Hard faults in the order of their ends.
    pub faults: Vec<Fault>,
    /// What programs read by `ReadFile` and its kin, already in memory or not; in the order of time.
    pub file_reads: Vec<FileRead>,
    /// Events and buffers lost, by what they are.
    pub lost: BTreeMap<String, u64>,
    /// What the reader has to know.
    pub notes: Vec<String>,
    /// Rows of [`Self::processes`] with each id, in their order.
    by_pid: HashMap<u32, Vec<usize>>,
}

/// What a trace tells of the system that wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct System {
    /// Build number of Windows.
    pub build: Option<u32>,
    /// Number of logical processors.
    pub processors: Option<u32>,
    /// When the trace began: 100 ns since 1601-01-01 UTC (`FILETIME`).
    pub started: Option<u64>,
}

/// A process' life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Process id; Windows uses one again when its process is gone.
    pub pid: u32,
    /// Process that made it. `None`: not told.
    pub parent: Option<u32>,
    /// Name of its program, without directory.
    pub image: String,
    /// Command line; empty where it is not told.
    pub command: String,
    /// When it began. `None`: before the trace.
    pub began: Option<i64>,
    /// When it ended. `None`: it did not while the trace ran.
    pub ended: Option<i64>,
    /// Exit status, if it ended and the trace tells it.
    pub status: Option<i32>,
}

/// A thread's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Thread id.
    pub tid: u32,
    /// Id of the process.
    pub pid: u32,
    /// When it began. `None`: before the trace.
    pub began: Option<i64>,
    /// When it ended. `None`: it did not while the trace ran.
    pub ended: Option<i64>,
}

/// A program or library that came into an address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image {
    /// When. `None`: it was there before the trace.
    pub at: Option<i64>,
    /// Process; 0 for the kernel.
    pub pid: u32,
    /// Address of its first byte.
    pub base: u64,
    /// Bytes of address space.
    pub size: u64,
    /// The file that it was mapped from.
    pub file: FileId,
}

/// A disk read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// When the partition manager began it. `None`: not told.
    pub began: Option<i64>,
    /// When it was complete.
    pub completed: i64,
    /// Number of the disk.
    pub disk: u32,
    /// First byte on the disk. `None`: not told.
    pub offset: Option<u64>,
    /// Bytes read.
    pub bytes: u32,
    /// File that it was read for. `None`: not told.
    pub file: Option<FileId>,
    /// Thread that asked. `None`: not told (before Windows 8).
    pub tid: Option<u32>,
    /// Its process. `None`: not told.
    pub pid: Option<u32>,
}

/// A fault that read from a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// When it began.
    pub began: i64,
    /// When it was over.
    pub ended: i64,
    /// First byte in the file that was read.
    pub offset: u64,
    /// Bytes that were read: the whole cluster, of which one page was wanted.
    pub bytes: u32,
    /// File. `None`: its name is not told.
    pub file: Option<FileId>,
    /// Thread that faulted.
    pub tid: u32,
    /// Its process. `None`: not told.
    pub pid: Option<u32>,
}

/// What a program read of a file by a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRead {
    /// When it asked.
    pub at: i64,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes that it asked for.
    pub bytes: u32,
    /// File. `None`: its name is not told.
    pub file: Option<FileId>,
    /// Thread that asked.
    pub tid: u32,
    /// Id of the process.
    pub pid: u32,
}

impl Evidence {
    /// Name of a file.
    pub fn name(&self, file: FileId) -> &str {
        self.files.get(file as usize).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests;
