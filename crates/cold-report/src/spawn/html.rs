//! The page: picture, verdicts, causes, figures.

use std::fmt::Write;

use cold_spawn::report::{PartTime, Report, Series};

use super::words::{
    baseline_words, cause_words, class_words, code_words, confirmation_words, counts_words,
    not_observed_words, part_words, series_words,
};
use crate::axis::time;
use crate::escape::markup;
use crate::page::{self, Cell, table};

/// The page: picture, verdicts, causes, figures.
pub fn html(report: &Report) -> String {
    let mut out = String::new();
    for s in &report.series {
        findings(&mut out, s);
    }
    out.push_str("<h2>Times</h2>\n");
    let head = ["", "starts/s", "median", "p90", "p99", "longest", "user", "system"];
    let rows = report.series.iter().map(|s| {
        let t = s.times.unwrap_or_default();
        let mut row = vec![Cell::text(series_words(s)), Cell::text(format!("{:.0}", s.per_second))];
        row.extend([t.p50, t.p90, t.p99, t.max, s.user_ns, s.system_ns].map(|ns| Cell::time(Some(ns))));
        row
    });
    table(&mut out, "", &head, 1, rows);
    out.push_str("<h2>What a start consists of</h2>\n");
    let rows = report.series.iter().flat_map(|s| {
        let what = |p: &PartTime| format!("{}: {}", series_words(s), part_words(p.part));
        s.parts.iter().map(move |p| vec![Cell::text(what(p)), Cell::time(Some(p.ns))])
    });
    table(&mut out, "", &["", "time"], 1, rows);
    let rows = report.series.iter().flat_map(|s| {
        s.baselines.iter().map(|b| {
            let what = format!("{}: {}", series_words(s), baseline_words(b.baseline));
            let times = [b.times.p50, b.times.p10, b.times.p90].map(|ns| Cell::time(Some(ns)));
            std::iter::once(Cell::text(what)).chain(times).collect()
        })
    });
    table(&mut out, "", &["measured beside it", "median", "p10", "p90"], 1, rows);
    page::report(&report.command.join(" "), "cold spawn", &super::svg(report), &out)
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
