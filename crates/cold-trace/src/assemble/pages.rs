//! Touches and fills. Pure.

mod reads;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use cold_model::Nanos;
use cold_model::recording::manifest::Tier;
use cold_model::recording::{
    DeviceRead, File, FileIdx, FileKind, Fill, FillCause, Mapping, StackIdx, Touch, TouchKind, Transfer,
};

use super::builder::Builder;
use super::causes::{Filling, populates};
use super::history::{Change, History};
use super::index::ContextKey;
use super::reach::{self, Reach};
use super::residency::Residency;
use crate::machine::FilesNow;
use crate::raw::{self, Doing};
use crate::syscalls::{Class, class};

/// No folio is larger: 2^13 pages is beyond every kernel's limit. A damaged record must not claim more.
const MAX_ORDER: u32 = 13;
/// A fault-around window beyond this is none (`fault_around_bytes` reaches one page table: 512 pages).
const MAX_WINDOW: u64 = 512;

pub(super) fn folio_pages(order: u32) -> u32 {
    1 << order.min(MAX_ORDER)
}

/// What is collected in order of time.
#[derive(Debug, Default)]
pub(super) struct Pages {
    touches: Vec<(Touch, ContextKey)>,
    /// What events told to be mapped around faults.
    windows: Vec<reach::Window>,
    fills: Vec<Fill>,
    /// Fills and evictions of each file, in order of time.
    changes: Vec<Change>,
    /// A thread's last fault: its beginning, file, page. Retries of one fault repeat it.
    last_fault: HashMap<u32, (u64, FileIdx, u64)>,
    /// A thread's last read, to cut its range where the next one of the same call begins.
    last_read: HashMap<u32, (ContextKey, usize)>,
    /// One past the last byte of what calls read.
    ends: HashMap<ContextKey, u64>,
    /// Pages at the position of a read that the read itself filled. The kernel tells of no success when it
    /// had to make that page by itself (`filemap_create_folio`: its read-ahead brought nothing).
    begun: Vec<(Touch, ContextKey)>,
    /// A thread's last fill within a fault or call.
    last_fill: HashMap<u32, (u64, FileIdx, u64)>,
    /// Faults and calls in which something was filled.
    filled_in: HashSet<ContextKey>,
    /// Faults, for what they mapped without an event.
    faults: Vec<reach::Fault>,
    /// Faults by address (tier B): the fault in progress of a thread.
    by_address: HashMap<u32, (u64, FileIdx, u64)>,
}

/// What the kernel maps here without an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unseen<'a> {
    /// Bytes per page.
    pub(super) page: u64,
    /// A fault maps all of a large folio.
    pub(super) whole_folios: bool,
    /// Fills and evictions are told.
    pub(super) fills_seen: bool,
    /// Mappings in which huge pages may have been mapped at once; empty where none was on the whole machine.
    pub(super) huge: &'a [Mapping],
}

/// The finished tables.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) touches: Vec<Touch>,
    pub(super) fills: Vec<Fill>,
    pub(super) fills_by_residency: bool,
}

impl Builder<'_> {
    pub(super) fn page_event(&mut self, head: &raw::Header, event: &raw::Event<'_>, in_tree: bool) {
        match event {
            raw::Event::Fault(p) if in_tree => {
                if let Some(file) = self.files.index(p.file) {
                    self.fault(head, p, file, p.first);
                }
            }
            raw::Event::Map(p) if in_tree => self.mapped(head, p),
            raw::Event::Get(p) if in_tree => self.read(head, p),
            raw::Event::Add(add) => self.fill(head, add, in_tree),
            _ => {}
        }
    }

    /// A fault on exactly this page. Retries of one fault are one touch.
    fn fault(&mut self, head: &raw::Header, p: &raw::Pages, file: FileIdx, page: u64) {
        let this = (p.context.at, file, page);
        if self.pages.last_fault.insert(head.tid, this) == Some(this) {
            return;
        }
        // What was only asked for may have been used: mapped, it never faults again.
        let asked = p.context.doing == Doing::Fault && populates(p.context.syscall);
        let touch = touch(head, file, page, 1, TouchKind::Fault, p.ip);
        let key = (head.tid, p.context.at);
        if !asked {
            self.pages.touches.push((touch, key));
        }
        self.may_have_mapped(touch, key, p.address, asked);
    }

    /// Remembers a fault at this address (0: not known) for what it mapped beside its page.
    pub(super) fn may_have_mapped(&mut self, touch: Touch, key: ContextKey, address: u64, asked: bool) {
        let (held, window) = self.around(&touch, address);
        // Tier A has an event for what is mapped in the window.
        let window = if self.tier == Tier::A { 0..0 } else { window };
        self.pages.faults.push(reach::Fault { touch, key, held, window, asked });
    }

    /// Pages of the file around the address of a touch (0: not known): what its page table holds of its mapping, and
    /// the window.
    fn around(&self, touch: &Touch, address: u64) -> (reach::Held, Range<u64>) {
        let space = self.spaces.of(touch.pid).filter(|_| address != 0);
        let area = space.and_then(|space| space.find(address)).filter(|area| area.file == Some(touch.file));
        area.map_or_else(
            || (reach::Held::any(), 0..0),
            |area| reach::around(area, address, self.page, self.window),
        )
    }

    /// Pages mapped around a fault because they were cached; one of them may be the fault's own.
    fn mapped(&mut self, head: &raw::Header, p: &raw::Pages) {
        let Some(file) = self.files.index(p.file) else { return };
        let last = self.inside(file, p.first, p.last).min(p.first.saturating_add(MAX_WINDOW - 1));
        if last < p.first {
            return;
        }
        let key = (head.tid, p.context.at);
        let by_address = || {
            let found = self.spaces.find(head.pid, p.address).filter(|_| p.address != 0)?;
            (found.0 == file).then_some(found.1 / self.page)
        };
        let own = if p.first == last { Some(last) } else { by_address() };
        let own = own.or_else(|| {
            let same = p.context.doing == Doing::Fault && self.files.index(p.context.file) == Some(file);
            same.then_some(p.context.index)
        });
        let own = own.filter(|page| (p.first..=last).contains(page));
        if let Some(page) = own {
            self.fault(head, p, file, page);
        }
        let pages = p.first..last.saturating_add(1);
        let touch =
            touch(head, file, p.first, (pages.end - pages.start) as u32, TouchKind::FaultAround, p.ip);
        let (held, _) = self.around(&touch, p.address);
        self.pages.windows.push(reach::Window { touch, key, pages, own, held });
    }

    /// Tier B: a fault by its address.
    pub(super) fn page_fault(&mut self, head: &raw::Header, f: &raw::PageFault, in_tree: bool) {
        let Some((file, offset)) = self.spaces.find(head.pid, f.address) else {
            self.pages.by_address.remove(&head.tid);
            return;
        };
        let page = offset / self.page;
        self.pages.by_address.insert(head.tid, (head.at, file, page));
        // Tier A tells the faults of files itself, and maps many that then cost no fault.
        if in_tree && self.tier != Tier::A {
            let row = touch(head, file, page, 1, TouchKind::Fault, f.ip);
            self.pages.touches.push((row, (head.tid, head.at)));
            self.may_have_mapped(row, (head.tid, head.at), f.address, false);
        }
    }

    /// File and page of the fault in progress.
    pub(super) fn fault_place(
        &mut self,
        pid: u32,
        tid: u32,
        context: &raw::Context,
        address: u64,
    ) -> Option<(FileIdx, u64)> {
        if let Some(file) = self.files.index(context.file) {
            return Some((file, context.index));
        }
        let by_address = self.pages.by_address.get(&tid).filter(|f| f.0 == context.at && f.0 != 0);
        by_address.map(|f| (f.1, f.2)).or_else(|| {
            let found = self.spaces.find(pid, address).filter(|_| address != 0)?;
            Some((found.0, found.1 / self.page))
        })
    }

    fn fill(&mut self, head: &raw::Header, add: &raw::Add, in_tree: bool) {
        let Some(file) = self.files.index(add.file) else { return };
        let Some(kind) = self.files.row(file).map(|f| f.kind) else { return };
        let wanted = match add.context.doing {
            Doing::Fault => self.fault_place(head.pid, head.tid, &add.context, 0),
            _ => self.files.index(add.context.file).zip(add.context.page()),
        };
        let pages = folio_pages(add.order);
        let key = (head.tid, add.context.at);
        let filling = Filling {
            file,
            first: add.index,
            pages,
            kind,
            foreign: head.flags & (raw::KTHREAD | raw::BORROWED) != 0,
            doing: add.context.doing,
            syscall: add.context.syscall,
            wanted,
            asked: self.index.asked(key),
        };
        let last = add.index.saturating_add(u64::from(add.more) * u64::from(pages));
        // Behind a success the position is where the next page would be wanted, if the call went on.
        let first = self.pages.last_read.get(&head.tid).is_none_or(|(last, _)| *last != key);
        let reads = first && add.context.doing == Doing::Call && class(add.context.syscall) == Class::Read;
        if let Some((_, page)) = wanted.filter(|(of, _)| *of == file)
            && (reads && in_tree && kind == FileKind::Regular && self.index.has_gets)
            && (add.index..last.saturating_add(pages.into())).contains(&page)
        {
            self.pages.begun.push((touch(head, file, page, 1, TouchKind::Read, 0), key));
        }
        self.pages.last_fill.insert(head.tid, (add.context.at, file, last));
        self.pages.filled_in.insert(key);
        for i in 0..=u64::from(add.more) {
            let first_page = add.index.saturating_add(i * u64::from(pages));
            self.pages.changes.push(Change { at: Nanos(head.at), file, first_page, pages, came: true });
            self.pages.fills.push(Fill {
                at: Nanos(head.at),
                pid: head.pid,
                tid: head.tid,
                in_tree,
                file,
                first_page,
                pages,
                cause: Filling { first: first_page, ..filling }.cause(),
            });
        }
    }

    /// The last page of a range that lies within the file as it was seen.
    fn inside(&self, file: FileIdx, first: u64, last: u64) -> u64 {
        match self.files.row(file).and_then(|f| f.size) {
            // What was read or mapped was there, even if the file has grown since its size was seen.
            Some(size) if size > 0 => last.min(((size - 1) / self.page).max(first)),
            _ => last,
        }
    }
}

impl Finished {
    /// Cuts reads to the pages that files turned out to have: a read of 32 KiB asks for eight pages of a file
    /// whose size was told before anything was written to it. Its first page was there, else it had not come
    /// so far.
    pub(super) fn cut(&mut self, pages: &HashMap<FileIdx, u64>) {
        for touch in self.touches.iter_mut().filter(|t| t.kind == TouchKind::Read) {
            if let Some(end) = pages.get(&touch.file) {
                let left = end.saturating_sub(touch.first_page).max(1);
                touch.pages = touch.pages.min(u32::try_from(left).unwrap_or(u32::MAX));
            }
        }
    }
}

fn touch(head: &raw::Header, file: FileIdx, first_page: u64, pages: u32, kind: TouchKind, ip: u64) -> Touch {
    Touch {
        at: Nanos(head.at),
        pid: head.pid,
        tid: head.tid,
        file,
        first_page,
        pages,
        kind,
        major: None,
        ip: (ip != 0).then_some(ip),
        stack: None,
        call: None,
        end: None,
    }
}

impl Pages {
    /// A touch that is complete.
    pub(super) fn push(&mut self, touch: Touch) {
        self.touches.push((touch, (touch.tid, 0)));
    }

    pub(super) fn evicted(&mut self, at: u64, file: FileIdx, first: u64, pages: u32) {
        self.changes.push(Change { at: Nanos(at), file, first_page: first, pages, came: false });
    }

    /// Files of which the start used a page.
    pub(super) fn files_touched(&self) -> BTreeSet<FileIdx> {
        let around = self.files_with_windows();
        self.touches.iter().chain(&self.begun).map(|(touch, _)| touch.file).chain(around).collect()
    }

    /// Fills and evictions of all files, in order of time.
    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Files of which pages may have been mapped beside those that faulted.
    pub(super) fn files_with_windows(&self) -> BTreeSet<FileIdx> {
        self.windows.iter().map(|w| w.touch.file).chain(self.faults.iter().map(|f| f.touch.file)).collect()
    }

    pub(super) fn last_fill(&self, tid: u32, context: u64) -> Option<(FileIdx, u64)> {
        let last = self.last_fill.get(&tid).filter(|f| f.0 == context && context != 0)?;
        Some((last.1, last.2))
    }

    /// Whether something was filled in this fault or call.
    pub(super) fn filled_in(&self, key: ContextKey) -> bool {
        self.filled_in.contains(&key)
    }

    /// Calls that read pages: file and first page.
    pub(super) fn reads(&self) -> impl Iterator<Item = (ContextKey, (FileIdx, u64))> {
        let reads = self.touches.iter().filter(|(touch, _)| touch.kind == TouchKind::Read);
        reads.map(|(touch, key)| (*key, (touch.file, touch.first_page)))
    }

    /// Forgets what these calls read: tier B, which sees reads by their calls, took it for pages of the cache.
    pub(super) fn past_the_cache(&mut self, calls: &HashSet<ContextKey>) {
        self.touches.retain(|(touch, key)| touch.kind != TouchKind::Read || !calls.contains(key));
    }

    /// A write of a part of a page that was not cached reads the page first: it was read, and needed. Which pages a
    /// device brought tells them from those that were made new.
    pub(super) fn read_to_be_written(&mut self, reads: &[DeviceRead], transfers: &[Transfer]) {
        let mut brought: HashMap<FileIdx, Vec<Range<u64>>> = HashMap::new();
        for t in transfers {
            let own = reads.get(t.request as usize).is_some_and(|read| read.in_tree);
            if let Some(file) = t.file.filter(|_| own) {
                let end = t.first_page.saturating_add(t.pages.into());
                brought.entry(file).or_default().push(t.first_page..end);
            }
        }
        for ranges in brought.values_mut() {
            ranges.sort_unstable_by_key(|range| range.start);
            ranges.dedup_by(|next, last| {
                let joins = next.start <= last.end;
                last.end = if joins { last.end.max(next.end) } else { last.end };
                joins
            });
        }
        let mut fills = Vec::with_capacity(self.fills.len());
        for fill in std::mem::take(&mut self.fills) {
            let ranges = brought.get(&fill.file).filter(|_| fill.cause == FillCause::Write && fill.in_tree);
            let Some(ranges) = ranges else {
                fills.push(fill);
                continue;
            };
            let end = fill.first_page.saturating_add(fill.pages.into());
            let mut at = fill.first_page;
            while at < end {
                let was_read = holds_any(ranges, at);
                let same = (at..end).take_while(|page| holds_any(ranges, *page) == was_read).count() as u64;
                let cause = if was_read { FillCause::BufferedRead } else { FillCause::Write };
                let pages = u32::try_from(same).unwrap_or(u32::MAX);
                fills.push(Fill { first_page: at, pages, cause, ..fill });
                if was_read {
                    self.push(Touch { first_page: at, pages, ..of_fill(&fill) });
                }
                at = at.saturating_add(same.max(1));
            }
        }
        self.fills = fills;
    }

    /// Where the last page filled of each file ends, in pages.
    pub(super) fn filled(&self) -> HashMap<FileIdx, u64> {
        let mut ends = HashMap::new();
        for fill in &self.fills {
            let end = ends.entry(fill.file).or_insert(0);
            *end = fill.first_page.saturating_add(fill.pages.into()).max(*end);
        }
        ends
    }

    pub(super) fn finish(
        self,
        files: &[File],
        stack_of: &HashMap<ContextKey, StackIdx>,
        residency: Residency,
        unseen: Unseen<'_>,
        machine: &mut dyn FilesNow,
    ) -> Finished {
        let mut of_interest = self.files_with_windows();
        of_interest.extend(unseen.huge.iter().map(|m| m.file));
        let Self { mut touches, windows, mut fills, begun, changes, faults, ends, .. } = self;
        let history = History::new(&changes, &of_interest);
        let mut reach = Reach::new(files, unseen, &history);
        let mut to_cut: Vec<_> = windows.iter().flat_map(reach::Window::rows).collect();
        for rows in [
            reach.of_windows(&windows, machine),
            reach.of_faults(&faults, machine),
            reach.of_mappings(unseen.huge, &faults, machine),
        ] {
            to_cut.extend(rows.to_cut);
            touches.extend(rows.whole);
        }
        reads::add_without_event(&mut touches, begun);
        for (window, key) in to_cut {
            let end = window.first_page.saturating_add(window.pages.into());
            let mut first = window.first_page;
            while first < end {
                let cached = |page| history.cached(&window, page, residency.after.get(&window.file));
                let from = (first..end).find(|page| cached(*page)).unwrap_or(end);
                let to = (from..end).find(|page| !cached(*page)).unwrap_or(end);
                if to > from {
                    touches.push((Touch { first_page: from, pages: (to - from) as u32, ..window }, key));
                }
                first = to.max(first + 1);
            }
        }
        let mut touches: Vec<Touch> = touches
            .into_iter()
            .filter(|(t, _)| (t.file as usize) < files.len())
            .map(|(t, key)| {
                let stack = if key.1 == 0 { None } else { stack_of.get(&key).copied() };
                let call = (t.kind == TouchKind::Read && key.1 != 0).then_some(Nanos(key.1));
                let end = call.and_then(|_| ends.get(&key).copied());
                Touch { stack: t.stack.or(stack), call, end, ..t }
            })
            .collect();
        touches.sort_by_key(|t| t.at);
        let fills_by_residency = residency.came.is_some();
        for (file, first_page, pages) in residency.came.unwrap_or_default() {
            let cause = FillCause::Other;
            let at = residency.end;
            fills.push(Fill { at, pid: 0, tid: 0, in_tree: false, file, first_page, pages, cause });
        }
        Finished { touches, fills, fills_by_residency }
    }
}

fn holds_any(sorted: &[Range<u64>], page: u64) -> bool {
    let next = sorted.partition_point(|range| range.start <= page);
    next.checked_sub(1).and_then(|i| sorted.get(i)).is_some_and(|range| range.contains(&page))
}

/// A read of what a fill brought, for whoever caused it.
fn of_fill(fill: &Fill) -> Touch {
    Touch {
        at: fill.at,
        pid: fill.pid,
        tid: fill.tid,
        file: fill.file,
        first_page: fill.first_page,
        pages: fill.pages,
        kind: TouchKind::Read,
        major: None,
        ip: None,
        stack: None,
        call: None,
        end: None,
    }
}
