//! What there is to say about the runs, in words, with the evidence for it.
//!
//! A claim is made only from data of the report; what was not measured is not guessed. Runs are named
//! by their round, counted from 1.

use std::collections::BTreeMap;

use cold_model::Shown as _;
use cold_model::bench::{Command, Held, Report, Run, State, Taint, most_first};
use cold_model::figures::{p_value, percent, plural};
use cold_model::{Bytes, Nanos};
use cold_stats::{changepoint, mad, median, modes, trend};
use serde::Serialize;

use crate::metric::Metric;

pub mod taints;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// The figures may not mean what they seem to.
    Warning,
    /// The figures of the series cannot be used.
    Error,
}

/// Something to say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// A stable name for scripts.
    pub id: &'static str,
    /// Index of the series.
    pub series: usize,
    /// How much it matters.
    pub severity: Severity,
    /// One sentence, without the name of the series.
    pub text: String,
}

/// Slopes and modes smaller than this share of the median are not worth a word.
const LEAST_DRIFT: f64 = 0.01;
/// A trend is reported below this p-value; strict, since every series of every report is searched.
const TREND_ALPHA: f64 = 0.01;

/// All findings, by series.
pub fn diagnose(report: &Report) -> Vec<Finding> {
    (0..report.series.len()).flat_map(|series| of_series(report, series)).collect()
}

fn of_series(report: &Report, series: usize) -> Vec<Finding> {
    let runs: Vec<&Run> = report.runs.iter().filter(|r| r.series == series).collect();
    let counted: Vec<&Run> = report.counted(series).collect();
    let state = &report.series[series].state;
    let mut found = Vec::new();
    let mut add = |id, severity, text| found.push(Finding { id, series, severity, text });

    if let Some((severity, text)) = taints::summary(&runs, counted.len()) {
        add("tainted", severity, text);
    }
    if *state == State::Prefetched && !runs.is_empty() {
        let (severity, text) = followed(&report.commands[report.series[series].command], &runs);
        add("plan", severity, text);
    }
    if state.begins_cold() {
        if let Some(text) = kept_warm(&runs) {
            add("kept_warm", Severity::Warning, text);
        }
        if let Some(text) = unproven(&runs) {
            add("unproven", Severity::Warning, text);
        }
        if let Some(text) = prefetcher(report, series, &runs) {
            add("prefetcher", Severity::Warning, text);
        }
    }
    if let Some(text) = outlived(&runs) {
        add("outlived", Severity::Info, text);
    }
    if (1..6).contains(&counted.len()) {
        let text = format!("only {} counted: a 95% interval needs 6", count(counted.len(), "run"));
        add("few_runs", Severity::Warning, text);
    }
    let times: Vec<f64> = counted.iter().map(|r| r.ready.0 as f64).collect();
    let first = first_run(state, &counted, &times);
    // A slow first run is named once, not again as a drift or a change.
    let skip = usize::from(first.is_some());
    if let Some((id, text)) = first {
        add(id, Severity::Warning, text);
    }
    let mut changes = changepoint::changes(&times[skip..], report.seed);
    if steadily(&times[skip..], &changes) {
        changes.clear();
    }
    for c in &changes {
        let text = format!(
            "changes its level at round {}: median {} before, {} from then on ({}); one median does not describe both",
            round(counted[skip + c.at]),
            show(c.before),
            show(c.after),
            p_value(c.p)
        );
        add("change", Severity::Warning, text);
    }
    if changes.is_empty() {
        if let Some(text) = drift(&times[skip..]) {
            add("drift", Severity::Warning, text);
        }
        if let Some(text) = two_modes(&counted, &times) {
            add("two_modes", Severity::Warning, text);
        }
    }
    found
}

fn show(ns: f64) -> String {
    Nanos(ns.round() as u64).to_string()
}

fn count(n: usize, what: &str) -> String {
    plural(n as u64, what)
}

fn round(run: &Run) -> u32 {
    run.round + 1
}

/// That a start lasts until the whole tree has ended, where that shows in the times. Of all runs: a disturbance
/// changes the times, not who ends last.
fn outlived(runs: &[&Run]) -> Option<String> {
    let both: Vec<(f64, f64)> =
        runs.iter().filter_map(|r| Some((r.outlived()?.0 as f64, r.ready.0 as f64))).collect();
    if both.is_empty() || both.len() * 2 < runs.len() {
        return None;
    }
    let (first, last): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
    Some(format!(
        "its first process ended after {}, the last process it started after {} (medians): a start is ready when all \
         have ended, unless --ready says otherwise",
        show(median(&first)?),
        show(median(&last)?)
    ))
}

/// How many runs followed the plan; why the others did not is told with the taints.
fn followed(command: &Command, runs: &[&Run]) -> (Severity, String) {
    let skipped = |r: &&&Run| r.taints.iter().any(|t| matches!(t, Taint::NotPrefetched { .. }));
    let followed = runs.len() - runs.iter().filter(skipped).count();
    let severity = match followed {
        0 => Severity::Error,
        n if n < runs.len() => Severity::Warning,
        _ => Severity::Info,
    };
    let name = command.plan.as_ref().map_or_else(String::new, |name| format!(" {name}"));
    (severity, format!("followed the plan{name} in {followed} of {}", count(runs.len(), "run")))
}

/// `held by a[1] 64.0 MiB, b[2] 1.5 MiB, …`, at most so many; `None` where nobody is known.
pub fn held_by(held: &[Held], at_most: usize) -> Option<String> {
    let named: Vec<String> = held.iter().take(at_most).map(Held::to_string).collect();
    let more = if held.len() > named.len() { ", …" } else { "" };
    (!named.is_empty()).then(|| format!("held by {}{more}", named.join(", ")))
}

/// Holders of pages that should have been evicted, from the residuals of all runs: those that held most in one
/// of them first.
fn kept_warm(runs: &[&Run]) -> Option<String> {
    let residuals: Vec<_> =
        runs.iter().filter_map(|r| r.residual.value()).filter(|r| r.bytes.0 > 0).collect();
    let most = residuals.iter().max_by_key(|r| r.bytes)?;
    let each: Vec<Vec<Held>> = residuals.iter().map(|r| r.held()).collect();
    let all = most_first(each.iter().flatten().cloned(), Bytes::max);
    let who = if all.is_empty() {
        "stayed warm although no process was seen to hold it".to_owned()
    } else {
        let runs = |h: &Held| each.iter().filter(|run| run.iter().any(|o| o.holder == h.holder)).count();
        let bytes = |h: &Held| h.bytes.value().map_or_else(String::new, |b| format!("{b}, "));
        let names: Vec<String> = all
            .iter()
            .take(3)
            .map(|h| format!("{} ({}{})", h.holder, bytes(h), count(runs(h), "run")))
            .collect();
        let more = all.len().saturating_sub(3);
        format!(
            "kept warm by {}{}",
            names.join(", "),
            if more > 0 { format!(" and {more} more") } else { String::new() }
        )
    };
    let file = most.files.first().map_or(String::new(), |f| format!(", most of {}", f.path.shown()));
    Some(format!(
        "{who}: up to {} were cached before {} of {} starts{file}",
        most.bytes,
        residuals.len(),
        runs.len()
    ))
}

/// Runs whose coldness nobody could prove.
fn unproven(runs: &[&Run]) -> Option<String> {
    let unknown: Vec<_> = runs.iter().filter(|r| r.residual.value().is_none()).collect();
    if let Some(cold_model::Known::Unknown { unknown: why }) = unknown.first().map(|r| &r.residual) {
        return Some(format!("{} of {} starts are not proved cold: {why}", unknown.len(), runs.len()));
    }
    let partly: Vec<Bytes> =
        runs.iter().filter_map(|r| r.residual.value()).map(|r| r.unknown_bytes).filter(|b| b.0 > 0).collect();
    let most = partly.iter().max()?;
    Some(format!(
        "{} of {} starts are only partly proved cold: the kernel does not tell what is cached of up to {most}",
        partly.len(),
        runs.len()
    ))
}

/// A process that reads from the same devices during cold starts and not during warm ones.
fn prefetcher(report: &Report, series: usize, runs: &[&Run]) -> Option<String> {
    let command = report.series[series].command;
    let warm = report.series.iter().position(|s| s.command == command && s.state == State::Warm)?;
    let control: Vec<&Run> = report.runs.iter().filter(|r| r.series == warm).collect();
    let during = readers(runs);
    let quiet = readers(&control);
    let (name, (starts, bytes)) = during.into_iter().max_by_key(|(_, (starts, _))| *starts)?;
    let in_control = quiet.get(&name).map_or(0, |(starts, _)| *starts);
    if starts < 3 || 2 * starts < runs.len() || control.len() < 3 || 10 * in_control > control.len() {
        return None;
    }
    Some(format!(
        "{name} may be a prefetcher at work: it was seen during {starts} of {} cold starts, in which others \
         read up to {bytes} from the same devices, and during {in_control} of {} warm ones",
        runs.len(),
        control.len()
    ))
}

/// Foreign readers by name without pid: in how many runs, and the most bytes others read in one.
fn readers(runs: &[&Run]) -> BTreeMap<String, (usize, Bytes)> {
    let mut all: BTreeMap<String, (usize, Bytes)> = BTreeMap::new();
    for run in runs {
        for taint in &run.taints {
            let Taint::ForeignReads { bytes, readers } = taint else { continue };
            let mut names: Vec<&str> =
                readers.iter().map(|r| r.rsplit_once('[').map_or(r.as_str(), |(name, _)| name)).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                let entry = all.entry(name.to_owned()).or_default();
                *entry = (entry.0 + 1, entry.1.max(*bytes));
            }
        }
    }
    all
}

/// A first run that is far slower than all others, with what explains it.
fn first_run(state: &State, counted: &[&Run], times: &[f64]) -> Option<(&'static str, String)> {
    let (first, rest) = times.split_first()?;
    if rest.len() < 4 {
        return None;
    }
    let middle = median(rest)?;
    let slowest = rest.iter().copied().fold(0.0, f64::max);
    // 1.4826 scales the MAD to a normal distribution's standard deviation.
    let limit = (middle + 5.0 * 1.4826 * mad(rest)?).max(1.1 * middle).max(slowest);
    if *first <= limit {
        return None;
    }
    let excess = |metric: Metric| -> Option<(f64, f64)> {
        let others = median(metric.of_all(counted[1..].iter().copied()).value()?)?;
        let own = *metric.of(counted[0]).value()?;
        (own > 2.0 * others + 8.0).then_some((own, others))
    };
    let start = format!("the first run took {}, the others {} (median)", show(*first), show(middle));
    let evidence = [Metric::ReadBytes, Metric::MajorFaults].into_iter().find_map(|m| Some((m, excess(m)?)));
    Some(match evidence {
        Some((metric, (own, others))) if !state.begins_cold() => (
            "cold_then_warm",
            format!(
                "cold, then warm: {start}, and had {} {} against {}: the page cache was filling; use --states cold to measure that start",
                metric.unit().show(own),
                metric.name().replace('_', " "),
                metric.unit().show(others)
            ),
        ),
        Some((metric, (own, others))) => (
            "first_run",
            format!(
                "{start}, with {} {} against {}",
                metric.unit().show(own),
                metric.name().replace('_', " "),
                metric.unit().show(others)
            ),
        ),
        None => ("first_run", format!("{start}; neither its bytes read nor its major faults explain it")),
    })
}

/// Whether a straight line explains the series better than the changes of level (a steady drift also
/// looks like steps): the smaller 2n·ln(sum of absolute residuals) + parameters·ln(n), which is the
/// Bayesian information criterion for noise of double-exponential shape.
fn steadily(times: &[f64], changes: &[changepoint::Change]) -> bool {
    let Some(t) = trend::trend(times) else { return false };
    let Some(first) = changes.first() else { return true };
    let n = times.len() as f64;
    let score = |residuals: f64, parameters: usize| 2.0 * n * residuals.ln() + parameters as f64 * n.ln();
    let flat: Vec<f64> = times.iter().enumerate().map(|(i, v)| v - t.slope * i as f64).collect();
    let Some(start) = median(&flat) else { return false };
    let line: f64 = flat.iter().map(|v| (v - start).abs()).sum();
    let level = |i: usize| changes.iter().rev().find(|c| i >= c.at).map_or(first.before, |c| c.after);
    let steps: f64 = times.iter().enumerate().map(|(i, v)| (v - level(i)).abs()).sum();
    score(line, 2) < score(steps, 2 * changes.len() + 1)
}

fn drift(times: &[f64]) -> Option<String> {
    let t = trend::trend(times)?;
    let middle = median(times)?;
    let per_run = t.slope / middle;
    let total = per_run * (times.len() - 1) as f64;
    (t.p < TREND_ALPHA && total.abs() >= LEAST_DRIFT).then(|| {
        format!(
            "drifts: {} by {} per run, {} over the series (Theil–Sen slope, Mann–Kendall {})",
            if per_run > 0.0 { "slower" } else { "faster" },
            percent(100.0 * per_run.abs()),
            percent(100.0 * total.abs()),
            p_value(t.p)
        )
    })
}

fn two_modes(counted: &[&Run], times: &[f64]) -> Option<String> {
    let m = modes::modes(times)?;
    let rounds = |runs: &[usize]| {
        let shown: Vec<String> = runs.iter().take(12).map(|i| round(counted[*i]).to_string()).collect();
        let more = if runs.len() > 12 { ", …" } else { "" };
        format!("{}: {}{more}", if runs.len() == 1 { "round" } else { "rounds" }, shown.join(", "))
    };
    let compared = [
        Metric::ReadBytes,
        Metric::Requests,
        Metric::MajorFaults,
        Metric::Stall,
        Metric::Residual,
        Metric::MinorFaults,
        Metric::Processes,
    ];
    let differing: Vec<String> =
        compared.into_iter().filter_map(|metric| differs(metric, counted, &m)).take(3).collect();
    let why = if differing.is_empty() {
        "nothing else that was measured differs between them".to_owned()
    } else {
        format!("the slower ones had {}", differing.join(", "))
    };
    Some(format!(
        "has two modes: {} ({}) and {} ({}); {why}",
        show(m.fast),
        rounds(&m.fast_runs),
        show(m.slow),
        rounds(&m.slow_runs)
    ))
}

/// A figure whose values in both modes do not overlap and whose medians are 20% or more apart.
fn differs(metric: Metric, counted: &[&Run], m: &modes::Modes) -> Option<String> {
    let values = |runs: &[usize]| metric.of_all(runs.iter().map(|i| counted[*i])).value().cloned();
    let (fast, slow) = (values(&m.fast_runs)?, values(&m.slow_runs)?);
    let low = |v: &[f64]| v.iter().copied().fold(f64::INFINITY, f64::min);
    let high = |v: &[f64]| v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let apart = low(&slow) > high(&fast) || low(&fast) > high(&slow);
    let (f, s) = (median(&fast)?, median(&slow)?);
    (apart && (s - f).abs() > 0.2 * f.min(s)).then(|| {
        let name = metric.name().replace('_', " ");
        format!("{name} {} against {}", metric.unit().show(s), metric.unit().show(f))
    })
}

#[cfg(test)]
mod tests;
