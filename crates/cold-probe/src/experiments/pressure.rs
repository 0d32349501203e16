//! A file larger than memory, used by ever more threads: whether rates hold once the cache is full, what
//! the shooting down of page table entries on other processors costs, and whether the probe's misses are
//! the device's reads (chapter 7).

use std::sync::Arc;

use cold_model::Bytes;
use cold_stats::Histogram;
use cold_sys::procfs::ProcFs;
use serde::Serialize;

use super::{Lab, Times};
use crate::Result;
use crate::group::Group;
use crate::spec::{Advice, FileAdvice, Limit, Mapping, Mode, Work};
use crate::trial::DeviceCount;
use crate::variate::Seek;
use crate::worker::ThreadReport;

/// Memory, file, threads and time.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PressureOptions {
    /// Memory of the process.
    pub limit: Bytes,
    /// Bytes of the file.
    pub bytes: u64,
    /// Most threads; they double from 1 on.
    pub threads: u64,
    /// Seconds of each line.
    pub seconds: f64,
}

impl PressureOptions {
    /// A file of 40 MB with 32 MB of memory, as in chapter 7.
    pub const PUBLISHED: Self = Self { limit: Bytes(32 << 20), bytes: 40 << 20, threads: 2, seconds: 3.0 };
    /// A file of 1 GB with 256 MB of memory, up to 8 threads.
    pub const MODERN: Self = Self { limit: Bytes(256 << 20), bytes: 1 << 30, threads: 8, seconds: 6.0 };
}

/// What one mode and order came to with so many threads.
#[derive(Debug, Clone, Serialize)]
pub struct PressureRow {
    /// How the file is reached.
    pub mode: &'static str,
    /// `normal, 512 B`, `uniform`, `sequential`.
    pub order: &'static str,
    /// Threads of the one process, all alike.
    pub threads: u64,
    /// Time per record.
    pub ms: Times,
    /// Records per second of all threads in the first fifth of the time.
    pub first_per_second: f64,
    /// In the last fifth.
    pub last_per_second: f64,
    /// Records that were not cached.
    pub misses: Option<u64>,
    /// Faults that waited for the device, of all threads.
    pub major_faults: u64,
    /// What the device did.
    pub device: Option<DeviceCount>,
    /// Shoot-downs of page table entries, machine-wide; `null` where the processor does not count them.
    pub shootdowns: Option<u64>,
    /// CPU time of all threads as a share of the time of one.
    pub cpus: f64,
    /// Most memory that was charged.
    pub peak: Option<u64>,
}

/// Runs all lines in a group with the limit.
pub fn run(lab: &Lab<'_>, o: &PressureOptions) -> Result<Vec<PressureRow>> {
    let subject = lab.subject(o.bytes)?;
    lab.log.watch_files(&[("pressure", &subject)]);
    let random = Mode::Mapped(Mapping { shared: true, advice: Advice::Random, ..Mapping::default() });
    let exact = Mode::Buffered { advice: FileAdvice::Random };
    let pages = o.bytes / 4096;
    let mut lines = vec![(exact, "buffered+random", "normal, 512 B", 512, Seek::middle(o.bytes / 512), 1)];
    let mut threads = 1;
    while threads <= o.threads {
        let uniform = Seek::Uniform { from: 0, to: pages };
        lines.push((Mode::Direct, "direct", "uniform", 4096, uniform, threads));
        lines.push((Mode::MAPPED, "mapped", "uniform", 4096, uniform, threads));
        lines.push((random, "mapped+random", "uniform", 4096, uniform, threads));
        lines.push((Mode::MAPPED, "mapped", "sequential", 4096, Seek::Sequential, threads));
        threads *= 2;
    }
    let mut rows = Vec::new();
    for (mode, word, order, record, seek, threads) in lines {
        lab.say(&format!("{word}, {order}, {threads} threads"));
        subject.make_cold()?;
        let group = Arc::new(Group::create(&lab.journal, o.limit)?);
        lab.log.watch_group(Some(&group));
        let work = Work {
            variate: lab.variate,
            ..Work::reads(subject.path().to_owned(), o.bytes, record, mode, seek)
        };
        let limit = Limit::Time { ms: (o.seconds * 1e3) as u64, settle: 0.0 };
        let mut crew = lab.crew(word, vec![work; threads as usize], limit, 0);
        if crew.tick_ms == 0 {
            crew.tick_ms = 100;
        }
        let before = shootdowns();
        let trial = lab.runner.run(&[crew.clone()], Some(&group), &lab.log);
        let after = shootdowns();
        lab.log.watch_group(None);
        let peak = group.memory().peak;
        drop(group);
        let trial = trial?;
        let reports = trial.crews.first().map(|c| c.threads.clone()).unwrap_or_default();
        rows.push(row(
            (word, order, threads),
            o,
            crew.tick_ms,
            &reports,
            Observed { device: trial.device, shootdowns: before.zip(after).map(|(b, a)| a - b), peak },
        ));
    }
    Ok(rows)
}

/// What was seen of the machine during a trial; `None` where the kernel does not tell.
struct Observed {
    device: Option<DeviceCount>,
    /// Invalidations of other processors' address translations.
    shootdowns: Option<u64>,
    /// Most memory of the group, bytes.
    peak: Option<u64>,
}

fn row(
    (mode, order, threads): (&'static str, &'static str, u64),
    o: &PressureOptions,
    tick_ms: u64,
    reports: &[ThreadReport],
    Observed { device, shootdowns, peak }: Observed,
) -> PressureRow {
    let all = reports.iter().fold(Histogram::default(), |sum, r| sum.merged(&r.records));
    let ticks = (o.seconds * 1e3 / tick_ms as f64) as usize;
    let fifth = (ticks / 5).max(1);
    let rate = |from: usize| {
        let records: u64 =
            reports.iter().flat_map(|r| r.ticks.iter().skip(from).take(fifth)).map(|t| t.records).sum();
        records as f64 * 1e3 / (fifth as u64 * tick_ms) as f64
    };
    let misses: Option<Vec<u64>> = reports.iter().map(|r| r.missed).collect();
    PressureRow {
        mode,
        order,
        threads,
        ms: Times::of(&all),
        first_per_second: rate(0),
        last_per_second: rate(ticks.saturating_sub(fifth)),
        misses: misses.map(|m| m.iter().sum()),
        major_faults: reports.iter().map(|r| r.used.major_faults).sum(),
        device,
        shootdowns,
        cpus: reports.iter().map(|r| r.used.cpu_us as f64).sum::<f64>() / (o.seconds * 1e6),
        peak,
    }
}

/// The line `TLB` of /proc/interrupts, all processors together.
fn shootdowns() -> Option<u64> {
    let text = ProcFs::default().read("interrupts").ok()?;
    let line = text.lines().find_map(|l| l.trim_start().strip_prefix("TLB:"))?;
    Some(line.split_whitespace().map_while(|w| w.parse::<u64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::{ThreadUsed, Tick};

    const SECOND: PressureOptions = PressureOptions { seconds: 1.0, ..PressureOptions::PUBLISHED };

    /// A thread that used so many records in each tenth of a second.
    fn thread(records: &[u64], missed: Option<u64>) -> ThreadReport {
        let mut times = Histogram::default();
        times.add(1000);
        ThreadReport {
            records: times.closed(),
            missed,
            used: ThreadUsed { major_faults: 3, cpu_us: 250_000, ..ThreadUsed::default() },
            ticks: records.iter().map(|n| Tick { records: *n, ..Tick::default() }).collect(),
            ..ThreadReport::default()
        }
    }

    fn of(reports: &[ThreadReport], o: &PressureOptions, tick_ms: u64) -> PressureRow {
        row(
            ("mapped", "uniform", 2),
            o,
            tick_ms,
            reports,
            Observed { device: None, shootdowns: None, peak: None },
        )
    }

    fn rates(row: &PressureRow) -> (f64, f64) {
        (row.first_per_second, row.last_per_second)
    }

    #[test]
    fn rates_are_those_of_the_first_and_last_fifth_of_all_threads() {
        let falls = thread(&[50, 30, 9, 9, 9, 9, 9, 9, 2, 4], Some(1));
        let row = of(&[falls.clone(), falls], &SECOND, 100);
        assert_eq!(rates(&row), (800.0, 60.0));
    }

    #[test]
    fn what_comes_after_the_time_is_in_no_rate_and_who_stopped_early_did_nothing() {
        let late = thread(&[10, 10, 0, 0, 0, 0, 0, 0, 1, 1, 500], Some(0));
        assert_eq!(rates(&of(&[late], &SECOND, 100)), (100.0, 10.0));
        let early = thread(&[10, 10, 10], Some(0));
        assert_eq!(rates(&of(&[early], &SECOND, 100)), (100.0, 0.0));
    }

    #[test]
    fn a_time_shorter_than_an_interval_still_has_a_rate() {
        let brief = PressureOptions { seconds: 0.05, ..SECOND };
        let row = of(&[thread(&[7], Some(0))], &brief, 100);
        assert_eq!(rates(&row), (70.0, 70.0));
    }

    #[test]
    fn figures_are_sums_over_the_threads_and_misses_only_where_all_told_theirs() {
        let row = of(&[thread(&[], Some(4)), thread(&[], Some(5))], &SECOND, 100);
        assert_eq!((row.ms.count, row.misses, row.major_faults, row.cpus), (2, Some(9), 6, 0.5));
        assert_eq!(of(&[thread(&[], Some(4)), thread(&[], None)], &SECOND, 100).misses, None);
    }
}
