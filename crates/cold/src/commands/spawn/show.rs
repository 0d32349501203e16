//! What was measured, for people: the verdict first.

use cold_report::axis::time;
use cold_report::spawn::{
    baseline_words, cause_words, class_words, code_words, confirmation_words, counts_words,
    not_observed_words, part_words, series_words, terminal,
};
use cold_spawn::growth::Class;
use cold_spawn::report::{Confirmation, Report, Series};
use cold_spawn::verdict::From;

use crate::table::{Table, width};
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui, WARN, paint};
use crate::words::{count, plural};

/// Causes that are printed; all are in the JSON.
const CAUSES: usize = 5;

pub(super) fn report(ui: &Ui, report: &Report, extrapolate: Option<u64>) {
    ui.line(paint(STRONG, report.command.join(" ")));
    ui.line(paint(FAINT, format!("  {}", report.machine)));
    let mut times = Table::new(&["STARTS/S", "MEDIAN", "P90", "P99", "LONGEST", "USER", "SYSTEM", "METHOD"]);
    for s in &report.series {
        let t = s.times.unwrap_or_default();
        let mut row = vec![format!("{:.0}", s.per_second)];
        row.extend([t.p50, t.p90, t.p99, t.max, s.user_ns, s.system_ns].map(time));
        row.push(series_words(s));
        times.row(row, Vec::new());
    }
    ui.line("");
    let by_ticks = report.series.iter().any(|s| s.by_ticks);
    times.lines(width()).into_iter().for_each(|l| ui.line(l));
    if by_ticks {
        let text = "user and system are estimated from the timer's ticks; their sum is exact";
        ui.line(paint(FAINT, format!("  {text}")));
    }
    ui.line("");
    for s in &report.series {
        parts(ui, s);
    }
    for s in &report.series {
        series(ui, s, extrapolate);
    }
}

fn parts(ui: &Ui, s: &Series) {
    if s.parts.is_empty() {
        return;
    }
    let of: Vec<String> = s.parts.iter().map(|p| format!("{} {}", part_words(p.part), time(p.ns))).collect();
    ui.line(format!("{}: {}", series_words(s), of.join(" + ")));
    let empty: Vec<String> =
        s.baselines.iter().map(|b| format!("{} {}", baseline_words(b.baseline), time(b.times.p50))).collect();
    ui.line(paint(FAINT, format!("  from the medians of empty programs beside it: {}", empty.join(", "))));
    if let Some(stages) = &s.stages {
        let stages = [
            ("create", stages.create),
            ("exec", stages.exec),
            ("loading and running", stages.run),
            ("exit and wait", stages.exit),
        ];
        let each = stages.map(|(name, ns)| format!("{name} {}", time(ns as f64))).join(", ");
        ui.line(paint(FAINT, format!("  as recorded (recording takes time): {each}")));
    }
    if let Some(h) = &s.handed {
        let loading = h.loading_ns.map_or("no loader".to_owned(), |ns| format!("loading {}", time(ns)));
        let rest = format!("from its entry to its exit {}", time(h.running_ns));
        let traced = format!("{} more starts, traced (each stop of {} taken off)", h.starts, time(h.stop_ns));
        ui.line(paint(FAINT, format!("  {traced}: {loading}, {rest}")));
    }
    if let Some(why) = &s.not_traced {
        ui.line(paint(FAINT, format!("  loading and the program's own work are not told apart: {why}")));
    }
    if let (Some(created), Some(faults)) = (s.created_ns, s.minor_faults) {
        let until = format!("{} until the creating call returned", time(created));
        ui.line(paint(FAINT, format!("  {until}; {faults:.0} minor faults")));
    }
}

fn series(ui: &Ui, s: &Series, extrapolate: Option<u64>) {
    ui.line("");
    ui.lines(&terminal(s, ui.width(), ui.unicode()));
    ui.line("");
    if s.interrupted {
        ui.line(format!(
            "{} {} were made",
            paint(WARN, "interrupted:"),
            plural(s.starts.len() as u64, "start")
        ));
    }
    if s.failures > 0 {
        let failed = format!("{} of {} starts did not exit with 0", s.failures, s.starts.len());
        ui.line(format!("{} {failed}", paint(WARN, "warning:")));
    }
    verdict(ui, s);
    for c in s.judged.causes.iter().take(CAUSES) {
        ui.line(format!("  {} {}", paint(STRONG, "cause:"), cause_words(c)));
        if let Some(code) = code_words(c) {
            ui.line(format!("    {code}"));
        }
    }
    if s.judged.causes.len() > CAUSES {
        ui.line(format!("  and {} more (--json)", s.judged.causes.len() - CAUSES));
    }
    if let Some(counts) = counts_words(s) {
        ui.line(paint(FAINT, format!("  {counts}")));
    }
    if let Some(why) = not_observed_words(s) {
        ui.line(paint(FAINT, format!("  {why}")));
    }
    if s.judged.verdict.grows() && s.judged.verdict.predictions.is_empty() {
        let text = "the time does not show it yet, so nothing is predicted; more starts (-n) may";
        ui.line(paint(FAINT, format!("  {text}")));
    }
    if s.judged.verdict.grows() || extrapolate.is_some() {
        for p in &s.judged.verdict.predictions {
            let (each, total) = (time(p.each_ns), time(p.total_ns));
            ui.line(format!("  at {} starts: {each} each, {total} in all", count(p.starts)));
        }
    }
    if let Some(c) = &s.confirmation {
        confirmation(ui, s, c);
    }
}

fn verdict(ui: &Ui, s: &Series) {
    let v = &s.judged.verdict;
    let words = class_words(v.class);
    let from = match v.from {
        From::Counts => "by what the recorded starts did",
        From::Time if v.class == Class::Constant && !s.observed.is_empty() => {
            "in time, and in what the recorded starts did"
        }
        From::Time => "by time",
        From::Nothing => {
            ui.line("too few starts to tell whether it grows: at least 100 are needed");
            return;
        }
    };
    let style = if v.grows() { BAD } else { GOOD };
    ui.line(format!("{} ({from})", paint(style, format!("the cost of a start {}", phrase(words)))));
    if v.grows() {
        let of = if v.time.is_some() { "total time" } else { "sum of what is counted" };
        ui.line(format!("  the {of} now grows with the number of starts to the power of {:.2}", v.exponent));
    }
    if s.judged.only_waits() {
        let text = "wall time rises, but CPU time does not: it waits longer, because the machine is busy or others work";
        ui.line(paint(FAINT, format!("  {text}")));
    }
    if let Some(g) = &s.judged.time {
        let slope = if g.slope < 0.0 { "-" } else { "+" };
        let figures = format!(
            "time: {slope}{} per start (Theil–Sen; {}); BIC better than constant by {:.0}; empty program drifts {}",
            time(g.slope.abs().max(0.0)),
            cold_model::figures::p_value(g.trend_p),
            g.margin,
            cold_model::figures::percent(100.0 * s.judged.drift)
        );
        ui.line(paint(FAINT, format!("  {figures}")));
    }
}

/// `constant` needs a verb.
fn phrase(words: &str) -> String {
    if words == "constant" { "is constant".to_owned() } else { words.to_owned() }
}

fn confirmation(ui: &Ui, s: &Series, c: &Confirmation) {
    let style = match (&c.failed, c.vanished) {
        (Some(_), _) => WARN,
        (None, true) => GOOD,
        (None, false) => BAD,
    };
    let (verdict, rest) = confirmation_words(s, c);
    ui.line(format!("  {} {rest}", paint(style, verdict)));
}
