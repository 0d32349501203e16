//! A page cache under a policy: files, open files and mappings, and what programs do with them.

mod evict;
mod fault;
mod read;

use std::collections::HashMap;

use cold_model::pages::Runs;

use crate::cached::Cached;
use crate::disk::Layout;
use crate::linux::{Limits, ReadAhead, Reader};
use crate::lru::Lru;
use crate::mapping::Mapping;
use crate::op::{Access, FileId, MapId, Op, OpenId, PageCache, PageRead, Pattern, Progress, Why};
use crate::policy::Policy;

/// A file of a simulation, with what its device and file system allow. [`FileId`] is its place in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimFile {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Pages of the largest read-ahead window (`read_ahead_kb`).
    pub window_pages: u64,
    /// Pages of the device's largest request (`max_sectors_kb`): what one call of `readahead` reads at most.
    pub io_pages: u64,
    /// The file system keeps it in large folios where the kernel has them.
    pub large_folios: bool,
}

/// No device is asked for more pages at once, whatever a recording says: 4 GiB of 4 KiB.
const MOST_PAGES: u64 = 1 << 20;

/// What all files share: how a machine maps and caches pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paging {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages that a fault maps around itself (`fault_around_bytes`).
    pub fault_around: u64,
    /// The size that folios of code should have, as a power of two of pages: 0 on x86-64, 4 on arm64.
    pub exec_order: u32,
    /// The largest folio, as a power of two of pages: 9 on x86-64.
    pub max_order: u32,
}

impl Paging {
    /// What Linux does with pages of a size; `arm64` wants code in folios of 64 KiB.
    pub fn of(page_bytes: u64, arm64: bool) -> Self {
        const AROUND: u64 = 64 << 10;
        let around = (AROUND / page_bytes.max(1)).max(1);
        let exec_order = if arm64 { around.ilog2() } else { 0 };
        // A block of a page table, which has eight bytes for each page, but at most what the cache's tree can hold.
        let max_order = (page_bytes / 8).max(1).ilog2().min(11);
        Self { page_bytes, fault_around: around, exec_order, max_order }
    }
}

impl Default for Paging {
    /// Those of x86-64.
    fn default() -> Self {
        Self::of(4096, false)
    }
}

struct File {
    about: SimFile,
    cached: Cached,
    maps: Vec<MapId>,
}

struct Opened {
    file: FileId,
    ra: ReadAhead,
    /// `POSIX_FADV_SEQUENTIAL`, `POSIX_FADV_RANDOM`, for policies that know no read-ahead.
    pattern: Pattern,
}

/// A page cache under a policy.
pub struct Cache {
    policy: Policy,
    paging: Paging,
    files: Vec<File>,
    opens: HashMap<OpenId, Opened>,
    maps: HashMap<MapId, Mapping>,
    /// Who goes first, where there is not room for everything.
    lru: Option<Lru>,
}

impl Cache {
    /// An empty cache of these files.
    pub fn new(policy: Policy, paging: Paging, files: &[SimFile]) -> Self {
        let page_bytes = paging.page_bytes.max(1);
        let paging = Paging {
            page_bytes,
            fault_around: paging.fault_around.max(1),
            exec_order: paging.exec_order.min(15),
            max_order: paging.max_order.min(15),
        };
        let file = |about: &SimFile| File {
            about: SimFile {
                window_pages: about.window_pages.min(MOST_PAGES),
                io_pages: about.io_pages.min(MOST_PAGES),
                ..*about
            },
            cached: Cached::new(about.bytes.div_ceil(page_bytes)),
            maps: Vec::new(),
        };
        let files = files.iter().map(file).collect();
        Self { policy, paging, files, opens: HashMap::new(), maps: HashMap::new(), lru: None }
    }

    /// An empty cache of the files of a layout, which reads exactly what is needed or asked for: nothing around it and
    /// nothing ahead.
    pub fn exact(layout: &Layout) -> Self {
        let paging = Paging::of(layout.page_bytes(), false);
        let file = |n: usize| SimFile {
            bytes: layout.pages(FileId(n as u32)).saturating_mul(layout.page_bytes()),
            window_pages: 0,
            io_pages: MOST_PAGES,
            large_folios: false,
        };
        Self::new(Policy::Nothing, paging, &(0..layout.files()).map(file).collect::<Vec<_>>())
    }

    /// The pages of a file that are in the cache and readable.
    pub fn cached_pages(&self, file: FileId) -> Runs {
        self.files.get(file.0 as usize).map_or_else(Runs::default, |f| f.cached.ready_pages())
    }

    /// The pages of the file that a mapping shows, without copies made by writes.
    pub fn mapped_pages(&self, map: MapId) -> Runs {
        self.maps.get(&map).map_or_else(Runs::default, Mapping::file_pages)
    }

    /// Maps cached pages, and takes pages out of a mapping: what another clock than the simulation's led to.
    pub fn correct_mapped(&mut self, map: MapId, more: &Runs, less: &Runs) {
        if let Some(m) = self.maps.get_mut(&map) {
            less.runs().iter().for_each(|run| m.forget(run.start, run.end));
            more.runs().iter().cloned().flatten().for_each(|page| m.map(page));
        }
    }

    /// Puts single pages in as if they had been read before.
    pub fn preload(&mut self, file: FileId, first: u64, pages: u64) {
        let Some(f) = self.files.get_mut(file.0 as usize) else { return };
        let end = first.saturating_add(pages).min(f.cached.pages);
        for page in first..end {
            f.cached.add(page, 0, false);
        }
        f.cached.arrive(first, pages);
        if self.lru.is_some() {
            (first..end).for_each(|page| self.came(file, page));
        }
    }

    fn open(&mut self, open: OpenId, file: FileId) {
        let Some(f) = self.files.get(file.0 as usize) else { return };
        let ra = ReadAhead { window: f.about.window_pages, ..ReadAhead::default() };
        self.opens.insert(open, Opened { file, ra, pattern: Pattern::Normal });
    }

    fn map(&mut self, id: MapId, mapping: Mapping) {
        let file = self.opens.get(&mapping.open).and_then(|o| self.files.get_mut(o.file.0 as usize));
        let Some(file) = file else { return };
        file.maps.push(id);
        self.maps.insert(id, mapping);
    }

    fn unmap(&mut self, id: MapId) {
        self.leaves(id, 0, u64::MAX);
        let Some(mapping) = self.maps.remove(&id) else { return };
        let file = self.opens.get(&mapping.open).and_then(|o| self.files.get_mut(o.file.0 as usize));
        if let Some(file) = file {
            file.maps.retain(|m| *m != id);
        }
    }

    fn advise_open(&mut self, open: OpenId, pattern: Pattern) {
        let Some(o) = self.opens.get_mut(&open) else { return };
        let Some(f) = self.files.get(o.file.0 as usize) else { return };
        o.pattern = pattern;
        let plain = f.about.window_pages;
        match pattern {
            // Random keeps the window: faults use it all the same.
            Pattern::Random => o.ra.exact = true,
            Pattern::Sequential => (o.ra.exact, o.ra.window) = (false, plain.saturating_mul(2)),
            Pattern::Normal => (o.ra.exact, o.ra.window) = (false, plain),
        }
    }

    fn will_need(&mut self, open: OpenId, first: u64, pages: u64, reads: &mut Vec<PageRead>) {
        if let Policy::Linux(_) = self.policy {
            if let Some(mut reader) = self.reader(open, reads) {
                reader.asked(first, pages, Why::Advice);
            }
            return;
        }
        let Some(o) = self.opens.get(&open) else { return };
        let Some(f) = self.files.get_mut(o.file.0 as usize) else { return };
        crate::policy::holes(&mut f.cached, o.file, first, pages, Why::Advice, reads);
    }

    /// Drops the folios that lie wholly in the range, have come, and are mapped by nobody.
    fn dont_need(&mut self, file: FileId, first: u64, pages: u64) {
        let Some(f) = self.files.get_mut(file.0 as usize) else { return };
        let end = first.saturating_add(pages).min(f.cached.pages.max(1).next_multiple_of(1 << 15));
        let mut at = first;
        while let Some(page) = f.cached.next_present(at, end) {
            let Some(folio) = f.cached.folio(page) else { return };
            at = folio.end();
            let inside = folio.first >= first && folio.end() <= end;
            let held = |map: &MapId| self.maps.get(map).is_some_and(|m| m.holds(folio.first, folio.end()));
            if inside && f.cached.page(page).ready() && !f.maps.iter().any(held) {
                f.cached.remove(folio);
                if let Some(lru) = &mut self.lru {
                    lru.remove(file, folio);
                }
            }
        }
    }

    /// What reads for an open file by Linux' rules; `None` under other policies.
    fn reader<'a>(&'a mut self, open: OpenId, reads: &'a mut Vec<PageRead>) -> Option<Reader<'a>> {
        let Policy::Linux(version) = self.policy else { return None };
        let o = self.opens.get_mut(&open)?;
        let f = self.files.get_mut(o.file.0 as usize)?;
        let limits = Limits {
            page_bytes: self.paging.page_bytes,
            io_pages: f.about.io_pages,
            max_order: if f.about.large_folios { self.paging.max_order } else { 0 },
            exec_order: self.paging.exec_order,
        };
        Some(Reader { rules: version.rules(), limits, id: o.file, file: &mut f.cached, ra: &mut o.ra, reads })
    }

    fn act(&mut self, op: &Op, progress: &mut Progress, reads: &mut Vec<PageRead>) -> Access {
        match *op {
            Op::Touch { map, page, write } => return self.touch(map, page, write, progress, reads),
            Op::Read { open, offset, bytes } => return self.read(open, offset, bytes, progress, reads),
            Op::Open { open, file } => self.open(open, file),
            Op::Map { map, open, address, first, pages, exec } => {
                self.map(map, Mapping::new(open, address, first, pages, exec));
            }
            Op::Unmap { map } => self.unmap(map),
            Op::WillNeed { open, first, pages } => self.will_need(open, first, pages, reads),
            Op::AdviseOpen { open, pattern } => self.advise_open(open, pattern),
            Op::AdviseMap { map, first, pages, advice } => {
                if let Some(m) = self.maps.get_mut(&map) {
                    m.advise(first, pages, advice);
                }
            }
            Op::Populate { map, first, pages } => return self.populate(map, first, pages, progress, reads),
            Op::Forget { map, first, pages } => {
                self.leaves(map, first, first.saturating_add(pages));
                if let Some(m) = self.maps.get_mut(&map) {
                    let (from, to) = m.within(first, pages);
                    m.forget(from, to);
                }
            }
            Op::DontNeed { file, first, pages } => self.dont_need(file, first, pages),
        }
        Access::Done
    }
}

impl PageCache for Cache {
    fn access(&mut self, op: &Op, progress: &mut Progress, reads: &mut Vec<PageRead>) -> Access {
        let before = reads.len();
        let access = self.act(op, progress, reads);
        if self.lru.is_some() {
            self.count(op, access, reads.get(before..).unwrap_or_default());
        }
        access
    }

    fn arrived(&mut self, read: &PageRead) {
        if let Some(f) = self.files.get_mut(read.file.0 as usize) {
            f.cached.arrive(read.first, read.pages);
        }
    }
}
