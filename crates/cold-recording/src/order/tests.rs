use cold_model::Nanos;
use cold_model::bench::Ending;
use cold_model::order::Written;

use super::*;

fn file(path: &str, functions: &[(u64, &[&str])]) -> TracedFile {
    let function = |(address, names): &(u64, &[&str])| Function {
        address: *address,
        bytes: 16,
        names: names.iter().map(|n| (*n).to_owned()).collect(),
        sources: vec!["symtab".into(), "eh_frame".into()],
    };
    TracedFile {
        path: path.into(),
        build_id: Some("abcd".into()),
        linked: cold_model::order::Linked::Pie,
        is_go: false,
        texts: vec![Text { offset: 0x1000, bytes: 0x1000, address: 0x1000 }],
        functions: functions.iter().map(function).collect(),
    }
}

fn sample() -> Trace {
    let facts = StartFacts {
        ending: Ending::Code(0),
        processes: 1,
        threads: 0,
        duration_ns: 5,
        planted: 3,
        reading_ns: 4,
        planting_ns: 2,
        stops: 2,
        handling_ns: 1,
        crashes: vec![],
        notes: vec!["a\nremark".into()],
        written: Some(vec![Written { file: 0, pages: vec![(3, 1), (9, 4)] }]),
    };
    let entry = |at, file, function| FirstEntry { at: Nanos(at), pid: 7, tid: 8, file, function };
    let start = |files, entries| cold_model::order::TracedStart { files, entries, facts: facts.clone() };
    let (a, b) = (
        file("/bin/a", &[(0x1000, &["main", "also"]), (0x1010, &[])]),
        file("/lib/b\u{fffd}", &[(1, &["f"])]),
    );
    let mut trace =
        Trace { scenario: "s".into(), command: vec!["a".into()], kernel: "6.1".into(), ..Trace::default() };
    trace.add(start(vec![a.clone(), b.clone()], vec![entry(1, 0, 1), entry(2, 1, 0)]));
    // The files come in another order in the second start.
    trace.add(start(vec![b, a], vec![entry(1, 0, 0), entry(4, 1, 0)]));
    trace
}

#[test]
fn what_is_written_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("x.order");
    let trace = sample();
    assert_eq!((trace.files.len(), trace.repeats[1].entries[1].file), (2, 0));
    let written = |repeat: usize| trace.repeats[repeat].facts.written.as_ref().unwrap()[0].file;
    assert_eq!((written(0), written(1)), (0, 1), "the files of the second start have other numbers");
    write(&place, &trace, false).unwrap();
    assert_eq!(read(&place).unwrap(), trace);
    let mode =
        |p: &Path| std::os::unix::fs::PermissionsExt::mode(&p.metadata().unwrap().permissions()) & 0o777;
    assert_eq!(
        (mode(&place), mode(&place.join(NAME)), mode(&place.join("entries.parquet"))),
        (0o700, 0o600, 0o600)
    );
    assert!(matches!(write(&place, &trace, false), Err(Error::Exists { .. })));
    let other = Trace { scenario: "other".into(), ..trace };
    write(&place, &other, true).unwrap();
    assert_eq!(read(&place).unwrap(), other);
}

#[test]
fn functions_of_files_that_nobody_entered_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut trace = sample();
    trace.files.push(file("/lib/unused", &[(1, &["g"])]));
    write(&dir.path().join("o"), &trace, false).unwrap();
    let read = read(&dir.path().join("o")).unwrap();
    assert_eq!((read.files[2].path.as_path(), read.files[2].functions.len()), (Path::new("/lib/unused"), 0));
}

#[test]
fn what_is_unfinished_damaged_or_something_else_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("o");
    assert!(matches!(read(&place), Err(Error::NotARecording { .. })));
    write(&place, &sample(), false).unwrap();
    let manifest = std::fs::read_to_string(place.join(NAME)).unwrap();
    let with = |from: &str, to: &str| {
        std::fs::write(place.join(NAME), manifest.replace(from, to)).unwrap();
        read(&place).unwrap_err()
    };
    assert!(matches!(with("\"version\": 1", "\"version\": 2"), Error::Future { found: 2, known: 1, .. }));
    assert!(matches!(with(FORMAT, "another"), Error::NotARecording { .. }));
    assert!(matches!(with("\"crc32\"", "\"x\""), Error::Damaged { .. }));
    // A table whose functions belong to a file that is not listed.
    let listed: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let mut fewer = listed.clone();
    fewer["files"].as_array_mut().unwrap().pop();
    std::fs::write(place.join(NAME), fewer.to_string()).unwrap();
    assert!(read(&place).unwrap_err().to_string().contains("a function of no file"));
    let mut none = listed;
    none["repeats"].as_array_mut().unwrap().clear();
    std::fs::write(place.join(NAME), none.to_string()).unwrap();
    assert!(read(&place).unwrap_err().to_string().contains("an entry of no start"));
    std::fs::remove_file(place.join(NAME)).unwrap();
    assert!(matches!(read(&place), Err(Error::Unfinished { .. })));
    std::fs::write(place.join("mine.txt"), "").unwrap();
    assert!(matches!(write(&place, &sample(), true), Err(Error::NotReplaced { .. })));
}
