//! The report for people: the figures that matter first, then their proof, then what disturbed.

use cold_bench::gate::{GateResult, Outcome};
use cold_bench::metric::{Metric, Unit};
use cold_bench::summary::{Analysis, ColdProof, SeriesComparison, SeriesSummary};
use cold_bench::{baseline, diagnose, summary};
use cold_gate::markdown;
use cold_model::bench::{Report, Run, Taint};
use cold_model::{Known, Shown as _};
use cold_report::terminal::{self, Charset};
use cold_stats::{Described, Undecided, Verdict};
use comfy_table::{CellAlignment, ContentArrangement, Table};

use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui, WARN, paint};
use crate::words::plural;

/// Columns beside the time to ready.
const COLUMNS: [(Metric, &str); 8] = [
    (Metric::User, "user"),
    (Metric::System, "system"),
    (Metric::Stall, "stall"),
    (Metric::ReadBytes, "read"),
    (Metric::Requests, "requests"),
    (Metric::MajorFaults, "major faults"),
    (Metric::PeakMemory, "peak memory"),
    (Metric::Residual, "cached before"),
];

pub(super) fn report(
    ui: &Ui,
    report: &Report,
    analysis: &Analysis,
    old: Option<&Report>,
    gates: &[GateResult],
) {
    for (i, command) in report.commands.iter().enumerate() {
        ui.line(paint(STRONG, &command.name));
        if let (Known::Value(n), Known::Value(b), Known::Value(m)) =
            (&command.files, &command.file_bytes, &command.misses)
        {
            let by = command
                .processes
                .value()
                .map_or_else(String::new, |n| format!(" by {}", plural(*n, "process")));
            ui.line(paint(
                FAINT,
                format!("  uses {n} files ({b}), executed, mapped or opened{by}; {m} lookups find nothing"),
            ));
        }
        ui.lines(&table(report, analysis, i));
        ui.line("");
    }
    for c in &analysis.comparisons {
        ui.line(comparison(c));
    }
    if let Some(old) = old {
        against_baseline(ui, report, old);
    }
    ui.line("");
    for s in &analysis.summary {
        proof(ui, report, s);
    }
    findings(ui, report, analysis);
    ui.line("");
    let charset = if ui.unicode() { Charset::Unicode } else { Charset::Ascii };
    ui.lines(&terminal::plot(report, analysis, ui.width(), charset));
    machine(ui, report);
    for g in gates {
        gate(ui, g);
    }
    if let Some(why) = &report.stopped {
        ui.line(format!("{} {why}", paint(BAD, "stopped early:")));
        let late = |r: &&Run| r.taints.iter().any(|t| matches!(t, Taint::TimedOut { .. }));
        let (marked, late) =
            (report.runs.iter().filter(|r| !r.counts()).count(), report.runs.iter().filter(late).count());
        let next = match () {
            // Nothing on this machine was in the way: the start itself did not end.
            () if late > 0 && late * 2 >= marked => {
                "say with --ready when it is ready, or give it more time with --timeout"
            }
            () if marked > 0 => "cold doctor   (names what would disturb on this machine)",
            () => return,
        };
        self::next(ui, next);
    }
}

/// What to do now.
pub(crate) fn next(ui: &Ui, what: &str) {
    ui.line(format!("{} {what}", paint(STRONG, "next:")));
}

fn table(report: &Report, analysis: &Analysis, command: usize) -> String {
    let rows: Vec<&SeriesSummary> =
        analysis.summary.iter().filter(|s| report.series[s.series].command == command).collect();
    // A column that is unknown in every row says nothing; the reason stands in the proof.
    let known = |m: Metric| rows.iter().any(|r| r.metrics.get(m.name()).is_some_and(|k| k.value().is_some()));
    let columns: Vec<_> = COLUMNS.into_iter().filter(|(m, _)| known(*m)).collect();
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let mut head = vec![String::new(), "ready".into(), "95% interval".into(), "runs".into()];
    head.extend(columns.iter().map(|(_, name)| (*name).to_owned()));
    table.set_header(head);
    for r in rows {
        let state = report.series[r.series].state.to_string();
        let mut row = vec![format!("  {state}")];
        match r.ready() {
            Some(d) => row.extend([time(d.median), interval(d), r.counted.to_string()]),
            None => row.extend(["–".into(), "no run counts".into(), "0".into()]),
        }
        for (m, _) in &columns {
            row.push(match r.metrics.get(m.name()) {
                Some(Known::Value(d)) => m.unit().show(d.median),
                _ => "unknown".into(),
            });
        }
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn time(ns: f64) -> String {
    Unit::Time.show(ns)
}

fn interval(d: &Described) -> String {
    match &d.interval {
        Some(i) if i.is_full() => format!("{} … {}", time(i.low), time(i.high)),
        Some(i) => format!("{} … {} ({})", time(i.low), time(i.high), i.level_shown()),
        None => "one run".into(),
    }
}

fn comparison(c: &SeriesComparison) -> String {
    let [a, b] = &c.names;
    let Some(r) = &c.comparison else { return format!("  {a} against {b}: too few runs to compare") };
    let factor = format!("{:.3}× {b} [{:.3} … {:.3}]", r.ratio, r.interval.low, r.interval.high);
    match c.verdict {
        Verdict::Slower | Verdict::Faster => format!("  {a} takes {}", paint(STRONG, factor)),
        Verdict::Same => format!("  {a} takes {factor}: the same within the margin"),
        Verdict::Inconclusive { why: Undecided::TooFewRuns, runs_needed } => format!(
            "  {a} takes {factor}: {}{}",
            paint(
                WARN,
                format!("too few runs for a verdict, this interval is of {}", r.interval.level_shown())
            ),
            runs_needed.map_or_else(String::new, |n| format!(" (at least {n} more for 95%)"))
        ),
        Verdict::Inconclusive { why: Undecided::CrossesTheMargin, runs_needed } => format!(
            "  {a} takes {factor}: {}{}",
            paint(WARN, "no difference proved"),
            runs_needed.map_or_else(String::new, |n| format!(" (about {n} more rounds would decide)"))
        ),
    }
}

fn against_baseline(ui: &Ui, report: &Report, old: &Report) {
    ui.line("");
    for (i, series) in report.series.iter().enumerate() {
        let name = report.series_name(i);
        let Some(j) = baseline::series_of(old, report, series.command, &series.state) else {
            ui.line(format!("  {name}: not in the baseline"));
            continue;
        };
        let (now, then) = (summary::times(report, i), summary::times(old, j));
        match cold_stats::compare::independent(&now, &then) {
            Some(c) => ui.line(format!(
                "  {name} takes {} its baseline [{:.3} … {:.3}]",
                paint(STRONG, format!("{:.3}×", c.ratio)),
                c.interval.low,
                c.interval.high
            )),
            None => ui.line(format!("  {name}: too few runs to compare with the baseline")),
        }
    }
}

/// Whether the cold runs were cold, in one line.
pub(crate) fn proof(ui: &Ui, report: &Report, s: &SeriesSummary) {
    let Some(proof) = ColdProof::of(report, s.series) else { return };
    let verdict = match proof {
        ColdProof::Unknown { why } => format!("{}: {why}", paint(WARN, "cold is not proved")),
        ColdProof::Proved { runs, left } => {
            let what = if left.is_some() { "the program" } else { "its files" };
            let left = left.map_or_else(String::new, |b| format!("; of its other files {b} stayed cached"));
            let text =
                format!("proved cold: every page of {what} was absent before {runs} of {runs} runs{left}");
            paint(GOOD, text)
        }
        ColdProof::Probable { runs, unknown } => paint(
            WARN,
            format!(
                "probably cold: no page was seen cached before any of {runs} runs, but {unknown} of its files \
                 could not be checked (the kernel tells only their owner and root)"
            ),
        ),
        ColdProof::Not { runs, partly_cached, most, tainted } => {
            let (style, effect) = match tainted {
                0 => (WARN, String::new()),
                n => (BAD, format!("; {n} of them do not count")),
            };
            let text = format!(
                "not fully cold before {partly_cached} of {runs} runs: up to {most} stayed cached{effect}"
            );
            paint(style, text)
        }
    };
    ui.line(format!("  {}: {verdict}", report.series_name(s.series)));
}

pub(crate) fn findings(ui: &Ui, report: &Report, analysis: &Analysis) {
    for f in &analysis.findings {
        let style = match f.severity {
            diagnose::Severity::Info => FAINT,
            diagnose::Severity::Warning => WARN,
            diagnose::Severity::Error => BAD,
        };
        ui.line(format!("  {}: {}", report.series_name(f.series), paint(style, &f.text)));
    }
}

fn machine(ui: &Ui, report: &Report) {
    let m = &report.machine;
    let mut lines = vec![format!("{}, {} memory, Linux {}", m.cpu, m.memory, m.kernel)];
    lines.extend(m.devices.iter().cloned());
    lines.push(format!("eviction: {}; seed {}", m.eviction, report.seed));
    lines.extend(m.notes.iter().cloned());
    for line in lines {
        ui.line(paint(FAINT, format!("  {line}")));
    }
}

/// A gate's answer, and by name what a failed one is about.
pub(crate) fn gate(ui: &Ui, g: &GateResult) {
    let style = match &g.outcome {
        Outcome::Pass => GOOD,
        Outcome::Fail => BAD,
        Outcome::Inconclusive { .. } => WARN,
    };
    let word = paint(style, format!("{}:", markdown::word(&g.outcome)));
    ui.line(format!("{word} {}", markdown::line(g).shown()));
    for detail in markdown::details(g) {
        ui.line(format!("  {}", detail.shown()));
    }
}
