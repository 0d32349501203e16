//! The page: the story, three pictures, the tables, and what the words mean.

use std::fmt::Write;

use cold_analyze::reasons::Group;
use cold_model::{Known, Nanos};

use super::{Diagnosis, Remedy, text};
use crate::axis::Axis;
use crate::chart::{self, Ink};
use crate::escape::{line, markup};
use crate::page::{self, Cell};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 120.0;
/// Height of a bar, with the space to the next.
const BAR: f64 = 30.0;
/// Room above the bars of a picture, and below for its axis.
const HEAD: f64 = 34.0;
const FOOT: f64 = 44.0;
/// Characters of the title that fit.
const TITLE: usize = 78;
/// Characters of the line below it.
const FACTS: usize = 125;
/// Remedies in the picture.
const DRAWN: usize = 6;

/// Seven that differ most.
const fn color(group: Group) -> &'static str {
    match group {
        Group::Disk => chart::VERMILION,
        Group::Lookups => "#e69f00",
        Group::Loading => chart::PURPLE,
        Group::Program => chart::BLUE,
        Group::Runnable => "#56b4e9",
        Group::Waiting => chart::GREEN,
        Group::Unknown => "#999999",
    }
}

/// As the legend says it: seven of them share a line.
const fn short(group: Group) -> &'static str {
    match group {
        Group::Disk => "disk",
        Group::Lookups => "looking up paths",
        Group::Loading => "processes and loader",
        Group::Program => "program",
        Group::Runnable => "waiting for a CPU",
        Group::Waiting => "others, locks, sleep",
        Group::Unknown => "not known",
    }
}

const MEASURED: &str = chart::GREEN;
const PREDICTED: &str = "#999999";

/// What the page explains.
const GLOSSARY: [(&str, &str); 7] = [
    ("cold", "nothing of the program is in memory: its first start, or its first in a long time"),
    ("warm", "everything it needs is in memory, from the start before"),
    (
        "page cache",
        "the part of memory in which the kernel keeps what was read from files, in pages of 4 KiB",
    ),
    ("ready", "the end of the program, the moment that --ready names, or the answer to --first-request"),
    (
        "path to ready",
        "what ready had to wait for, step by step backwards; where a task waited for another one, \
      the other's reasons count",
    ),
    ("plan", "a file that lists what a start needs; the launcher reads it ahead, before the program asks"),
    ("interval", "where the true value lies with 95 % certainty; one that spans 1 proves no difference"),
];

/// The diagnosis as one HTML page that needs nothing else.
pub fn html(d: &Diagnosis) -> String {
    let mut below = String::from("<h2>In short</h2>\n<ul class=\"findings\">");
    for sentence in text::story(d) {
        let _ = write!(below, "<li>{}</li>", markup(&sentence));
    }
    below.push_str("</ul>\n");
    for what in &d.disturbing {
        let _ = writeln!(below, "<p><b>Disturbs:</b> {}</p>", markup(what));
    }
    reasons(&mut below, d);
    remedies(&mut below, d);
    let skipped = d.steps.iter().filter_map(|s| Some((s.what, s.skipped.as_deref()?)));
    for (what, why) in skipped {
        let _ = writeln!(below, "<p><b>Not done: {}:</b> {}.</p>", markup(what), markup(why));
    }
    below.push_str("<h2>What the words mean</h2>\n<dl>");
    for (word, meaning) in GLOSSARY {
        let _ = write!(below, "<dt>{word}</dt><dd>{}</dd>", markup(meaning));
    }
    below.push_str("</dl>\n");
    page::report(&title(d), "cold diagnose", &picture(d), &below)
}

fn title(d: &Diagnosis) -> String {
    format!("Why the first start is slow: {}", d.command)
}

/// A difference of times with its sign; ns.
pub fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "−" } else { "+" };
    format!("{sign}{}", Nanos(ns.unsigned_abs()))
}

/// A time whose unit stays on its line.
fn unbroken(time: Nanos) -> String {
    time.to_string().replace(' ', "\u{a0}")
}

fn known(time: &Known<Nanos>) -> Cell {
    match time {
        Known::Value(t) => Cell::number(t.0 as f64, t.to_string()),
        Known::Unknown { unknown } => Cell::unknown(unknown),
    }
}

fn reasons(out: &mut String, d: &Diagnosis) {
    out.push_str("<h2>Where the time goes</h2>\n");
    let rows = match &d.reasons {
        Known::Value(rows) => rows,
        Known::Unknown { unknown } => {
            let _ = writeln!(out, "<p>Unknown: {}.</p>", markup(unknown));
            return;
        }
    };
    let cold = d.recorded_cold.value().map_or("unknown".into(), Nanos::to_string);
    let sums = match &d.recorded_warm {
        Known::Value(warm) => format!(
            "Of one recorded start each. Each moment on the path to ready has one reason, so the columns sum to {cold} and {warm}."
        ),
        Known::Unknown { unknown } => format!(
            "Of one recorded start: {unknown}. Each moment on the path to ready has one reason, so the times sum to {cold}."
        ),
    };
    let _ = writeln!(out, "<p>{}</p>", markup(&sums));
    let asked = rows.iter().any(|row| row.answering.is_some());
    let compared = d.recorded_warm.value().is_some();
    let mut columns = vec!["why", "most of it", "cold"];
    columns.extend(asked.then_some("of it answering"));
    columns.extend(compared.then_some(["warm", "more"]).into_iter().flatten());
    let rows = rows.iter().map(|row| {
        let most: Vec<String> =
            row.files.iter().chain(&row.calls).map(|(name, t)| format!("{name} {}", unbroken(*t))).collect();
        let more = row.more().map_or_else(
            || Cell::unknown("no warm start was recorded"),
            |ns| Cell::number(ns as f64, signed(ns)),
        );
        let number = |time: Nanos| Cell::number(time.0 as f64, time.to_string());
        let mut cells = vec![Cell::text(row.kind.words()), Cell::text(most.join(", ")), number(row.cold)];
        cells.extend(asked.then(|| number(row.answering.unwrap_or_default())));
        cells.extend(compared.then(|| [known(&row.warm), more]).into_iter().flatten());
        cells
    });
    page::table(out, "sortable", &columns, 2, rows);
}

fn remedies(out: &mut String, d: &Diagnosis) {
    out.push_str("<h2>What would help</h2>\n");
    if d.remedies.is_empty() {
        out.push_str("<p>Nothing that this recording has evidence for.</p>\n");
        return;
    }
    let rows = d.remedies.iter().map(|r| {
        let measured = match &r.measured {
            Known::Value(m) => {
                let [low, high] = m.factor.interval;
                let proved = if m.factor.is_proved() { "" } else { ", not proved" };
                let saved = signed(m.saves);
                Cell::number(
                    m.saves as f64,
                    format!("{saved} ({:.3} [{low:.3} … {high:.3}]){proved}", m.factor.ratio),
                )
            }
            Known::Unknown { unknown } => Cell::unknown(unknown),
        };
        // A print has no hover.
        let why = match &r.measured {
            Known::Value(_) => r.why.clone(),
            Known::Unknown { unknown } => format!("{} Not measured: {unknown}.", r.why),
        };
        vec![
            Cell::text(r.what.clone()),
            Cell::text(why.trim_start()),
            Cell::text(r.price.words()),
            known(&r.predicted),
            measured,
        ]
    });
    page::table(
        out,
        "sortable",
        &["what", "why", "price", "predicted saving", "measured saving (of cold)"],
        3,
        rows,
    );
}

/// Three pictures, one below the other.
fn picture(d: &Diagnosis) -> String {
    let bars = d.bars();
    let drawn: Vec<&Remedy> =
        d.remedies.iter().filter(|r| r.saves().is_some_and(|t| t.0 > 0)).take(DRAWN).collect();
    let strip = if d.path.is_some() { HEAD + BAR + FOOT } else { 0.0 };
    let helps = if drawn.is_empty() { 0.0 } else { HEAD + BAR * drawn.len() as f64 + FOOT };
    let height = chart::HEADING + 30.0 + HEAD + BAR * bars.len() as f64 + FOOT + strip + helps;
    let mut out = chart::open(&title(d), WIDTH, height, 13.0);
    let facts = text::story(d).into_iter().next().unwrap_or_default();
    chart::heading(&mut out, 24.0, &line(&title(d), TITLE), &line(&facts, FACTS));
    let mut top = chart::HEADING;
    legend(&mut out, d, top + 14.0);
    top += 30.0;
    let each = if bars.len() > 1 { "one recorded start each" } else { "one recorded start" };
    heading(&mut out, top, &format!("Where the time goes, {each}"));
    stacked(&mut out, &bars, top + HEAD);
    top += HEAD + BAR * bars.len() as f64 + FOOT;
    if let Some(path) = &d.path {
        heading(&mut out, top, "The cold start from its beginning to ready: what it waited for, and when");
        let total = path.total().0.max(1);
        let axis = Axis::new(0.0, total as f64, 6);
        let pieces = path.pieces.iter().map(|p| {
            let from = p.from.saturating_sub(path.start);
            (from.0 as f64, p.to.saturating_sub(path.start).0 as f64, color(p.kind.group()))
        });
        axis_below(&mut out, &axis, top + HEAD, top + HEAD + BAR);
        segments(&mut out, &axis, merged(pieces, total as f64), top + HEAD);
        top += strip;
    }
    if !drawn.is_empty() {
        heading(&mut out, top, "What would help: predicted (grey), and measured where it was tried (green)");
        helping(&mut out, &drawn, top + HEAD);
    }
    chart::close(out)
}

/// Pieces too short to be seen are drawn as their neighbours: at most two in each thousandth of the width.
fn merged(
    pieces: impl Iterator<Item = (f64, f64, &'static str)>,
    total: f64,
) -> Vec<(f64, f64, &'static str)> {
    let least = total / 2000.0;
    let mut out: Vec<(f64, f64, &'static str)> = Vec::new();
    for (from, to, color) in pieces {
        match out.last_mut() {
            Some(last) if last.2 == color => last.1 = to,
            // The longer of two short ones gives the colour.
            Some(last) if last.1 - last.0 < least => {
                if to - from > last.1 - last.0 {
                    last.2 = color;
                }
                last.1 = to;
            }
            _ => out.push((from, to, color)),
        }
    }
    out
}

fn heading(out: &mut String, top: f64, words: &str) {
    chart::text(out, (24.0, top + 22.0), Ink::Strong, "font-weight=\"600\"", words);
}

fn legend(out: &mut String, d: &Diagnosis, y: f64) {
    let mut x = 24.0;
    for (group, _) in d.groups() {
        let words = short(group);
        chart::key(out, (x, y), color(group), words);
        x += 44.0 + 6.8 * words.chars().count() as f64;
    }
}

fn place(axis: &Axis, value: f64) -> f64 {
    LEFT + axis.place(value).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
}

fn axis_below(out: &mut String, axis: &Axis, top: f64, bottom: f64) {
    for tick in &axis.ticks {
        chart::grid(out, (place(axis, *tick), top), (place(axis, *tick), bottom));
        chart::foot(out, (place(axis, *tick), bottom), &axis.time_label(*tick));
    }
    chart::base(out, (LEFT, WIDTH - RIGHT), bottom);
}

fn segments(out: &mut String, axis: &Axis, all: Vec<(f64, f64, &'static str)>, top: f64) {
    for (from, to, color) in all {
        chart::bar(out, (place(axis, from), place(axis, to)), (top + 4.0, BAR - 8.0), color);
    }
}

/// One bar: its name and its parts.
type Bar = (&'static str, Vec<(Group, Nanos)>);

impl Diagnosis {
    /// The recorded starts by groups, the groups in the same order in each.
    fn bars(&self) -> Vec<Bar> {
        let order: Vec<Group> = self.groups().into_iter().map(|(group, _)| group).collect();
        let rows = || self.reasons.value().into_iter().flatten();
        let sum = |group: Group, time: &dyn Fn(&super::ReasonRow) -> Nanos| -> Nanos {
            rows().filter(|r| r.kind.group() == group).map(time).sum()
        };
        let bar =
            |time: &dyn Fn(&super::ReasonRow) -> Nanos| order.iter().map(|g| (*g, sum(*g, time))).collect();
        let mut out = vec![("cold", bar(&|r| r.cold))];
        if self.recorded_warm.value().is_some() {
            out.push(("warm", bar(&|r| r.warm.value().copied().unwrap_or_default())));
        }
        out
    }
}

fn stacked(out: &mut String, bars: &[Bar], top: f64) {
    let whole = |parts: &[(Group, Nanos)]| parts.iter().map(|(_, t)| t.0).sum::<u64>();
    let most = bars.iter().map(|(_, parts)| whole(parts)).max().unwrap_or(1).max(1);
    let axis = Axis::new(0.0, most as f64, 6);
    axis_below(out, &axis, top, top + BAR * bars.len() as f64);
    for (n, (name, parts)) in bars.iter().enumerate() {
        let y = top + BAR * n as f64;
        chart::text(out, (LEFT - 10.0, y + 19.0), Ink::Strong, "text-anchor=\"end\"", name);
        let mut at = 0.0;
        let pieces = parts.iter().map(|(group, time)| {
            let from = at;
            at += time.0 as f64;
            (from, at, color(*group))
        });
        segments(out, &axis, pieces.collect(), y);
        let end = place(&axis, at) + 8.0;
        chart::text(out, (end, y + 19.0), Ink::Muted, "", &Nanos(whole(parts)).to_string());
    }
}

fn helping(out: &mut String, drawn: &[&Remedy], top: f64) {
    let of = |r: &Remedy| {
        let predicted = r.predicted.value().map(|t| t.0 as f64);
        (predicted, r.measured.value().map(|m| m.saves.max(0) as f64))
    };
    let most = drawn.iter().flat_map(|r| [of(r).0, of(r).1]).flatten().fold(1.0, f64::max);
    let axis = Axis::new(0.0, most, 6);
    axis_below(out, &axis, top, top + BAR * drawn.len() as f64);
    for (n, remedy) in drawn.iter().enumerate() {
        let y = top + BAR * n as f64;
        let name = line(&remedy.id.replace('_', " "), 24);
        chart::text(out, (LEFT - 10.0, y + 19.0), Ink::Strong, "text-anchor=\"end\"", &name);
        let (predicted, measured) = of(remedy);
        // One alone lies in the middle, beside its name.
        let alone = predicted.is_none() || measured.is_none();
        for (value, shift, color) in [(predicted, 3.0, PREDICTED), (measured, 15.0, MEASURED)] {
            if let Some(value) = value {
                let shift = if alone { 9.0 } else { shift };
                chart::bar(out, (LEFT, place(&axis, value)), (y + shift, 10.0), color);
            }
        }
        let end = LEFT + (place(&axis, predicted.unwrap_or(0.0).max(measured.unwrap_or(0.0))) - LEFT) + 8.0;
        let words = remedy.saves().map_or(String::new(), |t| t.to_string());
        chart::text(out, (end, y + 19.0), Ink::Muted, "", &words);
    }
}
