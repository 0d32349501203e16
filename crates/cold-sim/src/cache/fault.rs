//! Touches of mapped pages: what a fault maps, and when it reads.

use crate::cached::Folio;
use crate::linux::{Faulted, Forgives, Rules};
use crate::mapping::Mapping;
use crate::op::{Access, FileId, Huge, MapId, PageRead, Pattern, Progress};
use crate::policy::{Policy, Touched};

use super::{Cache, File};

impl Cache {
    pub(super) fn touch(
        &mut self,
        map: MapId,
        page: u64,
        write: bool,
        progress: &mut Progress,
        reads: &mut Vec<PageRead>,
    ) -> Access {
        let Some(mapping) = self.maps.get_mut(&map) else { return Access::Done };
        if mapping.mapped(page, write) {
            return Access::Done;
        }
        if mapping.filled(page) && mapping.written(page) {
            return Access::Done;
        }
        let open = self.opens.get(&mapping.open);
        let Some(file) = open.map(|o| o.file) else { return Access::Done };
        let pages = self.files.get(file.0 as usize).map_or(0, |f| f.cached.pages);
        if !mapping.has(page) || page >= pages {
            return Access::Done;
        }
        let fault = Fault { map, file, page, write };
        match self.policy {
            Policy::Linux(version) => self.linux_fault(fault, version.rules(), progress, reads),
            _ => self.plain_fault(fault, reads),
        }
    }

    /// Touches pages from `first` on.
    pub(super) fn populate(
        &mut self,
        map: MapId,
        first: u64,
        pages: u64,
        progress: &mut Progress,
        reads: &mut Vec<PageRead>,
    ) -> Access {
        let Some(mapping) = self.maps.get(&map) else { return Access::Done };
        let (from, to) = mapping.within(first, pages);
        let file = self.opens.get(&mapping.open).and_then(|o| self.files.get(o.file.0 as usize));
        let to = to.min(file.map_or(0, |f| f.cached.pages));
        for page in from.saturating_add(progress.copied)..to {
            let before = reads.len();
            let access = self.touch(map, page, false, progress, reads);
            if access != Access::Done {
                return access;
            }
            *progress = Progress { copied: progress.copied.saturating_add(1), retried: false };
            if reads.len() > before {
                return Access::GoesOn;
            }
        }
        Access::Done
    }

    fn linux_fault(
        &mut self,
        fault: Fault,
        rules: &Rules,
        progress: &mut Progress,
        reads: &mut Vec<PageRead>,
    ) -> Access {
        let Fault { map, file, page, write } = fault;
        let waits = Access::Waits { file, page };
        if !write && self.mapped_around(fault, rules) {
            return Access::Done;
        }
        let Some(f) = self.files.get(file.0 as usize) else { return Access::Done };
        let (state, folio) = (f.cached.page(page), f.cached.folio(page));
        let first_try = !std::mem::replace(&mut progress.retried, true);
        let Some(folio) = folio else {
            let Some(mapping) = self.maps.get(&map) else { return Access::Done };
            let faulted = faulted(mapping, page);
            let open = mapping.open;
            if let Some(mut reader) = self.reader(open, reads) {
                reader.fault(&faulted);
            }
            return waits;
        };
        let reads_ahead = first_try && self.hit(fault, folio, rules, reads);
        if !state.ready() {
            return waits;
        }
        if reads_ahead && !write && self.mapped_around(fault, rules) {
            // The kernel gave up its lock for the read, and begins anew.
            return Access::Done;
        }
        self.map_found(fault, folio, rules);
        Access::Done
    }

    /// A fault met a page that is there. Whether its marker started a read-ahead.
    fn hit(&mut self, fault: Fault, folio: Folio, rules: &Rules, reads: &mut Vec<PageRead>) -> bool {
        let Some(mapping) = self.maps.get(&fault.map) else { return false };
        let (pattern, exec) = (mapping.part(fault.page).pattern, mapping.exec);
        let Some(mut reader) = self.reader(mapping.open, reads) else { return false };
        if pattern == Pattern::Random || reader.ra.window == 0 {
            return false;
        }
        let state = reader.file.page(fault.page);
        let counts = !rules.code_never_misses || !(exec || pattern == Pattern::Sequential);
        if state.ready() && counts {
            reader.ra.forgive(1);
        }
        if state.marked() {
            let request = reader.ra.window;
            reader.marker(fault.page, folio, request);
        }
        state.marked()
    }

    /// Maps what is ready around the page; whether the page itself is mapped now.
    fn mapped_around(&mut self, fault: Fault, rules: &Rules) -> bool {
        let window = self.paging.fault_around;
        let (Some(mapping), Some(f)) = (self.maps.get_mut(&fault.map), self.files.get(fault.file.0 as usize))
        else {
            return false;
        };
        if window < 2 {
            return false;
        }
        let hits = map_window(mapping, f, fault.page, window, rules);
        let (is_mapped, exec) = (mapping.filled(fault.page), mapping.exec);
        let pattern = mapping.part(fault.page).pattern;
        let hits = match rules.forgives {
            Forgives::MappedPage | Forgives::PageAround => hits,
            Forgives::Fault => u32::from(is_mapped && !exec && pattern != Pattern::Sequential),
        };
        let open = mapping.open;
        if let Some(o) = self.opens.get_mut(&open) {
            o.ra.forgive(hits);
        }
        is_mapped
    }

    /// Maps the page that was found without fault-around.
    fn map_found(&mut self, fault: Fault, folio: Folio, rules: &Rules) {
        let Some(mapping) = self.maps.get_mut(&fault.map) else { return };
        if fault.write {
            mapping.copied(fault.page);
        } else if rules.maps_whole_folios {
            map_folio(mapping, folio, fault.page);
        } else {
            mapping.map(fault.page);
        }
    }

    fn plain_fault(&mut self, fault: Fault, reads: &mut Vec<PageRead>) -> Access {
        let Fault { map, file, page, write } = fault;
        let (Some(mapping), Some(f)) = (self.maps.get_mut(&map), self.files.get_mut(file.0 as usize)) else {
            return Access::Done;
        };
        if f.cached.page(page).ready() {
            if write {
                mapping.copied(page);
            } else {
                mapping.map(page);
            }
            return Access::Done;
        }
        if !f.cached.page(page).present() {
            let part = mapping.part(page);
            let (first, end, pattern) = (part.first, part.end, part.pattern);
            let touched = Touched { file, page, first, end, exec: mapping.exec, pattern };
            self.policy.fault(&mut f.cached, &touched, reads);
        }
        Access::Waits { file, page }
    }
}

#[derive(Debug, Clone, Copy)]
struct Fault {
    map: MapId,
    file: FileId,
    page: u64,
    write: bool,
}

fn faulted(mapping: &Mapping, page: u64) -> Faulted {
    let part = mapping.part(page);
    Faulted {
        page,
        map_first: part.first,
        map_end: part.end,
        exec: mapping.exec,
        pattern: part.pattern,
        huge: part.huge == Huge::Wanted,
    }
}

/// Maps the pages of folios that are ready and carry no marker in the window around a page. Returns the hits that
/// take misses back.
fn map_window(mapping: &mut Mapping, f: &File, page: u64, window: u64, rules: &Rules) -> u32 {
    let (from, to) = mapping.around(page, window);
    let to = to.min(f.cached.pages);
    let (mut hits, mut at) = (0_u32, from);
    let mut no_table = !mapping.has_table(page);
    while let Some(next) = f.cached.next_present(at, to) {
        let Some(folio) = f.cached.folio(next) else { break };
        at = folio.end();
        let state = f.cached.page(next);
        if !state.ready() || state.marked() {
            continue;
        }
        let first_without_table = std::mem::take(&mut no_table);
        let at_end = rules.stops_at_end && folio.end() >= f.cached.pages;
        if first_without_table && at_end {
            return 0;
        }
        if first_without_table && mapping.fills_table(folio, page) {
            mapping.map_huge(folio);
            return 0;
        }
        let whole = rules.maps_whole_folios && !at_end && mapping.fits(folio, page);
        let (first, end) = if whole { (folio.first, folio.end()) } else { (next, folio.end().min(to)) };
        for page in first..end {
            let already = mapping.filled(page);
            if !already {
                mapping.map(page);
            }
            hits += u32::from(!already || rules.forgives == Forgives::PageAround);
        }
    }
    hits
}

/// Maps a whole folio. The page alone, where the folio reaches out of the mapping or the page table, or where
/// something of it is mapped already.
fn map_folio(mapping: &mut Mapping, folio: Folio, page: u64) {
    if !mapping.has_table(page) && mapping.fills_table(folio, page) {
        return mapping.map_huge(folio);
    }
    if !mapping.fits(folio, page) || (folio.first..folio.end()).any(|at| mapping.filled(at)) {
        return mapping.map(page);
    }
    (folio.first..folio.end()).for_each(|at| mapping.map(at));
}
