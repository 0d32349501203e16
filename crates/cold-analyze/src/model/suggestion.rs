//! What would help, and which advice that is.

use cold_model::figures::plural;
use cold_model::recording::FileIdx;
use cold_model::{Bytes, Nanos};
use serde::Serialize;

/// Which advice. In JSON, in the tables of a fleet and on screens it has the name by which scripts know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "&'static str")]
pub enum SuggestionId {
    /// Read what the start needs ahead of it.
    PrefetchPlan,
    /// A smaller read-ahead of the device.
    SmallerReadAround,
    /// A larger read-ahead of the device.
    LargerReadAround,
    /// A read-ahead that is larger than anybody wants it, made smaller.
    HugeReadAhead,
    /// Files that are hit here and there, told to be read at random (`MADV_RANDOM`).
    AdviseRandom,
    /// Files that are needed whole, asked for when they are opened (`readahead`).
    AdviseWhole,
    /// Functions in the order in which starts enter them.
    OrderCode,
    /// Relocations packed by the linker (`-z pack-relative-relocs`).
    Relr,
    /// Libraries loaded when they are used, or not at all.
    FewerLibraries,
    /// Without what runs in front of the program.
    StartDirectly,
    /// Without reading whole files in the way of the start.
    ReadLess,
    /// Packages of an interpreter, loaded when they are needed.
    LoadLater,
    /// Shorter search paths, most hits first.
    TooManyLookups,
    /// Names of one pattern, looked for in fewer directories.
    LookupsByPattern,
    /// Directories and inodes warmed before contents.
    MetadataBound,
    /// Many small files in one.
    PackSmallFiles,
    /// Nothing: the start does not wait for storage.
    AlreadyFine,
}

impl SuggestionId {
    /// Name by which scripts know it; it does not change.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PrefetchPlan => "prefetch_plan",
            Self::SmallerReadAround => "smaller_read_around",
            Self::LargerReadAround => "larger_read_around",
            Self::HugeReadAhead => "huge_read_ahead",
            Self::AdviseRandom => "advise_random",
            Self::AdviseWhole => "advise_whole",
            Self::OrderCode => "order_code",
            Self::Relr => "relr",
            Self::FewerLibraries => "fewer_libraries",
            Self::StartDirectly => "start_directly",
            Self::ReadLess => "read_less",
            Self::LoadLater => "load_later",
            Self::TooManyLookups => "too_many_lookups",
            Self::LookupsByPattern => "lookups_by_pattern",
            Self::MetadataBound => "metadata_bound",
            Self::PackSmallFiles => "pack_small_files",
            Self::AlreadyFine => "already_fine",
        }
    }
}

impl From<SuggestionId> for &'static str {
    fn from(id: SuggestionId) -> Self {
        id.name()
    }
}

/// What would help, and by how much.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suggestion {
    /// Which advice it is.
    pub id: SuggestionId,
    /// What to do, in one sentence.
    pub what: String,
    /// Why, with the figures of this recording.
    pub why: String,
    /// Bytes that need not be read.
    pub saves_bytes: Option<Bytes>,
    /// Requests that need not be made.
    pub saves_requests: Option<u64>,
    /// Time that would be saved.
    pub saves_time: Option<Nanos>,
    /// How these were estimated, and what was assumed.
    pub estimate: String,
    /// The read-ahead of the device that it asks for, where it is about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_ahead: Option<Bytes>,
    /// Files concerned, at most 10.
    pub files: Vec<FileIdx>,
}

impl Suggestion {
    /// What it saves, a phrase each: time, bytes, requests; empty where nothing is known.
    pub fn savings(&self) -> Vec<String> {
        let known = [
            self.saves_time.map(|t| t.to_string()),
            self.saves_bytes.map(|b| b.to_string()),
            self.saves_requests.map(|n| plural(n, "request")),
        ];
        known.into_iter().flatten().collect()
    }
}
