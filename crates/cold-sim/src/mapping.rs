//! The page table of one mapping.

use cold_model::pages::Runs;

use crate::cached::Folio;
use crate::op::{OpenId, Pattern};
use crate::sparse::Sparse;

/// Pages of address space that a page table of the lowest level covers.
pub(crate) const TABLE: u64 = 512;
/// The entry shows the cached page.
const FILE: u8 = 1;
/// The entry shows a copy of its own, made by a write.
const OWN: u8 = 2;
/// One entry for all pages of a table shows a folio.
const HUGE: u8 = 3;

/// A mapping of a part of a file. Pages are those of the file.
#[derive(Debug, Clone)]
pub(crate) struct Mapping {
    pub(crate) open: OpenId,
    /// Address of its first page, in pages.
    pub(crate) address: u64,
    pub(crate) first: u64,
    /// One past its last page.
    pub(crate) end: u64,
    pub(crate) exec: bool,
    pub(crate) pattern: Pattern,
    /// `MADV_HUGEPAGE`, which the other kinds of advice leave as it is.
    pub(crate) huge: bool,
    entries: Sparse,
}

impl Mapping {
    pub(crate) fn new(open: OpenId, address: u64, first: u64, pages: u64, exec: bool) -> Self {
        let (end, pattern) = (first.saturating_add(pages), Pattern::Normal);
        Self { open, address, first, end, exec, pattern, huge: false, entries: Sparse::default() }
    }

    pub(crate) fn has(&self, page: u64) -> bool {
        self.first <= page && page < self.end
    }

    /// Touching it needs no fault.
    #[inline]
    pub(crate) fn mapped(&self, page: u64, write: bool) -> bool {
        let entry = self.entries.get(page);
        entry == OWN || (entry != 0 && !write)
    }

    /// Something is mapped at the page.
    pub(crate) fn filled(&self, page: u64) -> bool {
        self.entries.get(page) != 0
    }

    /// It holds the cached page, which therefore cannot be dropped.
    pub(crate) fn holds(&self, from: u64, to: u64) -> bool {
        let mut at = from;
        while let Some(page) = self.entries.first_set(at, to) {
            if self.entries.get(page) != OWN {
                return true;
            }
            at = page + 1;
        }
        false
    }

    /// The pages that show the cached page.
    pub(crate) fn file_pages(&self) -> Runs {
        self.entries.runs(|entry| entry == FILE || entry == HUGE)
    }

    pub(crate) fn map(&mut self, page: u64) {
        self.entries.set(page, FILE);
    }

    /// Maps a folio that has a whole page table's pages by one entry.
    pub(crate) fn map_huge(&mut self, folio: Folio) {
        (folio.first..folio.end()).for_each(|page| self.entries.set(page, HUGE));
    }

    pub(crate) fn copied(&mut self, page: u64) {
        self.entries.set(page, OWN);
    }

    /// A write to a page that the cache's page is mapped at. Whether the copy is made of it; where one entry maps
    /// a whole table, that goes, and the write faults.
    pub(crate) fn written(&mut self, page: u64) -> bool {
        let huge = self.entries.get(page) == HUGE;
        if huge {
            let (from, to) = self.table(page);
            (from..to).for_each(|page| self.entries.set(page, 0));
        } else {
            self.copied(page);
        }
        !huge
    }

    /// Pages are no longer mapped.
    pub(crate) fn forget(&mut self, pages: &Runs) {
        pages.runs().iter().cloned().flatten().for_each(|page| self.entries.set(page, 0));
    }

    /// The pages that `window` pages of fault-around cover: aligned by address, and from the mapping's begin where
    /// that lies later; not past the mapping, nor the page table.
    pub(crate) fn around(&self, page: u64, window: u64) -> (u64, u64) {
        let address = self.address.saturating_add(page.saturating_sub(self.first));
        let before = (address % window.max(1)).min(page.saturating_sub(self.first));
        let from = page - before;
        let to = from.saturating_add(window).min(self.end).min(self.table(page).1);
        (from, to)
    }

    /// The page table of a page has been made: something in it was mapped.
    pub(crate) fn has_table(&self, page: u64) -> bool {
        let (from, to) = self.table(page);
        self.entries.first_set(from, to).is_some()
    }

    /// The pages of the mapping that share the page table with this one.
    pub(crate) fn table(&self, page: u64) -> (u64, u64) {
        let slot = self.address.saturating_add(page.saturating_sub(self.first)) % TABLE;
        let from = page.saturating_sub(slot).max(self.first);
        (from, page.saturating_add(TABLE - slot).min(self.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_around_is_aligned_by_address_and_clipped() {
        let map = Mapping::new(OpenId(0), 512 + 5, 100, 600, false);
        // Address 517 is page 100: the window of page 105 begins at address 512, before the mapping.
        assert_eq!(map.around(105, 16), (100, 116));
        assert_eq!(map.around(111, 16), (111, 127));
        // Addresses from 1024 on have another table: page 607.
        assert_eq!(map.around(606, 16), (591, 607));
        assert_eq!(map.around(699, 16), (687, 700));
        assert_eq!((map.table(606), map.table(607)), ((100, 607), (607, 700)));
    }

    #[test]
    fn a_written_page_is_no_longer_the_files() {
        let mut map = Mapping::new(OpenId(0), 0, 0, 10, false);
        map.map(3);
        assert!(map.mapped(3, false) && !map.mapped(3, true) && map.holds(0, 10));
        assert!(map.written(3));
        assert!(map.mapped(3, true) && map.filled(3) && !map.holds(0, 10));
    }

    #[test]
    fn a_write_to_a_huge_entry_takes_it_away() {
        let mut map = Mapping::new(OpenId(0), 512, 0, 1024, false);
        map.map_huge(Folio { first: 512, pages: 512 });
        assert!(map.mapped(600, false) && !map.mapped(600, true) && map.holds(600, 601));
        assert!(!map.written(600));
        assert!(!map.filled(512) && !map.filled(1023) && map.file_pages().is_empty());
    }
}
