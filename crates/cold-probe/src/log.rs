//! Counters at an interval while experiments run: memory, cache, faults, I/O, pressure, working sets.
//!
//! One row per time, subject and counter, so that tables of all experiments have the same columns. Counters
//! of events are totals since boot (machine) or start (process); figures of sizes are those of the moment.

mod write;

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cold_model::Dev;
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;
use cold_sys::residency::cachestat;

use crate::group::Group;
use crate::spec::Crew;
use crate::subject::Subject;
use crate::trial::DeviceCount;
use crate::worker::CrewReport;

pub use write::{Format, write};

/// Rows kept at most: an hour at ten a second of forty counters; later ones are counted as lost.
const MOST: usize = 1_500_000;

/// What one counter of one subject said at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Milliseconds since the log began.
    pub at_ms: f64,
    /// What was running (`span 5 MiB, run 2`).
    pub phase: Arc<str>,
    /// Whose counter: `machine`, `device`, `group`, `process NAME`, `file NAME`.
    pub subject: Arc<str>,
    /// Its name, with its unit.
    pub counter: &'static str,
    /// In the counter's unit: the total so far, or the figure of the moment or of the interval.
    pub value: f64,
}

/// Totals over time (seconds, total) as rates: per second, at the end of each step. A total that falls is that of a new
/// process of the same name, and tells no rate.
pub fn rates(totals: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let step = |w: &[(f64, f64)]| match w {
        [(t0, a), (t1, b)] if t1 > t0 && b >= a => Some((*t1, (b - a) / (t1 - t0))),
        _ => None,
    };
    totals.windows(2).filter_map(step).collect()
}

#[derive(Default)]
struct LogState {
    phase: Option<Arc<str>>,
    processes: Vec<(Arc<str>, i32)>,
    group: Option<Arc<Group>>,
    files: Vec<(Arc<str>, File)>,
    rows: Vec<Sample>,
    lost: u64,
}

struct Shared {
    began: Instant,
    interval: Duration,
    dev: Option<Dev>,
    stop: AtomicBool,
    state: Mutex<LogState>,
}

/// A running log, or none.
pub struct Log {
    shared: Option<Arc<Shared>>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// A log without samples; what it is told is forgotten.
    pub fn off() -> Self {
        Self { shared: None, thread: None }
    }

    /// Looks every `interval` from now on.
    pub fn start(interval: Duration, dev: Option<Dev>) -> Self {
        let shared = Arc::new(Shared {
            began: Instant::now(),
            interval: interval.max(Duration::from_millis(10)),
            dev,
            stop: AtomicBool::new(false),
            state: Mutex::default(),
        });
        let mine = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("counters".into()).spawn(move || mine.sample());
        Self { shared: Some(shared), thread: thread.ok() }
    }

    /// Milliseconds between two looks; 0 without a log.
    pub fn interval_ms(&self) -> u64 {
        self.shared.as_ref().map_or(0, |s| s.interval.as_millis() as u64)
    }

    fn state(&self) -> Option<MutexGuard<'_, LogState>> {
        self.shared.as_ref().map(|s| s.state())
    }

    /// What runs from now on.
    pub fn phase(&self, phase: &str) {
        if let Some(mut s) = self.state() {
            s.phase = Some(phase.into());
        }
    }

    /// The group whose memory is looked at.
    pub fn watch_group(&self, group: Option<&Arc<Group>>) {
        if let Some(mut s) = self.state() {
            s.group = group.cloned();
        }
    }

    /// Files whose cached bytes are looked at, with their names.
    pub fn watch_files(&self, files: &[(&str, &Subject)]) {
        if let Some(mut s) = self.state() {
            let copy = |(name, f): &(&str, &Subject)| {
                Some((format!("file {name}").into(), f.file().try_clone().ok()?))
            };
            s.files = files.iter().filter_map(copy).collect();
        }
    }

    /// Looks at these processes (name, pid) from now on, at no others.
    pub(crate) fn begin(&self, processes: Vec<(String, u32)>) {
        if let Some(mut s) = self.state() {
            s.processes = processes
                .into_iter()
                .map(|(n, pid)| (format!("process {n}").into(), pid.cast_signed()))
                .collect();
        }
    }

    /// Processes have ended.
    pub(crate) fn end(&self) {
        if let Some(mut s) = self.state() {
            s.processes.clear();
        }
    }

    /// What each thread did in each interval of a trial that began at `began`.
    pub(crate) fn ticks(&self, began: Instant, crew: &Crew, report: &CrewReport) {
        let Some(shared) = &self.shared else { return };
        let mut s = shared.state();
        let start = began.duration_since(shared.began).as_secs_f64() * 1e3;
        for (n, thread) in report.threads.iter().enumerate() {
            let subject: Arc<str> = if report.threads.len() == 1 {
                format!("process {}", crew.name).into()
            } else {
                format!("process {} thread {}", crew.name, n + 1).into()
            };
            for (i, t) in thread.ticks.iter().enumerate() {
                let at = start + (i as u64 * crew.tick_ms) as f64;
                let mut put = |counter, value| s.put(at, &subject, counter, value);
                put("interval_records", t.records as f64);
                if t.records > 0 {
                    put("ms_per_record", t.ns / t.records as f64 / 1e6);
                }
                if t.asked > 0 {
                    put("missed_share", t.missed as f64 / t.asked as f64);
                }
            }
        }
    }

    /// Ends the log: its rows by time, and how many had no room.
    pub fn finish(mut self) -> (Vec<Sample>, u64) {
        self.end_thread();
        let Some(mut s) = self.state() else { return (Vec::new(), 0) };
        let mut rows = std::mem::take(&mut s.rows);
        rows.sort_by(|a, b| a.at_ms.total_cmp(&b.at_ms));
        (rows, s.lost)
    }

    fn end_thread(&mut self) {
        if let Some(s) = &self.shared {
            s.stop.store(true, Ordering::Relaxed);
        }
        if let Some(t) = self.thread.take() {
            t.thread().unpark();
            let _ = t.join();
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.end_thread();
    }
}

impl LogState {
    fn put(&mut self, at_ms: f64, subject: &Arc<str>, counter: &'static str, value: f64) {
        if self.rows.len() >= MOST {
            self.lost += 1;
            return;
        }
        let phase = self.phase.clone().unwrap_or_else(|| "".into());
        self.rows.push(Sample { at_ms, phase, subject: Arc::clone(subject), counter, value });
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sample(&self) {
        let proc = ProcFs::default();
        let mut next = self.began;
        while !self.stop.load(Ordering::Relaxed) {
            self.look(&proc);
            next += self.interval;
            std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
        }
    }

    fn look(&self, proc: &ProcFs) {
        let mut rows: Vec<(Arc<str>, &'static str, f64)> = Vec::new();
        let (machine, device, of_group): (Arc<str>, Arc<str>, Arc<str>) =
            ("machine".into(), "device".into(), "group".into());
        if let Ok(m) = proc.meminfo() {
            for (key, name) in [
                ("MemAvailable", "available_bytes"),
                ("Cached", "cached_bytes"),
                ("Dirty", "dirty_bytes"),
                ("Writeback", "writeback_bytes"),
            ] {
                rows.extend(m.get(key).map(|v| (Arc::clone(&machine), name, *v as f64)));
            }
        }
        if let Ok(v) = proc.vmstat() {
            for (key, name) in [
                ("pgfault", "faults"),
                ("pgmajfault", "major_faults"),
                ("pgpgin", "paged_in_kib"),
                ("pgpgout", "paged_out_kib"),
                ("workingset_refault_file", "refaults"),
            ] {
                rows.extend(v.get(key).map(|v| (Arc::clone(&machine), name, *v as f64)));
            }
        }
        for (kind, name) in [("memory", "memory_stall_us"), ("io", "io_stall_us")] {
            rows.extend(
                proc.pressure(kind).ok().map(|p| (Arc::clone(&machine), name, p.some.total_us as f64)),
            );
        }
        if let Some(d) = self.dev.and_then(DeviceCount::of) {
            for (name, v) in [
                ("reads", d.reads),
                ("read_bytes", d.read_bytes),
                ("writes", d.writes),
                ("write_bytes", d.write_bytes),
            ] {
                rows.push((Arc::clone(&device), name, v as f64));
            }
        }
        let mut s = self.state();
        if let Some(g) = &s.group {
            let m = g.memory();
            for (name, v) in [
                ("used_bytes", m.used),
                ("cache_bytes", m.cache),
                ("anonymous_bytes", m.anonymous),
                ("refaults", m.refaults),
            ] {
                rows.extend(v.map(|v| (Arc::clone(&of_group), name, v as f64)));
            }
        }
        for (name, pid) in &s.processes {
            for (key, counter, unit) in [
                ("RssFile:", "working_set_file_bytes", 1024.0),
                ("RssAnon:", "working_set_private_bytes", 1024.0),
            ] {
                let field = proc.process_field(*pid, "status", key).ok().flatten();
                rows.extend(field.map(|v| (Arc::clone(name), counter, v as f64 * unit)));
            }
            if let Ok(stat) = proc.stat(*pid) {
                rows.push((Arc::clone(name), "major_faults", stat.majflt as f64));
                rows.push((Arc::clone(name), "minor_faults", stat.minflt as f64));
            }
        }
        for (name, file) in &s.files {
            if let Ok(Some(c)) = cachestat(file, 0, 0) {
                rows.push((Arc::clone(name), "cached_bytes", (c.cached * page_size()) as f64));
            }
        }
        let at = self.began.elapsed().as_secs_f64() * 1e3;
        for (subject, counter, value) in rows {
            s.put(at, &subject, counter, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_that_falls_is_another_process_and_no_rate() {
        let totals = [(0.0, 10.0), (2.0, 20.0), (3.0, 4.0), (4.0, 4.0), (4.0, 9.0)];
        assert_eq!(rates(&totals), [(2.0, 5.0), (4.0, 0.0)]);
        assert!(rates(&totals[..1]).is_empty());
    }

    #[test]
    fn counters_are_taken_until_the_end() {
        let log = Log::start(Duration::from_millis(10), None);
        log.phase("waiting");
        while log.state().unwrap().rows.len() < 100 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let (rows, lost) = log.finish();
        assert_eq!(lost, 0);
        assert!(rows.windows(2).all(|w| w[0].at_ms <= w[1].at_ms));
        let cached: Vec<f64> = rows.iter().filter(|r| r.counter == "cached_bytes").map(|r| r.value).collect();
        assert!(cached.len() > 1 && cached.iter().all(|v| *v > 0.0));
        assert!(rows.iter().any(|r| &*r.phase == "waiting"));
        assert_eq!(Log::off().finish().0.len(), 0);
    }

    #[test]
    fn intervals_of_threads_become_rows_and_what_was_not_there_becomes_none() {
        use crate::spec::Limit;
        use crate::worker::{ThreadReport, Tick};
        let log = Log::start(Duration::from_hours(1), None);
        log.phase("ramp");
        let tick = |records, ns, asked, missed| Tick { records, ns, asked, missed };
        let ticks = vec![tick(4, 8e6, 2, 1), tick(0, 0.0, 0, 0), tick(1, 5e6, 0, 0)];
        let thread = |ticks| ThreadReport { ticks, ..ThreadReport::default() };
        let limit = Limit::Records { records: 1 };
        let crew = Crew { name: "mapped".into(), threads: vec![], limit, seed: 1, stream: 0, tick_ms: 100 };
        let began = log.shared.as_ref().unwrap().began + Duration::from_millis(20);
        let report = |threads| CrewReport { threads, loops_per_ms: None };
        log.ticks(began, &crew, &report(vec![thread(ticks)]));
        log.ticks(began, &crew, &report(vec![thread(vec![]), thread(vec![tick(3, 3e6, 0, 0)])]));
        let rows = log.finish().0;
        let of = |subject: &str| -> Vec<(f64, &str, f64)> {
            let mine = rows.iter().filter(|r| &*r.subject == subject && &*r.phase == "ramp");
            mine.map(|r| (r.at_ms, r.counter, r.value)).collect()
        };
        let expected = [
            (20.0, "interval_records", 4.0),
            (20.0, "ms_per_record", 2.0),
            (20.0, "missed_share", 0.5),
            (120.0, "interval_records", 0.0),
            (220.0, "interval_records", 1.0),
            (220.0, "ms_per_record", 5.0),
        ];
        assert_eq!(of("process mapped"), expected);
        let second = [(20.0, "interval_records", 3.0), (20.0, "ms_per_record", 1.0)];
        assert_eq!(of("process mapped thread 2"), second);
        assert_eq!(of("process mapped thread 1"), []);
    }
}
