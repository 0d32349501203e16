//! What a measurement says, as one document: docs/formats/spawn-json.md.

use std::collections::BTreeMap;
use std::path::Path;

use cold_stats::{mean, median, median_u64, quantile};
use cold_sys::spawn::{Handover, Method, Timing};
use serde::Serialize;

use crate::evidence::{Calls, Evidence, Stages};
use crate::session::{Baseline, Config, Measured};
use crate::verdict::{self, Judged};

/// Value of `schema`.
pub const SCHEMA: &str = "coldstart.spawn/1";

/// The whole document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// Version of `cold`.
    pub version: String,
    /// The command with its arguments.
    pub command: Vec<String>,
    /// When it began, UTC.
    pub started: String,
    /// Kernel release and processor.
    pub machine: String,
    /// One per method that was measured.
    pub series: Vec<Series>,
}

/// Distribution of a time, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Times {
    /// How many times it is of.
    pub n: usize,
    /// Arithmetic mean of all of them.
    pub mean: f64,
    /// Shortest of all.
    pub min: f64,
    /// 10th percentile; like the others interpolated between the two nearest times.
    pub p10: f64,
    /// Median (50th percentile).
    pub p50: f64,
    /// 90th percentile, interpolated.
    pub p90: f64,
    /// 95th percentile, interpolated.
    pub p95: f64,
    /// 99th percentile, interpolated.
    pub p99: f64,
    /// Longest of all.
    pub max: f64,
}

impl Times {
    /// None of no values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let at = |q| quantile(values, q);
        Some(Self {
            n: values.len(),
            mean: mean(values)?,
            min: at(0.0)?,
            p10: at(0.1)?,
            p50: at(0.5)?,
            p90: at(0.9)?,
            p95: at(0.95)?,
            p99: at(0.99)?,
            max: at(1.0)?,
        })
    }
}

/// A part of the median start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Creating a process that exits at once, and waiting for it.
    Create,
    /// Exec of a static program of one page, over that.
    Exec,
    /// Loading the C library, over that.
    Loading,
    /// What remains: the program itself, its other libraries, its interpreter.
    Own,
}

/// How long a part takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PartTime {
    /// What the time goes into.
    pub part: Part,
    /// Difference of medians, nanoseconds; at least 0.
    pub ns: f64,
}

/// What an empty start costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BaselineTimes {
    /// What is started instead of the program.
    pub baseline: Baseline,
    /// Wall times of its starts, each until it was waited for.
    pub times: Times,
}

/// One start of the series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimedStart {
    /// Index among all starts, observed ones included.
    pub index: u64,
    /// From the call that creates the process until it was waited for, nanoseconds.
    pub ns: u64,
    /// Until the creating call returned: after the exec, except by fork.
    pub created_ns: u64,
    /// The control program's start right after it.
    pub control_ns: u64,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// Minor faults of the start: of it and the descendants it waited for.
    pub minor_faults: u64,
    /// Major faults of the same: those that had to wait for storage.
    pub major_faults: u64,
    /// As wait4(2) fills it in: exit code or signal; 0: exit code 0.
    pub status: i32,
}

/// When the loader hands over, as traced starts tell; what a stop of theirs takes is taken off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Handed {
    /// Traced starts that the medians are of.
    pub starts: usize,
    /// Median from the end of the exec to the program's entry, nanoseconds; none without a loader.
    pub loading_ns: Option<f64>,
    /// From there until it exits: constructors, main, destructors.
    pub running_ns: f64,
    /// What was taken off each.
    pub stop_ns: f64,
}

/// Counts of one observed start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObservedCounts {
    /// Index among all starts.
    pub index: u64,
    /// System calls that resolve a path, of all its processes; listing a directory is not counted.
    pub lookups: u64,
    /// Those that failed, but not because the name was there already (`EEXIST`).
    pub misses: u64,
    /// Bytes of directory entries.
    pub listed_bytes: u64,
    /// Pages touched; none where the tier does not tell.
    pub touched_pages: Option<u64>,
    /// Wall time of its lookups, nanoseconds.
    pub lookup_ns: u64,
    /// From the call that creates the process until it was waited for, nanoseconds.
    pub ns: u64,
    /// That, divided; none where no exec was seen.
    pub stages: Option<Stages>,
    /// System calls that returned, by name.
    pub calls: BTreeMap<String, Calls>,
}

/// What became of a repetition in which what starts leave behind was dropped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confirmation {
    /// What was dropped before every start, in words.
    pub dropped: Vec<String>,
    /// Starts of the repetition.
    pub starts: usize,
    /// Growth was gone.
    pub vanished: bool,
    /// Median of the repetition, nanoseconds; none where none was made.
    pub median_ns: Option<f64>,
    /// What still grew.
    pub remains: Vec<String>,
    /// Why it could not be done; nothing else holds then.
    pub failed: Option<String>,
}

/// One method's series with everything that follows from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// How processes were created.
    pub method: Method,
    /// The cgroup that processes were created in, for clone3.
    pub cgroup: Option<String>,
    /// Spawners at the same time.
    pub jobs: usize,
    /// Touched memory of each, bytes.
    pub parent_bytes: u64,
    /// It could be made of huge pages.
    pub huge_pages: bool,
    /// Starts by all spawners in a second of starting, controls not counted.
    pub per_second: f64,
    /// Times of the starts.
    pub times: Option<Times>,
    /// The control program's.
    pub control: Option<Times>,
    /// Mean CPU time per start in user mode, nanoseconds.
    pub user_ns: f64,
    /// In the kernel.
    pub system_ns: f64,
    /// The kernel books each short start as a whole, by the mode that its timer's tick met (none: user
    /// mode). Then both means are estimated from how many ticks met the kernel; their sum is exact.
    pub by_ticks: bool,
    /// Median until the creating call returned.
    pub created_ns: Option<f64>,
    /// Median minor faults.
    pub minor_faults: Option<f64>,
    /// Major faults of all starts.
    pub major_faults: u64,
    /// Starts that did not exit with 0.
    pub failures: usize,
    /// Baselines, measured before.
    pub baselines: Vec<BaselineTimes>,
    /// The median start in parts; empty when a baseline is missing.
    pub parts: Vec<PartTime>,
    /// Medians of the observed starts' stages; none where none was seen.
    pub stages: Option<Stages>,
    /// Loading and the program told apart.
    pub handed: Option<Handed>,
    /// Why no start could be traced.
    pub not_traced: Option<String>,
    /// Growth and its causes.
    pub judged: Judged,
    /// Result of `--confirm`.
    pub confirmation: Option<Confirmation>,
    /// Why no start was observed.
    pub not_observed: Option<String>,
    /// It was interrupted.
    pub interrupted: bool,
    /// Every timed start, in the order in which they began.
    pub starts: Vec<TimedStart>,
    /// Every observed start by its index; its time is in no distribution.
    pub observed: Vec<ObservedCounts>,
}

/// Wall time of a start, nanoseconds.
fn wall(t: &Timing) -> f64 {
    t.ended.saturating_sub(t.began).0 as f64
}

/// Times of the empty programs; none of one that was not started.
pub fn baselines(measured: &[(Baseline, Vec<Timing>)]) -> Vec<BaselineTimes> {
    let times = |all: &[Timing]| Times::of(&all.iter().map(wall).collect::<Vec<_>>());
    measured
        .iter()
        .filter_map(|(baseline, all)| Some(BaselineTimes { baseline: *baseline, times: times(all)? }))
        .collect()
}

/// Draws everything from what was measured.
pub fn series(config: &Config, m: &Measured, extrapolate: Option<u64>) -> Series {
    let walls: Vec<f64> = m.starts.iter().map(|(_, t)| wall(t)).collect();
    let control: Vec<f64> = m.control.iter().map(wall).collect();
    let of = |f: fn(&Timing) -> f64| m.starts.iter().map(|(_, t)| f(t)).collect::<Vec<_>>();
    let baselines = baselines(&m.baselines);
    let cpu = cpu(&m.starts);
    let busy: f64 = walls.iter().sum::<f64>() / 1e9;
    Series {
        method: config.method,
        cgroup: config.cgroup.as_ref().map(cold_model::path_text::encode),
        jobs: config.jobs.max(1),
        parent_bytes: config.ballast,
        huge_pages: config.huge_pages,
        per_second: if busy > 0.0 { (walls.len() * config.jobs.max(1)) as f64 / busy } else { 0.0 },
        times: Times::of(&walls),
        control: Times::of(&control),
        user_ns: cpu.user,
        system_ns: cpu.system,
        by_ticks: cpu.by_ticks,
        created_ns: median(&of(|t| t.created.saturating_sub(t.began).0 as f64)),
        minor_faults: median(&of(|t| t.minor_faults as f64)),
        major_faults: m.starts.iter().map(|(_, t)| t.major_faults).sum(),
        failures: m.starts.iter().filter(|(_, t)| t.status != 0).count(),
        parts: parts(&baselines, median(&walls), is_dynamic(&config.program.path)),
        baselines,
        stages: stages(&m.observed),
        handed: handed(m),
        not_traced: m.not_traced.clone(),
        judged: verdict::judge(m, extrapolate),
        confirmation: None,
        not_observed: m.not_observed.clone(),
        interrupted: m.interrupted,
        starts: m.starts.iter().zip(&m.control).map(|((i, t), c)| start(*i, t, c)).collect(),
        observed: m.observed.iter().map(|(i, e)| observed(*i, e)).collect(),
    }
}

struct Cpu {
    user: f64,
    system: f64,
    by_ticks: bool,
}

/// Mean CPU times. Kernels that sample (all but `VIRT_CPU_ACCOUNTING`) know the sum exactly and divide it by
/// the ticks that met the process; of a start shorter than a tick hardly one in ten was met by any, and the
/// others are booked as user time.
fn cpu(starts: &[(u64, Timing)]) -> Cpu {
    let n = starts.len().max(1) as f64;
    let sum = |f: fn(&Timing) -> u64| starts.iter().map(|(_, t)| f(t) as f64).sum::<f64>() / n;
    let (user, system) = (sum(|t| t.user.0), sum(|t| t.system.0));
    let tick = cold_sys::time::tick().0 as f64;
    let undivided = starts.iter().filter(|(_, t)| t.user.0 == 0 || t.system.0 == 0).count();
    let by_ticks = user + system < tick && undivided as f64 > 0.9 * n;
    if !by_ticks {
        return Cpu { user, system, by_ticks };
    }
    let met = starts.iter().filter(|(_, t)| t.system.0 > 0).count() as f64;
    let system = (met * tick / n).min(user + system);
    Cpu { user: sum(|t| t.user.0) + sum(|t| t.system.0) - system, system, by_ticks }
}

fn start(index: u64, t: &Timing, control: &Timing) -> TimedStart {
    TimedStart {
        index,
        ns: t.ended.saturating_sub(t.began).0,
        created_ns: t.created.saturating_sub(t.began).0,
        control_ns: control.ended.saturating_sub(control.began).0,
        user_ns: t.user.0,
        system_ns: t.system.0,
        minor_faults: t.minor_faults,
        major_faults: t.major_faults,
        status: t.status,
    }
}

fn observed(index: u64, e: &Evidence) -> ObservedCounts {
    ObservedCounts {
        index,
        lookups: e.lookups,
        misses: e.misses,
        listed_bytes: e.listed.values().map(|s| s.amount).sum(),
        touched_pages: e.touched_pages,
        lookup_ns: e.lookup_ns,
        ns: e.wall_ns,
        stages: e.stages,
        calls: e.calls.clone(),
    }
}

/// Medians, each of its own.
fn stages(observed: &[(u64, Evidence)]) -> Option<Stages> {
    let all: Vec<Stages> = observed.iter().filter_map(|(_, e)| e.stages).collect();
    let middle = |of: fn(&Stages) -> u64| median_u64(all.iter().map(of));
    Some(Stages {
        create: middle(|s| s.create)?,
        exec: middle(|s| s.exec)?,
        run: middle(|s| s.run)?,
        exit: middle(|s| s.exit)?,
    })
}

/// The empty program has no loader: its first span is a stop and nothing else.
fn handed(m: &Measured) -> Option<Handed> {
    let middle = |of: &[Handover], f: fn(&Handover) -> u64| {
        median(&of.iter().map(|h| f(h) as f64).collect::<Vec<_>>())
    };
    let stop = middle(&m.stops, |h| h.loading.0)?;
    let loading = middle(&m.traced, |h| h.loading.0)?;
    let running = middle(&m.traced, |h| h.running.0)?;
    let has_loader = m.traced.iter().any(|h| h.has_loader);
    Some(Handed {
        starts: m.traced.len(),
        loading_ns: has_loader.then_some((loading - stop).max(0.0)),
        running_ns: (running - stop).max(0.0),
        stop_ns: stop,
    })
}

/// The median start, divided by what the baselines cost. `dynamic`: the program has a loader.
fn parts(baselines: &[BaselineTimes], median: Option<f64>, dynamic: bool) -> Vec<PartTime> {
    let of = |kind| baselines.iter().find(|b| b.baseline == kind).map(|b| b.times.p50);
    let (Some(create), Some(exec), Some(median)) = (of(Baseline::Create), of(Baseline::EmptyStatic), median)
    else {
        return Vec::new();
    };
    let mut marks = vec![(Part::Create, create), (Part::Exec, exec)];
    if let Some(loading) = of(Baseline::EmptyDynamic).filter(|_| dynamic) {
        marks.push((Part::Loading, loading));
    }
    marks.push((Part::Own, median));
    let mut before = 0.0;
    marks
        .into_iter()
        .map(|(part, until)| {
            let ns = (until - before).max(0.0);
            before = until.max(before);
            PartTime { part, ns }
        })
        .collect()
}

/// Whether the kernel starts a loader for it. A script is its interpreter's own part.
pub(crate) fn is_dynamic(program: &Path) -> bool {
    let needs = std::fs::File::open(program).ok().and_then(|file| cold_symbols::needs(&file));
    needs.is_some_and(|needs| needs.interpreter.is_some())
}

/// The series as CSV, one line per start and method.
pub fn csv(report: &Report) -> String {
    use std::fmt::Write;
    let mut out = String::from(
        "method,parent_bytes,index,ns,created_ns,control_ns,user_ns,system_ns,minor_faults,major_faults,status\n",
    );
    for s in &report.series {
        for t in &s.starts {
            // Writing to a String cannot fail.
            let _ = writeln!(
                out,
                "{},{},{},{},{},{},{},{},{},{},{}",
                s.method.name(),
                s.parent_bytes,
                t.index,
                t.ns,
                t.created_ns,
                t.control_ns,
                t.user_ns,
                t.system_ns,
                t.minor_faults,
                t.major_faults,
                t.status
            );
        }
    }
    out
}
