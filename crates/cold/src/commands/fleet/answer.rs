//! An answer as a table: figures first, then what they are about.

use cold_fleet::query::{Column, Query, Unit};
use cold_model::{Bytes, Nanos};
use serde_json::Value;

use super::engine::Row;
use crate::table::{Table, width};
use crate::ui::{FAINT, STRONG, Ui, paint};
use crate::words::{count, day_of, plural};

/// Bytes of a page in datasets.
const PAGE: u64 = 4096;
/// Rows that are shown; all of them are in `--json`.
const MOST: usize = 40;

pub(super) fn show(question: &Query, rows: &[Row], ui: &Ui) {
    ui.line(paint(STRONG, format!("{}: {}", question.name, question.about)));
    if rows.is_empty() {
        ui.line("  nothing in the dataset answers this; times count of undisturbed cold starts only");
        return;
    }
    // What is the same in all rows stands above them once.
    let about: Vec<&Column> = question.columns.iter().filter(|c| is_about(c)).collect();
    let (same, differing): (Vec<&Column>, Vec<&Column>) = about
        .into_iter()
        .filter(|c| c.name != "build_id")
        .partition(|c| rows.len() > 1 && rows.iter().all(|r| r.get(c.name) == rows[0].get(c.name)));
    let figures: Vec<&Column> = question.columns.iter().filter(|c| !is_about(c)).collect();
    for c in same {
        let text = cell(c, rows[0].get(c.name));
        if !text.is_empty() {
            ui.line(paint(FAINT, format!("  {}: {text}", words(c.name))));
        }
    }
    let about: String = differing.iter().map(|c| words(c.name).to_uppercase()).collect::<Vec<_>>().join(", ");
    let titles: Vec<String> = figures.iter().map(|c| words(c.name).to_uppercase()).collect();
    let mut heads: Vec<&str> = titles.iter().map(String::as_str).collect();
    heads.push(&about);
    let mut table = Table::new(&heads);
    for row in rows.iter().take(MOST) {
        let mut cells: Vec<String> = figures.iter().map(|c| cell(c, row.get(c.name))).collect();
        let of = differing.iter().map(|c| cell(c, row.get(c.name))).filter(|t| !t.is_empty());
        cells.push(of.collect::<Vec<_>>().join("  "));
        table.row(cells, Vec::new());
    }
    for line in table.lines(width()) {
        ui.line(line);
    }
    if rows.len() > MOST {
        let more = plural((rows.len() - MOST) as u64, "row");
        ui.line(paint(FAINT, format!("  and {more} more: --json has all")));
    }
}

fn is_about(c: &Column) -> bool {
    matches!(c.unit, Unit::Text | Unit::Path)
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// A value for people; empty: there is none.
fn cell(c: &Column, value: Option<&Value>) -> String {
    let Some(value) = value.filter(|v| !v.is_null()) else { return String::new() };
    let number = value.as_f64();
    let whole = || number.map(|n| n.max(0.0) as u64);
    let shown = match c.unit {
        Unit::Text | Unit::Path => value.as_str().map(str::to_owned),
        Unit::Flag => value.as_bool().map(|b| if b { "yes" } else { "" }.to_owned()),
        Unit::Count => whole().map(count),
        Unit::Bytes => whole().map(|n| Bytes(n).to_string()),
        Unit::Pages => whole().map(|n| Bytes(n.saturating_mul(PAGE)).to_string()),
        Unit::Time => whole().map(|n| Nanos(n).to_string()),
        Unit::Date => whole().map(day_of),
        Unit::Share => number.map(|n| cold_model::figures::percent(n * 100.0)),
        Unit::Ratio => number.map(|n| format!("{n:.3}")),
    };
    // What is not of the documented type is shown as it came.
    shown.unwrap_or_else(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_by_their_units_and_unknown_ones_as_nothing() {
        let column = |unit| Column { name: "x", unit };
        for (unit, value, text) in [
            (Unit::Text, serde_json::json!("a"), "a"),
            (Unit::Count, serde_json::json!(1234), "1,234"),
            (Unit::Pages, serde_json::json!(256), "1.00 MiB"),
            (Unit::Time, serde_json::json!(1_500_000.0), "1.50 ms"),
            (Unit::Date, serde_json::json!(1_795_482_582_000_000_000_u64), "2026-11-24"),
            (Unit::Ratio, serde_json::json!(0.5), "0.500"),
            (Unit::Flag, serde_json::json!(true), "yes"),
            (Unit::Ratio, Value::Null, ""),
            (Unit::Count, serde_json::json!("?"), "\"?\""),
        ] {
            assert_eq!(cell(&column(unit), Some(&value)), text);
        }
    }
}
