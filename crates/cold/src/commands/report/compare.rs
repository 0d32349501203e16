//! Two recordings: what differs, figure by figure and file by file.

use cold_analyze::model::compare::{Comparison, FigurePair, FilePair, Unit};
use cold_model::Known;

use super::text::headline::cause;
use super::text::{View, section};
use crate::table::Table;
use crate::ui::{BAD, FAINT, STRONG, WARN, paint};
use crate::words::{plural, wrap};

/// Everything, line by line. `names` are those of the two recordings.
pub(super) fn lines(c: &Comparison, names: [&str; 2], view: View) -> Vec<String> {
    let mut out = vec![paint(STRONG, format!("A: {}   B: {}", names[0], names[1]))];
    if !c.comparable {
        out.push(paint(BAD, "Some figures must not be compared, because of what differs:"));
    }
    for d in &c.conditions {
        let text = match &d.forbids {
            Some(what) => format!("{}: {} against {}; not comparable: {what}", d.id, d.a, d.b),
            None => format!("{}: {} against {}", d.id, d.a, d.b),
        };
        let style = if d.forbids.is_some() { BAD } else { WARN };
        out.extend(
            wrap(&text, view.columns.saturating_sub(2)).iter().map(|l| format!("  {}", paint(style, l))),
        );
    }
    section(&mut out, "Figures", figures(&c.headline, view));
    section(&mut out, "Read because of", causes(c, view));
    section(&mut out, "Files, the largest difference first", files(c, view));
    out
}

/// With its sign; a difference of nothing is no figure.
fn signed(unit: Unit, n: i64) -> String {
    match n {
        0 => "–".to_owned(),
        n if n < 0 => format!("-{}", unit.show(n.unsigned_abs())),
        n => format!("+{}", unit.show(n.unsigned_abs())),
    }
}

fn figures(pairs: &[FigurePair], view: View) -> Vec<String> {
    let mut table = Table::new(&["A", "B", "B - A", "B / A", "FIGURE"]);
    for p in pairs {
        let side = |k: &Known<u64>| k.value().map_or_else(|| "unknown".to_owned(), |n| p.unit.show(*n));
        let row = vec![
            side(&p.a),
            side(&p.b),
            p.difference.map_or_else(|| "unknown".to_owned(), |d| signed(p.unit, d)),
            p.ratio.map_or_else(|| "–".to_owned(), |r| format!("{:.2}", r.value())),
            p.what.clone(),
        ];
        table.row(row, Vec::new());
    }
    if pairs.is_empty() { Vec::new() } else { table.lines(view.table) }
}

fn causes(c: &Comparison, view: View) -> Vec<String> {
    let mut table = Table::new(&["A", "B", "B - A", "CAUSE"]);
    for p in &c.causes {
        let row = vec![
            p.a.to_string(),
            p.b.to_string(),
            signed(Unit::Bytes, p.difference),
            cause(p.cause).to_owned(),
        ];
        table.row(row, Vec::new());
    }
    if c.causes.is_empty() { Vec::new() } else { table.lines(view.table) }
}

fn side(p: &FilePair) -> &'static str {
    match (&p.a, &p.b) {
        (Some(_), Some(_)) if p.changed => "changed",
        (Some(_), Some(_)) => "both",
        (Some(_), None) => "only A",
        (None, _) => "only B",
    }
}

fn files(c: &Comparison, view: View) -> Vec<String> {
    let mut table = Table::new(&["WAITED", "NEEDED", "READ", "UNUSED", "REQS", "IN", "FILE"]);
    for p in c.files.iter().take(view.limit) {
        let d = &p.difference;
        let row = vec![
            signed(Unit::Nanos, d.stall),
            signed(Unit::Bytes, d.needed),
            signed(Unit::Bytes, d.read),
            signed(Unit::Bytes, d.unused),
            signed(Unit::Count, d.requests),
            side(p).to_owned(),
            p.path.clone(),
        ];
        table.row(row, Vec::new());
    }
    if c.files.is_empty() {
        return Vec::new();
    }
    let mut lines = table.lines(view.table);
    if c.files.len() > view.limit {
        lines.push(paint(FAINT, format!("… and {} more (--limit)", c.files.len() - view.limit)));
    }
    lines.push(format!("{} only in A, {} only in B", plural(c.only_a, "file"), plural(c.only_b, "file")));
    lines
}
