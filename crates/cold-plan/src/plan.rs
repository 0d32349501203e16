//! The plan as values. `format` gives it its bytes, `store` its place.

use std::path::PathBuf;

use cold_model::Dev;
use cold_model::DeviceModel;

/// Bytes of a plan's page, the unit of its steps and ranges, whatever the machine's pages are.
pub const PAGE: u64 = 4096;

/// An enum whose variants are bytes in files ([`crate::format`], [`crate::history`]).
macro_rules! tagged {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$of:meta])* $variant:ident = $byte:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$of])* $variant = $byte,)* }

        impl $name {
            /// All of them, for tables.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The one that this byte means; `None` where it means none.
            #[inline]
            pub const fn from_byte(byte: u8) -> Option<Self> {
                match byte {
                    $($byte => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The byte that means it.
            #[inline]
            pub const fn byte(self) -> u8 {
                self as u8
            }
        }
    };
}
pub(crate) use tagged;

/// Everything `cold` knows of one way to start one executable.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What it is for.
    pub key: Key,
    /// How it was learnt.
    pub learnt: Learnt,
    /// Every file that a range, a step or the metadata stage names.
    pub files: Vec<PlanFile>,
    /// What starts needed, in order of first need. The evidence; steps are made from it.
    pub ranges: Vec<Range>,
    /// How the steps were made.
    pub knobs: Knobs,
    /// The device they were made for, where one was measured.
    pub device: Option<DeviceModel>,
    /// The least time such a start can take on it.
    pub bound: Option<Bound>,
    /// What a launcher does, in order.
    pub steps: Vec<Step>,
    /// Whether it may be used.
    pub standing: Standing,
    /// Its last trial against control runs.
    pub trial: Option<Trial>,
}

/// What is read of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reads {
    /// Sum over the steps that read pages of it.
    pub bytes: u64,
    /// Number of these steps.
    pub requests: u64,
}

impl Plan {
    /// A plan that was learnt and not made for any device: without steps, bound and trial.
    pub fn unmade(key: Key, learnt: Learnt, files: Vec<PlanFile>, ranges: Vec<Range>, knobs: Knobs) -> Self {
        Self {
            key,
            learnt,
            files,
            ranges,
            knobs,
            device: None,
            bound: None,
            steps: Vec::new(),
            standing: Standing::Untried,
            trial: None,
        }
    }

    /// The steps that read pages.
    pub fn reads(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|s| s.op == Op::Read)
    }

    /// Bytes that its steps read.
    pub fn read_bytes(&self) -> u64 {
        self.reads().map(|s| u64::from(s.bytes)).sum()
    }

    /// Bytes that are read before the program begins.
    pub fn critical_bytes(&self) -> u64 {
        self.reads().filter(|s| s.critical).map(|s| u64::from(s.bytes)).sum()
    }

    /// Names that its steps look up or list.
    pub fn names(&self) -> u64 {
        self.steps.iter().filter(|s| matches!(s.op, Op::List | Op::Stat)).count() as u64
    }

    /// The same for each of its files.
    pub fn reads_by_file(&self) -> Vec<Reads> {
        let mut of = vec![Reads::default(); self.files.len()];
        for step in self.reads() {
            if let Some(reads) = of.get_mut(step.file as usize) {
                reads.bytes += u64::from(step.bytes);
                reads.requests += 1;
            }
        }
        of
    }

    /// The same number for the same reads only.
    pub fn steps_hash(&self) -> u64 {
        let mut bytes = Vec::with_capacity(self.steps.len() * 16);
        for s in &self.steps {
            bytes.extend(s.file.to_le_bytes());
            bytes.extend(s.offset.to_le_bytes());
            bytes.extend(s.bytes.to_le_bytes());
        }
        cold_model::hash::fnv1a64(&[&bytes[..]])
    }

    /// Files of a kind.
    pub fn count(&self, kind: FileKind) -> usize {
        self.files.iter().filter(|f| f.kind == kind).count()
    }

    /// Both say the same of what starts need, and are for the same device: what a trial of one shows holds for the
    /// other.
    pub fn needs_the_same(&self, other: &Self) -> bool {
        self.key == other.key
            && self.learnt == other.learnt
            && self.files == other.files
            && self.ranges == other.ranges
            && self.device == other.device
    }
}

/// Which plan this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The executable after all symbolic links; of a script, its interpreter's.
    pub executable: PathBuf,
    /// Its identity when last learnt.
    pub identity: Identity,
    /// The script or archive that an interpreter runs, if any.
    pub script: Option<PathBuf>,
    /// The scenario: the user's word, or derived from the shape of the arguments.
    pub scenario: String,
}

impl Key {
    /// Both are of the same starts: the identity may differ.
    pub fn is_of_same_starts(&self, other: &Self) -> bool {
        (&self.executable, &self.script, &self.scenario)
            == (&other.executable, &other.script, &other.scenario)
    }
}

/// How a plan came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "portable", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Learnt {
    /// Starts that taught it, in all.
    pub starts: u32,
    /// Of these, starts that were proved cold.
    pub cold_starts: u32,
    /// Tier of the recordings, the lowest: `A` to `D`. Below B no buffered read is known.
    pub tier: char,
    /// Touches of mapped pages are exact, not widened by fault-around.
    pub exact: bool,
    /// In no start another thread or process was there beside the first: what needs a page later has to wait for
    /// it, and nothing else goes on meanwhile.
    pub one_thread: bool,
    /// The starts went on after they were ready, as a server does: the end of such a program is no mark.
    #[cfg_attr(feature = "portable", serde(default))]
    pub goes_on: bool,
    /// First time it was learnt, seconds since 1970.
    pub first: u64,
    /// Last time it was learnt, seconds since 1970.
    pub last: u64,
    /// Least time to ready with the waits for storage taken out, nanoseconds: what a recorded start takes when
    /// nothing has to be read. Of warm starts where one taught, else of cold ones. 0 when not known.
    pub cpu_ns: u64,
    /// Median time to ready of the cold starts, nanoseconds; 0 when none taught.
    pub cold_ready_ns: u64,
    /// Median CPU time of the started process itself until ready, nanoseconds; the mark by which a
    /// launcher judges a start in daily use. 0 when not known.
    pub own_cpu_ns: u64,
}

/// By what a file is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity {
    /// Device (`st_dev`). Not compared: it may change at each boot.
    pub dev: Dev,
    /// Inode number; compared only where the modification time tells nothing.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Modification time, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// First 20 bytes of the GNU build-id; zeros when it has none.
    pub build_id: [u8; 20],
}

tagged! {
    /// What is done with a file before its pages are read.
    #[cfg_attr(feature = "portable", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
    pub enum FileKind {
        /// A regular file: opened, its pages read.
        Regular = 0,
        /// A directory: opened and listed.
        Directory = 1,
        /// A name that was looked up (a `stat`, a symbolic link, or something that is not there): looked up.
        Name = 2,
        /// A block device: its pages are a file system's metadata. Root only.
        BlockDevice = 3,
    }
}

/// A file of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFile {
    /// Absolute path, at most [`crate::format::MAX_PATH`] bytes.
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// Of regular files: what must still be true.
    pub identity: Identity,
    /// First use, nanoseconds from the exec; median over the starts.
    pub need_ns: u64,
    /// In which of the last 8 starts it was used: bit 0 the latest.
    pub uses: u8,
    /// A start with exact faults used it as it is: of pages that it left out is known that it did not need them.
    pub exact: bool,
}

/// Pages of a file that starts needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "portable", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Range {
    /// Index in [`Plan::files`].
    pub file: u32,
    /// First page (of [`PAGE`] bytes).
    pub first_page: u64,
    /// Pages, at least 1.
    pub pages: u32,
    /// First need, nanoseconds from the exec in a start without waits (waits taken out); median.
    pub need_ns: u64,
    /// In which of the last 8 starts it was needed: bit 0 the latest.
    pub uses: u8,
    /// Only an upper bound: mapped around a fault, never faulted on or read itself.
    pub around: bool,
}

tagged! {
    /// When the program may begin.
    #[cfg_attr(feature = "portable", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
    pub enum Gate {
        /// At once; the helper issues everything.
        #[cfg_attr(feature = "portable", serde(rename = "at_once"))]
        None = 0,
        /// When the critical prefix has been issued.
        Issued = 1,
        /// When the critical prefix has arrived.
        Arrived = 2,
    }
}

tagged! {
    /// In which order steps are made.
    #[cfg_attr(feature = "portable", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
    pub enum Order {
        /// As they are first needed, wherever they lie on the disk.
        Need = 0,
        /// By place on the disk within windows of need time.
        Physical = 1,
    }
}

/// What the tuner varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "portable", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Knobs {
    /// A range is kept when it was needed in at least so many of the last 8 starts (of fewer starts: of
    /// as many as there are).
    pub min_uses: u8,
    /// Gaps up to so many bytes are read along.
    pub gap_bytes: u32,
    /// Most bytes per call.
    pub chunk_bytes: u32,
    /// Most bytes in flight; 0: no bound.
    pub in_flight_bytes: u32,
    /// Calls made at the same time.
    pub threads: u8,
    /// Order of the steps.
    pub order: Order,
    /// Width of a window of need time for [`Order::Physical`], microseconds.
    pub window_us: u32,
    /// When the program may begin.
    pub gate: Gate,
    /// What is needed before this time (microseconds, waits taken out) is the critical prefix.
    pub critical_us: u32,
    /// Directories, names and, where permitted, the file system's blocks are part of the plan.
    pub metadata: bool,
}

tagged! {
    /// What a step does.
    pub enum Op {
        /// Read pages ahead (`readahead`); of a block device: its metadata.
        Read = 0,
        /// Open the file (its inode, its way).
        Open = 1,
        /// Open the directory and list it.
        List = 2,
        /// Look the name up (`stat` without following the last link).
        Stat = 3,
    }
}

/// One thing a launcher does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// What is done with the file.
    pub op: Op,
    /// Part of the critical prefix. Critical steps come first.
    pub critical: bool,
    /// Index in [`Plan::files`].
    pub file: u32,
    /// First byte, a multiple of [`PAGE`]; 0 for steps without pages.
    pub offset: u64,
    /// Bytes, a multiple of [`PAGE`]; at most [`Knobs::chunk_bytes`].
    pub bytes: u32,
    /// Need time of its first page, nanoseconds (waits taken out).
    pub need_ns: u64,
}

/// The least time of a start on the plan's device, as far as its model goes. Counted are pages that every start
/// needed, of regular files on that device.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "portable", derive(serde::Serialize))]
pub struct Bound {
    /// Time to ready when nothing has to be read, nanoseconds: that of warm starts without a recorder
    /// ([`Trial::warm_ns`]); none when not measured, and then it is in none of the times.
    #[cfg_attr(feature = "portable", serde(rename = "computing_ns"))]
    pub cpu_ns: Option<u64>,
    /// With reading and computing overlapped perfectly, nanoseconds.
    pub overlapped_ns: u64,
    /// Reading everything first, then computing, nanoseconds.
    pub serial_ns: u64,
    /// Bytes of these pages.
    pub bytes: u64,
    /// Pieces of the device that they lie in: the fewest requests that read nothing else.
    pub requests: u32,
}

/// Whether a plan may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "portable", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Standing {
    /// Learnt, not yet tried against control runs. Used.
    Untried,
    /// A trial or daily use showed a gain. Used.
    Proven,
    /// Switched off, with the reason in one sentence.
    Off(String),
}

/// The result of a trial: starts with the plan against starts without, interleaved.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "portable", derive(serde::Serialize))]
pub struct Trial {
    /// When, seconds since 1970.
    pub at: u64,
    /// Pairs of starts, one with the plan and one without, of which both counted.
    pub pairs: u32,
    /// Median time to ready without plan, nanoseconds.
    pub plain_ns: u64,
    /// Median time to ready with the plan, nanoseconds.
    pub prefetched_ns: u64,
    /// Warm; none when not measured.
    pub warm_ns: Option<u64>,
    /// With the plan divided by without: estimate.
    pub ratio: f64,
    /// Lower end of the 95% interval of `ratio`.
    pub low: f64,
    /// Upper end of the 95% interval of `ratio`.
    pub high: f64,
}
