//! The bytes of a plan, version 2 (docs/formats/plan.md). Pure.
//!
//! [`encode()`] writes them, [`View`] reads them in place. What a launcher needs lies in front and is
//! checked by [`View::parse`]; the evidence (the ranges) lies behind and is read and checked only when
//! asked for, so that a cold launch does not read it from the disk.

mod check;
mod encode;
mod layout;
mod view;

pub use encode::encode;
pub use view::{FileView, KeyView, Ranges, StandingView, Steps, View};

use crate::Plan;

/// First bytes of every plan.
pub const MAGIC: [u8; 8] = *b"COLDPLAN";
/// Version written; every earlier one can be read. Since 2 a file says whether exact starts used it.
pub const VERSION: u32 = 2;

/// Most bytes of a plan file. A plan at all the limits below has less.
pub const MAX_BYTES: u64 = 512 << 20;
/// Most files of a plan. A start of a large office suite names some 3,000.
pub const MAX_FILES: u64 = 65_536;
/// Most steps of a plan; more are refused before any is looked at.
pub const MAX_STEPS: u64 = 1_048_576;
/// Most ranges of a plan; more are refused before any is looked at.
pub const MAX_RANGES: u64 = 4_194_304;
/// Most queue depths of the device model.
pub const MAX_DEPTHS: u64 = 64;
/// Most bytes that all steps read together: 64 GiB.
pub const MAX_READ_BYTES: u64 = 64 << 30;
/// Longest path without its final zero byte (Linux: `PATH_MAX` less one).
pub const MAX_PATH: usize = 4095;
/// Longest text that is no path: a device's name, the reason of [`crate::plan::Standing::Off`].
pub const MAX_TEXT: usize = 1024;
/// No page of a file ends beyond this (`loff_t` is signed).
pub const MAX_OFFSET: u64 = i64::MAX.cast_unsigned();

/// Why bytes are no plan, or a plan cannot be bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Another kind of file.
    #[error("not a plan (its first bytes are not \"COLDPLAN\")")]
    Magic,
    /// Written by a later version.
    #[error(
        "plan format {0} is newer than this program (it reads up to {VERSION}); learn it again, or use the newer program"
    )]
    Version(u32),
    /// The length is not what the header says.
    #[error("damaged: it has {found} bytes instead of {expected}")]
    Length {
        /// By the header, or the least there must be.
        expected: u64,
        /// What there is.
        found: u64,
    },
    /// A checksum does not fit.
    #[error("damaged: the checksum of its {0} does not fit (changed after it was saved)")]
    Checksum(&'static str),
    /// More than a plan may have.
    #[error("{found} {what} are more than a plan may have ({most})")]
    Budget {
        /// What there is too much of, in the plural (`steps`, `bytes of text`).
        what: &'static str,
        /// How many the plan has, or would have.
        found: u64,
        /// How many a plan may have at most.
        most: u64,
    },
    /// The checksums fit, but a record breaks a rule of the format.
    #[error("{section} {index} is invalid: {why}")]
    Invalid {
        /// Of which kind: `file`, `step`, …
        section: &'static str,
        /// Which, from 0.
        index: u64,
        /// What is wrong.
        why: &'static str,
    },
}

/// Reads and checks all bytes of a plan.
pub fn decode(bytes: &[u8]) -> Result<Plan, FormatError> {
    View::parse(bytes)?.to_plan()
}

/// Mends the checksums of bytes that look like a plan, so that what lies behind them is reached.
#[cfg(any(test, feature = "fuzzing"))]
pub fn seal(bytes: &mut [u8]) {
    use layout::{ENTRY, HEAD, HEADER, SECTIONS, entry, header, u32_at, u64_at};
    for at in (HEADER..HEAD).step_by(ENTRY).take(SECTIONS.len()) {
        let Some(record) = bytes.get(at..at + ENTRY) else { return };
        let (start, count) = (u64_at(record, entry::OFFSET), u64_at(record, entry::COUNT));
        let end =
            count.checked_mul(u64::from(u32_at(record, entry::RECORD))).and_then(|n| n.checked_add(start));
        let content = end.and_then(|end| bytes.get(start as usize..end as usize));
        let crc = crc32fast::hash(content.unwrap_or_default());
        bytes[at + entry::CRC..at + entry::CRC + 4].copy_from_slice(&crc.to_le_bytes());
    }
    if let Some(head) = bytes.first_chunk_mut::<HEAD>() {
        let crc = layout::head_crc(head);
        head[header::CRC..header::CRC + 4].copy_from_slice(&crc.to_le_bytes());
    }
}

#[cfg(test)]
mod doc_tests;
#[cfg(test)]
mod tests;
