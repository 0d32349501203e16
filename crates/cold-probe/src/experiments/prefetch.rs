//! What each way of asking ahead really delivers: asked against come, and the time of both.

use std::time::{Duration, Instant};

use cold_model::Bytes;
use cold_model::Shown as _;
use cold_sys::mapped::{MapAdvice, MapKind, MappedFile};
use cold_sys::page::{page_size, pages_of};
use cold_sys::readahead::read_ahead;
use cold_sys::residency::{PageRun, cachestat};
use cold_sys::{evict, uring};
use serde::Serialize;

use super::{Lab, resident};
use crate::subject::Subject;
use crate::trial::DeviceCount;
use crate::{Error, Result};

/// Longest wait for pages to come.
const PATIENCE: Duration = Duration::from_secs(20);
/// The smallest request.
const LEAST: u64 = 128 << 10;
/// Where the kernel does not count pages on their way (before 6.5), all have come when none came for so long.
const QUIET_MS: f64 = 100.0;
/// What a ring reads at once, and how many of these are under way.
const PIECE: u32 = 128 << 10;
const DEPTH: u32 = 32;

/// A way to ask the kernel for pages before they are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// readahead(2).
    Readahead,
    /// `posix_fadvise(2)` with `POSIX_FADV_WILLNEED`.
    FadviseWillneed,
    /// madvise(2) of a mapping with `MADV_WILLNEED`.
    MadviseWillneed,
    /// madvise(2) of a mapping with `MADV_POPULATE_READ` (Linux 5.14), which waits for the pages.
    PopulateRead,
    /// pread(2) of everything, 1 MiB at a time.
    Read,
    /// `IORING_OP_FADVISE` with `POSIX_FADV_WILLNEED`.
    UringWillneed,
    /// `IORING_OP_READ` of everything, 32 times 128 KiB under way.
    UringRead,
}

impl Call {
    /// All, in the order of the tables.
    pub const ALL: [Self; 7] = [
        Self::Readahead,
        Self::FadviseWillneed,
        Self::MadviseWillneed,
        Self::PopulateRead,
        Self::Read,
        Self::UringWillneed,
        Self::UringRead,
    ];
    /// What the tables call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Readahead => "readahead",
            Self::FadviseWillneed => "fadvise WILLNEED",
            Self::MadviseWillneed => "madvise WILLNEED",
            Self::PopulateRead => "madvise POPULATE_READ",
            Self::Read => "pread",
            Self::UringWillneed => "io_uring WILLNEED",
            Self::UringRead => "io_uring read",
        }
    }
}

/// What one call for one number of bytes did with a cold file.
#[derive(Debug, Clone, Serialize)]
pub struct CallRow {
    /// By which the bytes were asked for.
    pub call: Call,
    /// Bytes asked for.
    pub asked: u64,
    /// Bytes that came.
    pub delivered: u64,
    /// Time of the call itself, milliseconds.
    pub call_ms: f64,
    /// Until all that came was there.
    pub there_ms: f64,
    /// Read requests of the device; `null` where they are not shown.
    pub requests: Option<u64>,
}

/// What it comes to.
#[derive(Debug, Clone, Serialize)]
pub struct PrefetchFindings {
    /// One per call and number of bytes, ascending; none from a refusal on.
    pub rows: Vec<CallRow>,
    /// Calls the kernel refused, with its answer.
    pub refused: Vec<(Call, String)>,
    /// Most that one call delivered of more that was asked: its silent cap; by call.
    pub caps: Vec<(Call, u64)>,
}

/// Asks for 128 KiB, 256 KiB, … up to `most` bytes (at least 128 KiB) of a cold file with each call.
pub fn run(lab: &Lab<'_>, most: u64) -> Result<PrefetchFindings> {
    let most = most.max(LEAST);
    let subject = lab.subject(most)?;
    lab.log.watch_files(&[("prefetch", &subject)]);
    let mut found = PrefetchFindings { rows: Vec::new(), refused: Vec::new(), caps: Vec::new() };
    for call in Call::ALL {
        let mut asked = LEAST;
        while asked <= most {
            lab.runner.check()?;
            lab.say(&format!("{} of {}", call.word(), Bytes(asked)));
            match one(lab, &subject, call, asked) {
                Ok(row) => found.rows.push(row),
                Err(Error::System(e)) => {
                    found.refused.push((call, e.to_string()));
                    break;
                }
                Err(e) => return Err(e),
            }
            asked *= 2;
        }
        found.caps.extend(cap(&found.rows, call).map(|c| (call, c)));
    }
    Ok(found)
}

/// The most that came, if of the most that was asked for not all came. What is missing of a smaller request
/// is no cap: somebody else evicted it.
fn cap(rows: &[CallRow], call: Call) -> Option<u64> {
    let of = || rows.iter().filter(|r| r.call == call);
    let largest = of().max_by_key(|r| r.asked)?;
    (largest.delivered < largest.asked).then(|| of().map(|r| r.delivered).max())?
}

fn one(lab: &Lab<'_>, subject: &Subject, call: Call, asked: u64) -> Result<CallRow> {
    subject.make_cold()?;
    let file = subject.file();
    let io = |e| cold_sys::Error::io(call.word(), subject.path().shown().to_string(), e);
    let map = match call {
        Call::MadviseWillneed | Call::PopulateRead => {
            Some(MappedFile::new(file, subject.bytes(), MapKind::default())?)
        }
        _ => None,
    };
    let before = lab.runner.dev.and_then(DeviceCount::of);
    let began = Instant::now();
    match (call, &map) {
        (Call::Readahead, _) => read_ahead(file, 0, asked).map_err(io)?,
        (Call::FadviseWillneed, _) => {
            let all = std::num::NonZeroU64::new(asked);
            rustix::fs::fadvise(file, 0, all, rustix::fs::Advice::WillNeed).map_err(|e| io(e.into()))?;
        }
        (Call::Read, _) => {
            let run = PageRun { first: 0, pages: pages_of(asked) };
            evict::read_run(file, run, &mut vec![0; 1 << 20])?;
        }
        (Call::UringWillneed, _) => uring::will_need(file, 0, asked).map_err(io)?,
        (Call::UringRead, _) => uring::read_through(file, 0, asked, PIECE, DEPTH).map(drop).map_err(io)?,
        (Call::PopulateRead, Some(map)) => map.advise(MapAdvice::PopulateRead, 0, asked)?,
        (_, Some(map)) => map.advise(MapAdvice::WillNeed, 0, asked)?,
        (_, None) => {}
    }
    let call_ms = began.elapsed().as_secs_f64() * 1e3;
    drop(map);
    // cachestat counts pages on their way, mincore those that have come.
    let coming = cachestat(file, 0, asked)?.map(|s| s.cached);
    let (mut there, mut there_ms) = (resident(subject)?.resident(), call_ms);
    while began.elapsed() < PATIENCE {
        lab.runner.check()?;
        std::thread::sleep(Duration::from_micros(200));
        let now = resident(subject)?.resident();
        if now != there {
            (there, there_ms) = (now, began.elapsed().as_secs_f64() * 1e3);
        } else if coming.map_or(began.elapsed().as_secs_f64() * 1e3 > there_ms + QUIET_MS, |c| now >= c) {
            break;
        }
    }
    let requests =
        before.zip(lab.runner.dev.and_then(DeviceCount::of)).map(|(b, a)| a.reads.saturating_sub(b.reads));
    Ok(CallRow { call, asked, delivered: there * page_size(), call_ms, there_ms, requests })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_largest_request_tells_a_cap() {
        let row = |asked, delivered| CallRow {
            call: Call::Readahead,
            asked,
            delivered,
            call_ms: 0.0,
            there_ms: 0.0,
            requests: None,
        };
        assert_eq!(cap(&[row(1, 1), row(2, 2), row(4, 2), row(8, 2)], Call::Readahead), Some(2));
        assert_eq!(cap(&[row(1, 1), row(2, 2), row(4, 3), row(8, 8)], Call::Readahead), None);
        assert_eq!(cap(&[row(8, 2)], Call::Read), None);
    }
}
