//! The answer: one [`Analysis`] per recording. `cold report --json` prints it as it stands.
//!
//! Everything but the checks counts what happened from the start to ready (to the end of the recording
//! where ready is not known). Byte counts are of whole pages, none beyond the end of a file. *needed* =
//! pages with at least one touch, each once; *read* = pages filled by the start's tree, each once, pages
//! that were written excepted; *unused* = read but not touched, metadata excepted, whose use no tier sees;
//! *cached* = touched but filled by nobody, so already in the cache. Times are lengths in nanoseconds; points in
//! time count from the start of the command.

pub mod compare;
mod linked;
mod suggestion;

use std::collections::BTreeMap;

use cold_model::recording::manifest::{EndedBy, Load, Tier};
use cold_model::recording::{FileIdx, FillCause, LookupKind, StackIdx, StallCause};
use cold_model::{Bytes, Known, Nanos};
use serde::Serialize;

use crate::usage::Usage;

pub use linked::{DataSymbol, DataUse, EnteredFunction, FirstEntries, OrderGain, OrderRead};
pub use suggestion::{Suggestion, SuggestionId};

/// Everything the reports say about one recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// The line above everything.
    pub headline: Headline,
    /// Per file, the costliest first (stall time, then bytes read).
    pub files: Vec<FileUse>,
    /// Indexes into `files`: libraries that were read but hardly needed, most unused bytes first.
    pub hardly_needed: Vec<usize>,
    /// Per section of an ELF file, where layouts were given.
    pub sections: Vec<SectionUse>,
    /// Per function, where layouts with symbols were given; the costliest first, bounded.
    pub symbols: Vec<SymbolUse>,
    /// Functions in the order in which traced starts of the same build entered them, per file; the longest waited for
    /// first.
    pub first_entries: Vec<FirstEntries>,
    /// Per data section of an ELF file (`.data`, `.rodata`, `.data.rel.ro` and their parts), where layouts were given.
    pub data: Vec<DataUse>,
    /// Failed lookups grouped by what searched, most first.
    pub misses: Vec<MissGroup>,
    /// What ran in front of the program; `None`: nothing, or that is not known.
    pub in_front: Option<InFront>,
    /// Files read from end to end, those that took longest first.
    pub whole_reads: Vec<WholeRead>,
    /// What the program's language loaded, the longest first.
    pub packages: Vec<PackageUse>,
    /// Stall time by stack, longest first.
    pub stacks: Vec<StackWait>,
    /// What would help, largest expected effect first.
    pub suggestions: Vec<Suggestion>,
    /// Facts that hold or not, with their figures: what the recording can be trusted for.
    pub checks: Vec<Check>,
    /// Per row of the recording's files what became of its pages up to ready: for pictures, which must not find it by
    /// a rule of their own.
    #[serde(skip)]
    pub usage: Vec<Usage>,
}

/// A recording of what already ran: it has neither a start nor ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RecordedSpan {
    /// From the moment when all was attached to its end.
    pub lasted: Nanos,
    /// What ended it; `None`: the recorder was killed.
    pub ended_by: Option<EndedBy>,
}

impl std::fmt::Display for RecordedSpan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let until = match self.ended_by {
            Some(EndedBy::Duration) => ", the time that was asked for",
            Some(EndedBy::Interrupt) => ", until it was interrupted",
            Some(EndedBy::Exit) => ", until the process ended",
            None => "",
        };
        write!(f, "{}{until}", self.lasted)
    }
}

/// The main figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Headline {
    /// The command, quoted for a shell; or what was followed.
    pub subject: String,
    /// Tier of the recording.
    pub tier: Tier,
    /// Start to ready.
    pub ready: Known<Nanos>,
    /// Start to the end of the tree's last process, where ready means something else than that; `None`
    /// also where a process ran on, or nothing was started.
    pub ended: Option<Nanos>,
    /// Start to the end of the first process, where ready is the end of the whole tree and that went on after it.
    pub first_ended: Option<Nanos>,
    /// Of what already ran, how long it was recorded; `None` for a command.
    pub recorded: Option<RecordedSpan>,
    /// Time in which at least one task of the tree waited for storage (union of the intervals).
    pub waited: Known<Nanos>,
    /// Sum of all tasks' waits for storage.
    pub waited_sum: Known<Nanos>,
    /// Time the first process' first thread waited for storage.
    pub waited_main: Known<Nanos>,
    /// Pages touched, each once; those of `needed_upper` included.
    pub needed: Known<Bytes>,
    /// Of `needed`, the part that is only an upper bound (mapped around a fault).
    pub needed_upper: Known<Bytes>,
    /// Read into the page cache by the tree.
    pub read: Known<Bytes>,
    /// Read into the page cache by others, from files the tree touched.
    pub read_by_others: Known<Bytes>,
    /// Read by the tree, not needed.
    pub unused: Known<Bytes>,
    /// Where reads by system call are not seen: what was needed through mappings.
    pub mapped: Option<MappedNeed>,
    /// Where fills have no reader: what came into the cache meanwhile, of the files that were looked at.
    pub came_in: Option<Bytes>,
    /// Needed, and cached before.
    pub cached: Known<Bytes>,
    /// Device requests made by the tree.
    pub requests: Known<u64>,
    /// Their mean size.
    pub mean_request: Known<Bytes>,
    /// Their mean time in the device, issue to completion.
    pub mean_service: Known<Nanos>,
    /// Their mean time in the queue before that.
    pub mean_queueing: Known<Nanos>,
    /// Requests made by others, on the same devices.
    pub requests_by_others: Known<u64>,
    /// Of `read`, what is metadata of file systems.
    pub metadata: Known<Bytes>,
    /// Read past the cache (`O_DIRECT`), not part of `read`; of files whose reads were waited for.
    pub direct: Known<Bytes>,
    /// Made new in the cache by writes: not read.
    pub written: Known<Bytes>,
    /// Pages the tree filled again after they had been filled once (not part of `read`).
    pub refilled: Known<Bytes>,
    /// Of `waited_sum`, waits of which neither file, lookup nor request is known.
    pub unattributed: Known<Nanos>,
    /// Bytes filled per cause, by the tree.
    pub causes: BTreeMap<FillCause, Bytes>,
    /// Path resolutions of the tree.
    pub lookups: Known<u64>,
    /// Of `lookups`, those that found nothing there; refusals are none.
    pub misses: Known<u64>,
    /// Regular files that the tree executed, mapped or opened: those that `cold bench` counts.
    pub files: Known<u64>,
    /// Those of them of which pages were needed.
    pub files_needed: Known<u64>,
    /// Processes of the tree.
    pub processes: Known<u64>,
    /// What the recording holds from after ready, not counted above; `None`: nothing, or ready is unknown.
    pub after_ready: Option<AfterReady>,
    /// Events lost per class; empty when none.
    pub lost: BTreeMap<String, u64>,
    /// The recorder ended in order.
    pub complete: bool,
    /// What others did to the CPUs during the start; `None`: nobody looked.
    pub load: Option<Known<Load>>,
    /// Notes and taints that belong beside the figures.
    pub notes: Vec<String>,
}

impl Headline {
    /// Most of the waiting was other tasks': the first thread may have waited for them, in a pipe, a futex or `wait`.
    pub fn main_waits_for_others(&self) -> bool {
        let known = self.waited.value().zip(self.waited_main.value());
        known.is_some_and(|(waited, main)| waited.0 > 0 && main.0 < waited.0 / 2)
    }

    /// Why what was read was read: each cause with its bytes, most first. Pages that were made new for a write were not
    /// read.
    pub fn read_because_of(&self) -> Vec<(FillCause, Bytes)> {
        let read = self.causes.iter().filter(|(cause, bytes)| **cause != FillCause::Write && bytes.0 > 0);
        let mut list: Vec<_> = read.map(|(cause, bytes)| (*cause, *bytes)).collect();
        list.sort_by_key(|(cause, bytes)| (std::cmp::Reverse(*bytes), *cause));
        list
    }

    /// What was needed for certain and at most, where the two differ.
    pub fn needed_between(&self) -> Option<MappedNeed> {
        let (most, upper) = self.needed.value().zip(self.needed_upper.value().filter(|b| b.0 > 0))?;
        Some(MappedNeed { at_least: most.saturating_sub(*upper), at_most: *most })
    }
}

/// What a start needed of the files that it mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MappedNeed {
    /// Pages that faulted.
    pub at_least: Bytes,
    /// With those that may have been mapped around them.
    pub at_most: Bytes,
}

/// What was recorded after ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AfterReady {
    /// Bytes filled by the tree, refills included.
    pub read: Bytes,
    /// Device requests of the tree.
    pub requests: u64,
    /// Sum of all tasks' waits for storage.
    pub waited_sum: Nanos,
}

/// The strongest use that the tree made of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reached {
    /// Executed: a program, a script, or what interprets it.
    Executed,
    /// Mapped into memory.
    Mapped,
    /// Read by system calls.
    Read,
    /// Only looked up or listed.
    LookedUp,
    /// Not by the tree.
    ByOthers,
}

/// One file's part in the start. Where the headline's figure is unknown because the tier has no such
/// table, the same figure here is 0 and means nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileUse {
    /// Its row in the recording.
    pub file: FileIdx,
    /// Its path, or what is known of it (`unknown file 8:1 inode 77`).
    pub path: String,
    /// Size of the file, where known.
    pub size: Option<Bytes>,
    /// Pages touched, each once; those of `needed_upper` included.
    pub needed: Bytes,
    /// Of these, only known as an upper bound.
    pub needed_upper: Bytes,
    /// Pages filled by the tree, each once; written ones excepted.
    pub read: Bytes,
    /// Pages read but not needed.
    pub unused: Bytes,
    /// Pages needed that were in the cache before.
    pub cached: Bytes,
    /// Pages filled by others and not by the tree.
    pub read_by_others: Bytes,
    /// Pages the tree filled again.
    pub refilled: Bytes,
    /// Pages the tree read past the cache (`O_DIRECT`): neither needed in it nor read into it.
    pub direct: Bytes,
    /// Device requests that brought pages of it.
    pub requests: u64,
    /// Stalls charged to it.
    pub stalls: u64,
    /// Length of these stalls, summed over tasks; what lies after ready is cut off.
    pub stall: Nanos,
    /// First touch or lookup, from the start.
    pub first_use: Option<Nanos>,
    /// How it was reached.
    pub reached: Reached,
    /// Number of separate runs of needed pages (1: one contiguous range).
    pub fragments: u64,
    /// Bytes filled per cause.
    pub causes: BTreeMap<FillCause, Bytes>,
    /// Why it is in `hardly_needed`, with the figures; `None`: it is not.
    pub hardly_needed: Option<String>,
}

/// One section's part. A page on the border of two sections counts in both, its stalls in the one that
/// has more of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SectionUse {
    /// Row of the file that has the section.
    pub file: FileIdx,
    /// Segment it lies in (`LOAD r-x`), where it does.
    pub segment: String,
    /// Name of the section (`.text`), or words for the headers before the first.
    pub section: String,
    /// Its size in the file.
    pub size: Bytes,
    /// Pages of it needed.
    pub needed: Bytes,
    /// Pages of it read.
    pub read: Bytes,
    /// Stall time in it.
    pub stall: Nanos,
}

/// What tells that a function was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SymbolEvidence {
    /// The instruction that faulted lies in it and on the page that was missing.
    Instruction,
    /// The page lies wholly inside it.
    WholePage,
}

/// One function's part. Only faults that name it exactly count; a page of many functions names none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SymbolUse {
    /// Row of the file that has the function.
    pub file: FileIdx,
    /// Demangled name, as its layout has it.
    pub symbol: String,
    /// Touches by faults of exactly its pages.
    pub touches: u64,
    /// Stall time there.
    pub stall: Nanos,
    /// First touch, from the start.
    pub first_use: Nanos,
    /// What tells so (the weaker, where both do).
    pub evidence: SymbolEvidence,
}

/// Scripts, shims and wrappers that ran before the program itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InFront {
    /// The program: the path it was started by, where that is absolute and of this machine, else that of its file.
    pub program: String,
    /// It runs below a root directory of its own, which what ran in front of it has made.
    pub other_root: bool,
    /// What ran in front of it, in order: of shells the script.
    pub programs: Vec<String>,
    /// Other processes that began before the program did.
    pub processes: u64,
    /// From the first of them to the program.
    pub time: Nanos,
    /// Of it, time in which at least one task waited for storage.
    pub waited: Nanos,
}

/// A file that was read from end to end by system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct WholeRead {
    /// Row of the file in the recording.
    pub file: FileIdx,
    /// Pages needed of it.
    pub bytes: Bytes,
    /// Size of the whole file; `bytes` may be somewhat less.
    pub size: Bytes,
    /// Time in which at least one thread dealt with it and no other file, from its open to its last read: waiting, copying
    /// into the program, and what the program did between two reads.
    pub elapsed: Nanos,
    /// Waits for storage charged to it.
    pub waited: Nanos,
}

/// A language with packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// Python: `site-packages`, `dist-packages`, its own library.
    Python,
    /// Node: `node_modules`.
    Node,
    /// Java: jar files.
    Java,
    /// Ruby: gems, and its own library.
    Ruby,
}

impl std::fmt::Display for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Python => "Python",
            Self::Node => "Node",
            Self::Java => "Java",
            Self::Ruby => "Ruby",
        })
    }
}

/// A package that was loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackageUse {
    /// Language that the path of its files tells.
    pub language: Language,
    /// Its name; `None`: the language's own library.
    pub name: Option<String>,
    /// Files of it that were used.
    pub files: u64,
    /// Bytes read of them.
    pub read: Bytes,
    /// Waits for storage charged to them.
    pub waited: Nanos,
    /// Failed lookups below it.
    pub misses: u64,
    /// Time of the program's first thread from each look at its files to the next look at something else, the package's
    /// own work included. What a package does after it loaded another counts for the other.
    pub elapsed: Nanos,
}

impl PackageUse {
    /// Its name, or in words whose own library it is.
    pub fn shown(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{}'s own library", self.language))
    }
}

/// What made a program look in the wrong places.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MissGroup {
    /// The searched directory.
    pub directory: String,
    /// What searched there (`PATH`, `LD_LIBRARY_PATH`, `RPATH of /usr/lib/…`, `Python sys.path`,
    /// `node_modules`, `Java class path`, `loader default path`, `locale`, …); `None`: not recognised.
    pub search: Option<String>,
    /// Where nothing is recognised, but the same names were looked for in several directories side by side: what
    /// these have in common (`/etc/app/conf.d/NN`, `/srv/*/etc`).
    pub family: Option<String>,
    /// Lookups in this directory that found nothing.
    pub misses: u64,
    /// Time spent in them.
    pub time: Nanos,
    /// Time of these in which the task waited for storage.
    pub stall: Nanos,
    /// Kinds of call.
    pub kinds: BTreeMap<LookupKind, u64>,
    /// Some of the names that were not there, at most 5.
    pub examples: Vec<String>,
}

impl MissGroup {
    /// What searched, or the pattern of the directories; `None`: not recognised.
    pub fn searched(&self) -> Option<&str> {
        self.search.as_deref().or(self.family.as_deref())
    }
}

/// Stall time of one stack.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StackWait {
    /// Row in the recording's stacks; `None`: waits without one, or those of the kernel in an exec.
    pub stack: Option<StackIdx>,
    /// Frames in words, outermost first (``python3.11`Py_RunMain``).
    pub frames: Vec<String>,
    /// Waits for storage at this stack, from the start to ready.
    pub stalls: u64,
    /// Length of these waits, summed over tasks.
    pub stall: Nanos,
    /// The same length by what was waited for.
    pub causes: BTreeMap<StallCause, Nanos>,
}

/// One consistency check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// Stable name (`needed_within_read_or_cached`, `device_reads_agree`, `stalls_attributed`, `paths_resolved`).
    pub id: String,
    /// It holds; `None`: cannot be told from this recording.
    pub holds: Option<bool>,
    /// The figures in words.
    pub what: String,
}
