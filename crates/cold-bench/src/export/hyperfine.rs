//! hyperfine's JSON: schema 1 (up to 1.21) and schema 2 (from 2.0).

use std::io;

use cold_model::bench::{Report, Run};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{ExportError, ExportRow, exit_code, memory, rows};
use crate::metric::Metric;

#[derive(Serialize)]
struct V1<'a> {
    results: Vec<V1Result<'a>>,
}

/// Field order and names as `hyperfine --export-json` writes them.
#[derive(Serialize)]
struct V1Result<'a> {
    command: &'a str,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_usage_byte: Option<Vec<u64>>,
    exit_codes: Vec<Option<i32>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    parameters: Map<String, Value>,
}

/// Writes schema 1. Times are seconds to ready.
pub fn json_v1(report: &Report, out: impl io::Write) -> Result<(), ExportError> {
    let rows = rows(report);
    let results = rows
        .iter()
        .map(|row| V1Result {
            command: &row.name,
            mean: row.time.mean,
            stddev: row.time.sd,
            median: row.time.median,
            user: row.user,
            system: row.system,
            min: row.time.min,
            max: row.time.max,
            times: row.runs.iter().map(|r| r.ready.as_secs()).collect(),
            memory_usage_byte: memory(&row.runs),
            exit_codes: row.runs.iter().map(|r| exit_code(r)).collect(),
            parameters: parameters(row, |v| json!(v)),
        })
        .collect();
    write(&V1 { results }, out)
}

/// Writes schema 2.
pub fn json_v2(report: &Report, out: impl io::Write) -> Result<(), ExportError> {
    let results: Vec<Value> = rows(report)
        .iter()
        .map(|row| {
            json!({
                "command": row.command.line,
                "name": row.name,
                "parameters": parameters(row, |v| json!({ "value": v })),
                "environment": {},
                "measurements": row.runs.iter().map(|r| measurement(r)).collect::<Vec<_>>(),
                "summary": summary(row),
            })
        })
        .collect();
    let document = json!({
        "schema_version": 2,
        "primary_metric": "time_wall_clock",
        "metadata": {
            // The version of the program that wrote it; there is no other field for it.
            "hyperfine_version": format!("coldstart {}", report.version),
            "start_time": report.started,
            "platform": { "os": "Linux", "architecture": std::env::consts::ARCH },
        },
        "results": results,
    });
    write(&document, out)
}

fn write(document: &impl Serialize, mut out: impl io::Write) -> Result<(), ExportError> {
    serde_json::to_writer_pretty(&mut out, document)?;
    out.write_all(b"\n")?;
    Ok(())
}

fn parameters(row: &ExportRow<'_>, value: impl Fn(&str) -> Value) -> Map<String, Value> {
    row.command.parameters.iter().map(|(name, v)| (name.clone(), value(v))).collect()
}

type Figure = fn(&Run) -> Option<f64>;

/// hyperfine's metrics that we measure: name, unit, value in that unit.
const METRICS: [(&str, &str, Figure); 5] = [
    ("time_wall_clock", "second", |r| Some(r.ready.as_secs())),
    ("time_cpu", "second", |r| Some((r.user + r.system).as_secs())),
    ("time_user", "second", |r| Some(r.user.as_secs())),
    ("time_system", "second", |r| Some(r.system.as_secs())),
    ("memory_peak_resident", "byte", |r| Metric::PeakMemory.of(r).value().copied()),
];

fn measurement(run: &Run) -> Map<String, Value> {
    let known = METRICS.iter().filter_map(|(name, unit, figure)| {
        Some(((*name).to_owned(), json!({ "value": figure(run)?, "unit": unit })))
    });
    known.chain([("exit_code".to_owned(), json!(exit_code(run)))]).collect()
}

/// Only metrics known in every run, so that all describe the same runs.
fn summary(row: &ExportRow<'_>) -> Map<String, Value> {
    let one = |(name, unit, figure): &(&str, &str, Figure)| {
        let values: Vec<f64> = row.runs.iter().map(|r| figure(r)).collect::<Option<_>>()?;
        let sorted = cold_stats::sorted(&values);
        let summary = json!({
            "unit": unit,
            "count": values.len(),
            "mean": cold_stats::mean(&values)?,
            "stddev": cold_stats::sd(&values),
            "median": cold_stats::quantile_sorted(&sorted, 0.5)?,
            "min": sorted.first()?,
            "max": sorted.last()?,
        });
        Some(((*name).to_owned(), summary))
    };
    METRICS.iter().filter_map(one).collect()
}
