//! What has to be known before events are judged in order of time: files, and what calls asked for. Pure.

use std::collections::{HashMap, HashSet};

use cold_model::recording::FileIdx;

use super::files::Files;
use super::input::Input;
use super::mounts::Mounts;
use crate::raw::{Call, Event, READAHEAD_SYNC, RawRecord};
use crate::syscalls::{Class, class};

/// A fault or call: thread and beginning.
pub(super) type ContextKey = (u32, u64);

/// The first page that a call got, when it had it.
#[derive(Debug, Clone, Copy)]
struct Got {
    at: u64,
    file: FileIdx,
    first: u64,
}

/// Pages that a call asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedPages {
    pub(super) file: FileIdx,
    pub(super) first: u64,
    /// The last one, included.
    pub(super) last: u64,
}

/// The result of the first pass.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Per call in which something was filled or waited for: what it asked for.
    asked: HashMap<ContextKey, Vec<AskedPages>>,
    /// The same with times, in order of time.
    got: HashMap<ContextKey, Vec<Got>>,
    /// The tier tells reads page by page (`mm_filemap_get_pages`).
    pub(super) has_gets: bool,
}

impl Index {
    pub(super) fn build(input: &Input, files: &mut Files, mounts: &Mounts, page: u64) -> Self {
        let mut index = Self::default();
        let mut wanted: HashSet<ContextKey> = HashSet::new();
        for record in input.bpf_records() {
            match record.event {
                Event::File(f) => files.alias(&f),
                Event::Add(add) => drop(wanted.insert((record.head.tid, add.context.at))),
                Event::Stall(s) => drop(wanted.insert((record.head.tid, s.context.at))),
                Event::Get(_) => index.has_gets = true,
                _ => {}
            }
        }
        for record in input.bpf_records() {
            if let Event::File(f) = record.event {
                files.seen(&f, mounts);
            }
        }
        for record in input.bpf_records() {
            index.ask(&record, &wanted, files, page);
        }
        index
    }

    fn ask(&mut self, record: &RawRecord<'_>, wanted: &HashSet<ContextKey>, files: &mut Files, page: u64) {
        let tid = record.head.tid;
        let (context, file, first, last) = match record.event {
            Event::Get(get) => (get.context.at, get.file, get.first, get.last),
            Event::Readahead(r) if r.asked > 0 && r.kind == READAHEAD_SYNC => {
                (r.context, r.file, r.index, r.index.saturating_add(r.asked - 1))
            }
            Event::Call(call) if class(call.syscall) == Class::Read => {
                let Some((first, last)) = read_range(&call, page, true) else { return };
                (call.began, call.file, first, last)
            }
            _ => return,
        };
        if context == 0 || !wanted.contains(&(tid, context)) {
            return;
        }
        let Some(file) = files.index(file) else { return };
        self.asked.entry((tid, context)).or_default().push(AskedPages { file, first, last });
        if matches!(record.event, Event::Get(_)) {
            let got = Got { at: record.head.at, file, first };
            self.got.entry((tid, context)).or_default().push(got);
        }
    }

    /// Ranges that a call asked for.
    pub(super) fn asked(&self, key: ContextKey) -> &[AskedPages] {
        if key.1 == 0 { &[] } else { self.asked.get(&key).map_or(&[], Vec::as_slice) }
    }

    /// The first pages that a call got from time `at` on.
    pub(super) fn next_got(&self, key: ContextKey, at: u64) -> Option<(FileIdx, u64)> {
        let all = self.got.get(&key)?;
        let next = all.get(all.partition_point(|g| g.at < at))?;
        Some((next.file, next.first))
    }
}

/// First and last page of a call of the read family: of what it asked for, or of what it got.
pub(super) fn read_range(call: &Call<'_>, page: u64, asked: bool) -> Option<(u64, u64)> {
    let position = call.position?;
    let got = u64::try_from(call.result).unwrap_or(0);
    let number = libc::c_long::from(call.syscall);
    let bytes = if asked && matches!(number, libc::SYS_read | libc::SYS_pread64) {
        call.args.get(2).copied().unwrap_or(got)
    } else {
        got
    };
    if bytes == 0 {
        return None;
    }
    Some((position / page, position.saturating_add(bytes - 1) / page))
}
