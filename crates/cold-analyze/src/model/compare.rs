//! Two recordings beside each other. *a* is the base, *b* what is compared with it; a difference is b − a.

use cold_model::recording::FillCause;
use cold_model::{Bytes, Known, Nanos};
use serde::Serialize;

/// What differs between two recordings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Figures of both can be set against each other: no entry of `conditions` forbids it.
    pub comparable: bool,
    /// Conditions under which the two were made and that differ (tier, device, kernel, exactness, state, …).
    pub conditions: Vec<Condition>,
    /// The figures of the headline, in its order.
    pub headline: Vec<FigurePair>,
    /// Bytes filled per cause, the most of both first.
    pub causes: Vec<CausePair>,
    /// Files of both, paired by path (the n-th of several with one path with the n-th), the largest
    /// difference first: stall time, then bytes read, then bytes needed.
    pub files: Vec<FilePair>,
    /// Number of files in `files` that only *a* has.
    pub only_a: u64,
    /// Number of files in `files` that only *b* has.
    pub only_b: u64,
}

/// A condition that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// Stable name (`tier`, `kernel`, `devices`, `exact_need`, `state`, `command`, `losses`, …).
    pub id: String,
    /// Its value in *a*, in words.
    pub a: String,
    /// Its value in *b*, in words.
    pub b: String,
    /// Which figures must not be compared because of it; `None`: it may explain a difference, no more.
    pub forbids: Option<String>,
}

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A length of time, in nanoseconds.
    Nanos,
    /// An amount of bytes.
    Bytes,
    /// A plain number.
    Count,
}

impl Unit {
    /// A figure in this unit.
    pub fn show(self, value: u64) -> String {
        match self {
            Self::Nanos => Nanos(value).to_string(),
            Self::Bytes => Bytes(value).to_string(),
            Self::Count => cold_model::figures::count(value),
        }
    }
}

/// One figure of both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FigurePair {
    /// Name of the field in [`super::Headline`].
    pub id: String,
    /// What it is, in words.
    pub what: String,
    /// What `a`, `b` and `difference` are counted in.
    pub unit: Unit,
    /// Its value in *a*, where it is known.
    pub a: Known<u64>,
    /// Its value in *b*, where it is known.
    pub b: Known<u64>,
    /// b − a, where both are known.
    pub difference: Option<i64>,
    /// b / a, where both are known and a is not 0.
    pub ratio: Option<Ratio>,
}

/// A ratio in thousandths, so that a comparison can be compared for equality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Ratio(pub u64);

impl Ratio {
    /// As a number.
    pub fn value(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

/// Bytes one cause filled in both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CausePair {
    /// Why they were filled.
    pub cause: FillCause,
    /// Bytes that the tree of *a* filled for it.
    pub a: Bytes,
    /// Bytes that the tree of *b* filled for it.
    pub b: Bytes,
    /// b − a in bytes.
    pub difference: i64,
    /// Share of all bytes filled in *a*, in thousandths; `None` when nothing was filled.
    pub share_a: Option<Ratio>,
    /// Share of all bytes filled in *b*.
    pub share_b: Option<Ratio>,
}

/// One file in both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilePair {
    /// The path that it has in both, or in the one that used it.
    pub path: String,
    /// In *a*; `None`: *a* did not use it.
    pub a: Option<Side>,
    /// In *b*; `None`: *b* did not use it.
    pub b: Option<Side>,
    /// b − a; a file that one side did not use counts there as 0.
    pub difference: SideDifference,
    /// Both have it, but its size or build-id differs: not the same contents.
    pub changed: bool,
}

/// A file's figures on one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    /// Index in that side's [`super::Analysis::files`].
    pub index: usize,
    /// As [`super::FileUse::needed`].
    pub needed: Bytes,
    /// Pages read by the tree.
    pub read: Bytes,
    /// Pages read but not needed.
    pub unused: Bytes,
    /// Waits for storage charged to it, summed over tasks.
    pub stall: Nanos,
    /// Device requests that brought pages of it.
    pub requests: u64,
}

/// The differences of a file's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SideDifference {
    /// Bytes of pages that *b* needed more than *a*.
    pub needed: i64,
    /// Bytes of pages that the tree of *b* read more than that of *a*.
    pub read: i64,
    /// Bytes of pages that were read, not needed, in *b* more than in *a*.
    pub unused: i64,
    /// Nanoseconds of stall.
    pub stall: i64,
    /// Device requests for it in *b* more than in *a*.
    pub requests: i64,
}
