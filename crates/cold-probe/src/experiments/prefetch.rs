//! What each way of asking ahead really delivers: asked against come, and the time of both.

use std::time::{Duration, Instant};

use cold_sys::evict;
use cold_sys::mapped::{MapAdvice, MapKind, MappedFile};
use cold_sys::readahead::read_ahead;
use cold_sys::residency::{PageMap, PageRun, cachestat};
use serde::Serialize;

use super::Lab;
use crate::subject::Subject;
use crate::trial::DeviceCount;
use crate::{Error, Result};

/// Longest wait for pages to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// readahead(2).
    Readahead,
    /// `POSIX_FADV_WILLNEED`.
    FadviseWillneed,
    /// `MADV_WILLNEED`.
    MadviseWillneed,
    /// `MADV_POPULATE_READ`.
    PopulateRead,
    /// pread(2) of everything, 1 MiB at a time.
    Read,
}

impl Call {
    /// All.
    pub const ALL: [Self; 5] =
        [Self::Readahead, Self::FadviseWillneed, Self::MadviseWillneed, Self::PopulateRead, Self::Read];
    /// Its name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Readahead => "readahead",
            Self::FadviseWillneed => "fadvise WILLNEED",
            Self::MadviseWillneed => "madvise WILLNEED",
            Self::PopulateRead => "madvise POPULATE_READ",
            Self::Read => "pread",
        }
    }
}

/// One call.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Which.
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
pub struct Found {
    /// All calls.
    pub rows: Vec<Row>,
    /// Calls the kernel refused, with its answer.
    pub refused: Vec<(Call, String)>,
    /// Most that one call delivered of more that was asked: its silent cap; by call.
    pub caps: Vec<(Call, u64)>,
}

/// Asks for 128 KiB, 256 KiB, … up to `most` bytes of a cold file with each call.
pub fn run(lab: &Lab<'_>, most: u64) -> Result<Found> {
    let subject = lab.subject(most)?;
    lab.log.watch_files(&[("prefetch", &subject)]);
    let mut found = Found { rows: Vec::new(), refused: Vec::new(), caps: Vec::new() };
    for call in Call::ALL {
        let mut asked = 128 << 10;
        while asked <= most {
            lab.runner.check()?;
            lab.say(&format!("{} of {asked} bytes", call.word()));
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
        let cut = found.rows.iter().filter(|r| r.call == call && r.delivered < r.asked).map(|r| r.delivered);
        found.caps.extend(cut.max().map(|c| (call, c)));
    }
    Ok(found)
}

fn one(lab: &Lab<'_>, subject: &Subject, call: Call, asked: u64) -> Result<Row> {
    subject.make_cold()?;
    let file = subject.file();
    let io = |e| cold_sys::Error::io(call.word(), subject.path().display().to_string(), e);
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
            let run = PageRun { first: 0, pages: asked / 4096 };
            evict::read_run(file, run, &mut vec![0; 1 << 20])?;
        }
        (Call::PopulateRead, Some(map)) => map.advise(MapAdvice::PopulateRead, 0, asked)?,
        (_, Some(map)) => map.advise(MapAdvice::WillNeed, 0, asked)?,
        (_, None) => {}
    }
    let call_ms = began.elapsed().as_secs_f64() * 1e3;
    drop(map);
    // cachestat counts pages on their way, mincore those that have come.
    let coming = cachestat(file, 0, asked)?.map(|s| s.cached);
    let meta = file.metadata().map_err(Error::io("stat", subject.path()))?;
    let mut there = 0;
    while began.elapsed() < PATIENCE {
        let now = PageMap::of(file, &meta)?.map_or(0, |m| m.resident());
        if coming.is_none_or(|c| now >= c) && now == there {
            break;
        }
        there = now;
        lab.runner.check()?;
        std::thread::sleep(Duration::from_micros(200));
    }
    let there_ms = began.elapsed().as_secs_f64() * 1e3;
    let requests =
        before.zip(lab.runner.dev.and_then(DeviceCount::of)).map(|(b, a)| a.reads.saturating_sub(b.reads));
    Ok(Row { call, asked, delivered: there * 4096, call_ms, there_ms, requests })
}
