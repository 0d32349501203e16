use std::collections::BTreeMap;

use cold_model::bench::{State, Taint};
use cold_model::{Known, Nanos};
use serde_json::Value;

use super::*;
use crate::{gate::Gate, sample, summary};

const REAL_JSON: &str = include_str!("../../tests/fixtures/hyperfine-1.15.json");
const REAL_PLAIN: &str = include_str!("../../tests/fixtures/hyperfine-1.15-plain.json");
const REAL_CSV: &str = include_str!("../../tests/fixtures/hyperfine-1.15.csv");
const REAL_MARKDOWN: &str = include_str!("../../tests/fixtures/hyperfine-1.15.md");

/// A report of warm runs with the times that a real hyperfine measured.
fn from_hyperfine(text: &str) -> Report {
    let real: Value = serde_json::from_str(text).unwrap();
    let mut report = sample::report(&[]);
    for (i, result) in real["results"].as_array().unwrap().iter().enumerate() {
        let mut command = sample::command(result["command"].as_str().unwrap());
        if let Some(parameters) = result["parameters"].as_object() {
            command.parameters =
                parameters.iter().map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned())).collect();
        }
        report.commands.push(command);
        report.series.push(cold_model::bench::Series { command: i, state: State::Warm });
        for (round, time) in result["times"].as_array().unwrap().iter().enumerate() {
            let mut run = sample::run(i, round as u32, report.runs.len() as u32, 0.0, false);
            run.ready = Nanos::from_secs(time.as_f64().unwrap());
            run.user = Nanos::from_secs(result["user"].as_f64().unwrap());
            run.system = Nanos::from_secs(result["system"].as_f64().unwrap());
            run.peak_memory = Known::unknown("hyperfine 1.15 does not export it");
            report.runs.push(run);
        }
    }
    report
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> Result<(), ExportError>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Equal types and keys in the same order; numbers nearly equal, since ours are whole nanoseconds.
fn assert_alike(ours: &Value, real: &Value, at: &str) {
    match (ours, real) {
        (Value::Object(a), Value::Object(b)) => {
            assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "{at}");
            a.iter().for_each(|(k, v)| assert_alike(v, &b[k], &format!("{at}.{k}")));
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{at}");
            a.iter().zip(b).for_each(|(x, y)| assert_alike(x, y, at));
        }
        (Value::Number(a), Value::Number(b)) => {
            assert_eq!(a.is_f64(), b.is_f64(), "{at}");
            assert!((a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 2e-9, "{at}: {a} {b}");
        }
        (Value::String(a), Value::String(b)) => assert_eq!(a.trim_end_matches(" (warm)"), b, "{at}"),
        _ => assert_eq!(ours, real, "{at}"),
    }
}

#[test]
fn json_v1_is_what_a_real_hyperfine_writes() {
    for real in [REAL_JSON, REAL_PLAIN] {
        let ours = text(|out| json_v1(&from_hyperfine(real), out));
        assert_alike(&serde_json::from_str(&ours).unwrap(), &serde_json::from_str(real).unwrap(), "");
    }
}

#[test]
fn csv_is_what_a_real_hyperfine_writes() {
    let ours = text(|out| csv(&from_hyperfine(REAL_JSON), out));
    assert_eq!(ours.lines().count(), REAL_CSV.lines().count());
    for (a, b) in ours.lines().zip(REAL_CSV.lines()) {
        // Both quote the same names, so the lines split at the same commas.
        for (x, y) in a.split(',').zip(b.split(',')) {
            match (x.parse::<f64>(), y.parse::<f64>()) {
                (Ok(x), Ok(y)) => assert!((x - y).abs() < 2e-9, "{a}\n{b}"),
                _ => assert_eq!(x.replace(" (warm)", ""), y),
            }
        }
    }
}

#[test]
fn markdown_is_what_a_real_hyperfine_writes() {
    let ours = text(|out| markdown(&from_hyperfine(REAL_JSON), out));
    assert_eq!(ours.replace(" (warm)", ""), REAL_MARKDOWN);
}

#[test]
fn only_counted_runs_are_exported_and_their_memory_when_all_have_it() {
    let mut r = sample::report(&[
        ("a", State::Cold, vec![100.0, 900.0, 102.0]),
        ("a", State::Warm, vec![50.0, 51.0, 52.0]),
    ]);
    r.runs.iter_mut().find(|r| r.ready.0 == 900_000_000).unwrap().taints =
        vec![Taint::CachesDropped { times: 1 }];
    let v1: Value = serde_json::from_str(&text(|out| json_v1(&r, out))).unwrap();
    assert_eq!(v1["results"][0]["command"], "a (cold)");
    assert_eq!(v1["results"][0]["times"], serde_json::json!([0.1, 0.102]));
    assert_eq!(v1["results"][0]["memory_usage_byte"], serde_json::json!([11_534_336, 11_534_336]));
    let out = text(|out| csv(&r, out));
    assert_eq!(
        out.lines().nth(1).unwrap(),
        "a (cold),0.101,0.0014142135623730866,0.101,0.03,0.008,0.1,0.102"
    );
    for run in r.runs.iter_mut().filter(|r| r.series == 1) {
        run.taints = vec![Taint::CachesDropped { times: 1 }];
    }
    let v1: Value = serde_json::from_str(&text(|out| json_v1(&r, out))).unwrap();
    assert_eq!(v1["results"].as_array().unwrap().len(), 1);
}

#[test]
fn json_v2_has_measurements_and_a_summary_of_metrics_known_in_every_run() {
    let mut r = sample::report(&[("a", State::Cold, vec![100.0, 102.0])]);
    r.commands[0].parameters = vec![("size".into(), "3".into())];
    r.runs[1].peak_memory = Known::unknown("ended too fast");
    r.runs[1].ending = Ending::Ended;
    let v2: Value = serde_json::from_str(&text(|out| json_v2(&r, out))).unwrap();
    assert_eq!(v2["schema_version"], 2);
    assert_eq!(v2["primary_metric"], "time_wall_clock");
    let result = &v2["results"][0];
    assert_eq!(result["parameters"], serde_json::json!({"size": {"value": "3"}}));
    let first = &result["measurements"][0];
    assert_eq!(first["time_wall_clock"], serde_json::json!({"value": 0.1, "unit": "second"}));
    assert_eq!(first["memory_peak_resident"], serde_json::json!({"value": 11_534_336.0, "unit": "byte"}));
    assert_eq!(first["exit_code"], 0);
    assert_eq!(result["measurements"][1]["exit_code"], Value::Null);
    assert!(result["measurements"][1].get("memory_peak_resident").is_none());
    let summary = result["summary"].as_object().unwrap();
    assert_eq!(
        summary.keys().collect::<Vec<_>>(),
        ["time_wall_clock", "time_cpu", "time_user", "time_system"]
    );
    assert_eq!(summary["time_wall_clock"]["count"], 2);
    assert_eq!(summary["time_wall_clock"]["median"], 0.101);
}

#[test]
fn the_native_document_holds_the_report_and_all_that_was_computed() {
    let r = sample::report(&[
        ("a", State::Cold, sample::noise(400.0, 0.03, 12, 1)),
        ("a", State::Warm, sample::noise(100.0, 0.03, 12, 2)),
    ]);
    let gates = Gate::parse("cold/warm > 3").unwrap().evaluate(&r, None);
    let document = text(|out| json(&r, &summary::analyze(&r, 0.02), &gates, out));
    assert_eq!(crate::baseline::parse(&document).unwrap(), r, "it is a baseline");
    let v: Value = serde_json::from_str(&document).unwrap();
    let keys: BTreeMap<_, _> = v.as_object().unwrap().iter().collect();
    for key in ["schema", "runs", "summary", "comparisons", "findings", "gates"] {
        assert!(keys.contains_key(&key.to_owned()), "{key}");
    }
    assert_eq!(v["summary"][0]["counted"], 12);
    assert_eq!(v["summary"][0]["metrics"]["ready"]["interval"]["level"], 0.95);
    assert_eq!(v["summary"][0]["metrics"]["stall"]["unknown"], "delay accounting is off");
    assert_eq!(v["comparisons"][0]["verdict"], "slower");
    assert_eq!(v["comparisons"][0]["comparison"]["design"], "paired");
    assert_eq!(v["gates"][0]["outcome"], "fail");
}

#[test]
fn names_cannot_break_a_markdown_table() {
    let r = sample::report(&[("a `b` | c\nd", State::Warm, vec![1500.0, 1502.0])]);
    assert_eq!(
        text(|out| markdown(&r, out)).lines().nth(2).unwrap(),
        "| `` a `b` \\| c d (warm) `` | 1.501 ± 0.001 | 1.500 | 1.502 | 1.00 |"
    );
}
