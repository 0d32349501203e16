//! Which file is mapped where in which process, over time. Pure.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use cold_model::recording::FileIdx;

use crate::raw::AREA_SHARED;

/// Mappings in all spaces together; a damaged log must not fill the memory by forking large ones.
const MAX_AREAS: usize = 8 << 20;

/// One stretch of a process' memory with one file behind it, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// First address, inclusive.
    pub start: u64,
    /// Address behind the last.
    pub end: u64,
    /// Offset in the file of the first address, in bytes.
    pub offset: u64,
    /// The file; `None` for memory that is no file's.
    pub file: Option<FileIdx>,
    /// `PROT_READ` and its like, and [`AREA_SHARED`]; `UNKNOWN_PROT`, `OWN_MEMORY`. Not executable are the few pages of
    /// its own that the kernel maps (`[vdso]`).
    pub prot: u32,
}

/// In [`Area::prot`]: whether it is written, and shared, is not known.
pub(super) const UNKNOWN_PROT: u32 = 1 << 31;
/// In [`Area::prot`]: private, and could be written at some time. The kernel counts such memory as its process' own
/// (`VM_ACCOUNT`), so that what the loader then protects again is never one mapping with constants beside it.
const OWN_MEMORY: u32 = 1 << 30;
const PROT_WRITE: u32 = 2;
pub(super) const PROT_EXEC: u32 = 4;

impl Area {
    /// The same with this protection (`PROT_*`), as `mprotect` leaves it.
    pub(super) fn protected(self, prot: u32) -> Self {
        Self { prot: self.prot & (AREA_SHARED | OWN_MEMORY) | prot, ..self }.owned()
    }

    /// A mapping as `mmap` makes it, which counts as the process' own where that is so.
    pub(super) fn owned(mut self) -> Self {
        if self.prot & (PROT_WRITE | AREA_SHARED) == PROT_WRITE {
            self.prot |= OWN_MEMORY;
        }
        self
    }

    /// May be executed.
    pub fn executable(&self) -> bool {
        self.prot & PROT_EXEC != 0
    }

    /// The byte of the file that would lie at this address if the area reached there.
    fn offset_at(&self, address: u64) -> u64 {
        self.offset.wrapping_add(address.wrapping_sub(self.start))
    }
}

/// One process' memory at a time.
#[derive(Debug, Clone, Default)]
pub struct Space {
    areas: BTreeMap<u64, Area>,
    revision: u64,
}

impl Space {
    /// Its mappings by address.
    pub fn areas(&self) -> impl Iterator<Item = &Area> {
        self.areas.values()
    }

    /// A number that no other content of any space of the same recording has.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The mapping that holds an address.
    pub fn find(&self, address: u64) -> Option<&Area> {
        self.areas.range(..=address).next_back().map(|(_, a)| a).filter(|a| address < a.end)
    }

    /// The parts of its mappings in `start..end`, in order.
    pub fn within(&self, start: u64, end: u64) -> impl Iterator<Item = Area> {
        let first = self.find(start).map_or(start, |area| area.start);
        let cut = move |area: &Area| {
            let from = area.start.max(start);
            let offset = area.offset.saturating_add(from - area.start);
            Area { start: from, end: area.end.min(end), offset, ..*area }
        };
        // The range may be turned round by what a damaged log says.
        self.areas.range(first..end.max(first)).map(move |(_, area)| cut(area)).filter(|a| a.start < a.end)
    }

    /// What the kernel makes of a mapping that it puts here: one with its neighbours, where these go on with the same
    /// file and protection (`vma_merge`). Pages are mapped around a fault as far as the whole of it reaches.
    pub fn merged(&self, mut area: Area) -> Area {
        let alike = |other: &&Area, at: u64| {
            area.file.is_some()
                && (other.file, other.prot) == (area.file, area.prot)
                && other.offset_at(at) == area.offset_at(at)
        };
        let before =
            area.start.checked_sub(1).and_then(|last| self.find(last)).filter(|a| alike(a, area.start));
        let behind = self.find(area.end).filter(|a| alike(a, area.end));
        if let Some(before) = before {
            (area.start, area.offset) = (before.start, before.offset);
        }
        area.end = behind.map_or(area.end, |behind| behind.end);
        area
    }

    /// Puts a mapping in, in place of what was there.
    fn put(&mut self, area: Area) {
        let cut: Vec<Area> = {
            let before = self.areas.range(..area.start).next_back().map(|(_, a)| *a);
            let within = self.areas.range(area.start..area.end).map(|(_, a)| *a);
            before.into_iter().chain(within).filter(|a| a.end > area.start).collect()
        };
        for old in cut {
            self.areas.remove(&old.start);
            if old.start < area.start {
                self.areas.insert(old.start, Area { end: area.start, ..old });
            }
            if old.end > area.end {
                let offset = old.offset.saturating_add(area.end - old.start);
                self.areas.insert(area.end, Area { start: area.end, offset, ..old });
            }
        }
        self.areas.insert(area.start, area);
    }
}

/// All processes' memories.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    of_process: HashMap<u32, Rc<Space>>,
    areas: usize,
    revisions: u64,
    /// Some mappings were not kept because there were too many.
    pub(super) full: bool,
}

impl Spaces {
    pub(super) fn put(&mut self, pid: u32, area: Area) {
        if area.start >= area.end {
            return;
        }
        if self.areas >= MAX_AREAS {
            self.full = true;
            return;
        }
        self.revisions += 1;
        let space = self.of_process.entry(pid).or_default();
        // A copy is made at the first change after a fork.
        let shared = Rc::strong_count(space) > 1;
        let before = if shared { 0 } else { space.areas.len() };
        let space = Rc::make_mut(space);
        space.put(area);
        space.revision = self.revisions;
        self.areas = (self.areas + space.areas.len()).saturating_sub(before);
    }

    /// The child begins with what the parent has.
    pub(super) fn fork(&mut self, parent: u32, child: u32) {
        match self.of_process.get(&parent).cloned() {
            Some(space) => self.replace(child, space),
            None => self.clear(child),
        }
    }

    /// An exec or an exit ends a memory.
    pub(super) fn clear(&mut self, pid: u32) {
        if let Some(old) = self.of_process.remove(&pid) {
            self.forget(&old);
        }
    }

    fn replace(&mut self, pid: u32, space: Rc<Space>) {
        if let Some(old) = self.of_process.insert(pid, space) {
            self.forget(&old);
        }
    }

    fn forget(&mut self, old: &Rc<Space>) {
        if Rc::strong_count(old) == 1 {
            self.areas = self.areas.saturating_sub(old.areas.len());
        }
    }

    pub(super) fn of(&self, pid: u32) -> Option<&Space> {
        self.of_process.get(&pid).map(Rc::as_ref)
    }

    /// The address lies in executable memory that is no file's.
    pub(super) fn generated(&self, pid: u32, address: u64) -> bool {
        let area = self.of(pid).and_then(|space| space.find(address));
        area.is_some_and(|area| area.executable() && area.file.is_none())
    }

    /// File and byte offset of an address.
    pub(super) fn find(&self, pid: u32, address: u64) -> Option<(FileIdx, u64)> {
        let area = self.of(pid)?.find(address)?;
        Some((area.file?, area.offset.saturating_add(address - area.start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(start: u64, end: u64, offset: u64, file: u32) -> Area {
        Area { start, end, offset, file: Some(file), prot: 1 }
    }

    #[test]
    fn a_new_mapping_cuts_the_old_one_and_offsets_stay_right() {
        let mut s = Spaces::default();
        s.put(1, area(0x1000, 0x9000, 0x10_000, 7));
        s.put(1, area(0x3000, 0x5000, 0, 8));
        assert_eq!(s.find(1, 0x2fff), Some((7, 0x11_fff)));
        assert_eq!(s.find(1, 0x3000), Some((8, 0)));
        assert_eq!(s.find(1, 0x5000), Some((7, 0x14_000)));
        assert_eq!(s.find(1, 0x9000), None);
        s.put(1, Area { file: None, ..area(0x4000, 0x6000, 0, 0) });
        assert_eq!(s.find(1, 0x4000), None, "anonymous memory lies over it");
        assert!(!s.generated(1, 0x4000), "which cannot be executed");
        s.put(1, Area { file: None, prot: 5, ..area(0x5000, 0x6000, 0, 0) });
        assert_eq!([0x4fff, 0x5000, 0x5fff, 0x6000].map(|a| s.generated(1, a)), [false, true, true, false]);
        assert_eq!(s.find(1, 0x3fff), Some((8, 0xfff)));
        assert_eq!(s.find(1, 0x6000), Some((7, 0x15_000)));
        assert_eq!(s.find(2, 0x6000), None);
        let parts = |from, to| -> Vec<(u64, u64, Option<u32>, u64)> {
            let within = s.of(1).into_iter().flat_map(|space| space.within(from, to));
            within.map(|a| (a.start, a.end, a.file, a.offset)).collect()
        };
        let (before, over) = ((0x2000, 0x3000, Some(7), 0x11_000), (0x3000, 0x4000, Some(8), 0));
        assert_eq!(parts(0x2000, 0x4800), [before, over, (0x4000, 0x4800, None, 0)]);
        assert_eq!((parts(0x9000, 0x9fff).len(), parts(0x5000, 0x5000).len(), parts(9, 3).len()), (0, 0, 0));
    }

    #[test]
    fn what_goes_on_with_the_same_file_and_protection_is_one_mapping() {
        let mut s = Spaces::default();
        // As a loader does it: the whole library, then its code over the middle, then its constants behind that.
        s.put(1, area(0x1000, 0x9000, 0, 7));
        s.put(1, Area { prot: 5, ..area(0x2000, 0x5000, 0x1000, 7) });
        let merged = |s: &Spaces, new: Area| {
            let area = s.of(1).expect("mapped").merged(new);
            (area.start, area.end, area.offset)
        };
        let constants = area(0x5000, 0x7000, 0x4000, 7);
        assert_eq!(merged(&s, constants), (0x5000, 0x9000, 0x4000), "the rest of the library goes on");
        assert_eq!(merged(&s, Area { prot: 3, ..constants }), (0x5000, 0x7000, 0x4000), "written");
        assert_eq!(merged(&s, Area { file: Some(8), ..constants }), (0x5000, 0x7000, 0x4000), "another file");
        assert_eq!(
            merged(&s, Area { offset: 0x5000, ..constants }),
            (0x5000, 0x7000, 0x5000),
            "elsewhere in it"
        );
        assert_eq!(
            merged(&s, Area { prot: 5, ..constants }),
            (0x2000, 0x7000, 0x1000),
            "goes on with the code"
        );
        assert_eq!(merged(&s, area(0x2000, 0x5000, 0x1000, 7)), (0x1000, 0x9000, 0), "between two");
        let own = Area { prot: 3, ..constants }.owned().protected(1);
        assert_eq!(merged(&s, own), (0x5000, 0x7000, 0x4000), "written once, and protected again");
        let memory = Area { file: None, ..constants };
        s.put(1, Area { start: 0x7000, end: 0x9000, ..memory });
        assert_eq!(merged(&s, memory), (0x5000, 0x7000, 0x4000), "of no file");
        assert_eq!(merged(&s, area(0, 0x1000, 0, 7)), (0, 0x1000, 0), "from the first address on");
    }

    #[test]
    fn a_child_has_its_parents_mappings_until_it_changes_them() {
        let mut s = Spaces::default();
        s.put(1, area(0x1000, 0x2000, 0, 7));
        s.fork(1, 2);
        s.put(2, area(0x1000, 0x2000, 0, 9));
        assert_eq!((s.find(1, 0x1000), s.find(2, 0x1000)), (Some((7, 0)), Some((9, 0))));
        assert_ne!(s.of(1).map(Space::revision), s.of(2).map(Space::revision));
        s.clear(1);
        assert_eq!((s.find(1, 0x1000), s.find(2, 0x1000)), (None, Some((9, 0))));
        s.clear(2);
        assert_eq!(s.areas, 0);
    }
}
