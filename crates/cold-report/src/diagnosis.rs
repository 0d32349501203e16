//! One answer out of a benchmark, recorded starts and a plan: how slow the first start is, why, what would help, and
//! what was tried.
//!
//! Pure. [`diagnose`] makes the answer; [`html`] and [`markdown`] tell it, the terminal has the same figures.

use cold_analyze::model::Analysis;
use cold_analyze::reasons::{Group, Kind, Reasons};
use cold_bench::diagnose::taints;
use cold_bench::metric::Metric;
use cold_bench::summary;
use cold_model::bench::{Report, State};
use cold_model::recording::{FileIdx, Recording};
use cold_model::{Bytes, Known, Nanos};
use serde::Serialize;

mod offers;
mod page;
mod remedies;
mod text;

pub use offers::Offer;
pub use page::{html, signed};
pub use remedies::{Measured, Price, Remedy};
pub use text::{markdown, saving, story};

/// Name and version of the document (docs/formats/diagnosis-json.md).
pub const SCHEMA: &str = "coldstart.diagnosis/1";
/// Files named beside a reason.
const NAMED: usize = 3;

/// What a diagnosis is made of.
#[derive(Debug, Default)]
pub struct Evidence<'a> {
    /// The command, quoted for a shell.
    pub command: String,
    /// Cold, warm and perhaps prefetched starts.
    pub bench: Option<(&'a Report, &'a summary::Analysis)>,
    /// A recorded cold start.
    pub cold: Option<(&'a Recording, &'a Analysis)>,
    /// A recorded warm start.
    pub warm: Option<&'a Recording>,
    /// The plan that was learnt.
    pub plan: Option<PlanFacts>,
    /// Cold starts, and cold ones with the files read whole ahead that are needed nearly whole, in turn; where such
    /// advice was given.
    pub whole: Option<(&'a Report, &'a summary::Analysis)>,
    /// What this machine could do otherwise, computed and not tried.
    pub offers: Vec<Offer>,
    /// What was done, and what was not.
    pub steps: Vec<Step>,
    /// What disturbs measurements of this command on this machine.
    pub disturbing: Vec<String>,
    /// Name of a system call by its number.
    pub call_name: Option<fn(i32) -> Option<&'static str>>,
}

impl Evidence<'_> {
    /// Starts from this state were to be measured.
    fn tried(&self, state: &State) -> bool {
        self.bench.is_some_and(|(report, _)| series(report, state).is_some())
    }
}

/// What is known of a plan before it is tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanFacts {
    /// What the model says of it.
    pub predicted: Known<Predicted>,
    /// Least time of reading what every start needs.
    pub reading: Known<Nanos>,
    /// Bytes that it reads.
    pub bytes: Bytes,
    /// Files that it reads them from.
    pub files: u64,
}

/// A start by the model, without its plan and with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Predicted {
    /// Time to ready without the plan.
    pub without: Nanos,
    /// Time to ready with it, from the launcher's exec on.
    pub with: Nanos,
    /// The program computes in it as long as in warm starts that were measured, so both times compare with measured
    /// ones; else only their ratio tells something of other starts than the recorded one.
    pub in_measured_time: bool,
}

/// One step of a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What it is.
    pub what: &'static str,
    /// Why it was left out, or ended early; `None`: it was done.
    pub skipped: Option<String>,
}

/// The time to ready of a state.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Time {
    /// Median of the starts that count.
    pub median: Nanos,
    /// 95 % interval of the median; `None` with fewer than six runs.
    pub interval: Option<[Nanos; 2]>,
    /// Runs that count.
    pub runs: usize,
}

/// One state against another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Factor {
    /// Ratio of the times to ready.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
    /// Level of the interval: 0.95, or less with few runs.
    pub level: f64,
    /// Further rounds that would decide what this leaves open.
    pub more_rounds: Option<u32>,
}

impl Factor {
    /// The whole interval, of 95 %, lies on one side of 1.
    pub fn is_proved(&self) -> bool {
        let [low, high] = self.interval;
        self.is_full() && (high < 1.0 || low > 1.0)
    }

    /// The interval is one of 95 %.
    fn is_full(&self) -> bool {
        let [low, high] = self.interval;
        cold_stats::Interval { low, high, level: self.level }.is_full()
    }
}

/// One reason of the path to ready.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReasonRow {
    /// With what the time passed.
    pub kind: Kind,
    /// How much of the recorded cold start.
    pub cold: Nanos,
    /// How much of the recorded warm one.
    pub warm: Known<Nanos>,
    /// Of `cold`: how much of it passed between the moment when it could be asked for the first time and its answer;
    /// `None`: nothing was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answering: Option<Nanos>,
    /// Of the cold start: the files that it was for, the most of it first.
    pub files: Vec<(String, Nanos)>,
    /// Of the cold start: names of the system calls that waited, the most of it first.
    pub calls: Vec<(String, Nanos)>,
}

impl ReasonRow {
    /// What the cold start spent more than the warm one, nanoseconds.
    pub fn more(&self) -> Option<i64> {
        Some(self.cold.0.cast_signed() - self.warm.value()?.0.cast_signed())
    }
}

/// A part of a start that was measured on its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// How long it takes in a cold start.
    pub cold: Known<Time>,
    /// In a warm start.
    pub warm: Known<Time>,
    /// In a cold start by the plan.
    pub prefetched: Known<Time>,
    /// Cold against warm.
    pub cold_by_warm: Option<Factor>,
}

/// The two parts of a start that is over when a first request is answered: a server that is ready has not read yet what
/// only answering needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FirstRequest {
    /// Until it could be asked.
    pub serving: Part,
    /// From then on until the whole answer was there.
    pub answer: Part,
}

/// What it comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// A remedy was tried and proved.
    Proved,
    /// There is a remedy that is worth trying; nothing was proved.
    Worthwhile,
    /// No remedy would be felt.
    NothingWorthDoing,
    /// Too little is known.
    Unknown,
}

/// All that `cold diagnose` found out; `--json` prints it as it stands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// The command, quoted for a shell.
    pub command: String,
    /// Cold starts without a plan.
    pub cold: Known<Time>,
    /// Start with everything cached.
    pub warm: Known<Time>,
    /// First start by the plan.
    pub prefetched: Known<Time>,
    /// Cold against warm.
    pub cold_by_warm: Option<Factor>,
    /// Until it could be asked, and until it had answered; `None`: nothing was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_request: Option<FirstRequest>,
    /// No first start can be faster than this on this disk: the longer of the warm start and of reading what every
    /// start needs.
    pub least: Known<Nanos>,
    /// Start to ready of the recorded cold start: the sum of `reasons`.
    pub recorded_cold: Known<Nanos>,
    /// Of the recorded warm one.
    pub recorded_warm: Known<Nanos>,
    /// In the order of reports; kinds that took no time in either are left out.
    pub reasons: Known<Vec<ReasonRow>>,
    /// The path of the recorded cold start, piece by piece.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Reasons>,
    /// What would help, the most first.
    pub remedies: Vec<Remedy>,
    /// What it comes to.
    pub outcome: Outcome,
    /// What disturbs measurements of this command on this machine.
    pub disturbing: Vec<String>,
    /// What was done, and what was not.
    pub steps: Vec<Step>,
}

impl Diagnosis {
    /// Time per group of the recorded cold start, the longest first.
    pub fn groups(&self) -> Vec<(Group, Nanos)> {
        let mut out: std::collections::BTreeMap<Group, Nanos> = std::collections::BTreeMap::new();
        for row in self.reasons.value().into_iter().flatten() {
            *out.entry(row.kind.group()).or_insert(Nanos(0)) += row.cold;
        }
        let mut out: Vec<_> = out.into_iter().collect();
        out.sort_by_key(|(group, time)| (std::cmp::Reverse(*time), *group));
        out
    }
}

impl Diagnosis {
    /// What the recorded cold start spent more than the warm one, nanoseconds per group, the most first; empty where a
    /// warm one is not known.
    pub fn more(&self) -> Vec<(Group, i64)> {
        let mut out: std::collections::BTreeMap<Group, i64> = std::collections::BTreeMap::new();
        for row in self.reasons.value().into_iter().flatten() {
            if let Some(more) = row.more() {
                *out.entry(row.kind.group()).or_insert(0) += more;
            }
        }
        let mut out: Vec<_> = out.into_iter().collect();
        out.sort_by_key(|(group, more)| (std::cmp::Reverse(*more), *group));
        out
    }
}

/// The answer to this evidence.
pub fn diagnose(e: &Evidence<'_>) -> Diagnosis {
    let whole = part(e, Metric::Ready);
    let (cold, warm, prefetched) = (whole.cold, whole.warm, whole.prefetched);
    let of_cold = e.cold.map_or_else(
        || Known::unknown("no cold start was recorded"),
        |(recording, _)| Reasons::of(recording),
    );
    let of_warm = e.warm.map_or_else(|| Known::unknown("no warm start was recorded"), Reasons::of);
    let rows = match &of_cold {
        Known::Value(reasons) => Known::Value(rows(e, reasons, &of_warm)),
        Known::Unknown { unknown } => Known::unknown(unknown.clone()),
    };
    let total = |reasons: &Known<Reasons>| match reasons {
        Known::Value(reasons) => Known::Value(reasons.total()),
        Known::Unknown { unknown } => Known::unknown(unknown.clone()),
    };
    let least = match (&warm, e.plan.as_ref().map(|p| &p.reading)) {
        (Known::Value(warm), Some(Known::Value(reading))) => Known::Value(warm.median.max(*reading)),
        (Known::Unknown { unknown }, _) | (_, Some(Known::Unknown { unknown })) => {
            Known::unknown(unknown.clone())
        }
        (_, None) => Known::unknown("no plan tells what every start needs"),
    };
    let mut out = Diagnosis {
        schema: SCHEMA,
        command: e.command.clone(),
        cold,
        warm,
        prefetched,
        cold_by_warm: whole.cold_by_warm,
        first_request: first_request(e),
        least,
        recorded_cold: total(&of_cold),
        recorded_warm: total(&of_warm),
        reasons: rows,
        path: of_cold.value().cloned(),
        remedies: Vec::new(),
        outcome: Outcome::Unknown,
        disturbing: e.disturbing.clone(),
        steps: e.steps.clone(),
    };
    out.remedies = remedies::of(e, &out);
    out.outcome = remedies::outcome(&out);
    out
}

/// Index of a state of the first command.
fn series(report: &Report, state: &State) -> Option<usize> {
    report.series.iter().position(|s| s.command == 0 && s.state == *state)
}

/// A figure of the start in every state.
fn part(e: &Evidence<'_>, metric: Metric) -> Part {
    let time = |state| time(e, &state, metric);
    Part {
        cold: time(State::Cold),
        warm: time(State::Warm),
        prefetched: time(State::Prefetched),
        cold_by_warm: factor(e, &State::Cold, &State::Warm, metric),
    }
}

/// The parts of a start that is over at an answer.
fn first_request(e: &Evidence<'_>) -> Option<FirstRequest> {
    let (report, _) = e.bench?;
    report
        .runs
        .iter()
        .any(|run| run.serving.value().is_some())
        .then(|| FirstRequest { serving: part(e, Metric::Serving), answer: part(e, Metric::Answer) })
}

/// What warm starts took to ready, measured: their median; none where none counts.
pub fn warm_ready(report: &Report, analysis: &summary::Analysis) -> Option<Nanos> {
    let e = Evidence { bench: Some((report, analysis)), ..Evidence::default() };
    time(&e, &State::Warm, Metric::Ready).value().map(|t| t.median)
}

fn time(e: &Evidence<'_>, state: &State, metric: Metric) -> Known<Time> {
    let Some((report, analysis)) = e.bench else { return Known::unknown("no start was measured") };
    let Some(summary) = series(report, state).and_then(|i| analysis.summary.iter().find(|s| s.series == i))
    else {
        return Known::unknown(format!("no {state} start was measured"));
    };
    // Of the runs that do not count the last one's reason: what comes again and again is in it, too.
    let disturbed = || {
        let last = report.runs.iter().rfind(|r| r.series == summary.series && !r.counts())?;
        let why: Vec<String> = last.taints.iter().map(taints::words).collect();
        Some(Known::unknown(format!("no {state} start counts: {}", why.join(", "))))
    };
    match summary.metrics.get(metric.name()) {
        Some(Known::Value(d)) => Known::Value(Time {
            median: Nanos(d.median as u64),
            interval: d
                .interval
                .filter(cold_stats::Interval::is_full)
                .map(|i| [Nanos(i.low as u64), Nanos(i.high as u64)]),
            runs: d.n,
        }),
        Some(Known::Unknown { unknown }) => disturbed().unwrap_or_else(|| Known::unknown(unknown.clone())),
        None => disturbed().unwrap_or_else(|| Known::unknown("it was not measured")),
    }
}

/// One state against another by a figure, paired by rounds.
fn factor(e: &Evidence<'_>, state: &State, with: &State, metric: Metric) -> Option<Factor> {
    let (report, _) = e.bench?;
    let compared = summary::compare_by(report, series(report, state)?, series(report, with)?, metric)?;
    let more_rounds = match compared.verdict(0.0) {
        cold_stats::Verdict::Inconclusive { runs_needed, .. } => runs_needed,
        _ => None,
    };
    let interval = compared.interval;
    Some(Factor {
        ratio: compared.ratio,
        interval: [interval.low, interval.high],
        level: interval.level,
        more_rounds,
    })
}

fn rows(e: &Evidence<'_>, cold: &Reasons, warm: &Known<Reasons>) -> Vec<ReasonRow> {
    let of_cold = cold.by_kind();
    let of_warm = warm.value().map(Reasons::by_kind);
    let serving = e.cold.and_then(|(recording, _)| recording.manifest.serving);
    let after = serving.map(|at| cold.since(at).by_kind());
    let time_in = |times: &std::collections::BTreeMap<Kind, Nanos>, kind| times.get(&kind).copied();
    let mut out = Vec::new();
    for kind in Kind::ALL {
        let in_cold = time_in(&of_cold, kind).unwrap_or_default();
        let in_warm = match (&of_warm, warm) {
            (Some(times), _) => Known::Value(time_in(times, kind).unwrap_or_default()),
            (None, Known::Unknown { unknown }) => Known::unknown(unknown.clone()),
            (None, Known::Value(_)) => Known::Value(Nanos(0)),
        };
        if in_cold == Nanos(0) && in_warm.value().is_none_or(|t| *t == Nanos(0)) {
            continue;
        }
        let files = cold.files(|k| k == kind).into_iter().take(NAMED);
        let files = files.map(|(file, time)| (path(e, file), time)).collect();
        let answering = after.as_ref().map(|times| time_in(times, kind).unwrap_or_default());
        let calls = calls(e, cold, kind);
        out.push(ReasonRow { kind, cold: in_cold, warm: in_warm, answering, files, calls });
    }
    out
}

/// A file as reports name it.
fn path(e: &Evidence<'_>, file: FileIdx) -> String {
    let known = e.cold.and_then(|(_, a)| a.files.iter().find(|f| f.file == file));
    known.map_or_else(|| "a file without a known name".to_owned(), |f| f.path.clone())
}

/// The system calls in which a kind of waiting happened; of waits for the disk the files say more.
fn calls(e: &Evidence<'_>, cold: &Reasons, kind: Kind) -> Vec<(String, Nanos)> {
    if kind.group() != Group::Waiting {
        return Vec::new();
    }
    let named = cold.calls(|k| k == kind).into_iter().take(NAMED);
    let name = |number: u32| i32::try_from(number).ok().and_then(|n| e.call_name.and_then(|name| name(n)));
    named.map(|(n, time)| (name(n).map_or_else(|| format!("call {n}"), str::to_owned), time)).collect()
}

#[cfg(test)]
mod tests;
