//! Which device request a stall waited for.

use std::collections::HashMap;

use cold_model::Nanos;
use cold_model::recording::{DeviceRead, FileIdx, Recording, RequestIdx, Stall};

/// How many requests of one thread are looked at for a stall whose page is not known: a queue is at most
/// that deep in practice.
const NEAR: usize = 64;

/// For each stall the request it waited for: the one that carried its page while it waited; where the page
/// is not known, one that carried pages of its file; else one its own thread had made. Of several the one
/// that completed last before the task was woken.
pub fn stall_requests(recording: &Recording) -> Vec<Option<RequestIdx>> {
    let (Some(stalls), Some(reads)) = (&recording.stalls, &recording.device_reads) else {
        return vec![None; recording.stalls.as_ref().map_or(0, Vec::len)];
    };
    let index = Index::of(recording, reads);
    stalls.iter().map(|s| if s.cause.is_storage() { index.find(s) } else { None }).collect()
}

/// One run of pages that a request carried.
struct Carried {
    first: u64,
    end: u64,
    request: RequestIdx,
}

struct Index<'a> {
    reads: &'a [DeviceRead],
    /// By first page, with the longest run of the file.
    by_page: HashMap<FileIdx, (Vec<Carried>, u64)>,
    /// By time of queueing.
    by_file: HashMap<FileIdx, Vec<RequestIdx>>,
    by_thread: HashMap<u32, Vec<RequestIdx>>,
}

impl<'a> Index<'a> {
    fn of(recording: &Recording, reads: &'a [DeviceRead]) -> Self {
        let mut by_page: HashMap<FileIdx, (Vec<Carried>, u64)> = HashMap::new();
        let mut by_file: HashMap<FileIdx, Vec<RequestIdx>> = HashMap::new();
        let mut by_thread: HashMap<u32, Vec<RequestIdx>> = HashMap::new();
        for t in recording.transfers.iter().flatten() {
            let Some(file) = t.file.filter(|_| (t.request as usize) < reads.len()) else { continue };
            let (runs, longest) = by_page.entry(file).or_default();
            let end = t.first_page.saturating_add(u64::from(t.pages));
            runs.push(Carried { first: t.first_page, end, request: t.request });
            *longest = (*longest).max(u64::from(t.pages));
            by_file.entry(file).or_default().push(t.request);
        }
        for (i, r) in reads.iter().enumerate() {
            by_thread.entry(r.tid).or_default().push(i as RequestIdx);
        }
        for (runs, _) in by_page.values_mut() {
            runs.sort_unstable_by_key(|c| (c.first, c.request));
        }
        for list in by_file.values_mut().chain(by_thread.values_mut()) {
            list.sort_unstable_by_key(|&i| (reads[i as usize].queued, i));
            list.dedup();
        }
        Self { reads, by_page, by_file, by_thread }
    }

    fn find(&self, stall: &Stall) -> Option<RequestIdx> {
        let over = stall.woken.or(stall.ended).unwrap_or(Nanos(u64::MAX));
        // A file none of whose pages was seen in a request (compressed, stacked) leaves the thread's own.
        if let (Some(page), Some((runs, longest))) =
            (stall.page, stall.file.and_then(|f| self.by_page.get(&f)))
        {
            let to = runs.partition_point(|c| c.first <= page);
            let carrying = runs[..to]
                .iter()
                .rev()
                .take_while(|c| page - c.first < *longest)
                .filter(|c| c.end > page)
                .map(|c| c.request);
            return self.last(carrying, stall.began, over);
        }
        let by_file = stall.file.and_then(|f| self.by_file.get(&f));
        let nearest = |list: &Vec<RequestIdx>| {
            let to = list.partition_point(|&i| self.reads[i as usize].queued <= over);
            self.last(list[..to].iter().rev().take(NEAR).copied(), stall.began, over)
        };
        by_file.and_then(nearest).or_else(|| self.by_thread.get(&stall.tid).and_then(nearest))
    }

    /// Of the requests in flight at some time in the interval, the one that completed last in it.
    fn last(
        &self,
        requests: impl Iterator<Item = RequestIdx>,
        began: Nanos,
        over: Nanos,
    ) -> Option<RequestIdx> {
        requests
            .filter(|&i| {
                let r = &self.reads[i as usize];
                r.queued <= over && r.completed.is_none_or(|c| c >= began)
            })
            .max_by_key(|&i| {
                let done = self.reads[i as usize].completed.unwrap_or(Nanos(u64::MAX));
                // One that completed after the wake-up did not cause it: only if there is no other.
                if done <= over { (1, done.0, i) } else { (0, u64::MAX - done.0, i) }
            })
    }
}

#[cfg(test)]
mod tests;
