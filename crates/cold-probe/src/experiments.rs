//! The named experiments. Each takes a [`Lab`] and its options, and returns figures; none prints.

pub mod compete;
pub mod device;
pub mod exec;
pub mod large_pages;
pub mod pauses;
pub mod prefetch;
pub mod pressure;
pub mod records;
pub mod table;
pub mod timeline;

use cold_journal::Journal;
use cold_stats::Histogram;
use cold_sys::residency::PageMap;
use serde::Serialize;

use crate::log::Log;
use crate::spec::{Crew, Limit, Work};
use crate::subject::{ProbeTarget, Subject};
use crate::trial::{DeviceCount, Runner};
use crate::variate::Variate;
use crate::worker::ThreadReport;
use crate::{Error, Result};

/// Where and with what the experiments are made.
pub struct Lab<'a> {
    /// Starts the workers.
    pub runner: Runner,
    /// Where the files lie.
    pub place: ProbeTarget,
    /// What is changed on the way.
    pub journal: Journal,
    /// Counters beside it.
    pub log: Log,
    /// Of the random numbers.
    pub seed: u64,
    /// How normal numbers are drawn.
    pub variate: Variate,
    /// Told of each step, for a line of progress.
    pub progress: Box<dyn Fn(&str) + 'a>,
}

/// Whether the file was in the cache before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No page was (proved).
    Cold,
    /// Every page was (proved).
    Warm,
}

/// Times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Times {
    /// How many were timed.
    pub count: u64,
    /// Mean of all of them, exact.
    pub mean: f64,
    /// Standard deviation; 0 for one.
    pub sd: f64,
    /// Shortest, exact.
    pub min: f64,
    /// Median, to 1.6%.
    pub p50: f64,
    /// 99th percentile, to 1.6%.
    pub p99: f64,
    /// Longest, exact.
    pub max: f64,
}

impl Times {
    /// The figures of a closed series.
    pub fn of(s: &Histogram) -> Self {
        let ms = |ns: Option<f64>| ns.unwrap_or(0.0) / 1e6;
        Self {
            count: s.count,
            mean: ms(s.mean()),
            sd: ms(s.sd()),
            min: ms(s.min().map(|n| n as f64)),
            p50: ms(s.quantile(0.5)),
            p99: ms(s.quantile(0.99)),
            max: ms(s.max().map(|n| n as f64)),
        }
    }
}

/// What one process with one thread did with one file.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Measured {
    /// Time per record.
    pub ms: Times,
    /// Records not (wholly) cached when their turn came: counted by the probe; `null` where the kernel does
    /// not tell.
    pub misses: Option<u64>,
    /// Faults that waited.
    pub major_faults: u64,
    /// Faults that did not.
    pub minor_faults: u64,
    /// Bytes of the pages that were used.
    pub needed_bytes: u64,
    /// Bytes that the thread had the device read.
    pub read_bytes: u64,
    /// The file's bytes in the cache afterwards.
    pub cached_bytes: Option<u64>,
    /// What the block layer counted of the device, everybody's use included; `null` where it is not shown.
    pub device: Option<DeviceCount>,
    /// Time until what was written was on the device.
    pub flush_ms: Option<f64>,
    /// The probe's own cost, taken off each time, nanoseconds.
    pub own_ns: f64,
    /// The probe's own time between two records, in no figure, nanoseconds.
    pub between_ns: f64,
}

impl Measured {
    fn of(t: &ThreadReport, device: Option<DeviceCount>, subject: &Subject) -> Result<Self> {
        Ok(Self {
            ms: Times::of(&t.records),
            misses: t.missed,
            major_faults: t.used.major_faults,
            minor_faults: t.used.minor_faults,
            needed_bytes: t.touched_bytes,
            read_bytes: t.used.read_bytes,
            cached_bytes: subject.cached()?.map(|b| b.0),
            device,
            flush_ms: t.flush_ns.map(|n| n as f64 / 1e6),
            own_ns: t.own_ns,
            between_ns: t.between_ns,
        })
    }
}

/// What measuring itself cost, over several lines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnCost {
    /// The most that was taken off each time, nanoseconds.
    pub most_ns: f64,
    /// Between two records, in no figure: the mean of the lines, nanoseconds.
    pub between_ns: f64,
    /// What a record of the cheapest line took, nanoseconds.
    pub cheapest_ns: f64,
}

impl OwnCost {
    /// Of the lines in which anything was timed; `None` without such.
    pub fn of<'a>(all: impl Iterator<Item = &'a Measured>) -> Option<Self> {
        let timed: Vec<&Measured> = all.filter(|m| m.ms.count > 0).collect();
        let between: Vec<f64> = timed.iter().map(|m| m.between_ns).collect();
        Some(Self {
            most_ns: timed.iter().map(|m| m.own_ns).fold(0.0, f64::max),
            between_ns: cold_stats::mean(&between)?,
            cheapest_ns: timed.iter().map(|m| m.ms.mean * 1e6).fold(f64::MAX, f64::min),
        })
    }
}

impl Lab<'_> {
    fn say(&self, what: &str) {
        (self.progress)(what);
        self.log.phase(what);
    }

    fn subject(&self, bytes: u64) -> Result<Subject> {
        self.say("making a file");
        Subject::create(&self.place, bytes, &self.journal)
    }

    fn crew(&self, name: &str, threads: Vec<Work>, limit: Limit, stream: u64) -> Crew {
        let tick_ms = self.log.interval_ms();
        Crew { name: name.to_owned(), threads, limit, seed: self.seed, stream, tick_ms }
    }

    /// One process with one thread, on a file that is cold or warm before.
    fn measure(
        &self,
        subject: &Subject,
        state: State,
        work: Work,
        limit: Limit,
        stream: u64,
    ) -> Result<Measured> {
        subject.make_cold()?;
        // Asking whether a page is cached takes as long as using a hundred that are, and spoils the processor's
        // caches for them: of a warm file a thread that has nothing read has missed nothing.
        let watch = if state == State::Warm { 0 } else { work.watch };
        let work = Work { watch, ..work };
        if state == State::Warm {
            subject.make_warm()?;
        }
        let crew = self.crew(work.mode.word(), vec![work], limit, stream);
        let trial = self.runner.run(&[crew], None, &self.log)?;
        let mut report = trial.crews.first().and_then(|c| c.threads.first()).cloned().unwrap_or_default();
        if state == State::Warm && report.used.read_bytes == 0 {
            report.missed = Some(0);
        }
        Measured::of(&report, trial.device, subject)
    }
}

/// The subject's pages that have come.
fn resident(subject: &Subject) -> Result<PageMap> {
    let meta = subject.file().metadata().map_err(Error::io("stat", subject.path()))?;
    PageMap::of(subject.file(), &meta)?.ok_or_else(|| Error::Subject {
        path: subject.path().to_owned(),
        why: "the kernel does not tell which of its pages are cached".to_owned(),
    })
}
