//! DuckDB, which shares no code with our writer, reads the tables, and answers every question of the guide.

use std::collections::HashSet;
use std::process::Command;

use cold_model::recording::StallCause;
use serde_json::Value;

use super::*;

/// Runs each statement of its input (a JSON list), prints column names, types and rows of each.
const SCRIPT: &str = "\
import duckdb, json, sys
out = []
for q in json.load(sys.stdin):
    r = duckdb.sql(q)
    out.append([[str(c) for c in r.columns], [str(t) for t in r.types], r.fetchall()])
print(json.dumps(out, default=str))
";

/// A Python that has DuckDB: `COLD_DUCKDB_PYTHON`, or python3.
fn python() -> Option<std::ffi::OsString> {
    let named = std::env::var_os("COLD_DUCKDB_PYTHON").unwrap_or_else(|| "python3".into());
    let has = Command::new(&named).args(["-c", "import duckdb"]).output().is_ok_and(|o| o.status.success());
    if !has {
        let why = format!("needs `import duckdb` in {} (pip install duckdb)", named.display());
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
        eprintln!("SKIPPED ({why})");
    }
    has.then_some(named)
}

fn ask(python: &std::ffi::OsStr, questions: &[String]) -> Vec<Value> {
    let input = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(input.path(), serde_json::to_vec(questions).unwrap()).unwrap();
    let out = Command::new(python)
        .args(["-c", SCRIPT])
        .stdin(std::fs::File::open(input.path()).unwrap())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn duckdb_sees_the_documented_columns_types_and_rows() {
    let Some(python) = python() else { return };
    let sample = sample::small();
    let dir = finished(&sample);
    let tables = schema::documented();
    let file = |name: &str| format!("'{}/{name}.parquet'", dir.path().display());
    let questions: Vec<String> = tables.iter().map(|t| format!("SELECT * FROM {}", file(t.name))).collect();
    let answers = ask(&python, &questions);
    for (table, answer) in tables.iter().zip(&answers) {
        let names: Vec<&str> = table.columns.iter().map(|c| c.name).collect();
        let types: Vec<&str> = table.columns.iter().map(|c| c.kind.name()).collect();
        assert_eq!((&answer[0], &answer[1]), (&names.into(), &types.into()), "{}", table.name);
        let counted = sample.counts().into_iter().find(|(name, _)| *name == table.name);
        if let Some((_, n)) = counted {
            assert_eq!(answer[2].as_array().unwrap().len(), n, "{}", table.name);
        }
    }
    // Values, in a column of each kind.
    let rows = |name: &str| &answers[tables.iter().position(|t| t.name == name).unwrap()][2];
    for (row, touch) in rows("touches").as_array().unwrap().iter().zip(sample.touches.iter().flatten()) {
        let expected = serde_json::json!([
            touch.at.0,
            touch.pid,
            touch.tid,
            touch.file,
            touch.first_page,
            touch.pages,
            touch.kind,
            touch.major,
            touch.ip,
            touch.stack,
            touch.call,
            touch.end
        ]);
        assert_eq!(row, &expected);
    }
    for (row, process) in rows("processes").as_array().unwrap().iter().zip(&sample.processes) {
        assert_eq!(row[6], serde_json::json!(process.arguments));
        assert_eq!(row[7], process.in_tree);
    }
}

/// The statements of the guide, by the question above each.
fn guide(dir: &Path) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/sql.md");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.map(|b| b.replace("'start.cold/", &format!("'{}/", dir.display()))).collect()
}

#[test]
fn every_question_of_the_guide_is_answered() {
    let Some(python) = python() else { return };
    let sample = sample::firefox_like(20_000, 5);
    let dir = finished(&sample);
    let questions = guide(dir.path());
    assert!(questions.len() >= 10);
    let answers = ask(&python, &questions);
    for (question, answer) in questions.iter().zip(&answers) {
        assert!(!answer[2].as_array().unwrap().is_empty(), "{question}");
    }
    let about = |words: &str| {
        let n = questions.iter().position(|q| q.contains(words)).unwrap();
        answers[n][2].as_array().unwrap()
    };
    // Three of them computed here as well.
    let waited: u64 = sample
        .stalls
        .iter()
        .flatten()
        .filter(|s| s.cause == StallCause::Fault)
        .map(|s| s.woken.unwrap().0 - s.began.0)
        .sum();
    let row = about("GROUP BY cause ORDER BY ms").iter().find(|r| r[0] == "fault").unwrap();
    assert!((row[2].as_f64().unwrap() - waited as f64 / 1e6).abs() < 1e-3, "{row}");

    let pages = |file, first: u64, n: u32| (first..first + u64::from(n)).map(move |p| (file, p));
    let fills = sample.fills.iter().flatten().filter(|f| f.in_tree);
    let read: HashSet<_> = fills.flat_map(|f| pages(f.file, f.first_page, f.pages)).collect();
    let touches = sample.touches.iter().flatten();
    let needed: HashSet<_> = touches.flat_map(|t| pages(t.file, t.first_page, t.pages)).collect();
    let row = &about("AS pages_needed")[0];
    let file = sample.files.iter().position(|f| f.path.as_deref() == row[0].as_str()).unwrap() as u32;
    let of_file = read.iter().filter(|(f, _)| *f == file);
    assert_eq!(row[1], of_file.clone().count());
    assert_eq!(row[2], of_file.filter(|p| needed.contains(p)).count());

    let m = &sample.manifest;
    let ready = m.ready.as_ref().unwrap().value().unwrap().0 - m.start.0;
    assert!((about("recording.json")[0][0].as_f64().unwrap() - ready as f64 / 1e6).abs() < 1e-3);
}
