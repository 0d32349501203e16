//! Which request ended which wait.

use std::collections::HashMap;

use cold_model::recording::{FileIdx, Recording};

/// A flow per wait that a request ended, by both ends. A flow goes from what began earlier to what began
/// later: a task falls asleep after it made the request, but a wait for a lock or for a request that
/// another task made meanwhile can begin before it.
#[derive(Default)]
pub(super) struct Flows {
    /// Per stall the flows that go on from it and those that end at it; likewise per request.
    stalls: HashMap<usize, (Vec<u64>, Vec<u64>)>,
    requests: HashMap<usize, (Vec<u64>, Vec<u64>)>,
}

impl Flows {
    /// Joins waits for a page with the requests that brought it while they lasted.
    pub(super) fn of(recording: &Recording) -> Self {
        let (Some(stalls), Some(reads), Some(transfers)) =
            (&recording.stalls, &recording.device_reads, &recording.transfers)
        else {
            return Self::default();
        };
        let mut waits: Vec<(FileIdx, u64, usize)> =
            stalls.iter().enumerate().filter_map(|(n, s)| Some((s.file?, s.page?, n))).collect();
        waits.sort_unstable();
        let mut found: HashMap<usize, usize> = HashMap::new();
        for transfer in transfers {
            let (Some(file), request) = (transfer.file, transfer.request as usize) else { continue };
            let Some(read) = reads.get(request) else { continue };
            let end = transfer.first_page.saturating_add(u64::from(transfer.pages));
            let from = waits.partition_point(|w| (w.0, w.1) < (file, transfer.first_page));
            let covered = waits.iter().skip(from).take_while(|w| (w.0, w.1) < (file, end));
            for (_, _, stall) in covered {
                let Some(s) = stalls.get(*stall) else { continue };
                let before = s.woken.or(s.ended).is_none_or(|woken| read.queued <= woken);
                let after = read.completed.is_none_or(|completed| completed >= s.began);
                // Of several, the one that was completed last before the task went on.
                let better = found.get(stall).and_then(|f| reads.get(*f)).is_none_or(|f| f.queued < read.queued);
                if before && after && better {
                    found.insert(*stall, request);
                }
            }
        }
        let mut flows = Self::default();
        for (stall, request) in found {
            let (Some(s), Some(r)) = (stalls.get(stall), reads.get(request)) else { continue };
            let id = stall as u64 + 1;
            let (of_stall, of_request) =
                (flows.stalls.entry(stall).or_default(), flows.requests.entry(request).or_default());
            if r.queued < s.began {
                of_request.0.push(id);
                of_stall.1.push(id);
            } else {
                of_stall.0.push(id);
                of_request.1.push(id);
            }
        }
        for (from, to) in flows.requests.values_mut() {
            from.sort_unstable();
            to.sort_unstable();
        }
        flows
    }

    /// Flows from and to a stall.
    pub(super) fn of_stall(&self, stall: usize) -> (&[u64], &[u64]) {
        self.stalls.get(&stall).map_or((&[], &[]), |(from, to)| (from, to))
    }

    /// Flows from and to a request.
    pub(super) fn of_request(&self, request: usize) -> (&[u64], &[u64]) {
        self.requests.get(&request).map_or((&[], &[]), |(from, to)| (from, to))
    }
}
