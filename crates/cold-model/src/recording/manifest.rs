//! `recording.json`: what was recorded, on what, from which state, with which losses and at what cost.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::bench::{Ending, Residual, State, Taint};
use crate::path_text;
use crate::{Bytes, Dev, Known, Nanos};

/// Identifies the format; the number is [`VERSION`].
pub const FORMAT: &str = "coldstart.recording";
/// Version of the format written by this program. All lower ones are read.
pub const VERSION: u32 = 1;

/// What `ready_means` says where ready is the end of the tree itself.
pub const READY_AT_EXIT: &str = "exit of the tree";

/// What the machine allowed to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Tier {
    /// BTF tracepoints with the page cache's fault events (Linux 6.12).
    A,
    /// BTF tracepoints without them (Linux 5.8).
    B,
    /// Perf events, no BPF: faults of the tree by address, no fills.
    C,
    /// The same for an ordinary user; kernel-mode faults are missing. What the kernel refuses even so is
    /// said in the notes.
    #[default]
    D,
    /// Not recorded here: made of another system's evidence, a trace of Windows. Faults that read and disk reads only;
    /// what was needed and already there is not told.
    Imported,
}

impl Tier {
    /// Every use of a page, every fill and every read of a device is seen when it happens.
    pub const fn sees_all(self) -> bool {
        matches!(self, Self::A | Self::B)
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::Imported => "imported",
        })
    }
}

/// What was followed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A command that was started, and its tree.
    #[default]
    Command,
    /// A process that already ran, and what it started from then on.
    Process {
        /// Process id that recording was attached to.
        pid: u32,
    },
    /// Every process of the machine.
    Machine,
}

/// The task that made a start ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachedBy {
    /// Its process.
    pub pid: u32,
    /// Its thread; `None`: one of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
}

/// Why the recording of what already ran ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The time that was asked for was over.
    Duration,
    /// A signal asked `cold` to end: SIGINT (Ctrl-C), SIGTERM or SIGHUP.
    Interrupt,
    /// The process that was followed ended.
    Exit,
}

/// Everything about a recording that is not in a table.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`]; anything else is not a recording.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Version of the program that wrote it.
    pub tool: String,
    /// The recorder ended in order. False: it was killed, and the tables end where it was.
    pub complete: bool,
    /// Bytes per page.
    pub page_bytes: u32,
    /// What could be recorded; decides which tables there can be.
    pub tier: Tier,
    /// What was followed.
    pub subject: Subject,
    /// The tables hold only what concerns this file (as [`crate::path_text`] writes it); `None`: they hold all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_file: Option<String>,
    /// The command, its arguments from argv\[0\] on; those of the process that was followed; empty for a
    /// whole machine.
    #[serde(with = "path_text::words")]
    pub command: Vec<OsString>,
    /// Working directory of the command, or of the process when the recording began.
    #[serde(with = "path_text")]
    pub directory: PathBuf,
    /// Digest of the environment: names and values hashed, so that two recordings can be compared
    /// without giving secrets away. Empty where it is nobody's (a whole machine) or could not be read.
    pub environment: String,
    /// `PATH`, `LD_LIBRARY_PATH` and other search paths of the environment, which explain misses.
    pub search_paths: BTreeMap<String, String>,
    /// Date and time of the start, UTC, RFC 3339.
    pub started_at: String,
    /// `CLOCK_MONOTONIC` of the start (just before the exec's clone), or of the recording's beginning.
    pub start: Nanos,
    /// `CLOCK_MONOTONIC` of ready; unknown where no command was started.
    pub ready: Option<Known<Nanos>>,
    /// With a first request, whose answer ready is: `CLOCK_MONOTONIC` of the moment when it could be made. `None`: none
    /// was made, or it was never ready for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serving: Option<Nanos>,
    /// What ready means, in words: [`READY_AT_EXIT`], or as it was asked for (`stdout:REGEX`).
    pub ready_means: String,
    /// Who made it ready, where that was told: who listens on the port, who sent the notice, whose output was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached_by: Option<ReachedBy>,
    /// `CLOCK_MONOTONIC` of the end of the recording.
    pub end: Nanos,
    /// How the command ended, or the process that was followed, if it did.
    pub ending: Option<Ending>,
    /// Why the recording ended, where no command was started.
    #[serde(default)]
    pub ended_by: Option<EndedBy>,
    /// The cache state asked for and what was proved of it.
    pub state: StartState,
    /// The machine it was recorded on.
    pub machine: RecordedMachine,
    /// Block devices, whole disks and those stacked on them.
    pub devices: Vec<Device>,
    /// File systems of the files in the recording.
    pub file_systems: Vec<FileSystem>,
    /// Faults were exact to the page (fault-around off) during the recording.
    pub exact_need: bool,
    /// The kernel's fault-around window in bytes during the recording, where it could be read.
    pub fault_around: Known<Bytes>,
    /// Huge pages of files that the whole machine mapped at once during the recording (`thp_file_mapped` of
    /// vmstat(5)): no event tells of them. `None`: not known.
    #[serde(default)]
    pub mapped_huge: Option<u64>,
    /// What user stacks were taken with.
    pub stacks: StackMethod,
    /// Events lost per class (`filemap`, `block`, …). Empty or all 0: nothing was lost.
    pub lost: BTreeMap<String, u64>,
    /// What recording cost.
    pub cost: Cost,
    /// The machine's own count of reads per device between start and end, as ground truth.
    pub disk_counters: Vec<DiskCounter>,
    /// What the reader has to know: missing tables with the reason, disturbances, blind file systems.
    pub notes: Vec<String>,
    /// What disqualifies the start as a measurement, in words for people.
    pub taints: Vec<String>,
    /// The same for programs; recordings of earlier versions have none.
    #[serde(default)]
    pub disqualified_by: Vec<Taint>,
    /// What others did to the CPUs while the command ran; `None` where no command was started, and in recordings of
    /// earlier versions.
    #[serde(default)]
    pub load: Option<Known<Load>>,
}

impl Manifest {
    /// Events lost in all.
    pub fn lost_events(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Ready is the end of the tree itself.
    pub fn is_ready_at_exit(&self) -> bool {
        self.ready_means == READY_AT_EXIT
    }

    /// The device of this number, whole or partition.
    pub fn device(&self, dev: Dev) -> Option<&Device> {
        self.devices.iter().find(|d| d.dev == dev)
    }

    /// The disk that it is, or is a part of; `None`: the recording does not describe it.
    pub fn whole_disk(&self, dev: Dev) -> Option<Dev> {
        self.device(dev).map(|d| d.partition_of.map_or(d.dev, |(whole, _)| whole))
    }

    /// What the start was waited for, as [`Manifest::ready_means`] says it.
    pub fn awaited(&self) -> Awaited<'_> {
        match self.ready_means.split_once(':') {
            Some(("stdout" | "stderr", _)) => Awaited::Output,
            Some(("file" | "unix", name)) => Awaited::Name(name),
            _ => Awaited::Other,
        }
    }
}

/// What a start was waited for, as far as it tells where to look for who made it ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited<'a> {
    /// A line on standard output or standard error.
    Output,
    /// A file or a socket of this name, as it was asked for.
    Name(&'a str),
    /// Its end, a port, a notice, an answer, or nothing that is known.
    Other,
}

/// What others did to the CPUs during a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Load {
    /// CPU time that there was: of all CPUs.
    pub capacity: Nanos,
    /// CPU time that processes outside the tree used.
    pub others: Nanos,
    /// CPU time that the hypervisor took.
    pub stolen: Nanos,
}

impl Load {
    /// The others' share of all CPU time, in percent.
    pub fn others_percent(&self) -> f64 {
        self.others.0 as f64 * 100.0 / self.capacity.0.max(1) as f64
    }

    /// The hypervisor's share, in percent.
    pub fn stolen_percent(&self) -> f64 {
        self.stolen.0 as f64 * 100.0 / self.capacity.0.max(1) as f64
    }
}

/// How user stacks were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StackMethod {
    /// Not at all.
    #[default]
    None,
    /// By following frame pointers.
    FramePointers,
    /// From a copy of the stack, by the unwind tables of the files.
    UnwindTables,
}

/// What the cache was to be like before a recorded start. A string in recordings, worded as [`State`] is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum WantedState {
    /// Nobody wrote it down.
    #[default]
    Unknown,
    /// As it happened to be: nothing was prepared.
    AsFound,
    /// Evicted, without a plan.
    Cold,
    /// After several starts.
    Warm,
    /// Another state of a benchmark.
    Other(String),
}

impl From<&str> for WantedState {
    fn from(text: &str) -> Self {
        match text {
            "" => Self::Unknown,
            "as found" => Self::AsFound,
            "cold" => Self::Cold,
            "warm" => Self::Warm,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl From<String> for WantedState {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&State> for WantedState {
    fn from(state: &State) -> Self {
        Self::from(state.to_string())
    }
}

impl From<WantedState> for String {
    fn from(state: WantedState) -> Self {
        state.to_string()
    }
}

impl fmt::Display for WantedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "",
            Self::AsFound => "as found",
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Other(state) => state,
        })
    }
}

/// State of the cache before the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StartState {
    /// What was prepared.
    pub wanted: WantedState,
    /// How it was made.
    pub method: String,
    /// Bytes of the file set that were checked page by page.
    pub checked: Bytes,
    /// What was cached all the same.
    pub residual: Option<Known<Residual>>,
}

impl StartState {
    /// The start was prepared as a cold one, without a plan.
    pub fn is_cold(&self) -> bool {
        self.wanted == WantedState::Cold
    }

    /// The start was prepared as a warm one.
    pub fn is_warm(&self) -> bool {
        self.wanted == WantedState::Warm
    }
}

/// The machine of a recording: what its times depend on beside disks and file systems.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RecordedMachine {
    /// `uname -r`; empty where it could not be read.
    pub kernel: String,
    /// Architecture the recorder was built for, by Rust's name for it (`x86_64`, `aarch64`).
    pub architecture: String,
    /// `model name` in `/proc/cpuinfo`; [`crate::figures::UNKNOWN_CPU`] where it says none.
    pub cpu: String,
    /// CPUs that the recorder could use: those online, less what affinity and cgroup quota forbid it.
    pub cpus: u32,
    /// `MemTotal` of `/proc/meminfo`; 0 where it could not be read.
    pub memory: Bytes,
    /// `PRETTY_NAME` of os-release(5); empty where there is none.
    pub os: String,
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Number of this device; partitions have their own.
    pub dev: Dev,
    /// The kernel's name for it (`vda`, `vda1`), as in `/proc/diskstats`.
    pub name: String,
    /// Model, where it has one.
    pub model: Option<String>,
    /// A disk with moving heads, as the kernel believes.
    pub rotational: Known<bool>,
    /// `read_ahead_kb` during the recording, in bytes.
    pub read_ahead: Known<Bytes>,
    /// What it was before, where the recorder itself turned it off to see exact needs, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_read_ahead: Option<Bytes>,
    /// `max_sectors_kb`, in bytes.
    pub max_request: Known<Bytes>,
    /// `max_segments`: pieces of memory that one request takes. Recordings of earlier versions do not know it.
    #[serde(default)]
    pub max_segments: Known<u32>,
    /// Scheduler in use.
    pub scheduler: Known<String>,
    /// Capacity in bytes.
    pub size: Known<Bytes>,
    /// For a partition: the whole disk. First sector of it in 512 bytes.
    pub partition_of: Option<(Dev, u64)>,
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystem {
    /// Device number of its superblock (`s_dev`), as mountinfo prints it.
    pub dev: Dev,
    /// Type as mountinfo prints it (`ext4`, `fuse.sshfs`).
    pub kind: String,
    /// Where it is mounted; the mount whose root is the file system's, where there is one.
    pub mounted_at: String,
    /// What is mounted.
    pub source: String,
    /// Mount and superblock options.
    pub options: String,
    /// Read-ahead of its backing device, in bytes (bdi `read_ahead_kb`).
    pub read_ahead: Known<Bytes>,
    /// Why its reads do not show as fills or device reads, where that is so (`tmpfs: …`).
    pub blind: Option<String>,
}

/// What recording cost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Per BPF program that ran: how often, and how long in all.
    pub programs: Vec<ProgramCost>,
    /// CPU time of the recorder itself while the command ran.
    pub recorder_cpu: Nanos,
    /// Raw events received.
    pub events: u64,
    /// Bytes of raw events.
    pub bytes: Bytes,
    /// Size of the kernel's buffers.
    pub buffers: Bytes,
}

impl Cost {
    /// Time of all runs of the BPF programs.
    pub fn in_programs(&self) -> Nanos {
        self.programs.iter().map(|p| p.time).sum()
    }
}

/// One BPF program's cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCost {
    /// Name of the program's function in the BPF object.
    pub name: String,
    /// How often it ran, all CPUs together.
    pub runs: u64,
    /// Time of all runs, estimated from those that were timed: without what the kernel spends to call it.
    pub time: Nanos,
}

/// Reads of a device as `/proc/diskstats` counted them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskCounter {
    /// Disk or partition; those of which nothing was read have no row.
    pub dev: Dev,
    /// Read requests completed.
    pub requests: u64,
    /// Bytes of these requests.
    pub bytes: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::State;

    #[test]
    fn the_state_is_written_in_the_words_that_it_always_had() {
        for (wanted, text) in [
            (WantedState::Unknown, ""),
            (WantedState::AsFound, "as found"),
            (WantedState::from(&State::Cold), "cold"),
            (WantedState::from(&State::Warm), "warm"),
            (WantedState::from(&State::Prefetched), "prefetched"),
            (WantedState::from(&State::Snapshot("/a".into())), "snapshot=/a"),
        ] {
            let state = StartState { wanted, ..StartState::default() };
            let written = serde_json::to_value(&state).expect("written");
            assert_eq!(written["wanted"], text);
            assert_eq!(serde_json::from_value::<StartState>(written).expect("read"), state);
        }
        let state = |text: &str| StartState { wanted: text.into(), ..StartState::default() };
        assert!(state("cold").is_cold() && !state("prefetched").is_cold() && state("warm").is_warm());
    }
}
