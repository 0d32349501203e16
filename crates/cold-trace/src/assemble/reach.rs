//! What faults map without an event: the rest of a large folio, windows where no event tells of them, and whole
//! huge pages. Pure but for what it asks the machine.
//!
//! A page that is mapped never faults, so whether it was touched cannot be told any more: all of it is *perhaps
//! needed* ([`TouchKind::FaultAround`]), so that what was needed never exceeds what is told. In the kernel
//! (mm/memory.c, mm/filemap.c):
//! - `finish_fault` maps the folio of the page it was called for, within the mapping and the page table, since 6.18;
//! - `do_fault_around` maps what is cached in a window by address; tier A has an event for that. Since 6.18
//!   (`filemap_map_folio_range`) folios that reach out of the window are mapped whole, and the event does not tell;
//! - `filemap_map_pmd`, before that event, maps a folio of the size of a page table at once and tells nobody.
//!
//! Neither of the first two maps a folio whole that two page tables would have to hold, as any of 2 MiB in a mapping
//! that does not begin at such a border: the memory of qemu's virtual machines is mapped so.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use cold_model::Nanos;
use cold_model::recording::{File, FileIdx, Mapping, Touch, TouchKind};

use super::history::History;
use super::index::ContextKey;
use super::pages::Unseen;
use super::space::Area;
use crate::machine::FilesNow;

/// Blocks of mappings that are looked at; 1 Mi of them are 2 TiB. A damaged log must not claim more.
const MOST_BLOCKS: usize = 1 << 20;

/// A fault of which more may have been mapped than its page.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    /// Its page, when it began.
    pub(super) touch: Touch,
    pub(super) key: ContextKey,
    pub(super) held: Held,
    /// The window around it, where no event tells what of it was mapped; else empty.
    pub(super) window: Range<u64>,
    /// The touch is not certain itself: it was asked for by a call that populates.
    pub(super) asked: bool,
}

impl Fault {
    /// The window around it that only its address tells.
    fn by_address(&self) -> Option<Window> {
        let Self { touch, key, held, window, .. } = self;
        (window.start < window.end).then(|| Window {
            touch: *touch,
            key: *key,
            pages: window.clone(),
            own: Some(touch.first_page),
            held: held.clone(),
        })
    }
}

/// What one page table can map of a file.
#[derive(Debug, Clone)]
pub(super) struct Held {
    /// Pages that have their place in it.
    table: Range<u64>,
    /// Those of them that the mapping has.
    mapped: Range<u64>,
}

impl Held {
    /// Where the mapping is not known: it may hold any page.
    pub(super) fn any() -> Self {
        Self { table: 0..u64::MAX, mapped: 0..u64::MAX }
    }

    /// What of a folio may be mapped together; `None`: it is not. Of one that reaches out of the mapping the kernel maps
    /// less; but two mappings side by side may be one to it.
    fn of(&self, folio: &Folio) -> Option<Range<u64>> {
        let Range { start, end } = folio.pages;
        if folio.is_real && !(self.table.start <= start && end <= self.table.end) {
            return None;
        }
        Some(start.max(self.mapped.start)..end.min(self.mapped.end))
    }
}

/// What was mapped around a fault because it was cached, as an event or the fault's address tells.
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// When it was mapped, and by whom.
    pub(super) touch: Touch,
    pub(super) key: ContextKey,
    pub(super) pages: Range<u64>,
    /// The page of the fault, where it lies in the window.
    pub(super) own: Option<u64>,
    pub(super) held: Held,
}

impl Window {
    /// Rows of its pages without the fault's own.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Touch, ContextKey)> {
        let Range { start, end } = self.pages;
        let parts = match self.own {
            Some(own) => [start..own, own.saturating_add(1)..end],
            None => [start..end, 0..0],
        };
        let parts = parts.into_iter().filter(|part| part.start < part.end);
        parts.map(|part| (row(&self.touch, part, self.touch.at), self.key))
    }

    /// Its first and its last page: what reaches out of the window holds one of them.
    fn edges(&self) -> [u64; 2] {
        [self.pages.start, self.pages.end.saturating_sub(1)]
    }
}

/// Pages of a file around an address: what its page table holds, and of that the window of so many bytes.
pub(super) fn around(area: &Area, address: u64, page: u64, window: u64) -> (Held, Range<u64>) {
    let table = page * entries(page);
    let begin = address - address % table;
    let (low, high) = (area.start.max(begin), area.end.min(begin.saturating_add(table)));
    let pages = |from: u64, to: u64| {
        let at = |address: u64| area.offset.saturating_add(address.saturating_sub(area.start));
        at(from) / page..at(to).div_ceil(page)
    };
    let window = window.clamp(page, table);
    let from = low.max(address - address % window);
    let to = high.min(from.saturating_add(window));
    // No folio begins before page 0.
    let first = (area.offset / page).saturating_sub(area.start.saturating_sub(begin) / page);
    let first = first.saturating_add(begin.saturating_sub(area.start) / page);
    // Where the table begins before page 0, fewer of its places are pages of the file.
    let before = (area.start.saturating_sub(begin) / page).saturating_sub(area.offset / page);
    let table = first..first.saturating_add(entries(page).saturating_sub(before));
    (Held { table, mapped: pages(low, high) }, if window > page { pages(from, to.max(from)) } else { 0..0 })
}

/// Pages that one page table maps: entries have eight bytes.
fn entries(page: u64) -> u64 {
    page / 8
}

/// Rows of what may have been mapped.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// To be cut to what was cached.
    pub(super) to_cut: Vec<(Touch, ContextKey)>,
    /// As they are.
    pub(super) whole: Vec<(Touch, ContextKey)>,
}

impl Rows {
    fn of(&mut self, to_cut: bool) -> &mut Vec<(Touch, ContextKey)> {
        if to_cut { &mut self.to_cut } else { &mut self.whole }
    }
}

/// The folio of a page.
struct Folio {
    pages: Range<u64>,
    /// When it was there.
    at: Nanos,
    /// Seen, or looked for by the machine.
    told: bool,
    /// It is that folio; else the largest that there may be.
    is_real: bool,
}

/// What is asked about the machine, and of it.
pub(super) struct Reach<'a> {
    files: &'a [File],
    /// Bytes per page.
    page: u64,
    /// A fault maps all of a large folio.
    whole_folios: bool,
    /// Fills and evictions were seen.
    fills_seen: bool,
    history: &'a History<'a>,
    /// The folios of pages that were cached before, as the machine told; `None`: it does not tell.
    known: HashMap<FileIdx, Option<Vec<(u64, u64)>>>,
}

impl<'a> Reach<'a> {
    pub(super) fn new(files: &'a [File], unseen: Unseen<'_>, history: &'a History<'a>) -> Self {
        let Unseen { page, whole_folios, fills_seen, .. } = unseen;
        Self { files, page, whole_folios, fills_seen, history, known: HashMap::new() }
    }

    /// Rows of what these faults may have mapped.
    pub(super) fn of_faults(&mut self, faults: &[Fault], machine: &mut dyn FilesNow) -> Rows {
        if self.whole_folios {
            let own = faults.iter().map(|f| (&f.touch, f.touch.first_page));
            let windows = faults.iter().filter_map(|f| Some((&f.touch, f.by_address()?.edges())));
            let edges = windows.flat_map(|(touch, edges)| edges.map(|page| (touch, page)));
            self.ask_of(own.chain(edges), machine);
        }
        let mut next: HashMap<u32, Nanos> = HashMap::new();
        let mut rows = Rows::default();
        for fault in faults.iter().rev() {
            let until = next.insert(fault.touch.tid, fault.touch.at).unwrap_or(Nanos(u64::MAX));
            if let Some(window) = fault.by_address() {
                self.window(fault, until, &mut rows);
                self.beyond(&window, until, &mut rows);
            }
            let page = fault.touch.first_page;
            if self.whole_folios || fault.asked {
                let own = page..page.saturating_add(1);
                let folio = self.folio(&fault.touch, page);
                let mapped = self.whole_folios.then(|| fault.held.of(&folio)).flatten().unwrap_or(own);
                let beside = beside(fault, mapped, folio.at).map(|row| (row, fault.key));
                rows.of(self.must_be_cut(folio.told)).extend(beside);
            }
        }
        rows
    }

    /// Rows of what these windows, of which events told, may have mapped beyond them.
    pub(super) fn of_windows(&mut self, windows: &[Window], machine: &mut dyn FilesNow) -> Rows {
        let mut rows = Rows::default();
        if self.whole_folios {
            let edges = windows.iter().flat_map(|w| w.edges().map(|page| (&w.touch, page)));
            self.ask_of(edges, machine);
            for window in windows {
                self.beyond(window, window.touch.at, &mut rows);
            }
        }
        rows
    }

    /// What lies outside a window of the folios at its edges that were there, or came until it was mapped.
    fn beyond(&self, window: &Window, until: Nanos, rows: &mut Rows) {
        if !self.whole_folios {
            return;
        }
        let Window { touch, key, pages, own, held } = window;
        let [first, last] = window.edges();
        for page in [first, last] {
            let came = self.history.folio(touch, page).is_some_and(|(_, at)| at <= until);
            if !came && !self.history.cached(touch, page, None) {
                continue;
            }
            let folio = self.folio(touch, page);
            // The folio of the fault's own page is that fault's.
            if own.is_some_and(|own| folio.pages.contains(&own)) {
                continue;
            }
            let Some(Range { start, end }) = held.of(&folio) else { continue };
            let outside = if page == first { start..first } else { pages.end..end };
            if outside.start < outside.end {
                rows.of(self.must_be_cut(folio.told)).push((row(touch, outside, folio.at), *key));
            }
        }
    }

    /// Where fills and evictions were seen, they tell what was cached. Else what is cached in the end is all there is,
    /// and tells nothing of a page that was thrown out before: it cuts only what nothing else bounds.
    fn must_be_cut(&self, told: bool) -> bool {
        self.fills_seen || !told
    }

    /// The folio of a page that a touch found, or that came for it.
    fn folio(&self, touch: &Touch, page: u64) -> Folio {
        if let Some((pages, at)) = self.history.folio(touch, page) {
            return Folio { pages, at: at.max(touch.at), told: true, is_real: true };
        }
        let known = self.known.get(&touch.file).and_then(Option::as_ref);
        let found = known.and_then(|folios| {
            let next = folios.partition_point(|(first, _)| *first <= page);
            let (first, pages) = folios.get(next.checked_sub(1)?)?;
            Some(*first..first.saturating_add(*pages)).filter(|folio| folio.contains(&page))
        });
        // Not told, or not cached any more: it may be any that one page table holds.
        let most = entries(self.page);
        let largest = page - page % most..(page - page % most).saturating_add(most);
        let is_real = found.is_some();
        Folio { pages: found.unwrap_or(largest), at: touch.at, told: known.is_some(), is_real }
    }

    /// The window of a fault without an event: what was cached when it began, and what came until it was over.
    /// A fault that had to wait is tried again from the beginning, and then maps what has come.
    fn window(&self, fault: &Fault, until: Nanos, rows: &mut Rows) {
        let mut parts: Vec<(Range<u64>, Nanos)> = Vec::new();
        for page in fault.window.clone().filter(|page| *page != fault.touch.first_page) {
            let came = self.history.came(&fault.touch, page, until);
            let at = came.unwrap_or(fault.touch.at);
            match parts.last_mut() {
                Some((part, same)) if part.end == page && *same == at => part.end += 1,
                _ => parts.push((page..page.saturating_add(1), at)),
            }
        }
        let parts = parts.into_iter().map(|(part, at)| (row(&fault.touch, part, at), fault.key));
        rows.of(self.must_be_cut(true)).extend(parts);
    }

    /// Rows of folios of the size of a page table in mappings where one of its entries can hold them. A fault on a page
    /// of it is what maps it. Perf events tell every fault by its address, so at their tiers there is none in what had
    /// no fault; the count of what was mapped so is that of the whole machine.
    pub(super) fn of_mappings(
        &mut self,
        mappings: &[Mapping],
        faults: &[Fault],
        machine: &mut dyn FilesNow,
    ) -> Rows {
        let most = entries(self.page);
        let faulted: Option<HashSet<(FileIdx, u64)>> = (!self.fills_seen)
            .then(|| faults.iter().map(|f| (f.touch.file, f.touch.first_page / most * most)).collect());
        let may_have = |file, block| faulted.as_ref().is_none_or(|seen| seen.contains(&(file, block)));
        let mut blocks: Vec<(&Mapping, u64)> = Vec::new();
        for m in mappings {
            // Page 0 of the file would lie at this address: else no entry of a page table fits a folio.
            let origin = m.address.wrapping_sub(m.offset);
            let size = self.files.get(m.file as usize).and_then(|f| f.size);
            let pages = size.map_or(u64::MAX, |size| size.div_ceil(self.page));
            let end = m.offset.saturating_add(m.bytes) / self.page;
            let first = m.offset.div_ceil(self.page).div_ceil(most) * most;
            let whole = (first..pages.min(end)).step_by(most as usize);
            let whole = whole.filter(|b| b.saturating_add(most) <= end && may_have(m.file, *b));
            if origin.is_multiple_of(self.page * most) {
                blocks.extend(whole.map(|block| (m, block)).take(MOST_BLOCKS.saturating_sub(blocks.len())));
            }
        }
        let at = |m: &Mapping, page| touch(m, page..page.saturating_add(1), m.at);
        let firsts: Vec<_> = blocks.iter().map(|(m, block)| (at(m, *block), *block)).collect();
        self.ask_of(firsts.iter().map(|(touch, block)| (touch, *block)), machine);
        let mut rows = Rows::default();
        for ((m, block), (first, _)) in blocks.into_iter().zip(firsts) {
            let Folio { pages, at, told, .. } = self.folio(&first, block);
            if pages.end.saturating_sub(pages.start) >= most {
                rows.of(self.must_be_cut(told)).push((touch(m, pages, at), (m.pid, 0)));
            }
        }
        rows
    }

    /// Asks for the folios of those of these pages that have been cached all the time.
    fn ask_of<'t>(&mut self, pages: impl Iterator<Item = (&'t Touch, u64)>, machine: &mut dyn FilesNow) {
        let mut of: HashMap<FileIdx, BTreeSet<u64>> = HashMap::new();
        for (touch, page) in pages.filter(|(touch, page)| self.history.folio(touch, *page).is_none()) {
            of.entry(touch.file).or_default().insert(page);
        }
        for (index, pages) in of {
            let Some(file) = self.files.get(index as usize) else { continue };
            let pages: Vec<u64> = pages.into_iter().collect();
            let told = machine.folios(file, &pages);
            match (self.known.entry(index).or_insert(Some(Vec::new())), told) {
                (Some(known), Some(told)) => {
                    known.extend(told);
                    known.sort_unstable();
                    known.dedup();
                }
                (known, _) => *known = None,
            }
        }
    }
}

/// The parts of a folio before and behind the page of its fault.
fn beside(fault: &Fault, folio: Range<u64>, at: Nanos) -> impl Iterator<Item = Touch> {
    let page = fault.touch.first_page;
    let parts = if fault.asked {
        [folio, 0..0]
    } else {
        [folio.start..page.min(folio.end), page.saturating_add(1).max(folio.start)..folio.end]
    };
    let own = fault.touch;
    parts.into_iter().filter(|part| part.start < part.end).map(move |part| row(&own, part, at))
}

fn row(own: &Touch, pages: Range<u64>, at: Nanos) -> Touch {
    let count = u32::try_from(pages.end.saturating_sub(pages.start)).unwrap_or(u32::MAX);
    Touch { at, first_page: pages.start, pages: count, kind: TouchKind::FaultAround, major: None, ..*own }
}

fn touch(m: &Mapping, pages: Range<u64>, at: Nanos) -> Touch {
    let own = Touch {
        at,
        pid: m.pid,
        tid: m.pid,
        file: m.file,
        first_page: 0,
        pages: 0,
        kind: TouchKind::FaultAround,
        major: None,
        ip: None,
        stack: None,
        call: None,
        end: None,
    };
    row(&own, pages, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lies_within_the_mapping_and_its_page_table() {
        let area = |start: u64, end: u64, offset: u64| Area { start, end, offset, file: Some(0), prot: 1 };
        let of = |area: &Area, address, window| {
            let (held, window) = around(area, address, 4096, window);
            (held.table, held.mapped, window)
        };
        // A large mapping of the file's beginning: 2 MiB of it by the page table, 64 KiB around the address.
        let large = area(0x40_0000, 0x4000_0000, 0);
        assert_eq!(of(&large, 0x61_2345, 65536), (0x200..0x400, 0x200..0x400, 0x210..0x220));
        // A small one that begins and ends within the window; page 5 of the file would be the table's first.
        let small = area(0x40_2000, 0x40_5000, 0x7000);
        assert_eq!(of(&small, 0x40_3000, 65536), (5..0x205, 7..10, 7..10));
        assert_eq!(of(&small, 0x40_3000, 4096), (5..0x205, 7..10, 0..0), "off");
        // A page before a border: the first table holds one page, the second ends within a folio of 2 MiB.
        let aside = area(0x3f_f000, 0x4000_0000, 0);
        assert_eq!(of(&aside, 0x3f_f000, 4096), (0..1, 0..1, 0..0));
        assert_eq!(of(&aside, 0x41_0000, 4096), (1..0x201, 1..0x201, 0..0));
        // A damaged log.
        let damaged = area(0, u64::MAX, u64::MAX);
        let _ = of(&damaged, u64::MAX, u64::MAX);
    }
}
