//! What `cold bench` measures: runs, their states, proofs and taints, and the report that holds them.
//!
//! This is the documented shape of `cold bench --json` (docs/formats/bench-json.md). Statistics are
//! computed from the runs on read and repeated in the document for convenience.

use std::fmt;
use std::path::PathBuf;

use crate::Shown as _;
use crate::observed::Misses;
use serde::{Deserialize, Serialize};

use crate::{Bytes, Known, Nanos, path_text};

/// Identifies the document and its version.
pub const SCHEMA: &str = "coldstart.bench/1";

/// The cache state a run starts from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Evicted, and proved absent.
    Cold,
    /// As cold, then started through the launcher with its plan.
    Prefetched,
    /// As cold, with this read-ahead (`read_ahead_kb`) of the disks during the start, which is put back after it.
    ReadAhead(Bytes),
    /// Evicted, then started once.
    Light,
    /// Started several times before; sham eviction of a decoy.
    Warm,
    /// The cache holds exactly what a saved snapshot says.
    Snapshot(#[serde(with = "path_text")] PathBuf),
}

impl State {
    /// Whether nothing of the command's files may be cached before it: cold, with or without a plan, whatever is read
    /// ahead.
    pub fn begins_cold(&self) -> bool {
        matches!(self, Self::Cold | Self::Prefetched | Self::ReadAhead(_))
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cold => f.pad("cold"),
            Self::Prefetched => f.pad("prefetched"),
            Self::ReadAhead(window) => f.pad(&format!("read-ahead {window}")),
            Self::Light => f.pad("light"),
            Self::Warm => f.pad("warm"),
            Self::Snapshot(p) => f.pad(&format!("snapshot={}", p.shown())),
        }
    }
}

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It exited with this code.
    Code(i32),
    /// A signal that was not ours killed it.
    Signal(i32),
    /// It was ended by us after it was ready, as asked.
    Ended,
    /// It was ended by us because the time limit was over.
    TimedOut,
}

impl Ending {
    /// From a status as wait(2) packs it: the lowest seven bits hold the signal (0: it exited, 0x7f: it was only
    /// stopped), the next byte the exit code.
    pub const fn of_wait_status(status: i32) -> Self {
        match status & 0x7f {
            0 | 0x7f => Self::Code(status >> 8 & 0xff),
            signal => Self::Signal(signal),
        }
    }
}

/// Pages of the file set that were already cached when the run started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Residual {
    /// Cached bytes of the file set.
    pub bytes: Bytes,
    /// Bytes of files whose residency the kernel does not tell.
    pub unknown_bytes: Bytes,
    /// Largest contributors first, at most 20.
    pub files: Vec<ResidualFile>,
    /// Cached bytes of files that were left as they are on purpose, where only the program's own file had to be absent;
    /// `bytes` is of that one alone then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Bytes>,
}

impl Residual {
    /// Who holds the files, each once, those who hold most first; of what they hold of the files named.
    pub fn held(&self) -> Vec<Held> {
        most_first(self.files.iter().flat_map(ResidualFile::held), |a, b| Bytes(a.0.saturating_add(b.0)))
    }

    /// The names of [`Residual::held`].
    pub fn holders(&self) -> Vec<String> {
        self.held().into_iter().map(|h| h.holder).collect()
    }
}

/// A process that keeps pages of a file in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// `name[pid]`.
    pub holder: String,
    /// Cached bytes that its page tables hold.
    pub bytes: Known<Bytes>,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.bytes {
            Known::Value(bytes) => write!(f, "{} {bytes}", self.holder),
            Known::Unknown { .. } => f.write_str(&self.holder),
        }
    }
}

/// Every holder once, those that hold most first and those of whom it is not known last; what is told of one
/// several times is put together by `join`.
pub fn most_first(all: impl IntoIterator<Item = Held>, join: impl Fn(Bytes, Bytes) -> Bytes) -> Vec<Held> {
    let mut each: Vec<Held> = Vec::new();
    for held in all {
        match each.iter_mut().find(|h| h.holder == held.holder) {
            None => each.push(held),
            Some(known) => match (&mut known.bytes, held.bytes) {
                (Known::Value(a), Known::Value(b)) => *a = join(*a, b),
                (unknown @ Known::Unknown { .. }, b @ Known::Value(_)) => *unknown = b,
                (_, Known::Unknown { .. }) => {}
            },
        }
    }
    each.sort_by_key(|h| std::cmp::Reverse(h.bytes.value().copied()));
    each
}

/// One file that stayed cached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResidualFile {
    /// Absolute path, as the file set that was looked at has it.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// Cached pages of this file in bytes, whole pages.
    pub bytes: Bytes,
    /// Processes that hold it, as `name[pid]`.
    pub holders: Vec<String>,
    /// The same with what they hold; reports of older versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
}

impl ResidualFile {
    fn held(&self) -> Vec<Held> {
        with_bytes(&self.held, &self.holders)
    }
}

/// Holders with what they hold; of older reports just the names.
pub fn with_bytes(held: &[Held], names: &[String]) -> Vec<Held> {
    let unknown = |name: &String| Held { holder: name.clone(), bytes: Known::unknown("it was not recorded") };
    if held.is_empty() { names.iter().map(unknown).collect() } else { held.to_vec() }
}

/// A cold start is marked with whatever stayed cached, however little; beyond this share of what a start uses it
/// does not count as cold. On a busy machine other processes touch the C library's hottest pages within
/// milliseconds, and evicting single files cannot take it from them at all: it is 9% of what a small
/// Python start uses.
pub const STILL_COLD: f64 = 0.10;

/// Steal below this share of the machine's time is normal for a virtual machine. (At 5% a quarter of
/// all starts of Python, 130 of 530, were replaced on an idle machine of a shared host.)
pub const STEAL_PERCENT: f64 = 10.0;
/// Others using this share of all CPUs, or more, compete with the start.
pub const BUSY_PERCENT: f64 = 50.0;

/// Whether a tree that ended after `last` went on after the end of its first process: for 5 ms and for 5% of the
/// start at least, as processes that end together are waited for one after the other.
pub fn is_outlived(first: Nanos, last: Nanos) -> bool {
    let after = last.saturating_sub(first);
    after.0 >= 5_000_000 && after.0 >= last.0 / 20
}

/// A fact, fixed before looking at the time, that disqualifies a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Taint {
    /// Pages of the file set stayed cached in a run that should be cold.
    NotCold {
        /// How much stayed.
        bytes: Bytes,
        /// Who holds it, as `name[pid]`.
        holders: Vec<String>,
        /// The same with what they hold of the files, most first; reports of older versions have none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        held: Vec<Held>,
    },
    /// Pages of the file set were missing in a run that should be warm.
    NotWarm {
        /// How much was missing.
        bytes: Bytes,
    },
    /// The launcher did not replay the plan in a run that should be prefetched.
    NotPrefetched {
        /// What it did instead.
        why: String,
    },
    /// The setting of this state could not be made.
    NotSet {
        /// Why it could not be made.
        why: String,
    },
    /// The cache does not hold what the snapshot of this state says.
    NotRestored {
        /// Pages that should be cached and are not.
        missing: Bytes,
        /// Pages that are cached and should not be.
        extra: Bytes,
        /// Files that changed since the snapshot, or whose residency is unknown.
        files: u64,
    },
    /// Somebody dropped caches during the run (vmstat `drop_pagecache`, `drop_slab`).
    CachesDropped {
        /// Writes to `drop_caches` during the run: the larger of the two counters' increases.
        times: u64,
    },
    /// Memory was reclaimed during the run (vmstat `pgsteal_*`).
    PagesReclaimed {
        /// Pages reclaimed on the whole machine during the run, or cached pages of the file set that went, if more.
        pages: u64,
    },
    /// Pages that had been cached before had to be read again (vmstat `workingset_refault_file`).
    Refaults {
        /// Increase of the counter over the run, of the whole machine.
        pages: u64,
    },
    /// Other processes read from the same devices.
    ForeignReads {
        /// Bytes that were not read by the tree.
        bytes: Bytes,
        /// Busiest readers where known, as `name[pid]`.
        readers: Vec<String>,
    },
    /// The hypervisor took CPU time away.
    Steal {
        /// Share of the machine's time in percent.
        percent: f64,
    },
    /// A file of the set changed since it was observed.
    FileSetChanged {
        /// The first such file.
        #[serde(with = "path_text")]
        path: PathBuf,
    },
    /// The command failed.
    Failed {
        /// How it ended. An exit code of 0: it ended well, but was never ready.
        ending: Ending,
    },
    /// The command did not get ready, or did not end, in time.
    TimedOut {
        /// The benchmark's time limit of one start.
        limit: Nanos,
    },
    /// Other processes used a large share of the CPUs.
    BusyMachine {
        /// CPU time of others as a share of the machine's time in percent.
        percent: f64,
    },
}

impl Taint {
    /// A stable name for scripts, equal to `kind` in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotCold { .. } => "not_cold",
            Self::NotWarm { .. } => "not_warm",
            Self::NotPrefetched { .. } => "not_prefetched",
            Self::NotSet { .. } => "not_set",
            Self::NotRestored { .. } => "not_restored",
            Self::CachesDropped { .. } => "caches_dropped",
            Self::PagesReclaimed { .. } => "pages_reclaimed",
            Self::Refaults { .. } => "refaults",
            Self::ForeignReads { .. } => "foreign_reads",
            Self::Steal { .. } => "steal",
            Self::FileSetChanged { .. } => "file_set_changed",
            Self::Failed { .. } => "failed",
            Self::TimedOut { .. } => "timed_out",
            Self::BusyMachine { .. } => "busy_machine",
        }
    }
}

/// One start, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Index into [`Report::series`].
    pub series: usize,
    /// Round, from 0. (Starts that only warm the cache are no runs.)
    pub round: u32,
    /// Place in the order of all runs of this report, from 0.
    pub sequence: u32,
    /// From just before the clone to ready (the figure of merit); with a first request to the whole answer.
    pub ready: Nanos,
    /// With a first request: from just before the clone to the moment when it could be made.
    #[serde(default = "not_asked_first")]
    pub serving: Known<Nanos>,
    /// From just before the clone to the end of the whole tree; unknown when we ended it.
    pub exit: Known<Nanos>,
    /// From just before the clone to the end of the process that was started, which the tree may outlive; unknown
    /// when we ended it.
    #[serde(default = "not_recorded")]
    pub first_exit: Known<Nanos>,
    /// User CPU time of the tree.
    pub user: Nanos,
    /// System CPU time of the tree.
    pub system: Nanos,
    /// Faults that needed a page not in the cache (first pass; a wait for a page in flight is not one).
    pub major_faults: u64,
    /// All other faults.
    pub minor_faults: u64,
    /// Bytes the tree read from storage.
    pub read_bytes: Known<Bytes>,
    /// Read requests to the devices of the file set.
    pub read_requests: Known<u64>,
    /// Time the tree's tasks waited for storage.
    pub stall: Known<Nanos>,
    /// Peak resident memory of the largest process.
    pub peak_memory: Known<Bytes>,
    /// Bytes of the program's own code that were cached after the start, in whole pages: of the sections of its
    /// file that hold code.
    #[serde(default = "not_asked")]
    pub code: Known<Bytes>,
    /// What was cached before the start.
    pub residual: Known<Residual>,
    /// Processes of the tree that `cold` waited for: the first one and orphans. How many there are is
    /// [`Command::processes`].
    pub processes: u64,
    /// Processes that did not end on SIGTERM and were killed.
    pub killed_by_force: u64,
    /// How the command ended.
    pub ending: Ending,
    /// What disqualifies this run; empty for a good one.
    pub taints: Vec<Taint>,
}

/// What reports of earlier versions do not say.
fn not_recorded() -> Known<Nanos> {
    Known::unknown("the version of cold that wrote this did not look")
}

/// What reports do not say of serving, unless a first request is made.
fn not_asked_first() -> Known<Nanos> {
    Known::unknown("no first request was made")
}

/// What reports do not say of code, unless two layouts of it are compared.
fn not_asked() -> Known<Bytes> {
    Known::unknown("only a comparison of layouts looks at it")
}

impl Run {
    /// The end of the process that was started, where that was not the end of the start: the tree went on, and ready
    /// was the end of the whole of it.
    pub fn outlived(&self) -> Option<Nanos> {
        let by_exit = self.exit.value() == Some(&self.ready);
        let first = *self.first_exit.value().filter(|_| by_exit)?;
        is_outlived(first, self.ready).then_some(first)
    }

    /// With a first request: from the moment when it could be made to the whole answer.
    pub fn answer(&self) -> Known<Nanos> {
        self.serving.clone().map(|serving| self.ready.saturating_sub(serving))
    }

    /// Whether the run enters the statistics.
    pub fn counts(&self) -> bool {
        self.taints.is_empty()
    }
}

/// What reports of earlier versions do not say of counts, as [`not_recorded`] of times.
fn not_recorded_count() -> Known<u64> {
    Known::unknown("the version of cold that wrote this did not count them")
}

/// A file that a command's start uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedFile {
    /// Absolute path as the kernel printed it during the observed start, without symbolic links.
    #[serde(with = "path_text")]
    pub path: PathBuf,
    /// Size of the file when the observed start first used it.
    pub bytes: Bytes,
}

/// A command of the comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Its name: as given by `--command-name`, else the command line.
    pub name: String,
    /// The command line as typed (after parameters were put in).
    pub line: String,
    /// Parameters by name.
    pub parameters: Vec<(String, String)>,
    /// Regular files that the observed start executed, mapped or opened.
    pub files: Known<u64>,
    /// Their sizes summed.
    pub file_bytes: Known<Bytes>,
    /// Path resolutions that failed in the observed start.
    pub misses: Known<u64>,
    /// Processes of the observed start. (A run counts those only that its supervisor waited for: a parent within the
    /// tree waits for its children itself.)
    #[serde(default = "not_recorded_count")]
    pub processes: Known<u64>,
    /// These files, by path; `None` in reports of earlier versions, and where they are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_names: Option<Vec<UsedFile>>,
    /// Directories in which most of them failed, the largest number first; bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed_in: Option<Vec<Misses>>,
    /// Name of the plan that its prefetched starts follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Notes on the observed start (setuid programs not followed, slowdown, …).
    pub notes: Vec<String>,
}

/// All runs of one command in one state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Index into [`Report::commands`].
    pub command: usize,
    /// Cache state that each of its runs starts from.
    pub state: State,
}

/// Facts about the machine that belong beside the figures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MeasuredMachine {
    /// `uname -r`; empty where it could not be read.
    pub kernel: String,
    /// CPU model and count.
    pub cpu: String,
    /// Memory in bytes.
    pub memory: Bytes,
    /// Block devices of the file set: name, `read_ahead_kb`, `max_sectors_kb`, scheduler, rotational.
    pub devices: Vec<String>,
    /// How pages were evicted.
    pub eviction: String,
    /// What the device list cannot show: files on file systems without a block device.
    pub notes: Vec<String>,
}

/// A whole `cold bench`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA`]; a document with another is no report that this version reads.
    pub schema: String,
    /// Version of `cold`.
    pub version: String,
    /// Start, RFC 3339.
    pub started: String,
    /// Seed of the order and of every bootstrap.
    pub seed: u64,
    /// The machine on which all runs were made.
    pub machine: MeasuredMachine,
    /// Commands that are compared, in the order given; [`Series::command`] counts in this list.
    pub commands: Vec<Command>,
    /// Series: every command in every state.
    pub series: Vec<Series>,
    /// Why the benchmark ended before every series had its runs, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Every run, also tainted ones, in the order they were made.
    pub runs: Vec<Run>,
}

impl Report {
    /// The runs of a series that count, in order.
    pub fn counted(&self, series: usize) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |r| r.series == series && r.counts())
    }
    /// A name for a series: the state alone with one command, else `name (state)`.
    pub fn series_name(&self, series: usize) -> String {
        let Some(s) = self.series.get(series) else { return format!("series {series}") };
        match self.commands.get(s.command) {
            Some(c) if self.commands.len() > 1 => format!("{} ({})", c.name, s.state),
            _ => s.state.to_string(),
        }
    }
}
