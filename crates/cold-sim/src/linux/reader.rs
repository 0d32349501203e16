//! Read-ahead: which window a miss or a marker asks for, and in which folios it comes.

use crate::cached::{Cached, Folio};
use crate::op::{FileId, PageRead, Pattern, Why};

use super::rules::{Folios, Rules};
use super::walk::{next_missing, run_before};

/// Pages of a block of `MADV_HUGEPAGE` are this power of two: 2 MiB of 4 KiB pages.
pub(super) const HUGE_ORDER: u32 = 9;
/// Misses beyond which read-around is given up.
const TOO_MANY_MISSES: u32 = 100;
/// Misses are not counted beyond.
const MOST_MISSES: u32 = 1000;
/// A call that asks for pages is cut into pieces of so many bytes.
const PIECE: u64 = 2 << 20;

/// Read-ahead state of an open file. Pages.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadAhead {
    /// First page of the window that was read last.
    pub(crate) start: u64,
    /// Pages of that window.
    pub(crate) size: u64,
    /// Pages from its marker to its end.
    pub(crate) ahead: u64,
    /// Size of its folios as a power of two.
    pub(crate) order: u32,
    /// The largest window.
    pub(crate) window: u64,
    /// Misses of faults that were not taken back.
    pub(crate) misses: u32,
    /// The byte behind the last read.
    pub(crate) previous: Option<u64>,
    /// `POSIX_FADV_RANDOM`: what is asked for is read and nothing else.
    pub(crate) exact: bool,
}

impl ReadAhead {
    /// A hit takes a miss back.
    pub(crate) fn forgive(&mut self, hits: u32) {
        self.misses = self.misses.saturating_sub(hits);
    }
}

/// What a mapping says of a fault.
pub(crate) struct Faulted {
    /// Page of the file.
    pub(crate) page: u64,
    /// First page of the file that the mapping has.
    pub(crate) map_first: u64,
    /// One past its last page.
    pub(crate) map_end: u64,
    pub(crate) exec: bool,
    pub(crate) pattern: Pattern,
    /// `MADV_HUGEPAGE`.
    pub(crate) huge: bool,
}

/// What a file's device and file system allow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of a page.
    pub(crate) page_bytes: u64,
    /// Pages of the device's largest request.
    pub(crate) io_pages: u64,
    /// The largest folio as a power of two; 0 without large folios.
    pub(crate) max_order: u32,
    /// Folios for code, as a power of two.
    pub(crate) exec_order: u32,
}

/// Reads pages of one file for one open file.
pub(crate) struct Reader<'a> {
    pub(crate) rules: &'a Rules,
    pub(crate) limits: Limits,
    pub(crate) id: FileId,
    pub(crate) file: &'a mut Cached,
    pub(crate) ra: &'a mut ReadAhead,
    pub(crate) reads: &'a mut Vec<PageRead>,
}

impl Reader<'_> {
    /// A fault on a page that is not cached.
    pub(crate) fn fault(&mut self, fault: &Faulted) {
        if fault.huge && self.rules.huge {
            self.huge(fault);
        } else {
            self.around(fault);
        }
        self.at_least(fault.page);
    }

    /// The page itself, should no window have read it.
    fn at_least(&mut self, page: u64) {
        if !self.file.page(page).present() && self.file.add(page, 0, false) {
            self.send(page, page.saturating_add(1), 0, Why::Demand);
        }
    }

    fn huge(&mut self, fault: &Faulted) {
        let block = 1 << HUGE_ORDER;
        let start = fault.page - fault.page % block;
        // The second block is ahead.
        self.ra.size = if fault.pattern == Pattern::Random { block } else { 2 * block };
        self.ra.ahead = block;
        self.ra.order = HUGE_ORDER;
        self.window_at(start, HUGE_ORDER, Why::Demand);
    }

    fn around(&mut self, fault: &Faulted) {
        let forward = fault.exec && self.rules.code_forward;
        if self.ra.window == 0 || (fault.pattern == Pattern::Random && !forward) {
            return;
        }
        if fault.pattern == Pattern::Sequential {
            return self.miss(fault.page, self.ra.window);
        }
        if !(fault.exec && self.rules.code_never_misses) {
            self.ra.misses = (self.ra.misses + 1).min(MOST_MISSES);
            if self.ra.misses > TOO_MANY_MISSES {
                return;
            }
        }
        let window = self.ra.window;
        if forward {
            let order = self.limits.exec_order;
            let aligned = fault.page >> order << order;
            let start = aligned.max(fault.map_first);
            let end = start.saturating_add(window).next_multiple_of(1 << order).min(fault.map_end);
            (self.ra.start, self.ra.size, self.ra.ahead) = (start, end.saturating_sub(start), 0);
            self.ra.order = order;
        } else {
            self.ra.start = fault.page.saturating_sub(window / 2);
            (self.ra.size, self.ra.ahead) = (window, window / 4);
            self.ra.order = 0;
        }
        self.window_at(self.ra.start, self.ra.order, Why::Demand);
    }

    /// The largest window for a request.
    fn most(&self, request: u64) -> u64 {
        let (window, io) = (self.ra.window, self.limits.io_pages);
        if request > window && io > window { request.min(io) } else { window }
    }

    /// A page is missing that a read, or a fault in a sequential mapping, asks for, with `request` pages in all.
    pub(crate) fn miss(&mut self, page: u64, request: u64) {
        if self.ra.window == 0 || self.ra.exact {
            let request = if self.ra.window == 0 { 1 } else { request };
            self.asked(page, request, Why::Demand);
        } else if self.rules.on_demand {
            self.on_demand(page, None, request);
        } else {
            self.miss_since_6_12(page, request);
        }
        self.at_least(page);
    }

    fn miss_since_6_12(&mut self, page: u64, request: u64) {
        let most = self.most(request);
        if page == 0 || request > most || self.follows(page) {
            self.ra.size = first_window(request, most);
            let beyond = self.ra.size.checked_sub(request).filter(|n| *n > 0);
            self.ra.ahead = beyond.unwrap_or(self.ra.size / 2);
        } else {
            let before = run_before(self.file, page - 1, most);
            if before <= request {
                return self.plain(page, request, 0, Why::Demand);
            }
            self.continues(page, request, before, most);
        }
        self.ra.start = page;
        self.ra.order = 0;
        self.window_at(page, 0, Why::Demand);
    }

    /// The page is the last one of the read before or the one behind it.
    fn follows(&self, page: u64) -> bool {
        let previous = self.ra.previous.map(|byte| byte / self.limits.page_bytes);
        previous.is_some_and(|previous| page == previous || page == previous.saturating_add(1))
    }

    /// A stream whose earlier pages are cached: as many as those again.
    fn continues(&mut self, page: u64, request: u64, before: u64, most: u64) {
        let before = if before >= page { before.saturating_mul(2) } else { before };
        self.ra.start = page;
        self.ra.size = before.saturating_add(request).min(most);
        self.ra.ahead = 1;
    }

    /// A page with the marker was met.
    pub(crate) fn marker(&mut self, page: u64, folio: Folio, request: u64) {
        if self.ra.window == 0 {
            return;
        }
        self.file.unmark(folio);
        let most = self.most(request);
        if self.rules.on_demand {
            return self.on_demand(page, Some(folio), request);
        }
        if page == self.expected(folio.pages) {
            self.ra.start = self.ra.start.saturating_add(self.ra.size);
            self.ra.size = self.next_in_line(most);
        } else {
            let Some(start) = self.gap(page, most) else { return };
            self.ra.start = start;
            self.ra.size = next_window((start - page).saturating_add(request), most);
        }
        self.ra.ahead = self.ra.size;
        let order = match self.rules.folios {
            Folios::Kept => {
                self.ra.order += 2;
                self.end_aligned(self.ra.order.min(most.trailing_zeros()));
                self.ra.order
            }
            _ => folio.pages.trailing_zeros(),
        };
        self.window_at(self.ra.start, order, Why::Ahead);
    }

    /// Pages of the window that follows the last one.
    fn next_in_line(&self, most: u64) -> u64 {
        let least = if self.rules.never_shrinks { self.ra.size } else { 0 };
        next_window(self.ra.size, most).max(least)
    }

    /// Where the marker of the last window is.
    fn expected(&self, folio_pages: u64) -> u64 {
        let mark = self.ra.start.saturating_add(self.ra.size).saturating_sub(self.ra.ahead);
        mark - mark % folio_pages
    }

    /// The next missing page behind `page`, if it is near.
    fn gap(&self, page: u64, most: u64) -> Option<u64> {
        let found = next_missing(self.file, page.saturating_add(1), most);
        // To 6.1 the search ended on the last page that it looked at, and that counted as missing.
        let last = self.rules.on_demand.then_some(page.saturating_add(most));
        let start = found.or(last)?;
        (start - page <= most).then_some(start)
    }

    /// Ends the window at a multiple of a folio, where something is left of it.
    fn end_aligned(&mut self, order: u32) {
        let end = self.ra.start.saturating_add(self.ra.size);
        let aligned = end >> order << order;
        if aligned > self.ra.start {
            self.ra.size = aligned - self.ra.start;
        }
        self.ra.ahead = self.ra.size;
    }

    /// The rule to 6.1, for misses and markers alike.
    fn on_demand(&mut self, page: u64, marked: Option<Folio>, request: u64) {
        let most = self.most(request);
        let behind = self.ra.start.saturating_add(self.ra.size);
        if page > 0 && (page == self.expected(marked.map_or(1, |f| f.pages)) || page == behind) {
            self.ra.start = behind;
            self.ra.size = self.next_in_line(most);
            self.ra.ahead = self.ra.size;
        } else if let Some(_folio) = marked.filter(|_| page > 0) {
            let Some(start) = self.gap(page, most) else { return };
            self.ra.start = start;
            self.ra.size = next_window((start - page).saturating_add(request), most);
            self.ra.ahead = self.ra.size;
        } else if page == 0 || request > most || self.follows(page) {
            self.ra.start = page;
            self.ra.size = first_window(request, most);
            let beyond = self.ra.size.checked_sub(request).filter(|n| *n > 0);
            self.ra.ahead = beyond.unwrap_or(self.ra.size);
        } else {
            let before = run_before(self.file, page - 1, most);
            if before <= request {
                return self.plain(page, request, 0, Why::Demand);
            }
            self.continues(page, request, before, most);
        }
        self.merged_with_next(page, most);
        let why = if marked.is_some() { Why::Ahead } else { Why::Demand };
        self.window_at(self.ra.start, marked.map_or(0, |f| f.pages.trailing_zeros()), why);
    }

    /// A window that begins at this page and with its own marker takes the next one in.
    fn merged_with_next(&mut self, page: u64, most: u64) {
        if page != self.ra.start || self.ra.size != self.ra.ahead {
            return;
        }
        let next = next_window(self.ra.size, most);
        if self.ra.size.saturating_add(next) <= most {
            self.ra.ahead = next;
            self.ra.size += next;
        } else {
            (self.ra.size, self.ra.ahead) = (most, most / 2);
        }
    }

    /// Reads the pages that a call asks for, as many as the device takes at once; no marker.
    pub(crate) fn asked(&mut self, first: u64, pages: u64, why: Why) {
        let mut left = pages.min(self.limits.io_pages.max(self.ra.window));
        let (mut at, piece) = (first, (PIECE / self.limits.page_bytes).max(1));
        while left > 0 {
            let now = left.min(piece);
            self.plain(at, now, 0, why);
            at = at.saturating_add(now);
            left -= now;
        }
    }

    /// Reads the window of the state, in folios of `order` to begin with.
    fn window_at(&mut self, first: u64, order: u32, why: Why) {
        let size = self.ra.size;
        let Some(order) = self.order_for(order, size) else {
            if self.rules.folios == Folios::Kept {
                self.ra.order = 0;
            }
            return self.plain(first, size, self.ra.ahead, why);
        };
        if self.rules.folios == Folios::Kept {
            self.ra.order = order;
        }
        let mark = first.saturating_add(size).saturating_sub(self.ra.ahead);
        let end = first.saturating_add(size).min(self.file.pages);
        let marks = self.marks(first, size);
        let mut at = first;
        while at < end {
            let order = self.fitting(at, end, order);
            let pages = 1 << order;
            let marked = marks && at == mark - mark % pages;
            if !self.file.add(at, order, marked) {
                break;
            }
            at += pages;
        }
        self.send(first, at, order, why);
        if at < end {
            // A page was there: the rest comes in single pages.
            let done = if self.rules.rest_only { at - first } else { 0 };
            self.plain(at, size.saturating_sub(done), self.ra.ahead, why);
        }
    }

    /// A window of so many pages gets a marker.
    fn marks(&self, first: u64, pages: u64) -> bool {
        !self.rules.no_marker_at_end || first.saturating_add(pages) < self.file.pages
    }

    /// The order that folios of a window of `size` have; `None`: single pages, by the plain rule.
    fn order_for(&self, order: u32, size: u64) -> Option<u32> {
        let max = self.limits.max_order;
        if max == 0 || size == 0 {
            return None;
        }
        let fits = size.ilog2();
        match self.rules.folios {
            Folios::Single => None,
            Folios::Kept => Some(order.min(max).min(fits)),
            Folios::Grow | Folios::GrowNoPairs if size < 4 => None,
            Folios::Grow | Folios::GrowNoPairs => {
                Some(if order < max { (order + 2).min(max).min(fits) } else { order })
            }
        }
    }

    /// The order of the folio at a page: aligned, and not beyond the window or the file.
    fn fitting(&self, at: u64, end: u64, order: u32) -> u32 {
        let no_pairs = self.rules.folios == Folios::GrowNoPairs;
        let mut order = order.min(at.trailing_zeros());
        while order > 0 && (at + (1 << order) > end || (no_pairs && order == 1)) {
            order -= 1;
        }
        order
    }

    /// Reads `pages` from `first` on in single pages, past those that are there. The marker is `ahead` pages
    /// before the end, unless a page is there already.
    fn plain(&mut self, first: u64, pages: u64, ahead: u64, why: Why) {
        let end = first.saturating_add(pages).min(self.file.pages);
        if first >= end {
            return;
        }
        let mark = (end - first).checked_sub(ahead).filter(|_| self.marks(first, pages)).map(|n| first + n);
        let mut at = first;
        while at < end {
            let hole = self.file.next_present(at, end).unwrap_or(end);
            for page in at..hole {
                self.file.add(page, 0, Some(page) == mark);
            }
            self.send(at, hole, 0, why);
            at = self.file.folio(hole).map_or(hole, super::super::cached::Folio::end);
        }
    }

    fn send(&mut self, first: u64, end: u64, order: u32, why: Why) {
        if first < end {
            self.reads.push(PageRead { file: self.id, first, pages: end - first, order, why });
        }
    }
}

/// The first window for a request of so many pages.
fn first_window(request: u64, most: u64) -> u64 {
    let size = request.checked_next_power_of_two().unwrap_or(most);
    if size <= most / 32 {
        size * 4
    } else if size <= most / 4 {
        size * 2
    } else {
        most
    }
}

/// The window after one of so many pages.
fn next_window(size: u64, most: u64) -> u64 {
    if size < most / 16 {
        size * 4
    } else if size <= most / 2 {
        size * 2
    } else {
        most
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linux::LinuxVersion;

    proptest! {
        /// What a read says of its folios is what is in the cache.
        #[test]
        fn reads_tell_the_folios_that_were_added(
            version in prop::sample::select(vec![LinuxVersion::V5_10, LinuxVersion::V6_12, LinuxVersion::V6_18]),
            pages in 1_u64..3000,
            window in 1_u64..600,
            misses in prop::collection::vec((0_u64..3000, 1_u64..100), 1..20),
        ) {
            let limits = Limits { page_bytes: 4096, io_pages: 256, max_order: 9, exec_order: 0 };
            let (mut file, mut reads) = (Cached::new(pages), Vec::new());
            let mut ra = ReadAhead { window, ..ReadAhead::default() };
            for (page, request) in misses {
                let page = page % pages;
                let mut reader = Reader {
                    rules: version.rules(),
                    limits,
                    id: FileId(0),
                    file: &mut file,
                    ra: &mut ra,
                    reads: &mut reads,
                };
                match reader.file.folio(page) {
                    Some(folio) if reader.file.page(page).marked() => reader.marker(page, folio, request),
                    Some(_) => {}
                    None => reader.miss(page, request),
                }
            }
            for read in &reads {
                let mut at = read.first;
                while at < read.first + read.pages {
                    prop_assert_eq!(file.folio(at).map(Folio::end), Some(read.folio_end(at)));
                    at = read.folio_end(at);
                }
            }
        }
    }
}
