//! What the kernel reads around a mapped fault: code against data, forward, backward, scattered.

use std::time::{Duration, Instant};

use cold_stats::Pcg;
use cold_sys::mapped::{MapAdvice, MapKind, MappedFile};
use cold_sys::page::page_size;
use cold_sys::residency::PageMap;
use cold_sys::usage;
use serde::Serialize;

use super::{Lab, resident};
use crate::subject::Subject;
use crate::{Error, Result};

/// The unit of touches and windows; a page of the machine may be several.
const PAGE: u64 = 4096;

/// A kind of mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MappingKind {
    /// `PROT_READ`, as data is mapped.
    Read,
    /// `PROT_READ | PROT_EXEC`, as code is mapped.
    Exec,
    /// `PROT_READ`, `MADV_SEQUENTIAL`.
    Sequential,
    /// `PROT_READ`, `MADV_RANDOM`.
    Random,
}

impl MappingKind {
    /// All, in the order of the tables.
    pub const ALL: [Self; 4] = [Self::Read, Self::Exec, Self::Sequential, Self::Random];
    /// [`Self::word`] of each of [`Self::ALL`], in its order.
    pub const WORDS: [&str; 4] = {
        let [a, b, c, d] = Self::ALL;
        [a.word(), b.word(), c.word(), d.word()]
    };
    /// What the tables call it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Exec => "exec",
            Self::Sequential => "read, MADV_SEQUENTIAL",
            Self::Random => "read, MADV_RANDOM",
        }
    }
}

/// Orders of a series.
pub const ORDERS: [&str; 3] = ["forward", "backward", "scattered"];

/// Which pages the first fault brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The page alone.
    Exact,
    /// From the page on.
    Forward,
    /// Before it as well as after it.
    Around,
    /// Only before it.
    Backward,
}

/// One fault in the middle of a cold file.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Window {
    /// Kind of mapping.
    pub kind: MappingKind,
    /// The page that was touched, as all three counted in 4096 bytes.
    pub page: u64,
    /// First page in the cache afterwards.
    pub first: u64,
    /// The one after the last.
    pub end: u64,
    /// What that is.
    pub policy: Policy,
}

/// A series of touches.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct TouchRow {
    /// Kind of mapping.
    pub kind: MappingKind,
    /// One of [`ORDERS`].
    pub order: &'static str,
    /// Places touched, each once and in a page of its own (4096 bytes).
    pub touches: u64,
    /// Faults that waited.
    pub major_faults: u64,
    /// Bytes in the cache afterwards, per touch.
    pub bytes_per_touch: f64,
    /// Mean time of a touch, milliseconds.
    pub ms: f64,
}

/// What all kinds of mapping came to.
#[derive(Debug, Clone, Serialize)]
pub struct ExecFindings {
    /// The window of one fault, by kind.
    pub windows: Vec<Window>,
    /// One per kind that could be mapped and order, in the order of [`MappingKind::ALL`] and [`ORDERS`].
    pub rows: Vec<TouchRow>,
    /// Kinds that could not be mapped (code on a file system mounted noexec), with the reason.
    pub refused: Vec<(MappingKind, String)>,
}

/// Runs it on a file of `bytes`; each series touches every fourth page of a mebibyte in
/// the middle, or one page in each mebibyte.
pub fn run(lab: &Lab<'_>, bytes: u64) -> Result<ExecFindings> {
    let subject = lab.subject(bytes.max(8 << 20))?;
    lab.log.watch_files(&[("exec", &subject)]);
    let mut found = ExecFindings { windows: Vec::new(), rows: Vec::new(), refused: Vec::new() };
    let pages = subject.bytes() / PAGE;
    let middle = pages / 2 + 500 % 64;
    let mut rng = Pcg::new(lab.seed, 5);
    // One place per stretch of 8 windows, so that none is read along with another.
    let scattered: Vec<u64> = (0..pages / 256).map(|n| n * 256 + u64::from(rng.below(64)) + 64).collect();
    let mut shuffled = scattered;
    rng.shuffle(&mut shuffled);
    for kind in MappingKind::ALL {
        lab.runner.check()?;
        lab.say(kind.word());
        match window(&subject, kind, middle) {
            Ok(w) => found.windows.push(w),
            Err(Error::System(e)) => {
                found.refused.push((kind, e.to_string()));
                continue;
            }
            Err(e) => return Err(e),
        }
        let forward: Vec<u64> = (0..256).step_by(4).map(|n| middle + n).collect();
        let backward: Vec<u64> = forward.iter().rev().copied().collect();
        for (order, places) in ORDERS.into_iter().zip([&forward, &backward, &shuffled]) {
            found.rows.push(series(&subject, kind, order, places)?);
        }
    }
    Ok(found)
}

fn mapping(subject: &Subject, kind: MappingKind) -> Result<MappedFile> {
    let map = MappedFile::new(
        subject.file(),
        subject.bytes(),
        MapKind { exec: kind == MappingKind::Exec, write: false, shared: false },
    )?;
    let advice = match kind {
        MappingKind::Read | MappingKind::Exec => return Ok(map),
        MappingKind::Sequential => MapAdvice::Sequential,
        MappingKind::Random => MapAdvice::Random,
    };
    map.advise(advice, 0, subject.bytes())?;
    Ok(map)
}

/// As many are there as there will be: what was asked for ahead has come.
fn settled(subject: &Subject) -> Result<PageMap> {
    let mut last = resident(subject)?;
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(30));
        let now = resident(subject)?;
        if now.resident() == last.resident() {
            return Ok(now);
        }
        last = now;
    }
    Ok(last)
}

fn window(subject: &Subject, kind: MappingKind, page: u64) -> Result<Window> {
    subject.make_cold()?;
    let map = mapping(subject, kind)?;
    map.touch(page * PAGE);
    drop(map);
    let (first, end, policy) = brought(&settled(subject)?, page, (page_size() / PAGE).max(1));
    Ok(Window { kind, page, first, end, policy })
}

/// First page, the one after the last, and the policy that a fault at `page` shows, all counted in 4096 bytes;
/// `each` of them are a page of the machine, in which `there` counts.
fn brought(there: &PageMap, page: u64, each: u64) -> (u64, u64, Policy) {
    let run = there.runs().find(|r| (r.first..r.end()).contains(&(page / each)));
    let (first, end) = run.map_or((page, page), |r| (r.first * each, r.end() * each));
    let own = page - page % each;
    let policy = match (first < own, end > own + each) {
        (false, false) => Policy::Exact,
        (false, true) => Policy::Forward,
        (true, true) => Policy::Around,
        (true, false) => Policy::Backward,
    };
    (first, end, policy)
}

fn series(subject: &Subject, kind: MappingKind, order: &'static str, places: &[u64]) -> Result<TouchRow> {
    subject.make_cold()?;
    let map = mapping(subject, kind)?;
    let before = usage::thread();
    let began = Instant::now();
    for page in places {
        map.touch(page * PAGE);
    }
    let ns = began.elapsed().as_nanos() as f64;
    let used = usage::thread().since(before);
    drop(map);
    let cached = settled(subject)?.resident() * page_size();
    let n = places.len().max(1) as f64;
    Ok(TouchRow {
        kind,
        order,
        touches: places.len() as u64,
        major_faults: used.major_faults,
        bytes_per_touch: cached as f64 / n,
        ms: ns / n / 1e6,
    })
}

#[cfg(test)]
mod tests {
    use cold_sys::residency::PageRun;

    use super::*;

    /// What a fault at `page` brought where these runs of the machine's pages are cached afterwards.
    fn found(runs: &[(u64, u64)], page: u64, each: u64) -> (u64, u64, Policy) {
        let runs = runs.iter().map(|(first, pages)| PageRun { first: *first, pages: *pages });
        brought(&PageMap::from_runs(1000, runs), page, each)
    }

    #[test]
    fn the_window_of_a_fault_is_the_run_around_it() {
        for (run, policy) in [
            ((100, 1), Policy::Exact),
            ((100, 2), Policy::Forward),
            ((99, 2), Policy::Backward),
            ((99, 3), Policy::Around),
            ((84, 32), Policy::Around),
        ] {
            assert_eq!(found(&[run], 100, 1), (run.0, run.0 + run.1, policy));
        }
    }

    #[test]
    fn other_cached_pages_belong_to_no_window() {
        assert_eq!(
            found(&[(90, 10), (101, 5)], 100, 1),
            (100, 100, Policy::Exact),
            "the page itself is gone again"
        );
        assert_eq!(found(&[(90, 9), (100, 1), (102, 5)], 100, 1), (100, 101, Policy::Exact));
    }

    #[test]
    fn a_machines_page_of_several_is_no_read_ahead() {
        // 64 KiB each: page 100 lies in the seventh, which is 96 to 112.
        assert_eq!(found(&[(6, 1)], 100, 16), (96, 112, Policy::Exact));
        assert_eq!(found(&[(6, 2)], 100, 16), (96, 128, Policy::Forward));
        assert_eq!(found(&[(5, 2)], 111, 16), (80, 112, Policy::Backward));
    }
}
