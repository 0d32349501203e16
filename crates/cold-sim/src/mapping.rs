//! The page table of one mapping.

use std::collections::BTreeSet;

use cold_model::pages::Runs;

use crate::cached::Folio;
use crate::op::{Huge, MapAdvice, OpenId, Pattern};
use crate::sparse::Sparse;

/// Pages of address space that a page table of the lowest level covers.
const TABLE: u64 = 512;
/// The entry shows the cached page.
const FILE: u8 = 1;
/// The entry shows a copy of its own, made by a write.
const OWN: u8 = 2;
/// One entry for all pages of a table shows a folio.
const HUGE: u8 = 3;
/// The program used the entry since somebody looked.
const USED: u8 = 0x80;

/// A mapping of a part of a file. Pages are those of the file.
#[derive(Debug, Clone)]
pub(crate) struct Mapping {
    pub(crate) open: OpenId,
    /// Address of its first page, in pages.
    address: u64,
    first: u64,
    /// One past its last page.
    end: u64,
    pub(crate) exec: bool,
    /// What was said of its parts: where each begins, and neighbours of which the same was said are one.
    said: Vec<(u64, Said)>,
    /// Written parts have had a number each.
    written: u32,
    entries: Sparse,
    /// Page tables, by address, that have been made and may have no entry any more.
    tables: BTreeSet<u64>,
}

/// What was said of a part of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Said {
    pattern: Pattern,
    huge: Huge,
    /// Of a part with copies of its own: parts that were written while they were apart never become one again
    /// (Linux' `anon_vma`).
    copies: Option<u32>,
}

impl Said {
    /// With its neighbour it is one mapping: what is said of both.
    fn joined(self, other: Self) -> Option<Self> {
        let copies = self.copies.or(other.copies);
        let alike = [self, other].map(|said| Self { copies: said.copies.or(copies), ..said });
        (alike[0] == alike[1]).then_some(alike[0])
    }
}

/// A part of a mapping of which the same was said; to the kernel a mapping of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) first: u64,
    /// One past its last page.
    pub(crate) end: u64,
    pub(crate) pattern: Pattern,
    pub(crate) huge: Huge,
}

impl Mapping {
    pub(crate) fn new(open: OpenId, address: u64, first: u64, pages: u64, exec: bool) -> Self {
        Self {
            open,
            address,
            first,
            end: first.saturating_add(pages),
            exec,
            said: vec![(first, Said::default())],
            written: 0,
            entries: Sparse::default(),
            tables: BTreeSet::new(),
        }
    }

    pub(crate) fn has(&self, page: u64) -> bool {
        self.first <= page && page < self.end
    }

    /// The part that holds a page.
    pub(crate) fn part(&self, page: u64) -> Part {
        let next = self.said.partition_point(|(first, _)| *first <= page);
        let end = self.said.get(next).map_or(self.end, |(first, _)| *first);
        let (first, said) = self.said.get(next.saturating_sub(1)).copied().unwrap_or_default();
        Part { first, end, pattern: said.pattern, huge: said.huge }
    }

    /// Something is said of so many pages, as far as they are its own.
    pub(crate) fn advise(&mut self, first: u64, pages: u64, advice: MapAdvice) {
        let (from, to) = self.within(first, pages);
        if from >= to {
            return;
        }
        self.cut(from);
        self.cut(to);
        for (_, said) in self.said.iter_mut().filter(|(first, _)| (from..to).contains(first)) {
            match advice {
                MapAdvice::Pattern(pattern) => said.pattern = pattern,
                MapAdvice::Huge(huge) => said.huge = huge,
            }
        }
        self.said.dedup_by(|(_, next), (_, before)| {
            let joined = before.joined(*next);
            *before = joined.unwrap_or(*before);
            joined.is_some()
        });
        // An entry for a whole table cannot show pages of two mappings.
        for edge in [from, to] {
            let cut = self.said.iter().any(|(first, _)| *first == edge);
            if cut && self.entry(edge) == HUGE && self.table(edge).0 != edge {
                self.split(edge);
            }
        }
    }

    /// A part begins here.
    fn cut(&mut self, page: u64) {
        let Err(at) = self.said.binary_search_by_key(&page, |(first, _)| *first) else { return };
        if let Some((_, said)) = at.checked_sub(1).and_then(|before| self.said.get(before).copied())
            && page < self.end
        {
            self.said.insert(at, (page, said));
        }
    }

    /// Those of so many pages that it has.
    pub(crate) fn within(&self, first: u64, pages: u64) -> (u64, u64) {
        (first.max(self.first), first.saturating_add(pages).min(self.end))
    }

    /// Touching it needs no fault.
    #[inline]
    pub(crate) fn mapped(&self, page: u64, write: bool) -> bool {
        let entry = self.entry(page);
        entry == OWN || (entry != 0 && !write)
    }

    /// What is mapped at a page.
    #[inline]
    fn entry(&self, page: u64) -> u8 {
        self.entries.get(page) & !USED
    }

    /// The program used a page that is mapped.
    pub(crate) fn touched(&mut self, page: u64) {
        if self.filled(page) {
            self.entries.set(page, self.entries.get(page) | USED);
        }
    }

    /// Whether something of the file in `from..to` was used since the last look.
    pub(crate) fn take_used(&mut self, from: u64, to: u64) -> bool {
        let (mut at, mut used) = (from, false);
        while let Some(page) = self.entries.first_set(at, to) {
            let entry = self.entry(page);
            used |= entry != OWN && self.entries.get(page) != entry;
            self.entries.set(page, entry);
            at = page.saturating_add(1);
        }
        used
    }

    /// A folio is no longer cached. Copies stay.
    pub(crate) fn evicted(&mut self, folio: Folio) {
        let (mut at, to) = self.within(folio.first, folio.pages);
        while let Some(page) = self.entries.first_set(at, to) {
            if self.entry(page) != OWN {
                self.forget(page, page.saturating_add(1));
            }
            at = page.saturating_add(1);
        }
    }

    /// Something is mapped at the page.
    pub(crate) fn filled(&self, page: u64) -> bool {
        self.entries.get(page) != 0
    }

    /// It holds the cached page, which therefore cannot be dropped.
    pub(crate) fn holds(&self, from: u64, to: u64) -> bool {
        let mut at = from;
        while let Some(page) = self.entries.first_set(at, to) {
            if self.entry(page) != OWN {
                return true;
            }
            at = page + 1;
        }
        false
    }

    /// The pages that show the cached page.
    pub(crate) fn file_pages(&self) -> Runs {
        self.entries.runs(|entry| matches!(entry & !USED, FILE | HUGE))
    }

    /// What is mapped around a fault counts as used, too (not so on arm64).
    pub(crate) fn map(&mut self, page: u64) {
        self.entries.set(page, FILE | USED);
    }

    /// Maps a folio that has a whole page table's pages by one entry.
    pub(crate) fn map_huge(&mut self, folio: Folio) {
        (folio.first..folio.end()).for_each(|page| self.entries.set(page, HUGE | USED));
    }

    pub(crate) fn copied(&mut self, page: u64) {
        let at = self.said.partition_point(|(first, _)| *first <= page).saturating_sub(1);
        if let Some((_, said)) = self.said.get_mut(at).filter(|(_, said)| said.copies.is_none()) {
            said.copies = Some(self.written);
            self.written = self.written.saturating_add(1);
        }
        self.entries.set(page, OWN);
    }

    /// A write to a page that the cache's page is mapped at. Whether the copy is made of it; where one entry maps
    /// a whole table, that goes, and the write faults.
    pub(crate) fn written(&mut self, page: u64) -> bool {
        let huge = self.entry(page) == HUGE;
        if huge {
            self.split(page);
        } else {
            self.copied(page);
        }
        !huge
    }

    /// The entry for a whole table goes, and none comes in its place.
    fn split(&mut self, page: u64) {
        let (from, to) = self.table(page);
        (from..to).for_each(|page| self.entries.set(page, 0));
    }

    /// Pages are no longer mapped. An entry for a whole table goes as a whole; a table stays.
    pub(crate) fn forget(&mut self, from: u64, to: u64) {
        let mut at = from;
        while let Some(page) = self.entries.first_set(at, to) {
            at = page.saturating_add(1);
            if self.entry(page) == HUGE {
                self.split(page);
            } else {
                self.entries.set(page, 0);
                self.tables.insert(self.address_of(page) / TABLE);
            }
        }
    }

    fn address_of(&self, page: u64) -> u64 {
        self.address.saturating_add(page.saturating_sub(self.first))
    }

    /// The pages that `window` pages of fault-around cover: aligned by address, and from the part's begin where
    /// that lies later; not past the part, nor the page table.
    pub(crate) fn around(&self, page: u64, window: u64) -> (u64, u64) {
        let part = self.part(page);
        let before = (self.address_of(page) % window.max(1)).min(page.saturating_sub(part.first));
        let from = page - before;
        let to = from.saturating_add(window).min(part.end).min(self.table(page).1);
        (from, to)
    }

    /// The page table of a page has been made: something in it was mapped.
    pub(crate) fn has_table(&self, page: u64) -> bool {
        let (from, to) = self.table(page);
        self.tables.contains(&(self.address_of(page) / TABLE)) || self.entries.first_set(from, to).is_some()
    }

    /// The pages of the mapping that share the page table with this one.
    fn table(&self, page: u64) -> (u64, u64) {
        let slot = self.address_of(page) % TABLE;
        let from = page.saturating_sub(slot).max(self.first);
        (from, page.saturating_add(TABLE - slot).min(self.end))
    }

    /// The page's part and its page table have room for all of a folio.
    pub(crate) fn fits(&self, folio: Folio, page: u64) -> bool {
        let (part, (from, to)) = (self.part(page), self.table(page));
        from.max(part.first) <= folio.first && folio.end() <= to.min(part.end)
    }

    /// One entry can map the folio in place of a page table, and may.
    pub(crate) fn fills_table(&self, folio: Folio, page: u64) -> bool {
        let whole = self.table(page) == (folio.first, folio.end()) && folio.pages == TABLE;
        whole && self.fits(folio, page) && self.part(page).huge != Huge::Unwanted
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
    fn what_is_said_of_a_part_divides_a_mapping_until_the_same_is_said_of_all() {
        use Pattern::{Normal, Random};
        let mut map = Mapping::new(OpenId(0), 0, 100, 100, true);
        let random = MapAdvice::Pattern(Pattern::Random);
        map.advise(120, 30, random);
        map.advise(150, 1000, MapAdvice::Huge(Huge::Unwanted));
        let parts = |map: &Mapping| {
            [100, 120, 150].map(|page| {
                let part = map.part(page);
                (part.first, part.end, part.pattern, part.huge)
            })
        };
        assert_eq!(
            parts(&map),
            [
                (100, 120, Normal, Huge::Untold),
                (120, 150, Random, Huge::Untold),
                (150, 200, Normal, Huge::Unwanted)
            ]
        );
        // Address 32 is page 132; the window of page 121 begins with its part.
        assert_eq!((map.around(121, 16), map.around(149, 16)), ((120, 136), (148, 150)));
        assert!(
            map.fits(Folio { first: 120, pages: 8 }, 121) && !map.fits(Folio { first: 112, pages: 16 }, 121)
        );
        map.advise(120, 30, MapAdvice::Pattern(Normal));
        assert_eq!((map.part(100).end, map.part(199).first), (150, 150));
        map.copied(110);
        map.copied(160);
        map.advise(0, 1000, MapAdvice::Huge(Huge::Wanted));
        assert_eq!(map.part(100).end, 150, "both were written while they were apart");
        map.advise(300, 10, random);
        map.advise(0, 50, random);
        assert_eq!(map.part(100).pattern, Normal, "what it does not have it is not told of");
    }

    #[test]
    fn a_huge_entry_goes_with_a_part_of_it_and_a_table_stays_without_entries() {
        let mut map = Mapping::new(OpenId(0), 512, 0, 2048, false);
        let huge = |first| Folio { first, pages: 512 };
        for first in [0, 512, 1024] {
            map.map_huge(huge(first));
        }
        map.advise(512, 512, MapAdvice::Pattern(Pattern::Random));
        assert!(map.filled(600), "cut at its ends");
        map.advise(600, 10, MapAdvice::Pattern(Pattern::Normal));
        assert!(!map.filled(512) && !map.filled(1023) && map.filled(511) && map.filled(1024));
        map.forget(100, 101);
        assert!(!map.filled(0) && !map.has_table(0), "there was none");
        map.map(1600);
        map.forget(1600, 1601);
        assert!(!map.filled(1600) && map.has_table(1600));
        map.advise(0, 512, MapAdvice::Huge(Huge::Unwanted));
        assert!(!map.fills_table(huge(0), 3) && map.fills_table(huge(1024), 1030));
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
