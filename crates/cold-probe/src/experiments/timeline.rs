//! Experiments over time: the cache grows and hits become frequent (figures 6.3 to 6.5 and 6.13 to 6.18),
//! small records are rewritten in order (figures 6.6 to 6.12).

use serde::Serialize;

use super::{Lab, Measured, State};
use crate::log::Sample;
use crate::spec::{Act, Limit, Mode, Work};
use crate::variate::Seek;
use crate::{Error, Result};

/// What is done with which file, how and for how long.
#[derive(Debug, Clone, Serialize)]
pub struct TimelineOptions {
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of a record.
    pub record: u64,
    /// Bytes in the middle of the file that are used; `None` is the whole file in order.
    pub span: Option<u64>,
    /// What is done with each record.
    pub action: Vec<Act>,
    /// How the file is reached.
    pub mode: Mode,
    /// Time of the trial in seconds, all of which counts.
    pub seconds: f64,
}

impl TimelineOptions {
    /// Figures 6.3 to 6.5: 10 MB, 8192 bytes, normal over the middle 4 MB, through the cache.
    pub fn ramp() -> Self {
        Self {
            bytes: 10 << 20,
            record: 8192,
            span: Some(4 << 20),
            action: vec![Act::R],
            mode: Mode::BUFFERED,
            seconds: 20.0,
        }
    }
    /// Figures 6.6 to 6.12: the same file, records of 512 bytes read and rewritten in order.
    pub fn small() -> Self {
        Self { record: 512, span: None, action: vec![Act::R, Act::W], ..Self::ramp() }
    }
    /// Sizes of today: 1 GB, of which the middle 400 MB.
    #[must_use]
    pub fn modern(self) -> Self {
        Self { bytes: 1 << 30, span: self.span.map(|_| 400 << 20), ..self }
    }
}

/// What happened in one interval of the log.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct TimelinePoint {
    /// Its begin, milliseconds.
    pub at_ms: f64,
    /// Records per second.
    pub per_second: f64,
    /// Mean time per record.
    pub ms: f64,
    /// Share of records that were cached, 0 to 1; `null` where nothing was asked.
    pub hits: Option<f64>,
    /// The file's bytes in the cache, at the end of the interval.
    pub cached_bytes: Option<f64>,
    /// Read requests of the device in it.
    pub device_reads: Option<f64>,
    /// Write requests of the device in it.
    pub device_writes: Option<f64>,
    /// Bytes the device wrote in it.
    pub written_bytes: Option<f64>,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct TimelineFindings {
    /// Over the whole time.
    pub all: Measured,
    /// One per interval, in order of time.
    pub points: Vec<TimelinePoint>,
}

/// Runs it on a cold file. The points come from the lab's log: see [`points`].
pub fn run(lab: &Lab<'_>, name: &'static str, o: &TimelineOptions) -> Result<Measured> {
    let subject = lab.subject(o.bytes)?;
    if o.record == 0 || o.bytes < o.record {
        let why = format!("a record of {} bytes does not fit in", o.record);
        return Err(Error::Subject { path: lab.place.path().to_owned(), why });
    }
    lab.log.watch_files(&[(name, &subject)]);
    lab.say(name);
    let records = o.bytes / o.record;
    let seek = o.span.map_or(Seek::Sequential, |s| Seek::span(records, s / o.record));
    let work = Work {
        action: o.action.clone(),
        variate: lab.variate,
        ..Work::reads(subject.path().to_owned(), o.bytes, o.record, o.mode, seek)
    };
    let limit = Limit::Time { ms: (o.seconds * 1e3).round() as u64, settle: 0.0 };
    lab.measure(&subject, State::Cold, work, limit, 0)
}

/// The whole intervals of a phase that lasted so many seconds, out of the rows of a log that are sorted by time: the last
/// one is cut short by the end, and left out.
pub fn points(rows: &[Sample], phase: &str, interval_ms: f64, seconds: f64) -> Vec<TimelinePoint> {
    let of = |subject: &'static str, counter: &'static str| -> Vec<(f64, f64)> {
        // The device's totals go on from before; only what a process did belongs to the phase.
        let mine = |r: &&Sample| subject != "process" || r.phase.as_ref() == phase;
        let named = rows.iter().filter(|r| r.subject.starts_with(subject) && r.counter == counter);
        named.filter(mine).map(|r| (r.at_ms, r.value)).collect()
    };
    let last = |series: &[(f64, f64)], until: f64| {
        let n = series.partition_point(|p| p.0 <= until);
        series.get(n.checked_sub(1)?).map(|p| p.1)
    };
    let (times, misses) = (of("process", "ms_per_record"), of("process", "missed_share"));
    let cached = of("file", "cached_bytes");
    let [reads, writes, written] = ["reads", "writes", "write_bytes"].map(|c| of("device", c));
    let mut found = Vec::new();
    for (from, records) in of("process", "interval_records") {
        let to = from + interval_ms;
        // Written at the same time as the records, so equal to the bit.
        let here = |series: &[(f64, f64)]| last(series, from).filter(|_| records > 0.0);
        let change =
            |series: &[(f64, f64)]| last(series, from + 1.0).zip(last(series, to + 1.0)).map(|(a, b)| b - a);
        found.push(TimelinePoint {
            at_ms: from,
            per_second: records * 1e3 / interval_ms,
            ms: here(&times).unwrap_or(0.0),
            hits: here(&misses).map(|m| 1.0 - m),
            cached_bytes: last(&cached, to + 1.0),
            device_reads: change(&reads),
            device_writes: change(&writes),
            written_bytes: change(&written),
        });
    }
    let start = found.first().map_or(0.0, |p| p.at_ms);
    for p in &mut found {
        p.at_ms -= start;
    }
    found.retain(|p| p.at_ms + interval_ms <= seconds * 1e3 + 1.0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_put_together_from_the_rows() {
        let row = |at_ms, phase: &str, subject: &str, counter, value| Sample {
            at_ms,
            phase: phase.into(),
            subject: subject.into(),
            counter,
            value,
        };
        let rows = [
            row(0.0, "making a file", "device", "reads", 100.0),
            row(5.0, "other", "process buffered", "interval_records", 1.0),
            row(10.0, "ramp", "process buffered", "interval_records", 50.0),
            row(10.0, "ramp", "process buffered", "missed_share", 0.4),
            row(10.0, "ramp", "process buffered", "ms_per_record", 2.0),
            row(100.0, "ramp", "device", "reads", 120.0),
            row(100.0, "ramp", "file ramp", "cached_bytes", 8192.0),
            row(110.0, "ramp", "process buffered", "interval_records", 90.0),
            row(200.0, "ramp", "device", "reads", 121.0),
        ];
        let found = points(&rows, "ramp", 100.0, 0.2);
        assert_eq!(found.len(), 2);
        assert_eq!(points(&rows, "ramp", 100.0, 0.15).len(), 1, "the last one is cut short");
        let (a, b) = (found[0], found[1]);
        assert_eq!((a.at_ms, a.per_second, a.ms, a.hits), (0.0, 500.0, 2.0, Some(0.6)));
        assert_eq!((a.device_reads, a.cached_bytes, a.device_writes), (Some(20.0), Some(8192.0), None));
        assert_eq!((b.at_ms, b.device_reads), (100.0, Some(1.0)));
    }
}
