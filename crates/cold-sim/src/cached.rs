//! The cached pages of one file, in folios.

use cold_model::pages::Runs;

use crate::sparse::Sparse;

const PRESENT: u8 = 0x80;
const READY: u8 = 0x40;
const MARKED: u8 = 0x20;
const ORDER: u8 = 0x0f;

/// What the cache knows of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Page(u8);

impl Page {
    /// In the cache, or coming.
    pub(crate) fn present(self) -> bool {
        self.0 & PRESENT != 0
    }
    /// In the cache and readable.
    pub(crate) fn ready(self) -> bool {
        self.0 & READY != 0
    }
    /// Its folio carries the marker that starts the next read-ahead.
    pub(crate) fn marked(self) -> bool {
        self.0 & MARKED != 0
    }
    /// Its folio has `1 << order` pages.
    pub(crate) fn order(self) -> u32 {
        u32::from(self.0 & ORDER)
    }
}

/// Pages that are cached, marked and read together. It begins at a multiple of its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Folio {
    /// Number of its first page in the file.
    pub(crate) first: u64,
    /// Pages, a power of two.
    pub(crate) pages: u64,
}

impl Folio {
    /// One past the last page.
    pub(crate) fn end(self) -> u64 {
        self.first.saturating_add(self.pages)
    }
}

/// The cached pages of one file.
#[derive(Debug, Clone)]
pub(crate) struct Cached {
    /// Pages of the file.
    pub(crate) pages: u64,
    states: Sparse,
}

impl Cached {
    /// Nothing of a file of so many pages.
    pub(crate) fn new(pages: u64) -> Self {
        Self { pages, states: Sparse::default() }
    }

    #[inline]
    pub(crate) fn page(&self, page: u64) -> Page {
        Page(self.states.get(page))
    }

    /// The folio that holds a page.
    pub(crate) fn folio(&self, page: u64) -> Option<Folio> {
        let state = self.page(page);
        let pages = 1 << state.order();
        state.present().then_some(Folio { first: page - page % pages, pages })
    }

    /// The readable pages.
    pub(crate) fn ready_pages(&self) -> Runs {
        self.states.runs(|state| state & READY != 0)
    }

    /// Something of `from..to` is in the cache or coming.
    pub(crate) fn any(&self, from: u64, to: u64) -> bool {
        self.states.first_set(from, to).is_some()
    }

    /// The first page of `from..to` that is in the cache or coming.
    pub(crate) fn next_present(&self, from: u64, to: u64) -> Option<u64> {
        self.states.first_set(from, to)
    }

    /// Puts a folio in, to be read. False, and nothing is done, where one of its pages is there already.
    pub(crate) fn add(&mut self, first: u64, order: u32, marked: bool) -> bool {
        let end = first.saturating_add(1 << order);
        if self.any(first, end) {
            return false;
        }
        let mark = if marked { MARKED } else { 0 };
        for page in first..end {
            self.states.set(page, PRESENT | mark | (order as u8 & ORDER));
        }
        true
    }

    /// A read of these pages has ended. Folios become readable as a whole: they are never read in parts.
    pub(crate) fn arrive(&mut self, first: u64, pages: u64) {
        let end = first.saturating_add(pages);
        let mut at = first;
        while let Some(page) = self.states.first_set(at, end) {
            self.states.set(page, self.states.get(page) | READY);
            at = page + 1;
        }
    }

    /// Takes the marker off a folio.
    pub(crate) fn unmark(&mut self, folio: Folio) {
        for page in folio.first..folio.end() {
            self.states.set(page, self.states.get(page) & !MARKED);
        }
    }

    /// Takes a folio out.
    pub(crate) fn remove(&mut self, folio: Folio) {
        for page in folio.first..folio.end() {
            self.states.set(page, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folio_comes_is_marked_and_goes_as_a_whole() {
        let mut file = Cached::new(100);
        assert!(file.add(8, 3, true) && file.add(4, 0, false));
        assert!(!file.add(4, 2, false), "its first page is there");
        assert!(!file.add(12, 1, false), "inside another");
        let folio = Folio { first: 8, pages: 8 };
        assert_eq!(
            (file.folio(13), file.folio(4), file.folio(5)),
            (Some(folio), Some(Folio { first: 4, pages: 1 }), None)
        );
        assert!(file.page(15).marked() && !file.page(15).ready());
        file.arrive(0, 16);
        file.unmark(folio);
        assert!(file.page(15).ready() && !file.page(8).marked() && !file.page(3).present());
        file.remove(folio);
        assert!(!file.any(5, 100) && file.any(0, 5));
    }
}
