//! A start under other settings: times as bars, times and reads over the read-ahead window as curves, a table, and
//! some of them as file-offset pictures below each other.

mod bars;

use std::fmt::Write;

use cold_analyze::simulate::Observed;
use cold_analyze::simulate::Windows;
use cold_analyze::simulate::sweep::{Row, kind_words};
use cold_model::Bytes;
use cold_model::figures::count;
use cold_sim::engine::Kind;

use crate::escape::markup;
use crate::page::{self, Cell, table};
use crate::probe::{self, Panel, ProbeLine, Scale};
use crate::recording::{View, svg};

/// The settings of one disk.
#[derive(Debug, Clone)]
pub struct OnDisk {
    /// Its name on the command line.
    pub name: String,
    /// Where its figures come from.
    pub source: String,
    /// Today's setting first.
    pub rows: Vec<Row>,
}

/// All that is known of the simulated start.
#[derive(Debug, Clone)]
pub struct Simulation<'a> {
    /// The recording's name.
    pub title: &'a str,
    /// What was recorded.
    pub observed: Observed,
    /// The usual window, where all files have the same one.
    pub window: Option<Bytes>,
    /// The results, one entry for each disk.
    pub disks: Vec<OnDisk>,
    /// Sentences: advice, and what to know of the figures.
    pub findings: Vec<String>,
}

/// The curves: what each window of the recorded policy comes to, a line for each disk.
fn curves(s: &Simulation<'_>) -> Vec<Panel> {
    let own = |rows: &[Row]| -> Vec<(f64, Row)> {
        let today = rows.first().map(|r| r.choice);
        let of_today =
            |r: &&Row| today.is_some_and(|t| t.policy == r.choice.policy && t.reader == r.choice.reader);
        let window = |r: &Row| window_of(r, s.window).map(|w| (w.0 as f64 / 1024.0, *r));
        let mut points: Vec<_> = rows.iter().filter(of_today).filter_map(window).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let panel = |y: &str, scale: Scale, value: &dyn Fn(&Row) -> f64| {
        let series = s.disks.iter().map(|d| ProbeLine {
            name: d.name.clone(),
            points: own(&d.rows).iter().map(|(kib, row)| (*kib, value(row))).collect(),
        });
        let series: Vec<ProbeLine> = series.filter(|line| line.points.len() > 1).collect();
        Panel {
            title: y.to_owned(),
            x: "read-ahead window, KiB".to_owned(),
            y: y.to_owned(),
            scales: (Scale::Doubling, scale),
            series,
        }
    };
    let all = [
        panel("time to ready, ms", Scale::Linear, &|r| r.time.0 as f64 / 1e6),
        panel("requests", Scale::Log, &|r| r.requests as f64),
        panel("read, MB", Scale::Linear, &|r| r.read.0 as f64 / 1e6),
    ];
    all.into_iter().filter(|p| !p.series.is_empty()).collect()
}

/// The file-offset pictures of some settings below each other, with the same files and the same time axis.
pub fn offsets(views: &[View<'_>]) -> String {
    svg::pictures(views)
}

/// The page: bars, table, curves, pictures.
pub fn html(s: &Simulation<'_>, views: &[View<'_>]) -> String {
    let mut below = String::new();
    below.push_str("<h2>What this says</h2>\n<ul class=\"findings\">");
    for finding in &s.findings {
        let _ = write!(below, "<li>{}</li>", markup(finding));
    }
    below.push_str("</ul>\n<h2>Settings</h2>\n");
    let head = ["disk", "setting", "requests", "read", "unused", "stall", "time", "ratio"];
    let rows = s.disks.iter().flat_map(|d| {
        d.rows.iter().map(|r| {
            let bytes = |b: Bytes| Cell::number(b.0 as f64, b.to_string());
            let shown = r.shown();
            vec![
                Cell { hover: d.source.clone(), ..Cell::text(&d.name) },
                Cell { hover: spent(r), ..Cell::text(r.choice.to_string()) },
                Cell::number(shown.requests as f64, count(shown.requests)),
                bytes(shown.read),
                bytes(shown.unused),
                Cell::time(Some(shown.waited.0 as f64)),
                Cell::time(Some(r.time.0 as f64)),
                Cell::number(r.ratio, format!("{:.2}", r.ratio)),
            ]
        })
    });
    table(&mut below, "sortable", &head, 2, rows);
    let curves = curves(s);
    if !curves.is_empty() {
        let heading = "Read-ahead windows";
        let picture = probe::svg(heading, "the recorded kernel with other windows", &curves);
        let _ = write!(below, "<h2>{heading}</h2>\n<figure>{picture}</figure>\n");
    }
    if !views.is_empty() {
        let _ = write!(below, "<h2>Which pages when</h2>\n<figure>{}</figure>\n", offsets(views));
    }
    let facts = format!("recorded: {}", s.observed);
    page::report(s.title, "cold simulate", &bars::svg(s, &facts), &below)
}

/// The window of a row, where it has one.
fn window_of(row: &Row, usual: Option<Bytes>) -> Option<Bytes> {
    match row.choice.windows {
        Windows::Of(bytes) => Some(bytes),
        Windows::Usual => usual,
        Windows::Recorded => None,
    }
}

/// What the time went to.
fn spent(row: &Row) -> String {
    let parts = Kind::ALL.into_iter().filter(|kind| row.path.of(*kind) > 0);
    let words =
        parts.map(|kind| format!("{} {}", kind_words(kind), crate::axis::time(row.path.of(kind) as f64)));
    words.collect::<Vec<_>>().join(", ")
}
