//! What the blocks of a raw log hold, and the facts beside the events.
//!
//! A log is a sequence of blocks of a kind and some bytes. Events come as the kernel or the BPF programs
//! wrote them, many to a block; everything else is a [`Fact`] in JSON. Facts are few, so their size does
//! not matter, and a reader of a recovered log can see them with any tool.

use std::collections::BTreeMap;

use cold_model::Dev;
use cold_model::recording::{FileKind, Manifest};
use serde::{Deserialize, Serialize};

use crate::waiting::KernelFunction;

/// Records of the BPF programs (`bpf/events.h`), one after the other.
pub const BPF: u16 = 1;
/// Records of perf events as the kernel wrote them, one after the other; those of one buffer in order.
pub const PERF: u16 = 2;
/// One [`Fact`] in JSON.
pub const FACT: u16 = 3;

/// Where blocks go.
pub trait Sink: std::fmt::Debug {
    /// Appends one block.
    fn append(&mut self, kind: u16, bytes: &[u8]) -> std::io::Result<()>;
    /// Time passes, and nothing may come for long: what is held back too long already is to be written.
    fn tick(&mut self) -> std::io::Result<()>;
}

impl Sink for Vec<(u16, Vec<u8>)> {
    fn append(&mut self, kind: u16, bytes: &[u8]) -> std::io::Result<()> {
        self.push((kind, bytes.to_vec()));
        Ok(())
    }
    fn tick(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A fact beside the events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// All that is known of the recording as a whole; a later one replaces an earlier one.
    Manifest(Box<Manifest>),
    /// This process is followed from here on.
    Follow {
        /// `CLOCK_MONOTONIC` in nanoseconds, read just before following began.
        at: u64,
        /// Process id; the pids of a log are those that the recorder's `/proc` shows.
        pid: u32,
        /// It belongs to the start itself. False for the supervisor, whose children do.
        itself: bool,
    },
    /// The perf events by whose numbers the records are understood.
    PerfEvents(Vec<PerfEvent>),
    /// The BPF records tell what is mapped where, no perf records.
    AreasByBpf,
    /// The recorder's mounts.
    Mounts(Vec<Mount>),
    /// A process that already ran when the recording began.
    Existing(Box<Existing>),
    /// A command line, read when an exec was noticed.
    CommandLine {
        /// When it was read.
        at: u64,
        /// Process that called exec.
        pid: u32,
        /// `/proc/PID/cmdline`, the program's own name first.
        arguments: Vec<String>,
    },
    /// What `stat` says of a file.
    File(Box<FileFact>),
    /// Pages of a file that were cached, as (first page, pages).
    Resident {
        /// Whether this was looked at after the start, not before it.
        after: bool,
        /// Device of the superblock, as in [`FileFact::dev`].
        dev: Dev,
        /// Inode number (`st_ino`).
        inode: u64,
        /// Ascending, no two adjacent.
        runs: Vec<(u64, u64)>,
    },
    /// The functions of the kernel by which its own stacks are understood.
    KernelFunctions(Vec<KernelFunction>),
    /// Events that were lost, per class; a later one replaces an earlier one.
    Lost(BTreeMap<String, u64>),
    /// Something the reader has to know.
    Note(String),
}

/// What the samples of a perf event mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PerfClass {
    /// Takes no samples; its records tell of mappings, names, forks and exits.
    SideBand,
    /// A page fault that was booked as minor.
    Minor,
    /// A page fault that was booked as major.
    Major,
}

/// One perf event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PerfEvent {
    /// Its number in the records.
    pub id: u64,
    /// What it counts.
    pub class: PerfClass,
    /// `PERF_SAMPLE_*` of its records.
    pub sample_type: u64,
}

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mount {
    /// Device of the superblock.
    pub dev: Dev,
    /// The directory of the file system that is mounted.
    pub root: String,
    /// Mount point, from the root directory of the recorder.
    pub point: String,
    /// File system type.
    pub kind: String,
    /// What is mounted.
    pub source: String,
    /// Mount and superblock options.
    pub options: String,
}

/// A process that already ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Existing {
    /// When it was looked at.
    pub at: u64,
    /// Process (thread group), not a kernel thread.
    pub pid: u32,
    /// Parent process at that time; 0: none in this pid namespace.
    pub parent: u32,
    /// The name of its first thread (`comm`).
    pub name: String,
    /// Its command line, where it could be read.
    pub arguments: Option<Vec<String>>,
    /// Its threads, with their names.
    pub threads: Vec<(u32, String)>,
    /// Its mappings of files, and what else may be executed.
    pub areas: Vec<MapsLine>,
    /// Device and inode of its executable, where known.
    pub executable: Option<(Dev, u64)>,
}

/// A mapping, as `/proc/PID/maps` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapsLine {
    /// First address, inclusive.
    pub start: u64,
    /// Address behind the last.
    pub end: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// May be executed.
    pub executable: bool,
    /// Device of the file's superblock; 0:0 for memory that is no file's.
    pub dev: Dev,
    /// Inode number; 0 for memory that is no file's.
    pub inode: u64,
    /// Path, without ` (deleted)`.
    pub path: String,
    /// It was deleted.
    pub deleted: bool,
}

/// What `stat` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFact {
    /// The path that was asked.
    pub path: String,
    /// Device of the superblock, as the mount of the path says.
    pub dev: Dev,
    /// Inode number (`st_ino`).
    pub inode: u64,
    /// Type; so far only regular files are written down.
    pub kind: FileKind,
    /// Size in bytes.
    pub size: u64,
    /// Modification time, nanoseconds since 1970.
    pub mtime_ns: i64,
}

/// Appends a fact.
pub fn fact(sink: &mut dyn Sink, fact: &Fact) -> std::io::Result<()> {
    sink.append(FACT, &serde_json::to_vec(fact)?)
}
