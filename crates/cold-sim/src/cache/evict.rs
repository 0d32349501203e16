//! A page cache with too little room: what is counted when pages come and are used, and what goes.

use crate::cached::Folio;
use crate::lru::{BATCH, Lru, Verdict};
use crate::op::{Access, FileId, MapId, Op, PageRead, Pattern};

use super::Cache;

impl Cache {
    /// The same with room for so many pages of files. Where all of them are on their way, there are more for a while.
    #[must_use]
    pub fn with_room(mut self, pages: u64) -> Self {
        self.lru = Some(Lru::new(pages));
        self
    }

    /// What an access means for who goes first: it was done, or waits, after asking for these pages.
    pub(super) fn count(&mut self, op: &Op, access: Access, reads: &[PageRead]) {
        for read in reads {
            let (mut at, end) = (read.first, read.first.saturating_add(read.pages));
            while at < end {
                self.came(read.file, at);
                at = read.folio_end(at);
            }
        }
        self.make_room();
        match (*op, access) {
            (_, Access::Waits { file, page }) => self.awaits(file, page, true),
            (Op::Touch { map, page, .. } | Op::Populate { map, first: page, .. }, Access::Done) => {
                let Some(mapping) = self.maps.get_mut(&map) else { return };
                mapping.touched(page);
                if let Some(file) = self.opens.get(&mapping.open).map(|o| o.file) {
                    self.awaits(file, page, false);
                }
            }
            _ => {}
        }
    }

    /// The folio of a page is in the cache, or coming.
    pub(super) fn came(&mut self, file: FileId, page: u64) {
        let folio = self.files.get(file.0 as usize).and_then(|f| f.cached.folio(page));
        if let Some((lru, folio)) = self.lru.as_mut().zip(folio) {
            lru.insert(file, folio);
        }
    }

    fn awaits(&mut self, file: FileId, page: u64, waits: bool) {
        let folio = self.files.get(file.0 as usize).and_then(|f| f.cached.folio(page));
        if let Some((lru, folio)) = self.lru.as_mut().zip(folio) {
            lru.awaited(file, folio, waits);
        }
    }

    /// Pages were copied by a read. The folio in which the read before ended was counted then.
    pub(super) fn copied(&mut self, file: FileId, from: u64, to: u64, before: Option<u64>) {
        let (Some(lru), Some(f)) = (&mut self.lru, self.files.get(file.0 as usize)) else { return };
        let mut at = from;
        while at < to {
            let Some(folio) = f.cached.folio(at) else { return };
            if before.is_none_or(|page| page < folio.first || page >= folio.end()) {
                lru.used(file, folio);
            }
            lru.awaited(file, folio, false);
            at = folio.end();
        }
    }

    /// Pages leave a mapping: what was used through it counts as used.
    pub(super) fn leaves(&mut self, map: MapId, from: u64, to: u64) {
        let (Some(lru), Some(mapping)) = (&mut self.lru, self.maps.get_mut(&map)) else { return };
        let file = self.opens.get(&mapping.open).map(|o| o.file);
        let Some((file, f)) = file.and_then(|file| Some((file, self.files.get(file.0 as usize)?))) else {
            return;
        };
        let mut at = from;
        while let Some(folio) = f.cached.next_present(at, to).and_then(|page| f.cached.folio(page)) {
            at = folio.end();
            let (first, end) = (folio.first.max(from), folio.end().min(to));
            if mapping.take_used(first, end) && mapping.part(first).pattern == Pattern::Normal {
                lru.used(file, folio);
            }
        }
    }

    /// Evicts until there is room, some more than that, as the kernel does.
    fn make_room(&mut self) {
        let Some(mut lru) = self.lru.take() else { return };
        let over = lru.pages().saturating_sub(lru.limit);
        let target = if over > 0 { over.max(BATCH) } else { 0 };
        // Where nothing can go, because all is on its way, both lists have been looked at.
        let mut looks = lru.pages().saturating_mul(4);
        let mut freed = 0_u64;
        while freed < target && looks > 0 {
            let fewer = lru.wants_fewer_active(self.paging.page_bytes);
            let mut left = if fewer { lru.active_share(BATCH) } else { 0 };
            while left > 0
                && let Some((file, folio)) = lru.oldest(true)
            {
                let uses = self.uses(file, folio);
                lru.age_oldest_active(uses.is_some_and(|(uses, code)| uses > 0 && code));
                left = left.saturating_sub(folio.pages);
                looks = looks.saturating_sub(folio.pages);
            }
            if fewer {
                lru.looked();
            }
            let mut left = BATCH;
            while left > 0
                && let Some((file, folio)) = lru.oldest(false)
            {
                let uses = self.uses(file, folio);
                if lru.judge_oldest(uses) == Verdict::Evict {
                    self.evict(file, folio);
                    freed = freed.saturating_add(folio.pages);
                }
                left = left.saturating_sub(folio.pages);
                looks = looks.saturating_sub(folio.pages);
            }
            looks = looks.saturating_sub(1);
        }
        self.lru = Some(lru);
    }

    /// Through how many mappings a folio was used since the last look, and whether one of them is code. `None`: it is on
    /// its way. What is used at random or in order is said not to be used again, and does not count.
    fn uses(&mut self, file: FileId, folio: Folio) -> Option<(u32, bool)> {
        let f = self.files.get(file.0 as usize).filter(|f| f.cached.page(folio.first).ready())?;
        let (mut uses, mut code) = (0, false);
        for map in &f.maps {
            let Some(mapping) = self.maps.get_mut(map) else { continue };
            let (first, end) = mapping.within(folio.first, folio.pages);
            let counts = first < end && mapping.part(first).pattern == Pattern::Normal;
            if counts && mapping.take_used(first, end) {
                uses += 1;
                code |= mapping.exec;
            }
        }
        Some((uses, code))
    }

    fn evict(&mut self, file: FileId, folio: Folio) {
        let Some(f) = self.files.get_mut(file.0 as usize) else { return };
        for map in &f.maps {
            if let Some(mapping) = self.maps.get_mut(map) {
                mapping.evicted(folio);
            }
        }
        f.cached.remove(folio);
    }
}
