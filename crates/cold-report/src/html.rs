//! A self-contained page: picture, figures, comparisons, findings, gates, every run, the machine.
//!
//! It loads nothing from anywhere (its own policy forbids it) and works from a file.

use std::fmt::Write;

use cold_bench::diagnose::{Severity, taints};
use cold_bench::gate::{GateResult, Outcome};
use cold_bench::metric::Metric;
use cold_bench::summary::{Analysis, SeriesComparison};
use cold_model::bench::{Ending, Report, Run};
use cold_stats::{Undecided, Verdict};

use crate::escape::markup;
use crate::page::{self, Cell, table};
use crate::svg;

/// The page of a report.
pub fn html(report: &Report, analysis: &Analysis, gates: &[GateResult]) -> String {
    let mut below = String::new();
    findings(&mut below, report, analysis);
    gate_table(&mut below, gates);
    figures(&mut below, analysis);
    comparisons(&mut below, &analysis.comparisons);
    runs(&mut below, report);
    commands(&mut below, report);
    machine(&mut below, report);
    page::report(&svg::title(report), "cold bench", &svg::svg(report, analysis), &below)
}

fn findings(out: &mut String, report: &Report, analysis: &Analysis) {
    out.push_str("<h2>Findings</h2>\n");
    if analysis.findings.is_empty() {
        out.push_str("<p>Nothing disturbed these runs that was looked for.</p>\n");
        return;
    }
    out.push_str("<ul class=\"findings\">\n");
    for f in &analysis.findings {
        let class = match f.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let _ = writeln!(
            out,
            "<li class=\"{class}\"><b>{class}</b> <i>{}</i> {}</li>",
            markup(&report.series_name(f.series)),
            markup(&f.text)
        );
    }
    out.push_str("</ul>\n");
}

fn gate_table(out: &mut String, gates: &[GateResult]) {
    if gates.is_empty() {
        return;
    }
    out.push_str("<h2>Gates</h2>\n");
    let row = |g: &GateResult| {
        let answer = match &g.outcome {
            Outcome::Pass => "pass".to_owned(),
            Outcome::Fail => "FAIL".to_owned(),
            Outcome::Inconclusive { reason, runs_needed } => {
                let more =
                    runs_needed.map_or(String::new(), |n| format!("; about {n} more rounds would decide it"));
                format!("inconclusive: {reason}{more}")
            }
        };
        vec![Cell::text(&g.gate), Cell::text(&g.command), Cell::text(&g.observed), Cell::text(answer)]
    };
    table(out, "", &["fails if", "command", "observed", "answer"], 4, gates.iter().map(row));
}

fn figures(out: &mut String, analysis: &Analysis) {
    out.push_str("<h2>Time to ready</h2>\n");
    let head =
        ["series", "runs", "tainted", "median", "from", "to", "level", "mean", "sd", "min", "max", "p95"];
    let rows: Vec<_> = analysis
        .summary
        .iter()
        .map(|s| {
            let d = s.ready();
            let interval = d.and_then(|d| d.interval);
            let level = interval.map_or_else(|| Cell::text("–"), |i| Cell::number(i.level, i.level_shown()));
            vec![
                Cell::text(&s.name),
                Cell::number(s.counted as f64, s.counted.to_string()),
                Cell::number(s.tainted as f64, s.tainted.to_string()),
                Cell::time(d.map(|d| d.median)),
                Cell::time(interval.map(|i| i.low)),
                Cell::time(interval.map(|i| i.high)),
                level,
                Cell::time(d.map(|d| d.mean)),
                Cell::time(d.and_then(|d| d.sd)),
                Cell::time(d.map(|d| d.min)),
                Cell::time(d.map(|d| d.max)),
                Cell::time(d.map(|d| d.p95)),
            ]
        })
        .collect();
    table(out, "sortable", &head, 1, rows);
    out.push_str("<h2>Medians of the other figures</h2>\n");
    let others: Vec<Metric> = Metric::ALL.into_iter().filter(|m| *m != Metric::Ready).collect();
    let names: Vec<String> = others.iter().map(|m| m.name().replace('_', " ")).collect();
    let head: Vec<&str> = std::iter::once("series").chain(names.iter().map(String::as_str)).collect();
    let rows: Vec<_> = analysis
        .summary
        .iter()
        .map(|s| {
            let cell = |m: &Metric| match s.metrics.get(m.name()) {
                Some(cold_model::Known::Value(d)) => Cell::number(d.median, m.unit().show(d.median)),
                Some(cold_model::Known::Unknown { unknown }) => Cell::unknown(unknown),
                None => Cell::text("–"),
            };
            std::iter::once(Cell::text(&s.name)).chain(others.iter().map(cell)).collect()
        })
        .collect();
    table(out, "sortable", &head, 1, rows);
}

fn comparisons(out: &mut String, all: &[SeriesComparison]) {
    if all.is_empty() {
        return;
    }
    out.push_str("<h2>Comparisons</h2>\n");
    let row = |c: &SeriesComparison| {
        let (ratio, interval) = c.comparison.as_ref().map_or_else(
            || (Cell::text("–"), Cell::text("–")),
            |x| {
                let i = x.interval;
                let text = format!("{:.3} to {:.3} ({})", i.low, i.high, i.level_shown());
                (Cell::number(x.ratio, format!("{:.3}", x.ratio)), Cell::text(text))
            },
        );
        vec![
            Cell::text(&c.names[0]),
            Cell::text(&c.names[1]),
            Cell::text(verdict(c.verdict)),
            ratio,
            interval,
        ]
    };
    table(out, "sortable", &["series", "against", "verdict", "ratio", "interval"], 3, all.iter().map(row));
}

/// A verdict in words.
pub fn verdict(verdict: Verdict) -> String {
    match verdict {
        Verdict::Faster => "faster".into(),
        Verdict::Slower => "slower".into(),
        Verdict::Same => "the same within the margin".into(),
        Verdict::Inconclusive { why: Undecided::TooFewRuns, runs_needed: Some(n) } => {
            format!("too few runs; at least {n} more are needed")
        }
        Verdict::Inconclusive { why: Undecided::TooFewRuns, runs_needed: None } => "too few runs".into(),
        Verdict::Inconclusive { why: Undecided::CrossesTheMargin, runs_needed: Some(n) } => {
            format!("inconclusive; about {n} more rounds would decide it")
        }
        Verdict::Inconclusive { why: Undecided::CrossesTheMargin, runs_needed: None } => {
            "inconclusive".into()
        }
    }
}

fn runs(out: &mut String, report: &Report) {
    out.push_str("<h2>Runs</h2>\n");
    let names: Vec<String> = Metric::ALL.iter().map(|m| m.name().replace('_', " ")).collect();
    let mut head = vec!["series", "taints", "ending", "run", "round"];
    head.extend(names.iter().map(String::as_str));
    table(out, "sortable runs", &head, 3, report.runs.iter().map(|r| run_row(report, r)));
}

fn run_row(report: &Report, run: &Run) -> Vec<Cell> {
    let words: Vec<String> = run.taints.iter().map(taints::words).collect();
    let mut kinds: Vec<&str> = run.taints.iter().map(cold_model::bench::Taint::kind).collect();
    kinds.dedup();
    let taints = Cell { text: kinds.join(", ").replace('_', " "), sort: None, hover: words.join("; ") };
    let ending = match run.ending {
        Ending::Code(code) => format!("code {code}"),
        Ending::Signal(signal) => format!("signal {signal}"),
        Ending::Ended => "ended by cold".into(),
        Ending::TimedOut => "timed out".into(),
    };
    let round = u64::from(run.round) + 1;
    let sequence = u64::from(run.sequence) + 1;
    let mut cells = vec![
        Cell::text(report.series_name(run.series)),
        taints,
        Cell::text(ending),
        Cell::number(sequence as f64, sequence.to_string()),
        Cell::number(round as f64, round.to_string()),
    ];
    cells.extend(Metric::ALL.iter().map(|m| match m.of(run) {
        cold_model::Known::Value(v) => Cell::number(v, m.unit().show(v)),
        cold_model::Known::Unknown { unknown } => Cell::unknown(&unknown),
    }));
    cells
}

fn commands(out: &mut String, report: &Report) {
    out.push_str("<h2>Commands</h2>\n");
    let known = |k: &cold_model::Known<u64>| match k {
        cold_model::Known::Value(v) => Cell::number(*v as f64, v.to_string()),
        cold_model::Known::Unknown { unknown } => Cell::unknown(unknown),
    };
    let rows: Vec<_> = report
        .commands
        .iter()
        .map(|c| {
            let bytes = match &c.file_bytes {
                cold_model::Known::Value(b) => Cell::number(b.0 as f64, b.to_string()),
                cold_model::Known::Unknown { unknown } => Cell::unknown(unknown),
            };
            vec![
                Cell::text(&c.name),
                Cell::text(&c.line),
                Cell::text(c.notes.join("; ")),
                known(&c.files),
                bytes,
                known(&c.misses),
            ]
        })
        .collect();
    table(out, "", &["name", "command line", "notes", "files", "their size", "failed lookups"], 3, rows);
}

fn machine(out: &mut String, report: &Report) {
    let m = &report.machine;
    let version = format!("cold {}, seed {}, {}", report.version, report.seed, report.started);
    let memory = m.memory.to_string();
    let mut facts =
        vec![("kernel", m.kernel.as_str()), ("CPU", &m.cpu), ("memory", &memory), ("eviction", &m.eviction)];
    facts.extend(m.devices.iter().map(|d| ("device", d.as_str())));
    facts.extend(m.notes.iter().map(|n| ("note", n.as_str())));
    facts.push(("measured with", &version));
    out.push_str("<h2>Machine</h2>\n<dl>\n");
    for (name, value) in facts.iter().filter(|(_, v)| !v.is_empty()) {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", markup(value));
    }
    out.push_str("</dl>\n");
}

#[cfg(test)]
mod tests;
