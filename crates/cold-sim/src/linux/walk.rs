//! Searching the cache for the next and the last missing page, as Linux does it.
//!
//! The kernel keeps a file's folios in a tree of nodes with 64 slots each (an xarray), and its walk keeps
//! two places: the page it is at, and the slot that it looked at. A search that begins inside a large folio
//! looks at the folio's first slot. From there on slot and page are apart by the page's place in the folio,
//! until the walk leaves the node and slots are computed from the page again. So such a search answers
//! with a page that lies too far forward, or too near going back, and read-ahead begins there: seen on
//! Linux 6.18, where windows began one and more pages late.

use crate::cached::Cached;

const SLOTS: u64 = 64;
const BITS: u32 = 6;
/// Shift of a node above all others: no page number has so many bits.
const TOP: u32 = 60;

/// The first missing page from `from` on, as the kernel tells it; `None` where it finds none in `most` steps.
pub(super) fn next_missing(file: &Cached, from: u64, most: u64) -> Option<u64> {
    let Some(mut walk) = Walk::load(file, from) else { return (most > 0).then_some(from) };
    for _ in 1..most {
        if !walk.forward() {
            return Some(walk.page);
        }
    }
    None
}

/// The pages in one run that end with `last`, at most `most`, as the kernel counts them.
pub(super) fn run_before(file: &Cached, last: u64, most: u64) -> u64 {
    let Some(mut walk) = Walk::load(file, last) else { return 0 };
    for met in 1..most {
        if !walk.back() {
            return met;
        }
    }
    // The kernel ends on the last page that it looked at and takes that for the missing one.
    most.saturating_sub(1)
}

struct Walk<'a> {
    file: &'a Cached,
    /// The page it is at.
    page: u64,
    /// Pages of a slot of the node, as a power of two.
    shift: u32,
    /// First page of the node.
    base: u64,
    slot: u64,
}

enum Slot {
    Empty,
    Folio,
    Node,
}

impl<'a> Walk<'a> {
    /// At a page that is there.
    fn load(file: &'a Cached, page: u64) -> Option<Self> {
        let folio = file.folio(page)?;
        let shift = folio.pages.trailing_zeros() / BITS * BITS;
        let base = start(page, shift + BITS);
        Some(Self { file, page, shift, base, slot: (folio.first - base) >> shift })
    }

    fn slot_of_page(&self) -> u64 {
        (self.page >> self.shift) % SLOTS
    }

    /// One page on; whether something is there.
    fn forward(&mut self) -> bool {
        self.page = self.page.saturating_add(1);
        if self.shift == 0 && self.slot + 1 < SLOTS {
            self.slot += 1;
            return self.descend();
        }
        if self.slot != self.slot_of_page() {
            self.slot += 1;
        }
        while self.slot == SLOTS {
            if !self.up() {
                return false;
            }
            self.slot += 1;
        }
        self.descend()
    }

    /// One page back; whether something is there.
    fn back(&mut self) -> bool {
        self.page = self.page.wrapping_sub(1);
        if self.shift == 0 && self.slot > 0 {
            self.slot -= 1;
            return self.descend();
        }
        if self.slot != self.slot_of_page() {
            while self.slot == 0 {
                if !self.up() {
                    return false;
                }
            }
            self.slot -= 1;
        }
        self.descend()
    }

    /// To the node above, at the slot of the one left; false at the top.
    fn up(&mut self) -> bool {
        if self.shift >= TOP {
            return false;
        }
        self.shift += BITS;
        let left = self.base;
        self.base = start(left, self.shift + BITS);
        self.slot = (left - self.base) >> self.shift;
        true
    }

    fn look(&self) -> Slot {
        let first = self.base + (self.slot << self.shift);
        if self.file.page(first).present() && self.file.page(first).order() >= self.shift {
            return Slot::Folio;
        }
        let end = first.saturating_add(1 << self.shift);
        if self.shift > 0 && self.file.any(first, end) { Slot::Node } else { Slot::Empty }
    }

    /// Down from the slot to what is in it.
    fn descend(&mut self) -> bool {
        loop {
            match self.look() {
                Slot::Empty => return false,
                Slot::Folio => return true,
                Slot::Node => {
                    self.base += self.slot << self.shift;
                    self.shift -= BITS;
                    self.slot = self.slot_of_page();
                }
            }
        }
    }
}

/// The first page of the aligned block of `1 << bits` pages around a page.
fn start(page: u64, bits: u32) -> u64 {
    page.checked_shr(bits).and_then(|n| n.checked_shl(bits)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(folios: &[(u64, u32)]) -> Cached {
        let mut file = Cached::new(1 << 20);
        for (first, order) in folios {
            assert!(file.add(*first, *order, false));
        }
        file
    }

    #[test]
    fn single_pages_are_found_where_they_are() {
        let file = cached(&(100..200).map(|n| (n, 0)).collect::<Vec<_>>());
        assert_eq!(next_missing(&file, 100, 1000), Some(200));
        assert_eq!(next_missing(&file, 99, 1000), Some(99));
        assert_eq!(next_missing(&file, 100, 100), None);
        assert_eq!(next_missing(&file, 100, 101), Some(200));
        assert_eq!((run_before(&file, 199, 1000), run_before(&file, 99, 1000)), (100, 0));
    }

    #[test]
    fn a_search_from_inside_a_folio_is_apart_by_its_place_until_the_node_ends() {
        // Pages 8 to 23; from 9 on, two pages of the folio 8 to 15 are looked at a second time.
        let file = cached(&[(8, 3), (16, 3)]);
        assert_eq!(next_missing(&file, 8, 100), Some(24));
        assert_eq!(next_missing(&file, 10, 100), Some(26));
        assert_eq!(run_before(&file, 23, 100), 16 - 7);
        // In the next node the slot follows the page again.
        let file = cached(&(0..16).map(|n| (n * 8, 3)).collect::<Vec<_>>());
        assert_eq!(next_missing(&file, 58, 100), Some(128));
    }

    #[test]
    fn folios_of_whole_nodes_lie_one_level_up() {
        let file = cached(&[(128, 6), (192, 6), (256, 0)]);
        assert_eq!(next_missing(&file, 130, 1000), Some(257));
        assert_eq!(run_before(&file, 256, 1000), 129);
        assert_eq!(run_before(&cached(&[(0, 0)]), 0, 100), 1);
    }
}
