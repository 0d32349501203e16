//! Times as bars: what was waited for storage, and the rest, of each setting on each disk.

use cold_analyze::simulate::sweep::Row;

use super::Simulation;
use crate::axis::{Axis, time};
use crate::chart::{self, Ink, text};
use crate::escape::line;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 330.0;
const RIGHT: f64 = 150.0;
/// Height of a bar, with the space to the next.
const BAR: f64 = 22.0;
/// Heading of a disk, and its axis below.
const HEAD: f64 = 40.0;
const FOOT: f64 = 34.0;
/// Waiting, and everything else.
const WAITS: &str = chart::VERMILION;
const OWN: &str = chart::BLUE;

/// One group of bars for each disk, each with an axis of its own: disks differ by powers of ten.
pub(super) fn svg(s: &Simulation<'_>, facts: &str) -> String {
    let of = |rows: &[Row]| HEAD + FOOT + BAR * rows.len() as f64;
    let height = chart::HEADING + 24.0 + s.disks.iter().map(|d| of(&d.rows)).sum::<f64>();
    let mut out = chart::open(s.title, WIDTH, height, 13.0);
    chart::heading(&mut out, 24.0, s.title, facts);
    let mut x = LEFT;
    for (color, words) in [(WAITS, "waiting for storage"), (OWN, "computing and all other waits")] {
        chart::key(&mut out, (x, chart::HEADING + 6.0), color, words);
        x += 190.0;
    }
    let mut top = chart::HEADING + 24.0;
    for disk in &s.disks {
        text(&mut out, (24.0, top + 24.0), Ink::Strong, "font-weight=\"600\"", &line(&disk.name, 40));
        bars(&mut out, &disk.rows, top + HEAD);
        top += of(&disk.rows);
    }
    chart::close(out)
}

fn bars(out: &mut String, rows: &[Row], top: f64) {
    let most = rows.iter().map(|r| r.time.0).max().unwrap_or(1).max(1);
    let axis = Axis::new(0.0, most as f64, 6);
    let x = |ns: f64| LEFT + axis.place(ns).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT);
    let bottom = top + BAR * rows.len() as f64;
    for tick in &axis.ticks {
        chart::grid(out, (x(*tick), top), (x(*tick), bottom));
        chart::foot(out, (x(*tick), bottom), &axis.time_label(*tick));
    }
    for (n, row) in rows.iter().enumerate() {
        let y = top + BAR * n as f64;
        let name = if n == 0 { format!("{} (today)", row.choice) } else { row.choice.to_string() };
        text(out, (LEFT - 8.0, y + 15.0), Ink::Strong, "text-anchor=\"end\"", &line(&name, 46));
        let (waited, end) = (x(row.stall.0 as f64), x(row.time.0 as f64));
        for (from, to, color) in [(LEFT, waited, WAITS), (waited, end, OWN)] {
            chart::bar(out, (from, to), (y + 3.0, BAR - 6.0), color);
        }
        let words = format!("{} × {:.2}", time(row.time.0 as f64), row.ratio);
        text(out, (end + 8.0, y + 15.0), Ink::Muted, "", &words);
    }
    chart::base(out, (LEFT, WIDTH - RIGHT), bottom);
}
