//! Pages that reads copied: those of which the kernel tells, and those of which it does not.

use std::collections::{HashMap, HashSet};

use cold_model::file_system::Origin;
use cold_model::recording::{FileIdx, FileKind, Touch, TouchKind};

use super::touch;
use crate::assemble::builder::Builder;
use crate::assemble::index::{ContextKey, read_range};
use crate::raw::{self, Doing};
use crate::syscalls::{Class, class};

impl Builder<'_> {
    /// Pages copied by a read. A large read reports what is left of it again and again.
    pub(super) fn read(&mut self, head: &raw::Header, p: &raw::Pages) {
        let Some(file) = self.files.index(p.file) else { return };
        let last = self.inside(file, p.first, p.last);
        let key = (head.tid, p.context.at);
        let same_call =
            self.pages.last_read.get(&head.tid).filter(|(before, _)| *before == key && key.1 != 0);
        let before = same_call.and_then(|(_, index)| self.pages.touches.get_mut(*index));
        let mut end_before = None;
        if let Some((old, _)) = before.filter(|(old, _)| old.file == file && old.first_page <= p.first) {
            if old.first_page == p.first {
                return;
            }
            let ahead = u32::try_from(p.first - old.first_page).unwrap_or(u32::MAX);
            old.pages = old.pages.min(ahead);
            end_before = Some(old.first_page.saturating_add(old.pages.into()));
        }
        if let Some(begin) = end_before.or_else(|| self.begin_of_call(key, p, file)) {
            self.add_copied_before(head, p, file, begin);
        }
        let pages = u32::try_from(last.saturating_sub(p.first).saturating_add(1)).unwrap_or(u32::MAX);
        self.end_of_call(key, p, file);
        self.pages.last_read.insert(head.tid, (key, self.pages.touches.len()));
        self.pages.touches.push((touch(head, file, p.first, pages, TouchKind::Read, 0), key));
    }

    /// Where a call ends, by its first event. That of calls whose third argument is a number of bytes.
    fn end_of_call(&mut self, key: ContextKey, p: &raw::Pages, file: FileIdx) {
        let in_bytes = matches!(libc::c_long::from(p.context.syscall), libc::SYS_read | libc::SYS_pread64);
        let first_of_call = self.pages.last_read.get(&key.0).is_none_or(|(last, _)| *last != key);
        if !in_bytes || !first_of_call || p.address == 0 || p.context.doing != Doing::Call || key.1 == 0 {
            return;
        }
        let size = self.files.row(file).and_then(|f| f.size).filter(|size| *size > 0);
        // A file may have grown since its size was seen; the page was there.
        let least = p.first.saturating_mul(self.page).saturating_add(1);
        let end = p.address.min(size.map_or(u64::MAX, |size| size.max(least)));
        if end >= least {
            self.pages.ends.insert(key, end);
        }
    }

    /// The page at which a call began, at its first event; `None`: another event of it came before, or its place in
    /// this file is not known.
    fn begin_of_call(&mut self, key: ContextKey, p: &raw::Pages, file: FileIdx) -> Option<u64> {
        let first_of_call = self.pages.last_read.get(&key.0).is_none_or(|(last, _)| *last != key);
        let of = self.files.index(p.context.file)?;
        // A call on an overlay reads the pages of the file below it: another inode.
        let overlay =
            |of: FileIdx| self.files.row(of).is_some_and(|f| Origin::of(&f.file_system) == Origin::Layers);
        p.context.page().filter(|_| first_of_call && (of == file || overlay(of)))
    }

    /// What a call had copied from page `begin` on without an event. `filemap_get_pages` tells nothing when the last
    /// folio of a batch was still being read: it waits for that one, returns those before it, and is called again for
    /// the rest. That is so at the beginning of a call, and of each round of one that fills a pipe again and again
    /// (`sendfile`: 16 pages at a time): page 26 of pages 10 to 49 was missing in one of 150 starts on btrfs.
    fn add_copied_before(&mut self, head: &raw::Header, p: &raw::Pages, file: FileIdx, begin: u64) {
        let key = (head.tid, p.context.at);
        let in_order =
            key.1 != 0 && p.context.doing == Doing::Call && class(p.context.syscall) == Class::Read;
        if in_order && begin < p.first {
            let pages = u32::try_from(p.first - begin).unwrap_or(u32::MAX);
            self.pages.touches.push((touch(head, file, begin, pages, TouchKind::Read, 0), key));
        }
    }

    /// What a call returned ends what it copied: `sendfile` and its like look for one page more than fits into a pipe
    /// where they begin within a page (16 parts of pages, 17 pages told).
    pub(in crate::assemble) fn end_read(&mut self, head: &raw::Header, call: &raw::Call<'_>) {
        let Some((_, last)) = read_range(call, self.page, false) else { return };
        self.returned(head, call);
        let key = (head.tid, call.began);
        let of_call = self.pages.last_read.get(&head.tid).filter(|(of, _)| *of == key && key.1 != 0);
        let Some((row, _)) = of_call.and_then(|(_, index)| self.pages.touches.get_mut(*index)) else {
            return;
        };
        if row.first_page <= last {
            let inside = u32::try_from(last - row.first_page + 1).unwrap_or(u32::MAX);
            row.pages = row.pages.min(inside);
        }
    }

    /// The byte at which a call ended, by what it returned.
    fn returned(&mut self, head: &raw::Header, call: &raw::Call<'_>) {
        let got = call.position.zip(u64::try_from(call.result).ok());
        let end = got.map(|(from, bytes)| from.saturating_add(bytes));
        self.pages.ends.extend(end.map(|end| ((head.tid, call.began), end)));
    }

    /// Tier B: a read by what its call returned.
    pub(in crate::assemble) fn read_call(&mut self, head: &raw::Header, call: &raw::Call<'_>) {
        let Some((first, last)) = read_range(call, self.page, false) else { return };
        let Some(file) = self.files.index(call.file) else { return };
        let regular = self.files.row(file).is_some_and(|f| f.kind == FileKind::Regular);
        if regular {
            let pages = u32::try_from(last - first + 1).unwrap_or(u32::MAX);
            let row = touch(head, file, first, pages, TouchKind::Read, 0);
            self.returned(head, call);
            self.pages.touches.push((row, (head.tid, call.began)));
        }
    }
}

/// Adds what reads began with where no read of the same call tells of it.
pub(super) fn add_without_event(touches: &mut Vec<(Touch, ContextKey)>, begun: Vec<(Touch, ContextKey)>) {
    let of_interest: HashSet<ContextKey> = begun.iter().map(|(_, key)| *key).collect();
    let mut told: HashMap<ContextKey, Vec<(FileIdx, u64, u64)>> = HashMap::new();
    for (t, key) in touches.iter().filter(|(t, key)| t.kind == TouchKind::Read && of_interest.contains(key)) {
        let range = (t.file, t.first_page, t.first_page.saturating_add(t.pages.into()));
        told.entry(*key).or_default().push(range);
    }
    for (t, key) in begun {
        let ranges = told.entry(key).or_default();
        if !ranges.iter().any(|r| r.0 == t.file && (r.1..r.2).contains(&t.first_page)) {
            ranges.push((t.file, t.first_page, t.first_page.saturating_add(1)));
            touches.push((t, key));
        }
    }
}
