//! A series of starts: cost against index, with the control program and the fitted curve, for terminals, as
//! SVG and as a page.

use std::fmt::Write;

use cold_spawn::Cause;
use cold_spawn::cause::What;
use cold_spawn::growth::{Class, Fit};
use cold_spawn::report::{Confirmation, Part, Report, Series};
use cold_spawn::session::Baseline;
use cold_stats::median;

use crate::axis::{Axis, time};
use crate::escape::{line, markup};
use crate::svg::text;

const STYLE: &str = include_str!("html/style.css");
const WIDTH: f64 = 1280.0;
const PLOT: f64 = 360.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 28.0;
/// Space above a plot for its title, below for its axis.
const HEAD: f64 = 58.0;
const FOOT: f64 = 58.0;
/// Height of the plot of what lengthened.
const CAUSE: f64 = 150.0;
/// Points drawn per series: more cannot be told apart on the width.
const MOST_POINTS: usize = 4000;
/// Colours of Okabe & Ito.
const OWN: &str = "#0072b2";
const CONTROL: &str = "#767676";
const FITTED: &str = "#d55e00";
/// The page's, where it is dark: the same hues, lighter.
const DARK: &str = "@media screen and (prefers-color-scheme: dark) { path.own { stroke: #56b4e9; } circle.own, circle.dot { fill: #56b4e9; } path.control { stroke: #a8adb3; } circle.control { fill: #a8adb3; } }\n";

/// Words for a class.
pub fn class_words(class: Class) -> &'static str {
    match class {
        Class::Constant => "constant",
        Class::Logarithmic => "grows with the logarithm of the number of starts",
        Class::Linear => "grows linearly with the number of starts (the total with its square)",
        Class::Quadratic => "grows with the square of the number of starts (the total with its cube)",
        Class::Step => "changed once, and stays there",
    }
}

/// What distinguishes a series.
pub fn series_words(s: &Series) -> String {
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

/// Words for a count of starts.
pub fn count_words(what: &str) -> String {
    match what.strip_prefix("calls.") {
        Some(name) => format!("calls of {name}"),
        None if what == "calls" => "system calls".to_owned(),
        None if what == "call_bytes" => "bytes read and written".to_owned(),
        None => what.replace('_', " "),
    }
}

/// Words for a part of a start.
pub fn part_words(part: Part) -> &'static str {
    match part {
        Part::Create => "create",
        Part::Exec => "exec",
        Part::Loading => "loading",
        Part::Own => "own",
    }
}

/// Words for a baseline.
pub fn baseline_words(baseline: Baseline) -> &'static str {
    match baseline {
        Baseline::Create => "a process that exits at once",
        Baseline::EmptyStatic => "an empty static program",
        Baseline::EmptyDynamic => "an empty program with the C library",
    }
}

/// What lengthened, by how much, and what it takes.
pub fn cause_words(c: &Cause) -> String {
    let what = match c.what {
        What::NameScan => format!("{} is searched number by number: now {:.0} names", c.name, c.present),
        What::DirectoryList => format!("{} is listed: now {:.0} bytes of entries", c.name, c.present),
        What::FileRead => format!("{} is read from its beginning: now {:.0} bytes", c.name, c.present),
        What::SearchPath => format!("lookups fail in {}: now {:.0}", c.name, c.present),
        What::Lookups => format!("names are looked up in {}: now {:.0}", c.name, c.present),
    };
    let share = c
        .share
        .map_or(String::new(), |s| format!(" ({} of the start)", cold_model::figures::percent(100.0 * s)));
    let took = if c.ns > 0 { format!(", {}{share}", time(c.ns as f64)) } else { String::new() };
    format!("{what}{took}; {:+.3} per start", c.growth.slope)
}

/// The innermost frames of the code that does it, without those of Rust's own library on the way there.
pub fn code_words(c: &Cause) -> Option<String> {
    const FRAMES: usize = 10;
    let (innermost, others) = c.code.split_last()?;
    let own = |frame: &&String| {
        let function = frame.split_once('`').map_or("", |(_, f)| f).trim_start_matches('<');
        !["std::", "core::", "alloc::"].iter().any(|library| function.starts_with(library))
    };
    let shown: Vec<&String> = others.iter().filter(own).chain([innermost]).collect();
    let from = shown.len().saturating_sub(FRAMES);
    let mut words = if from > 0 { vec!["…"] } else { Vec::new() };
    let mut module = "";
    for frame in &shown[from..] {
        // ``module`function``: the module where it changes.
        match frame.split_once('`') {
            Some((same, function)) if same == module => words.push(function),
            other => {
                module = other.map_or("", |(m, _)| m);
                words.push(frame);
            }
        }
    }
    Some(format!("by {}", words.join(" → ")))
}

/// The counts that grow.
pub fn counts_words(s: &Series) -> Option<String> {
    let growing = s.judged.counts.iter().filter(|c| c.growth.grows());
    let each: Vec<String> = growing
        .map(|c| format!("{} {:.0} ({:+.3} per start)", count_words(&c.what), c.present, c.growth.slope))
        .collect();
    (!each.is_empty()).then(|| format!("what grows: {}", each.join(", ")))
}

/// Why not all was observed.
pub fn not_observed_words(s: &Series) -> Option<String> {
    let why = s.not_observed.as_ref()?;
    Some(match s.observed.len() {
        0 => format!("no start was recorded, so causes are unknown: {why}"),
        n => format!("only {n} starts were recorded: {why}"),
    })
}

/// What became of the repetition: the verdict, and the rest.
pub fn confirmation_words(s: &Series, c: &Confirmation) -> (&'static str, String) {
    if let Some(why) = &c.failed {
        return ("not confirmed, since it could not be tried:", why.clone());
    }
    let dropped = c.dropped.join("; ");
    let known = |ns: Option<f64>| ns.map_or_else(|| "unknown".to_owned(), time);
    let (now, before) = (known(c.median_ns), known(s.times.map(|t| t.p50)));
    let level = format!("{} starts of {now} (median; {before} before)", c.starts);
    if c.vanished {
        return (
            "confirmed:",
            format!("growth vanishes when this is dropped before every start: {dropped}; {level}"),
        );
    }
    let remains = c.remains.join(", ");
    ("not confirmed:", format!("dropping {dropped} does not end it (still there: {remains}); {level}"))
}

/// Largest value that the axis shows: the fit and most points; single slow starts lie at its upper edge.
fn axis(s: &Series, ticks: usize) -> Axis {
    let times = s.times.unwrap_or_default();
    let fitted = s.judged.verdict.time.as_ref().map_or(0.0, |f| f.at(s.starts.len() as f64));
    Axis::new(0.0, (times.p95 * 1.25).max(fitted * 1.1).max(1.0), ticks)
}

/// A plot in characters: the median of each column's starts, and of the control program's.
pub fn terminal(s: &Series, width: usize, unicode: bool) -> String {
    const HEIGHT: usize = 10;
    let columns = width.saturating_sub(14).clamp(20, 120).min(s.starts.len().max(1));
    let medians: Vec<[Option<f64>; 2]> = (0..columns)
        .map(|c| {
            let from = c * s.starts.len() / columns;
            let to = ((c + 1) * s.starts.len() / columns).max(from + 1).min(s.starts.len());
            let of = |f: fn(&cold_spawn::report::Start) -> u64| {
                median(&s.starts[from.min(to)..to].iter().map(|t| f(t) as f64).collect::<Vec<_>>())
            };
            [of(|t| t.control_ns), of(|t| t.ns)]
        })
        .collect();
    let highest = medians.iter().flatten().flatten().copied().fold(1.0, f64::max);
    let scale = Axis::new(0.0, highest, 4);
    let (unit, factor, decimals) = scale.time_unit();
    let mut grid = vec![vec![' '; columns]; HEIGHT + 1];
    let row = |v: f64| HEIGHT - (scale.place(v).clamp(0.0, 1.0) * HEIGHT as f64).round() as usize;
    let (own, control, edge) = if unicode { ('●', '·', '│') } else { ('o', '.', '|') };
    for (c, both) in medians.iter().enumerate() {
        for (value, glyph) in both.iter().zip([control, own]) {
            if let Some(v) = value {
                grid[row(*v)][c] = glyph;
            }
        }
    }
    let mut out = String::new();
    for (r, cells) in grid.iter().enumerate() {
        let tick = scale.ticks.iter().find(|t| row(**t) == r);
        let label = tick.map_or(String::new(), |t| format!("{:.decimals$} {unit}", t / factor));
        let cells: String = cells.iter().collect();
        let _ = writeln!(out, "{label:>11} {edge}{}", cells.trim_end());
    }
    let last = s.starts.last().map_or(0, |t| t.index);
    let _ = writeln!(out, "{:>13}0{last:>pad$}", "", pad = columns.saturating_sub(1));
    let _ = write!(out, "{:>13}{own} the command   {control} the empty program in between", "");
    if unicode { out } else { out.replace('µ', "u") }
}

/// The picture: one plot per method.
pub fn svg(report: &Report) -> String {
    let whole = 64.0 + report.series.iter().map(height).sum::<f64>();
    let mut out = String::new();
    let title = report.command.join(" ");
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {whole}" width="{WIDTH}" height="{whole}" role="img" font-family="system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif" font-size="14"><title>{}</title><rect class="bg" width="{WIDTH}" height="{whole}" fill="#ffffff"/>"##,
        markup(&title)
    );
    text(&mut out, (LEFT, 32.0), "fg", "font-size=\"20\" font-weight=\"600\"", &line(&title, 100));
    let sub = format!("cold spawn {}, {}, {}", report.version, report.started, report.machine);
    text(&mut out, (LEFT, 52.0), "muted", "font-size=\"12\"", &line(&sub, 160));
    let mut top = 64.0;
    for s in &report.series {
        plot(&mut out, s, top + HEAD);
        if let Some(c) = s.judged.causes.first() {
            lengthened(&mut out, c, last(s), top + HEAD + PLOT + FOOT + HEAD / 2.0);
        }
        top += height(s);
    }
    out.push_str("</svg>\n");
    out
}

/// Of a series: its plot, and that of what lengthened.
fn height(s: &Series) -> f64 {
    let cause = if s.judged.causes.is_empty() { 0.0 } else { HEAD / 2.0 + CAUSE + FOOT };
    HEAD + PLOT + FOOT + cause
}

/// The index at the right end.
fn last(s: &Series) -> f64 {
    let timed = s.starts.last().map_or(1, |t| t.index.max(1));
    s.observed.last().map_or(timed, |o| o.index.max(timed)) as f64
}

fn across(index: f64, last: f64) -> f64 {
    LEFT + (WIDTH - LEFT - RIGHT) * index / last
}

fn rule(out: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str, stroke: &str) {
    let _ = write!(
        out,
        r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{stroke}"/>"#
    );
}

fn plot(out: &mut String, s: &Series, top: f64) {
    let scale = axis(s, 6);
    let (unit, factor, decimals) = scale.time_unit();
    let last = last(s);
    let bottom = top + PLOT;
    let x = |index: f64| across(index, last);
    let y = |v: f64| bottom - scale.place(v).clamp(0.0, 1.0) * PLOT;
    let verdict = format!("{}: {}", series_words(s), class_words(s.judged.verdict.class));
    text(out, (LEFT, top - 34.0), "fg", "font-weight=\"600\"", &verdict);
    legend(out, s, top - 14.0);
    for tick in &scale.ticks {
        level(out, y(*tick), &format!("{:.decimals$} {unit}", tick / factor));
    }
    starts_axis(out, last, bottom);
    points(out, s, |t| t.control_ns, (&x, &y), ("control", CONTROL));
    points(out, s, |t| t.ns, (&x, &y), ("own", OWN));
    if let Some(fit) = &s.judged.verdict.time {
        curve(out, fit, last, &x, &y);
    }
}

/// The amount of the first cause in every recorded start, and its fit.
fn lengthened(out: &mut String, c: &Cause, last: f64, top: f64) {
    let bottom = top + CAUSE;
    let most = c.points.iter().map(|(_, amount)| *amount as f64).fold(1.0, f64::max);
    let scale = Axis::new(0.0, most, 3);
    let x = |index: f64| across(index, last);
    let y = |v: f64| bottom - scale.place(v).clamp(0.0, 1.0) * CAUSE;
    text(out, (LEFT, top - 14.0), "fg", "font-weight=\"600\"", &line(&cause_words(c), 130));
    for tick in &scale.ticks {
        level(out, y(*tick), &tick.to_string());
    }
    starts_axis(out, last, bottom);
    curve(out, &c.growth.fit, last, &x, &y);
    for (index, amount) in &c.points {
        let (cx, cy) = (x(*index as f64), y(*amount as f64));
        let _ = write!(out, r#"<circle class="dot" cx="{cx:.1}" cy="{cy:.1}" r="4" fill="{OWN}"/>"#);
    }
}

fn level(out: &mut String, y: f64, label: &str) {
    rule(out, (LEFT, y), (WIDTH - RIGHT, y), "grid", "#e2e2e2");
    text(out, (LEFT - 9.0, y + 5.0), "fg", "text-anchor=\"end\" font-size=\"12\"", label);
}

fn starts_axis(out: &mut String, last: f64, bottom: f64) {
    let small = "text-anchor=\"middle\" font-size=\"12\"";
    rule(out, (LEFT, bottom), (WIDTH - RIGHT, bottom), "axis", "#5a5a5a");
    for tick in Axis::new(0.0, last, 8).ticks.iter().filter(|t| **t <= last) {
        let x = across(*tick, last);
        rule(out, (x, bottom), (x, bottom + 5.0), "axis", "#5a5a5a");
        text(out, (x, bottom + 20.0), "fg", small, &tick.to_string());
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    text(out, (middle, bottom + 40.0), "muted", small, "starts before it");
}

fn curve(out: &mut String, fit: &Fit, last: f64, x: &impl Fn(f64) -> f64, y: &impl Fn(f64) -> f64) {
    let at: Vec<String> = (0..=200)
        .map(|i| last * f64::from(i) / 200.0)
        .map(|i| format!("{:.1} {:.1}", x(i), y(fit.at(i))))
        .collect();
    let _ = write!(out, r#"<path d="M{}" fill="none" stroke="{FITTED}" stroke-width="2.5"/>"#, at.join("L"));
}

fn legend(out: &mut String, s: &Series, y: f64) {
    let own = s.times.map_or(0.0, |t| t.p50);
    let control = s.control.map_or(0.0, |t| t.p50);
    let mut entries = vec![
        ("own", OWN, format!("the command, median {}", time(own))),
        ("control", CONTROL, format!("the empty program in between, median {}", time(control))),
    ];
    if s.judged.verdict.time.is_some() {
        entries.push(("fitted", FITTED, "fit, drift taken out".to_owned()));
    }
    let mut x = LEFT;
    for (class, color, words) in entries {
        let _ = write!(
            out,
            r#"<circle class="{class}" cx="{:.1}" cy="{:.1}" r="5" fill="{color}"/>"#,
            x + 6.0,
            y - 5.0
        );
        text(out, (x + 18.0, y), "muted", "font-size=\"12\"", &words);
        x += 40.0 + 7.0 * words.chars().count() as f64;
    }
}

/// All points as one path of round dots: far smaller than an element each. Those above the axis lie at its
/// upper edge.
fn points(
    out: &mut String,
    s: &Series,
    value: fn(&cold_spawn::report::Start) -> u64,
    (x, y): (&impl Fn(f64) -> f64, &impl Fn(f64) -> f64),
    (class, color): (&str, &str),
) {
    let step = s.starts.len().div_ceil(MOST_POINTS).max(1);
    let mut path = String::new();
    for t in s.starts.iter().step_by(step) {
        let _ = write!(path, "M{:.1} {:.1}h0", x(t.index as f64), y(value(t) as f64));
    }
    let _ = write!(
        out,
        r#"<path class="{class}" d="{path}" fill="none" stroke="{color}" stroke-opacity="0.6" stroke-width="3.5" stroke-linecap="round"/>"#
    );
}

/// The page: picture, verdicts, causes, figures.
pub fn html(report: &Report) -> String {
    let mut out = String::new();
    let title = markup(&report.command.join(" "));
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} – cold spawn</title><style>\n{STYLE}{DARK}</style></head><body><main>\n<h1>{title}</h1>\n"
    );
    let _ = writeln!(out, "<figure>{}</figure>", svg(report));
    for s in &report.series {
        findings(&mut out, s);
    }
    out.push_str("<h2>Times</h2>\n");
    let head = ["", "starts/s", "median", "p90", "p99", "longest", "user", "system"];
    let rows = report.series.iter().map(|s| {
        let t = s.times.unwrap_or_default();
        let mut row = vec![series_words(s), format!("{:.0}", s.per_second)];
        row.extend([t.p50, t.p90, t.p99, t.max, s.user_ns, s.system_ns].map(time));
        row
    });
    table(&mut out, &head, rows);
    out.push_str("<h2>What a start consists of</h2>\n");
    let rows = report.series.iter().flat_map(|s| {
        s.parts.iter().map(|p| vec![format!("{}: {}", series_words(s), part_words(p.part)), time(p.ns)])
    });
    table(&mut out, &["", "time"], rows);
    let rows = report.series.iter().flat_map(|s| {
        s.baselines.iter().map(|b| {
            let what = format!("{}: {}", series_words(s), baseline_words(b.baseline));
            vec![what, time(b.times.p50), time(b.times.p10), time(b.times.p90)]
        })
    });
    table(&mut out, &["measured beside it", "median", "p10", "p90"], rows);
    out.push_str("</main></body></html>\n");
    out
}

fn findings(out: &mut String, s: &Series) {
    let j = &s.judged;
    let level = if j.verdict.grows() { "error" } else { "warning" };
    let _ = write!(out, "<h2>{}</h2>\n<ul class=\"findings\">", markup(&series_words(s)));
    let _ = write!(out, "<li class=\"{level}\"><b>{}</b></li>", markup(class_words(j.verdict.class)));
    for c in &j.causes {
        let _ = write!(out, "<li>{}", markup(&cause_words(c)));
        if let Some(code) = code_words(c) {
            let _ = write!(out, "<br>{}", markup(&code));
        }
        out.push_str("</li>");
    }
    if let Some(counts) = counts_words(s) {
        let _ = write!(out, "<li>{}</li>", markup(&counts));
    }
    for p in j.verdict.predictions.iter().filter(|_| j.verdict.grows()) {
        let words = format!("at {} starts: {} each, {} in all", p.starts, time(p.each_ns), time(p.total_ns));
        let _ = write!(out, "<li>{}</li>", markup(&words));
    }
    if let Some(why) = not_observed_words(s) {
        let _ = write!(out, "<li>{}</li>", markup(&why));
    }
    if let Some(c) = &s.confirmation {
        let level = if c.vanished { "" } else { " class=\"warning\"" };
        let (verdict, rest) = confirmation_words(s, c);
        let _ = write!(out, "<li{level}><b>{verdict}</b> {}</li>", markup(&rest));
    }
    out.push_str("</ul>\n");
}

fn table(out: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    out.push_str("<div class=\"wide\"><table><thead><tr>");
    for (i, h) in head.iter().enumerate() {
        let _ = write!(out, "<th{}>{}</th>", if i > 0 { " class=\"n\"" } else { "" }, markup(h));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (i, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", if i > 0 { " class=\"n\"" } else { "" }, markup(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

#[cfg(test)]
mod tests {
    use cold_spawn::growth::{Kind, judge_points};

    use super::*;

    fn cause(code: &[&str]) -> Cause {
        let points: Vec<(u64, u64)> = (0..20).map(|i| (i, i)).collect();
        let xy: Vec<(f64, f64)> = points.iter().map(|(i, n)| (*i as f64, *n as f64)).collect();
        Cause {
            what: What::NameScan,
            name: "/log/<a>.{n}".into(),
            directory: "/log".into(),
            growth: judge_points(&xy, 20, Kind::Exact).expect("enough points"),
            points,
            present: 19.0,
            ns: 2000,
            share: Some(0.25),
            stack: None,
            code: code.iter().map(|f| (*f).to_owned()).collect(),
        }
    }

    #[test]
    fn code_is_told_without_rusts_own_and_modules_where_they_change() {
        let code = ["a`main", "a`find", "a`<std::fs::X as Y>::z", "libc.so.6`stat", "libc.so.6`syscall"];
        let words = code_words(&cause(&code));
        assert_eq!(words.as_deref(), Some("by a`main → find → libc.so.6`stat → syscall"));
        assert_eq!(code_words(&cause(&[])), None);
        let words = cause_words(&cause(&[]));
        assert!(words.ends_with("now 19 names, 2.00 µs (25.0% of the start); +1.000 per start"), "{words}");
    }

    #[test]
    fn the_plot_of_a_cause_shows_every_recorded_start() {
        let mut out = String::new();
        lengthened(&mut out, &cause(&[]), 19.0, 0.0);
        assert_eq!(out.matches("class=\"dot\"").count(), 20);
        assert!(out.contains("/log/&lt;a&gt;.{n}"), "{out}");
    }
}
