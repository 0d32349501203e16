//! What was measured, for people: the verdict first.

use cold_report::axis::time;
use cold_report::spawn::{class_words, part_words, terminal};
use cold_spawn::cause::{Cause, What};
use cold_spawn::growth::Class;
use cold_spawn::report::{Confirmation, Report, Series};
use cold_spawn::verdict::From;

use crate::table::{Table, width};
use crate::ui::{BAD, FAINT, GOOD, STRONG, Ui, WARN, paint};
use crate::words::{count, plural};

/// Causes that are printed; all are in the JSON.
const CAUSES: usize = 5;

/// Prints everything.
pub(super) fn report(ui: &Ui, report: &Report, extrapolate: Option<u64>) {
    ui.line(paint(STRONG, report.command.join(" ")));
    ui.line(paint(FAINT, format!("  {}", report.machine)));
    let mut times = Table::new(&["STARTS/S", "MEDIAN", "P90", "P99", "LONGEST", "USER", "SYSTEM", "METHOD"]);
    for s in &report.series {
        let t = s.times.unwrap_or_default();
        let mut row = vec![format!("{:.0}", s.per_second)];
        row.extend([t.p50, t.p90, t.p99, t.max, s.user_ns, s.system_ns].map(time));
        row.push(method(s));
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

fn method(s: &Series) -> String {
    let mut words = vec![s.method.name().to_owned()];
    if s.cgroup.is_some() {
        words.push("into a cgroup".into());
    }
    if s.jobs > 1 {
        words.push(format!("{} at once", s.jobs));
    }
    if s.parent_bytes > 0 {
        let pages = if s.huge_pages { " of huge pages" } else { "" };
        words.push(format!("parent with {} MiB{pages}", s.parent_bytes >> 20));
    }
    words.join(", ")
}

fn parts(ui: &Ui, s: &Series) {
    if s.parts.is_empty() {
        return;
    }
    let of: Vec<String> = s.parts.iter().map(|p| format!("{} {}", part_words(p.part), time(p.ns))).collect();
    ui.line(format!("{}: {}", s.method.name(), of.join(" + ")));
    let empty: Vec<String> = s
        .baselines
        .iter()
        .map(|b| format!("{} {}", cold_report::spawn::baseline_words(b.baseline), time(b.times.p50)))
        .collect();
    ui.line(paint(FAINT, format!("  from medians beside it: {}", empty.join(", "))));
    let until = format!("{} until the creating call returned", time(s.created_ns));
    ui.line(paint(FAINT, format!("  {until}; {:.0} minor faults", s.minor_faults)));
}

fn series(ui: &Ui, s: &Series, extrapolate: Option<u64>) {
    ui.line("");
    ui.line(terminal(s, ui.width(), ui.unicode()));
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
        ui.line(format!("  {} {}", paint(STRONG, "cause:"), cause(c)));
    }
    if s.judged.causes.len() > CAUSES {
        ui.line(format!("  and {} more (--json)", s.judged.causes.len() - CAUSES));
    }
    if let Some(why) = &s.not_observed {
        ui.line(paint(FAINT, format!("  no start was recorded, so causes are unknown: {why}")));
    }
    if s.judged.verdict.grows() && s.judged.verdict.predictions.is_empty() {
        let text = "it does not show in the time yet, so nothing is predicted: more starts (-n) would";
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
        From::Time if v.class == Class::Constant && !s.judged.counts.is_empty() => {
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
    if let Some(g) = &s.judged.time {
        let slope = if g.slope < 0.0 { "-" } else { "+" };
        let figures = format!(
            "time: {slope}{} per start (Theil–Sen; p = {:.2}), {:.0} of BIC against constant; drift {:.0} %",
            time(g.slope.abs().max(0.0)),
            g.trend_p,
            g.margin,
            100.0 * s.judged.drift
        );
        ui.line(paint(FAINT, format!("  {figures}")));
    }
}

/// `constant` needs a verb.
fn phrase(words: &str) -> String {
    if words == "constant" { "is constant".to_owned() } else { words.to_owned() }
}

fn cause(c: &Cause) -> String {
    let what = match c.what {
        What::NameScan => format!("{} is searched number by number: now {:.0} names", c.name, c.present),
        What::DirectoryList => format!("{} is listed: now {:.0} bytes of entries", c.name, c.present),
        What::FileRead => format!("{} is read in full: now {:.0} bytes", c.name, c.present),
        What::SearchPath => format!("lookups fail in {}: now {:.0}", c.name, c.present),
        What::Lookups => format!("names are looked up in {}: now {:.0}", c.name, c.present),
    };
    let share = c
        .share
        .map_or(String::new(), |s| format!(", {:.0} % of the time of all lookups and listings", 100.0 * s));
    let took = if c.ns > 0 { format!("; {}{share}", time(c.ns as f64)) } else { String::new() };
    format!("{what}, {:+.3} per start{took}", c.growth.slope)
}

fn confirmation(ui: &Ui, s: &Series, c: &Confirmation) {
    if let Some(why) = &c.failed {
        ui.line(format!("  {} {why}", paint(WARN, "not confirmed, since it could not be tried:")));
        return;
    }
    let dropped = c.dropped.join("; ");
    let level = format!(
        "{} starts of {} (median; {} before)",
        count(c.starts as u64),
        time(c.median_ns),
        time(s.times.map_or(0.0, |t| t.p50))
    );
    if c.vanished {
        let text = format!("growth vanishes when this is dropped before every start: {dropped}; {level}");
        ui.line(format!("  {} {text}", paint(GOOD, "confirmed:")));
    } else {
        let text =
            format!("dropping {dropped} does not end it: {} still grows; {level}", c.remains.join(", "));
        ui.line(format!("  {} {text}", paint(BAD, "not confirmed:")));
    }
}
