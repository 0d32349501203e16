//! Read-around policies: Linux by version, other systems, and the simplest ones to compare with.

use std::fmt;

use crate::cached::Cached;
use crate::linux::LinuxVersion;
use crate::op::{FileId, PageRead, Pattern, Why};

/// Where a window of fixed size lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placed {
    /// It begins at a multiple of its size.
    Aligned,
    /// As much before the page as behind it.
    Centred,
}

/// Which pages a page cache reads when one is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Linux, with read-ahead.
    Linux(LinuxVersion),
    /// Windows: 8 pages around a fault in code, 4 in data, as one request from the first to the last missing page;
    /// pages between that are there are read into a page that nobody sees. Placement: aligned. Its cache manager's
    /// read-ahead of `ReadFile` is not modelled: reads bring what they ask for.
    Windows,
    /// FreeBSD: the part around the page, without a gap, of 16 pages aligned in the file.
    FreeBsd,
    /// A window of so many pages, whatever was read before; its missing pages are read.
    Fixed {
        /// Length of the window in pages.
        pages: u64,
        /// Where it lies.
        placed: Placed,
    },
    /// The whole file at its first miss.
    Whole,
    /// The page and nothing else.
    Nothing,
}

/// A fault on a page that is not cached, as policies without history see it.
pub(crate) struct Touched {
    pub(crate) file: FileId,
    pub(crate) page: u64,
    /// First page of the mapping.
    pub(crate) first: u64,
    /// One past its last page.
    pub(crate) end: u64,
    pub(crate) exec: bool,
    pub(crate) pattern: Pattern,
}

/// Pages of a cluster of Windows, by what is mapped.
const WINDOWS_CODE: u64 = 8;
const WINDOWS_DATA: u64 = 4;
/// Pages of a cluster of FreeBSD (`VM_FAULT_READ_DEFAULT`, with the page itself).
const FREEBSD: u64 = 16;

impl Policy {
    /// One of each kind, and each version of Linux.
    pub const ALL: [Self; 13] = [
        Self::Linux(LinuxVersion::V5_10),
        Self::Linux(LinuxVersion::V6_1),
        Self::Linux(LinuxVersion::V6_12),
        Self::Linux(LinuxVersion::V6_16),
        Self::Linux(LinuxVersion::V6_17),
        Self::Linux(LinuxVersion::V6_18),
        Self::Linux(LinuxVersion::V7),
        Self::Windows,
        Self::FreeBsd,
        Self::Fixed { pages: 16, placed: Placed::Aligned },
        Self::Fixed { pages: 32, placed: Placed::Centred },
        Self::Whole,
        Self::Nothing,
    ];

    /// The policy of a name, as [`Display`](fmt::Display) writes it; windows have their pages behind a colon
    /// (`aligned:16`). `None` for what is no name, and for windows of no pages.
    pub fn of_name(name: &str) -> Option<Self> {
        let simple = Self::ALL.into_iter().filter(|p| !matches!(p, Self::Fixed { .. }));
        let placed = |word| match word {
            "aligned" => Some(Placed::Aligned),
            "centred" => Some(Placed::Centred),
            _ => None,
        };
        match name.split_once(':') {
            None => simple.into_iter().find(|p| p.to_string() == name),
            Some((word, pages)) => {
                let pages = pages.parse().ok().filter(|n| *n > 0)?;
                Some(Self::Fixed { pages, placed: placed(word)? })
            }
        }
    }

    /// Reads what a fault brings in; of other policies than Linux'.
    pub(crate) fn fault(self, file: &mut Cached, touched: &Touched, reads: &mut Vec<PageRead>) {
        let Touched { page, first, end, .. } = *touched;
        let end = end.min(file.pages);
        let within = |(from, to): (u64, u64)| (from.max(first), to.min(end));
        match self {
            Self::Windows => {
                let cluster = if touched.exec { WINDOWS_CODE } else { WINDOWS_DATA };
                bridged(file, touched.file, within(aligned(page, cluster)), reads);
            }
            Self::FreeBsd => {
                let cluster = if touched.pattern == Pattern::Random { 1 } else { FREEBSD };
                gapless(file, touched.file, page, within(aligned(page, cluster)), reads);
            }
            Self::Fixed { pages, placed } => {
                let window = match placed {
                    Placed::Aligned => aligned(page, pages),
                    Placed::Centred => centred(page, pages),
                };
                let (from, to) = within(window);
                holes(file, touched.file, from, to - from, Why::Demand, reads);
            }
            Self::Whole => holes(file, touched.file, 0, file.pages, Why::Demand, reads),
            Self::Nothing | Self::Linux(_) => holes(file, touched.file, page, 1, Why::Demand, reads),
        }
    }

    /// Reads what a `read` of pages `from..to` brings in, whose first page is missing; of other policies than Linux'.
    pub(crate) fn read(self, file: &mut Cached, id: FileId, from: u64, to: u64, reads: &mut Vec<PageRead>) {
        let end = to.min(file.pages);
        let (from, to) = match self {
            Self::Whole => (0, file.pages),
            Self::Fixed { pages, placed: Placed::Aligned } => {
                (aligned(from, pages).0, aligned(end.saturating_sub(1), pages).1.max(end))
            }
            Self::Fixed { pages, placed: Placed::Centred } => {
                (centred(from, pages).0, centred(end.saturating_sub(1), pages).1.max(end))
            }
            _ => (from, end),
        };
        if self == Self::Windows {
            bridged(file, id, (from, to), reads);
        } else {
            holes(file, id, from, to.saturating_sub(from), Why::Demand, reads);
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Linux(version) => f.write_str(version.name()),
            Self::Windows => f.write_str("windows"),
            Self::FreeBsd => f.write_str("freebsd"),
            Self::Fixed { pages, placed: Placed::Aligned } => write!(f, "aligned:{pages}"),
            Self::Fixed { pages, placed: Placed::Centred } => write!(f, "centred:{pages}"),
            Self::Whole => f.write_str("whole"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

/// The aligned window of so many pages around a page.
fn aligned(page: u64, pages: u64) -> (u64, u64) {
    let from = page - page % pages.max(1);
    (from, from.saturating_add(pages.max(1)))
}

fn centred(page: u64, pages: u64) -> (u64, u64) {
    let from = page.saturating_sub(pages / 2);
    (from, from.saturating_add(pages.max(1)))
}

/// Reads each run of missing pages.
pub(crate) fn holes(
    file: &mut Cached,
    id: FileId,
    first: u64,
    pages: u64,
    why: Why,
    reads: &mut Vec<PageRead>,
) {
    let end = first.saturating_add(pages).min(file.pages);
    let mut at = first;
    while at < end {
        let hole = file.next_present(at, end).unwrap_or(end);
        take(file, id, (at, hole), why, reads);
        at = hole + 1;
    }
}

/// One read from the first to the last missing page.
fn bridged(file: &mut Cached, id: FileId, (from, to): (u64, u64), reads: &mut Vec<PageRead>) {
    let to = to.min(file.pages);
    let mut missing = (from..to).filter(|page| !file.page(*page).present());
    let Some(first) = missing.next() else { return };
    let last = missing.next_back().unwrap_or(first);
    take(file, id, (first, last + 1), Why::Demand, reads);
}

/// The missing pages around a page without a gap.
fn gapless(file: &mut Cached, id: FileId, page: u64, (from, to): (u64, u64), reads: &mut Vec<PageRead>) {
    let to = to.min(file.pages);
    let end = file.next_present(page, to).unwrap_or(to);
    let first = (from..page).rev().take_while(|page| !file.page(*page).present()).last().unwrap_or(page);
    take(file, id, (first, end), Why::Demand, reads);
}

fn take(file: &mut Cached, id: FileId, (from, to): (u64, u64), why: Why, reads: &mut Vec<PageRead>) {
    if from >= to {
        return;
    }
    for page in from..to {
        file.add(page, 0, false);
    }
    reads.push(PageRead { file: id, first: from, pages: to - from, order: 0, why });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_found_by_its_name() {
        for policy in Policy::ALL {
            assert_eq!(Policy::of_name(&policy.to_string()), Some(policy));
        }
        let window = Policy::Fixed { pages: 5, placed: Placed::Centred };
        assert_eq!(Policy::of_name("centred:5"), Some(window));
        for name in ["", "linux", "linux-6.2", "aligned", "aligned:0", "aligned:-1", "left:3", "windows:8"] {
            assert_eq!(Policy::of_name(name), None, "{name}");
        }
    }
}
