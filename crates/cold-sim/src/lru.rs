//! Which folios go when there is no room: Linux' two lists of file pages (without the multi-generational one).
//!
//! What comes is inactive. What is used twice there becomes active. Folios are taken from the old end of the inactive
//! list; while that is the shorter one, active ones become inactive. A folio that comes back after fewer evictions than
//! there are active pages becomes active at once (the refault distance). Source: mm/vmscan.c, mm/swap.c and
//! mm/workingset.c of Linux 6.12.

use std::collections::HashMap;

use crate::cached::Folio;
use crate::op::FileId;

/// Pages that are freed together at least (`SWAP_CLUSTER_MAX`).
pub(crate) const BATCH: u64 = 32;
/// Pages of the active list that are looked at together, at most.
const MOST_ACTIVE: u64 = 8 * BATCH;
/// Stands for no node, as null would.
const NONE: usize = usize::MAX;

type Key = (FileId, u64);

/// A folio in one of the lists.
#[derive(Debug, Clone, Copy)]
struct Node {
    file: FileId,
    folio: Folio,
    active: bool,
    /// It was used once since it came to its list (`PG_referenced`).
    referenced: bool,
    /// Somebody waited for it and has not used it yet: it stays, as if he held it.
    awaited: bool,
    newer: usize,
    older: usize,
}

/// One of the lists, the newest first.
#[derive(Debug, Clone, Copy)]
struct List {
    newest: usize,
    oldest: usize,
    pages: u64,
}

impl List {
    const EMPTY: Self = Self { newest: NONE, oldest: NONE, pages: 0 };
}

/// What has become of a folio that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It leaves the cache.
    Evict,
    /// It becomes the newest of its list.
    Keep,
    /// It becomes the newest active one.
    Activate,
}

/// The lists, with room for so many pages.
#[derive(Debug)]
pub(crate) struct Lru {
    pub(crate) limit: u64,
    nodes: Vec<Node>,
    free: Vec<usize>,
    places: HashMap<Key, usize>,
    inactive: List,
    active: List,
    /// Pages that were evicted or became active until now.
    age: u64,
    /// Of evicted pages, `age` then.
    evicted: HashMap<Key, u64>,
    /// Something came back soon, and became active, since the active list was last looked at.
    came_back: bool,
}

impl Lru {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
            nodes: Vec::new(),
            free: Vec::new(),
            places: HashMap::new(),
            inactive: List::EMPTY,
            active: List::EMPTY,
            age: 0,
            evicted: HashMap::new(),
            came_back: false,
        }
    }

    /// Pages in the lists.
    pub(crate) fn pages(&self) -> u64 {
        self.inactive.pages.saturating_add(self.active.pages)
    }

    /// Active ones have to go, too: they outnumber the others, or what was evicted was needed.
    pub(crate) fn wants_fewer_active(&self, page_bytes: u64) -> bool {
        const GIB: u64 = 1 << 30;
        let gib = self.pages().saturating_mul(page_bytes) / GIB;
        let ratio = gib.saturating_mul(10).isqrt().max(1);
        self.came_back || self.inactive.pages.saturating_mul(ratio) < self.active.pages
    }

    /// While so many pages of the inactive list are looked at, so many of the active one are.
    pub(crate) fn active_share(&self, inactive: u64) -> u64 {
        let share = inactive.saturating_mul(self.active.pages).div_ceil(self.inactive.pages.max(1));
        share.min(self.active.pages).min(MOST_ACTIVE)
    }

    pub(crate) fn insert(&mut self, file: FileId, folio: Folio) {
        let key = (file, folio.first);
        if self.places.contains_key(&key) {
            return;
        }
        let mut then = None;
        for page in folio.first..folio.end() {
            then = self.evicted.remove(&(file, page)).or(then);
        }
        let active = then.is_some_and(|then| self.age.saturating_sub(then) <= self.active.pages);
        if active {
            self.age = self.age.saturating_add(folio.pages);
            self.came_back = true;
        }
        let node = Node { file, folio, active, referenced: false, awaited: false, newer: NONE, older: NONE };
        let at = self.free.pop().unwrap_or(self.nodes.len());
        if let Some(slot) = self.nodes.get_mut(at) {
            *slot = node;
        } else {
            self.nodes.push(node);
        }
        self.places.insert(key, at);
        self.link(at);
    }

    /// A folio is gone that nobody evicted.
    pub(crate) fn remove(&mut self, file: FileId, folio: Folio) {
        if let Some(at) = self.places.remove(&(file, folio.first)) {
            self.unlink(at);
            self.free.push(at);
        }
    }

    /// A folio was read, or a mapping that used it is gone.
    pub(crate) fn used(&mut self, file: FileId, folio: Folio) {
        let Some(at) = self.places.get(&(file, folio.first)).copied() else { return };
        let node = &mut self.nodes[at];
        node.awaited = false;
        let twice = node.referenced && !node.active;
        node.referenced = !twice;
        if twice {
            self.age = self.age.saturating_add(folio.pages);
            self.put(at, true);
        }
    }

    /// Somebody waits for a folio, or has it now.
    pub(crate) fn awaited(&mut self, file: FileId, folio: Folio, waits: bool) {
        if let Some(at) = self.places.get(&(file, folio.first)) {
            self.nodes[*at].awaited = waits;
        }
    }

    /// The oldest folio of a list, if somebody may take it.
    pub(crate) fn oldest(&self, active: bool) -> Option<(FileId, Folio)> {
        let list = if active { self.active } else { self.inactive };
        self.nodes.get(list.oldest).map(|node| (node.file, node.folio))
    }

    /// Whether the oldest inactive folio goes. `uses`: mappings through which it was used since the last look, and
    /// whether it is code to one of them; `None`: it cannot go.
    pub(crate) fn judge_oldest(&mut self, uses: Option<(u32, bool)>) -> Verdict {
        let Some(node) = self.nodes.get_mut(self.inactive.oldest) else { return Verdict::Keep };
        let Some((uses, code)) = uses.filter(|_| !node.awaited) else { return self.rule(Verdict::Keep) };
        let before = std::mem::take(&mut node.referenced);
        if uses == 0 {
            return self.rule(Verdict::Evict);
        }
        node.referenced = true;
        self.rule(if before || uses > 1 || code { Verdict::Activate } else { Verdict::Keep })
    }

    fn rule(&mut self, verdict: Verdict) -> Verdict {
        let at = self.inactive.oldest;
        let Some(node) = self.nodes.get(at).copied() else { return verdict };
        match verdict {
            Verdict::Keep => self.put(at, false),
            Verdict::Activate => {
                self.age = self.age.saturating_add(node.folio.pages);
                self.put(at, true);
            }
            Verdict::Evict => {
                self.remove(node.file, node.folio);
                let pages = node.folio.first..node.folio.end();
                self.evicted.extend(pages.map(|page| ((node.file, page), self.age)));
                self.age = self.age.saturating_add(node.folio.pages);
            }
        }
        verdict
    }

    /// The oldest active folio stays active where it is code that was used, else it becomes inactive.
    pub(crate) fn age_oldest_active(&mut self, used_code: bool) {
        let at = self.active.oldest;
        if at != NONE {
            self.put(at, used_code);
        }
    }

    /// The active list was looked at.
    pub(crate) fn looked(&mut self) {
        self.came_back = false;
    }

    /// Makes it the newest of a list.
    fn put(&mut self, at: usize, active: bool) {
        self.unlink(at);
        let node = &mut self.nodes[at];
        if node.active != active {
            (node.active, node.referenced) = (active, false);
        }
        self.link(at);
    }

    fn list(&mut self, active: bool) -> &mut List {
        if active { &mut self.active } else { &mut self.inactive }
    }

    fn link(&mut self, at: usize) {
        let (active, pages) = (self.nodes[at].active, self.nodes[at].folio.pages);
        let newest = std::mem::replace(&mut self.list(active).newest, at);
        self.nodes[at].older = newest;
        self.nodes[at].newer = NONE;
        match self.nodes.get_mut(newest) {
            Some(node) => node.newer = at,
            None => self.list(active).oldest = at,
        }
        let list = self.list(active);
        list.pages = list.pages.saturating_add(pages);
    }

    fn unlink(&mut self, at: usize) {
        let Node { active, newer, older, folio, .. } = self.nodes[at];
        match self.nodes.get_mut(newer) {
            Some(node) => node.older = older,
            None => self.list(active).newest = older,
        }
        match self.nodes.get_mut(older) {
            Some(node) => node.newer = newer,
            None => self.list(active).oldest = newer,
        }
        let list = self.list(active);
        list.pages = list.pages.saturating_sub(folio.pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId(0);

    fn page(first: u64) -> Folio {
        Folio { first, pages: 1 }
    }

    fn with(pages: u64) -> Lru {
        let mut lru = Lru::new(pages);
        (0..pages).for_each(|n| lru.insert(FILE, page(n)));
        lru
    }

    fn oldest(lru: &Lru, active: bool) -> Option<u64> {
        lru.oldest(active).map(|(_, folio)| folio.first)
    }

    #[test]
    fn what_is_read_twice_becomes_active_and_the_oldest_goes() {
        let mut lru = with(4);
        lru.used(FILE, page(0));
        assert_eq!(oldest(&lru, false), Some(0), "once is not twice");
        lru.used(FILE, page(0));
        assert_eq!((oldest(&lru, false), oldest(&lru, true)), (Some(1), Some(0)));
        assert_eq!((lru.judge_oldest(Some((0, false))), lru.pages()), (Verdict::Evict, 3));
        lru.remove(FILE, page(2));
        assert_eq!((oldest(&lru, false), lru.pages()), (Some(3), 2));
    }

    #[test]
    fn what_a_mapping_used_stays_once_and_becomes_active_the_second_time() {
        let mut lru = with(3);
        assert_eq!(lru.judge_oldest(Some((1, false))), Verdict::Keep);
        assert_eq!(lru.judge_oldest(Some((1, true))), Verdict::Activate, "code");
        assert_eq!(lru.judge_oldest(Some((2, false))), Verdict::Activate, "two mappings");
        assert_eq!((oldest(&lru, false), lru.judge_oldest(Some((1, false)))), (Some(0), Verdict::Activate));
        lru.age_oldest_active(true);
        lru.age_oldest_active(false);
        assert_eq!((oldest(&lru, true), oldest(&lru, false)), (Some(0), Some(2)));
        lru.awaited(FILE, page(2), true);
        assert_eq!(lru.judge_oldest(Some((0, false))), Verdict::Keep, "somebody waits for it");
        lru.awaited(FILE, page(2), false);
        assert_eq!(lru.judge_oldest(Some((0, false))), Verdict::Evict);
        assert_eq!(lru.judge_oldest(Some((0, false))), Verdict::Keep, "nothing is left");
    }

    #[test]
    fn what_comes_back_soon_is_active() {
        let mut lru = with(6);
        (0..3).for_each(|n| [0, 1].iter().for_each(|_| lru.used(FILE, page(n))));
        (0..3).for_each(|_| assert_eq!(lru.judge_oldest(Some((0, false))), Verdict::Evict));
        assert!(!lru.wants_fewer_active(4096) || lru.pages() == 3);
        // They were the first and the last of three to go, and there are three active ones.
        for n in [5, 3] {
            lru.insert(FILE, page(n));
        }
        assert_eq!((oldest(&lru, false), lru.wants_fewer_active(4096)), (None, true));
        lru.insert(FILE, page(9));
        assert_eq!(oldest(&lru, false), Some(9), "it was never there");
    }
}
