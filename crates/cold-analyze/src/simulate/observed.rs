//! What was recorded, counted as the model counts.

use std::collections::HashSet;
use std::fmt;

use cold_model::figures::plural;
use cold_model::recording::{DeviceRead, Recording, Transfer};
use cold_model::{Bytes, Nanos};
use serde::Serialize;

use crate::usage::{Usage, Window};

use super::sweep::Row;

/// What a recorded start read through the page cache up to ready: what the model simulates of it. Of direct reads, of swap
/// and of a journal it knows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Observed {
    /// Requests of the tree that carried pages into the cache, metadata of file systems included; `None`: not seen by
    /// this tier.
    pub requests: Option<u64>,
    /// Their bytes. Pages that were read twice count twice, those that no disk was asked for (holes) not at all.
    #[serde(rename = "read_bytes")]
    pub read: Option<Bytes>,
    /// Time to ready; `None`: not told.
    #[serde(rename = "time_ns")]
    pub time: Option<Nanos>,
}

/// By how many percent the model of a start differs from what was recorded of it; below 0: less.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Apart {
    /// In the number of requests.
    pub requests: f64,
    /// In bytes read.
    pub read: f64,
    /// In time to ready; `None`: that is not told.
    pub time: Option<f64>,
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.time {
            Some(time) => write!(f, "ready after {time}")?,
            None => f.write_str("ready at an unknown time")?,
        }
        match (self.requests, self.read) {
            (Some(requests), Some(read)) => write!(f, ", {}, {read} read", plural(requests, "request")),
            _ => f.write_str(", reading unknown"),
        }
    }
}

impl Observed {
    /// How far `model`, the start as it was recorded, is from it. `None`: what was read was not seen.
    pub fn apart(&self, model: &Row) -> Option<Apart> {
        let percent = |model: u64, seen: u64| 100.0 * (model as f64 / seen.max(1) as f64 - 1.0);
        Some(Apart {
            requests: percent(model.requests, self.requests?),
            read: percent(model.read.0, self.read?.0),
            time: self.time.map(|time| percent(model.time.0, time.0)),
        })
    }

    /// Of a recording; `usage` is what [`crate::replay`] says of it.
    pub fn of(recording: &Recording, usage: &[Usage]) -> Self {
        let window = Window::of(recording);
        let into_cache = |t: &&Transfer| {
            let usage = t.file.and_then(|file| usage.get(file as usize));
            let pages = t.first_page..t.first_page.saturating_add(t.pages.into());
            usage.is_some_and(|u| u.read.within(&pages).next().is_some())
        };
        let carried: HashSet<u32> =
            recording.transfers.iter().flatten().filter(into_cache).map(|t| t.request).collect();
        let counts = |(index, r): &(usize, &DeviceRead)| {
            r.in_tree && window.holds(r.queued) && carried.contains(&(*index as u32))
        };
        let reads = recording.device_reads.as_deref().map(|rows| {
            let rows = rows.iter().enumerate().filter(counts);
            rows.fold((0, 0), |(n, bytes): (u64, u64), (_, r)| {
                (n + 1, bytes.saturating_add(u64::from(r.bytes)))
            })
        });
        Self {
            requests: reads.map(|r| r.0),
            read: reads.map(|r| Bytes(r.1)),
            time: (!recording.tells_only_pages()).then(|| window.since_start(window.until)),
        }
    }
}
