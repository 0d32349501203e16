//! Which request ended which wait.

use std::collections::HashMap;

use cold_model::recording::Recording;

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
    /// Joins waits with requests.
    pub(super) fn of(recording: &Recording) -> Self {
        let (Some(stalls), Some(reads)) = (&recording.stalls, &recording.device_reads) else {
            return Self::default();
        };
        let found = cold_analyze::stall_requests(recording);
        let mut flows = Self::default();
        for (stall, request) in found.into_iter().enumerate() {
            let Some(request) = request.map(|r| r as usize) else { continue };
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
