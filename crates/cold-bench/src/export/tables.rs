//! hyperfine's CSV (of 1.x) and Markdown tables.

use std::io;

use cold_model::bench::Report;
use cold_model::csv;

use super::{ExportError, ExportRow, rows};

/// Writes `command,mean,stddev,median,user,system,min,max,parameter_*`; times in seconds.
pub fn csv(report: &Report, mut out: impl io::Write) -> Result<(), ExportError> {
    let rows = rows(report);
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flat_map(|r| &r.command.parameters) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let head = ["command", "mean", "stddev", "median", "user", "system", "min", "max"].map(str::to_owned);
    let head = head.into_iter().chain(names.iter().map(|n| format!("parameter_{n}")));
    line(&mut out, head)?;
    for row in &rows {
        let t = &row.time;
        // hyperfine leaves the standard deviation of a single run empty.
        let figures =
            [Some(t.mean), t.sd, Some(t.median), Some(row.user), Some(row.system), Some(t.min), Some(t.max)];
        let figures = figures.map(|f| f.map_or(String::new(), |f| f.to_string()));
        let value = |name: &&str| {
            let found = row.command.parameters.iter().find(|(n, _)| n == name);
            found.map_or(String::new(), |(_, v)| v.clone())
        };
        line(&mut out, std::iter::once(row.name.clone()).chain(figures).chain(names.iter().map(value)))?;
    }
    Ok(())
}

/// Writes a line of fields.
fn line(out: &mut impl io::Write, fields: impl Iterator<Item = String>) -> io::Result<()> {
    let cells: Vec<String> = fields.map(|f| csv::text(&f).into_owned()).collect();
    writeln!(out, "{}", cells.join(","))
}

/// Writes `| Command | Mean [ms] | Min [ms] | Max [ms] | Relative |`. The unit is that of the first
/// row, relative is the ratio of means to the fastest with both deviations propagated, as in hyperfine.
pub fn markdown(report: &Report, mut out: impl io::Write) -> Result<(), ExportError> {
    let rows = rows(report);
    let Some(first) = rows.first() else { return Ok(()) };
    let (unit, factor, decimals) = if first.time.mean < 1.0 { ("ms", 1e3, 1) } else { ("s", 1.0, 3) };
    writeln!(out, "| Command | Mean [{unit}] | Min [{unit}] | Max [{unit}] | Relative |")?;
    writeln!(out, "|:---|---:|---:|---:|---:|")?;
    let fastest =
        rows.iter().enumerate().min_by(|a, b| a.1.time.mean.total_cmp(&b.1.time.mean)).map_or(0, |(i, _)| i);
    for (i, row) in rows.iter().enumerate() {
        let show = |seconds: f64| format!("{:.decimals$}", seconds * factor);
        let deviation = row.time.sd.map_or(String::new(), |sd| format!(" ± {}", show(sd)));
        writeln!(
            out,
            "| {} | {}{deviation} | {} | {} | {} |",
            code(&row.name),
            show(row.time.mean),
            show(row.time.min),
            show(row.time.max),
            if i == fastest { "1.00".to_owned() } else { relative(row, &rows[fastest]) }
        )?;
    }
    Ok(())
}

fn relative(row: &ExportRow<'_>, fastest: &ExportRow<'_>) -> String {
    let ratio = row.time.mean / fastest.time.mean;
    match (row.time.sd, fastest.time.sd) {
        (Some(a), Some(b)) => {
            let spread = ((a / row.time.mean).powi(2) + (b / fastest.time.mean).powi(2)).sqrt();
            format!("{ratio:.2} ± {:.2}", ratio * spread)
        }
        _ => format!("{ratio:.2}"),
    }
}

/// A name as code in a cell: no line break or bar ends the cell, no backtick the code.
fn code(name: &str) -> String {
    let text = name.replace(['\n', '\r'], " ").replace('|', "\\|");
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}
