//! What the starts of a program need, by its prefetch file, and what reading it takes.

use super::{LAUNCHES, PAGE, Prefetch};

/// Sizes of the aligned windows that requests are counted for, bytes: the clusters of Windows for images and data,
/// Linux' usual read-ahead, and a huge page.
pub const WINDOWS: [u64; 4] = [16 << 10, 32 << 10, 128 << 10, 2 << 20];

/// Sums over all files. "Needed" are the pages that Windows would prefetch at the next start: those that enough of the
/// last launches used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// Pages that any of the last eight launches used.
    pub known: u64,
    /// Pages that Windows would prefetch at the next start.
    pub needed: u64,
    /// Of the needed, those that were used as image, and as data; a page may be both.
    pub image: u64,
    /// As `image`, of pages mapped as data.
    pub data: u64,
    /// Of the needed, those that every launch used that the history reaches.
    pub stable: u64,
    /// Runs of needed pages that stand one behind the other.
    pub runs: u64,
    /// Requests that fetch the needed pages in aligned windows of [`WINDOWS`] each.
    pub requests: [u64; 4],
}

impl Needs {
    pub(super) fn of(p: &Prefetch) -> Self {
        let mut out = Self::default();
        // A program that ran less than eight times has no longer history.
        let launches = p.run_count.clamp(1, LAUNCHES);
        let all = (0xff_u16 >> (LAUNCHES - launches)) as u8;
        for file in &p.files {
            let mut last: Option<u64> = None;
            let mut windows = [None; WINDOWS.len()];
            out.known += file.pages.len() as u64;
            for page in file.pages.iter().filter(|page| !page.ignored()) {
                out.needed += 1;
                out.image += u64::from(page.image());
                out.data += u64::from(page.data());
                out.stable += u64::from(page.used & all == all);
                out.runs += u64::from(last.is_none_or(|last| page.offset != last + PAGE));
                last = Some(page.offset);
                for ((size, count), seen) in WINDOWS.iter().zip(&mut out.requests).zip(&mut windows) {
                    // A page of an image may lie across two windows.
                    for window in page.offset / size..=(page.offset + PAGE - 1) / size {
                        *count += u64::from(seen.is_none_or(|seen| seen < window));
                        *seen = (*seen).max(Some(window));
                    }
                }
            }
        }
        out
    }

    /// Bytes of a run of needed pages, on average; `None` where nothing is needed.
    pub fn mean_run_bytes(&self) -> Option<u64> {
        (self.needed * PAGE).checked_div(self.runs)
    }

    /// Adds another program's.
    pub fn add(&mut self, other: &Self) {
        self.known += other.known;
        self.needed += other.needed;
        self.image += other.image;
        self.data += other.data;
        self.stable += other.stable;
        self.runs += other.runs;
        for (sum, n) in self.requests.iter_mut().zip(other.requests) {
            *sum += n;
        }
    }
}
