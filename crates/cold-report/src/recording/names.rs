//! Words for what a recording names by number; the page gets the same lists.

use cold_model::recording::{FillCause, StallCause, TouchKind};

/// Fill causes in the order of the legend.
pub(super) const FILLS: [(FillCause, &str); 8] = [
    (FillCause::DemandFault, "demand fault"),
    (FillCause::ReadAround, "read-around"),
    (FillCause::BufferedRead, "buffered read"),
    (FillCause::ReadAhead, "read-ahead"),
    (FillCause::Advice, "asked for (readahead, fadvise, madvise)"),
    (FillCause::Metadata, "metadata"),
    (FillCause::Write, "written"),
    (FillCause::Other, "other"),
];

/// Place of a fill's cause in [`FILLS`].
pub(super) fn fill(cause: FillCause) -> u8 {
    FILLS.iter().position(|(c, _)| *c == cause).unwrap_or(FILLS.len() - 1) as u8
}

/// Place of a touch's kind: fault, mapped around a fault, read.
pub(super) fn touch(kind: TouchKind) -> u8 {
    match kind {
        TouchKind::Fault => 0,
        TouchKind::FaultAround => 1,
        TouchKind::Read => 2,
    }
}

/// Stall causes in the order of the legend.
pub(super) const STALLS: [(StallCause, &str); 9] = [
    (StallCause::Fault, "fault"),
    (StallCause::Read, "read"),
    (StallCause::Lookup, "lookup"),
    (StallCause::Exec, "exec"),
    (StallCause::Write, "write"),
    (StallCause::OtherStorage, "other storage"),
    (StallCause::Journal, "journal"),
    (StallCause::Lock, "lock"),
    (StallCause::Other, "other"),
];

/// Place of a stall's cause in [`STALLS`].
pub(super) fn stall(cause: StallCause) -> u8 {
    STALLS.iter().position(|(c, _)| *c == cause).unwrap_or(STALLS.len() - 1) as u8
}

/// Touch kinds in the order of [`touch`].
pub(super) const TOUCHES: [&str; 3] =
    ["needed by a fault", "mapped around a fault (upper bound)", "needed by a read"];
