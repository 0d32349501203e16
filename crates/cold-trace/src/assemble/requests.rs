//! Requests to devices and what they brought. Pure.

use std::collections::{HashMap, HashSet};

use cold_model::Nanos;
use cold_model::recording::{DeviceRead, FileIdx, RequestIdx, Transfer};

use super::files::Files;
use super::index::ContextKey;
use crate::raw::{BORROWED, Done, Header, PART_ANON, Request};

/// `REQ_OP_READ`, in the lowest 8 bits of `cmd_flags`.
const OP_READ: u32 = 0;

/// The tables of requests and transfers.
#[derive(Debug, Default)]
pub(super) struct Requests {
    reads: Vec<DeviceRead>,
    transfers: Vec<Transfer>,
    open: HashMap<u64, usize>,
    /// Places in `transfers` of memory that is no file's, with the call that asked for it.
    past_the_cache: Vec<(usize, ContextKey)>,
}

/// Whether this is all of `whole`, or its end.
fn is_rest(whole: &DeviceRead, request: &Request<'_>) -> bool {
    const SECTOR: u64 = 512;
    let end = |sector: u64, bytes: u32| sector.saturating_mul(SECTOR).saturating_add(u64::from(bytes));
    whole.dev == request.dev
        && whole.sector <= request.sector
        && end(whole.sector, whole.bytes) == end(request.sector, request.bytes)
}

impl Requests {
    pub(super) fn issued(
        &mut self,
        head: &Header,
        request: &Request<'_>,
        in_tree: bool,
        files: &mut Files,
        page: u64,
    ) {
        if request.op & 0xff != OP_READ {
            return;
        }
        let again = self.open.get(&request.rq).and_then(|i| self.reads.get(*i));
        if again.is_some_and(|whole| is_rest(whole, request)) {
            return; // requeued: the driver gets it a second time, or what a short read of a loop device left of it
        }
        let Ok(index) = RequestIdx::try_from(self.reads.len()) else { return };
        let made = [request.started, request.inserted].into_iter().find(|t| *t != 0).unwrap_or(head.at);
        let somebody_else = head.flags & BORROWED != 0;
        self.reads.push(DeviceRead {
            queued: Nanos(made.min(head.at)),
            issued: Some(Nanos(head.at)),
            completed: None,
            dev: request.dev,
            sector: request.sector,
            bytes: request.bytes,
            pid: if somebody_else { 0 } else { head.pid },
            tid: if somebody_else { 0 } else { head.tid },
            in_tree: in_tree && !somebody_else,
            metadata: request.metadata,
            readahead: request.readahead,
            file: None,
        });
        self.open.insert(request.rq, index as usize);
        let key = (head.tid, if somebody_else { 0 } else { request.context });
        self.parts(index, request, key, files, page);
    }

    fn parts(
        &mut self,
        request: RequestIdx,
        raw: &Request<'_>,
        key: ContextKey,
        files: &mut Files,
        page: u64,
    ) {
        let first = self.transfers.len();
        for part in raw.parts() {
            let file = if part.state & PART_ANON == 0 { files.index(part.file) } else { None };
            let index = if file.is_some() { part.index } else { 0 };
            let pages = u64::from(part.bytes).div_ceil(page).max(1) as u32;
            if let Some(last) = self.transfers.get_mut(first..).and_then(<[Transfer]>::last_mut)
                && last.file == file
                && (file.is_none() || last.first_page.checked_add(last.pages.into()) == Some(index))
                && let Some(sum) = last.pages.checked_add(pages)
            {
                last.pages = sum;
                continue;
            }
            if file.is_none() && key.1 != 0 {
                self.past_the_cache.push((self.transfers.len(), key));
            }
            self.transfers.push(Transfer { request, file, first_page: index, pages });
        }
    }

    pub(super) fn done(&mut self, at: u64, done: &Done) {
        if done.left == 0
            && let Some(read) = self.open.remove(&done.rq).and_then(|i| self.reads.get_mut(i))
        {
            read.completed = Some(Nanos(at));
        }
    }

    /// Names the files of direct reads: by the calls in which they were waited for, and their positions. Answers
    /// with these calls.
    pub(super) fn name_direct(&mut self, calls: &HashMap<ContextKey, (FileIdx, u64)>) -> HashSet<ContextKey> {
        let mut done: HashMap<ContextKey, u64> = HashMap::new();
        for (place, key) in std::mem::take(&mut self.past_the_cache) {
            let (Some((file, page)), Some(transfer)) = (calls.get(&key), self.transfers.get_mut(place))
            else {
                continue;
            };
            let done = done.entry(key).or_default();
            (transfer.file, transfer.first_page) = (Some(*file), page.saturating_add(*done));
            *done = done.saturating_add(transfer.pages.into());
        }
        done.into_keys().collect()
    }

    /// Both tables, by time of queueing.
    pub(super) fn finish(self) -> (Vec<DeviceRead>, Vec<Transfer>) {
        let mut order: Vec<usize> = (0..self.reads.len()).collect();
        order.sort_by_key(|i| self.reads.get(*i).map(|r| r.queued));
        let mut place = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            if let Some(slot) = place.get_mut(*old) {
                *slot = new as RequestIdx;
            }
        }
        let reads = order.iter().filter_map(|i| self.reads.get(*i).copied()).collect();
        let mut transfers = self.transfers;
        for t in &mut transfers {
            t.request = place.get(t.request as usize).copied().unwrap_or(t.request);
        }
        transfers.sort_by_key(|t| t.request);
        (reads, transfers)
    }
}
