use cold_model::layout::{FileLayout, FrameName, Segment, Symbol};
use cold_model::recording::{Frame, Stack, StallCause};
use cold_recording::sample;
use serde_json::Value;

use super::*;

fn profile(recording: &Recording, layouts: &Layouts) -> Value {
    let analysis = cold_analyze::analyze(recording, layouts);
    let mut bytes = Vec::new();
    write(recording, &analysis, layouts, &mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// A column of a table.
fn column<'v>(table: &'v Value, name: &str) -> &'v Vec<Value> {
    table[name].as_array().unwrap_or_else(|| panic!("no column {name}"))
}

/// Every value of the column is null or an index into a table of `length`.
fn indexes(table: &Value, name: &str, length: usize) {
    for value in column(table, name) {
        // -1: a function without a resource.
        let index = value.as_i64().unwrap_or(-1);
        assert!(
            value.is_null() || index == -1 || usize::try_from(index).is_ok_and(|i| i < length),
            "{name}: {value}"
        );
    }
}

fn length(table: &Value) -> usize {
    let length = table["length"].as_u64().unwrap() as usize;
    for (name, column) in table.as_object().unwrap() {
        assert!(column.as_array().is_none_or(|c| c.len() == length), "{name} has not {length} rows");
    }
    length
}

/// The rules of the viewer's own types (src/types/profile.ts, src/types/markers.ts at version 55): tables
/// have equal columns, indexes lie in their tables, a stack's prefix comes before it, times go forward.
fn check(profile: &Value) {
    let meta = &profile["meta"];
    assert_eq!(meta["preprocessedProfileVersion"], 55);
    for (key, kind) in
        [("interval", "number"), ("startTime", "number"), ("product", "string"), ("processType", "number")]
    {
        let ok = if kind == "number" { meta[key].is_number() } else { meta[key].is_string() };
        assert!(ok, "{key}: {}", meta[key]);
    }
    let categories = column(meta, "categories");
    for category in categories {
        assert!(category["name"].is_string() && category["color"].is_string());
        assert_eq!(category["subcategories"][0], "Other");
    }
    let libs = column(profile, "libs");
    for lib in libs {
        for key in ["name", "path", "debugName", "debugPath", "breakpadId"] {
            assert!(lib[key].is_string(), "{key}: {lib}");
        }
        assert_eq!(lib["breakpadId"].as_str().unwrap().len(), 33);
    }
    let threads = column(profile, "threads");
    for shown in meta["initialVisibleThreads"].as_array().into_iter().flatten() {
        assert!(shown.as_u64().unwrap() < threads.len() as u64);
    }
    for t in threads {
        thread(t, categories.len(), libs.len());
    }
    for counter in column(profile, "counters") {
        let samples = &counter["samples"];
        length(samples);
        assert!(
            counter["pid"].is_string() && counter["mainThreadIndex"].as_u64().unwrap() < threads.len() as u64
        );
    }
}

fn thread(t: &Value, categories: usize, libs: usize) {
    for key in ["name", "pid", "processType"] {
        assert!(t[key].is_string(), "{key}: {}", t[key]);
    }
    assert!(t["isMainThread"].is_boolean() && t["registerTime"].is_number());
    let strings = column(t, "stringArray");
    assert!(strings.iter().all(Value::is_string));
    let (frames, funcs, resources) = (&t["frameTable"], &t["funcTable"], &t["resourceTable"]);
    let (stacks, samples, markers, symbols) =
        (&t["stackTable"], &t["samples"], &t["markers"], &t["nativeSymbols"]);
    indexes(frames, "func", length(funcs));
    indexes(frames, "category", categories);
    indexes(frames, "nativeSymbol", length(symbols));
    length(frames);
    indexes(funcs, "name", strings.len());
    indexes(funcs, "resource", length(resources));
    indexes(resources, "lib", libs);
    indexes(symbols, "libIndex", libs);
    indexes(symbols, "name", strings.len());
    indexes(stacks, "frame", length(frames));
    for (n, prefix) in column(stacks, "prefix").iter().enumerate() {
        assert!(prefix.is_null() || prefix.as_u64().unwrap() < n as u64, "stack {n} before its prefix");
    }
    length(samples);
    indexes(samples, "stack", length(stacks));
    assert!(column(samples, "timeDeltas").iter().all(|d| d.as_f64().unwrap() >= 0.0));
    assert!(column(samples, "weight").iter().all(Value::is_number));
    assert_eq!(samples["weightType"], "tracing-ms");
    length(markers);
    indexes(markers, "category", categories);
    indexes(markers, "name", strings.len());
    for (data, phase) in column(markers, "data").iter().zip(column(markers, "phase")) {
        assert!([0, 1].contains(&phase.as_u64().unwrap()));
        if let Some(cause) = data.get("cause") {
            assert!(cause["stack"].as_u64().unwrap() < length(stacks) as u64);
        }
    }
}

/// The text of an interned field of a marker.
fn string<'v>(thread: &'v Value, index: &Value) -> &'v str {
    column(thread, "stringArray")[index.as_u64().unwrap() as usize].as_str().unwrap()
}

#[test]
fn the_profile_keeps_the_rules_of_its_format() {
    check(&profile(&sample::small(), &Layouts::default()));
    check(&profile(&sample::firefox_like(5_000, 3), &Layouts::default()));
    check(&profile(
        &Recording { manifest: sample::small().manifest, ..Recording::default() },
        &Layouts::default(),
    ));
}

#[test]
fn the_marker_schema_is_firefoxs_own() {
    let profile = profile(&sample::small(), &Layouts::default());
    let schemas = column(&profile["meta"], "markerSchema");
    let schema = schemas.iter().find(|s| s["name"] == "FileIO").unwrap();
    assert_eq!(schema["display"], serde_json::json!(["marker-chart", "marker-table", "timeline-fileio"]));
    let fields = schema["fields"].as_array().or(schema["data"].as_array()).unwrap();
    let found: Vec<(&str, &str)> =
        fields.iter().map(|f| (f["key"].as_str().unwrap(), f["format"].as_str().unwrap())).collect();
    let expected = [
        ("operation", "unique-string"),
        ("source", "unique-string"),
        ("filename", "file-path"),
        ("threadId", "unique-string"),
        ("offset", "bytes"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn waits_lookups_reads_and_bytes_are_those_of_the_recording() {
    let recording = sample::small();
    let profile = profile(&recording, &Layouts::default());
    let start = recording.manifest.start.0;
    let ms = |ns: u64| (ns - start) as f64 / 1e6;
    for t in column(&profile, "threads") {
        let tid: u32 = t["tid"].as_str().unwrap().parse().unwrap();
        let of_this = |of: u32| of == tid;
        let stalls: Vec<_> = recording.stalls.iter().flatten().filter(|s| of_this(s.tid)).collect();
        let waited: u64 = stalls.iter().map(|s| s.woken.unwrap().0 - s.began.0).sum();
        let weights: f64 = column(&t["samples"], "weight").iter().map(|w| w.as_f64().unwrap()).sum();
        // Each is rounded up to a microsecond.
        assert!((weights - waited as f64 / 1e6).abs() <= stalls.len() as f64 / 1e3, "{weights} {waited}");
        let markers = &t["markers"];
        let io: Vec<usize> =
            (0..length(markers)).filter(|n| column(markers, "data")[*n]["type"] == "FileIO").collect();
        let lookups = recording.lookups.iter().flatten().filter(|l| of_this(l.tid)).count();
        let reads = recording
            .touches
            .iter()
            .flatten()
            .filter(|r| of_this(r.tid) && r.kind == TouchKind::Read)
            .count();
        assert_eq!(io.len(), stalls.len() + lookups + reads);
        for s in stalls {
            let found = io.iter().find(|n| {
                let begins = column(markers, "startTime")[**n].as_f64() == Some(ms(s.began.0));
                let data = &column(markers, "data")[**n];
                begins && string(t, &data["source"]) == "wait"
            });
            let n = *found.expect("the stall");
            assert_eq!(column(markers, "endTime")[n].as_f64(), Some(ms(s.woken.unwrap().0)));
            let data = &column(markers, "data")[n];
            assert_eq!(string(t, &data["operation"]), s.cause.word());
            assert_eq!(string(t, &data["threadId"]), tid.to_string());
            let path = s.file.map(|f| wording::path(&recording, f)).unwrap_or_default();
            assert_eq!(data["filename"], path);
            assert_eq!(data["offset"].as_f64(), s.page.map(|p| p as f64 * 4096.0));
        }
    }
    let counted: f64 = column(&profile, "counters")
        .iter()
        .flat_map(|c| column(&c["samples"], "count"))
        .map(|n| n.as_f64().unwrap())
        .sum();
    let pages: u64 = recording.fills.iter().flatten().filter(|f| f.in_tree).map(|f| u64::from(f.pages)).sum();
    assert!(pages > 100);
    assert_eq!(counted as u64, pages * 4096);
}

#[test]
fn frames_have_library_function_and_inlined_functions() {
    let mut recording = sample::small();
    recording.files[0].build_id = Some("be4e976c325246ee9d6b7847a670b2a9ffffffff".to_owned());
    let frame = |offset| Frame { address: 0x5000_0000 + offset, file: Some(0), offset, generated: false };
    let unknown = Frame { address: 0x77, file: None, offset: 0, generated: false };
    recording.stacks =
        Some(vec![Stack { frames: vec![frame(0x2010), frame(0x2100), unknown], truncated: false }]);
    for s in recording.stalls.iter_mut().flatten() {
        (s.stack, s.cause) = (Some(0), StallCause::Fault);
    }
    recording.lookups = None;
    recording.touches = None;
    let name = |function: &str, inlined| FrameName {
        function: function.to_owned(),
        source: None,
        line: None,
        inlined,
    };
    let symbol = |name: &str, offset| Symbol { name: name.to_owned(), offset, bytes: 0x80 };
    let layout = FileLayout {
        // Loaded 0x1000 higher than it lies in the file, and from 0x400000 on.
        segments: vec![
            Segment { offset: 0, bytes: 0x1000, address: 0x40_0000, access: "r--".to_owned() },
            Segment { offset: 0x1000, bytes: 0x9000, address: 0x40_2000, access: "r-x".to_owned() },
        ],
        symbols: vec![symbol("inner", 0x2000), symbol("outer", 0x20c0)],
        ..FileLayout::default()
    };
    let layouts = Layouts {
        files: [(0, layout)].into(),
        frames: [
            (frame(0x2010), vec![name("deepest", true), name("inner", false)]),
            (frame(0x2100), vec![name("outer", false)]),
        ]
        .into(),
        ..Layouts::default()
    };
    let profile = profile(&recording, &layouts);
    check(&profile);
    let lib = &profile["libs"][0];
    assert_eq!(lib["breakpadId"], "6C974EBE5232EE469D6B7847A670B2A90");
    assert_eq!(lib["codeId"], "be4e976c325246ee9d6b7847a670b2a9ffffffff");
    let t = column(&profile, "threads").iter().find(|t| length(&t["samples"]) > 0).unwrap();
    let mut stack = column(&t["samples"], "stack")[0].clone();
    let mut found = Vec::new();
    while let Some(index) = stack.as_u64() {
        let frame = column(&t["stackTable"], "frame")[index as usize].as_u64().unwrap() as usize;
        let func = column(&t["frameTable"], "func")[frame].as_u64().unwrap() as usize;
        let name = string(t, &column(&t["funcTable"], "name")[func]);
        found.push((name.to_owned(), column(&t["frameTable"], "address")[frame].as_i64().unwrap()));
        stack = column(&t["stackTable"], "prefix")[index as usize].clone();
    }
    // A return address stands for the call before it; labels have no address.
    let expected = [("deepest", -1), ("inner", 0x3010), ("outer", 0x30ff), ("0x77", -1)];
    assert_eq!(found, expected.map(|(n, a)| (n.to_owned(), a)));
}

#[test]
fn nonsense_is_written_without_harm() {
    let mut recording = sample::small();
    let analysis = cold_analyze::analyze(&recording, &Layouts::default());
    recording.manifest.start = Nanos(u64::MAX);
    recording.manifest.started_at = "never".to_owned();
    for (n, s) in recording.stalls.iter_mut().flatten().enumerate() {
        (s.file, s.page, s.stack) = (Some(u32::MAX), Some(u64::MAX), Some(u32::MAX));
        (s.woken, s.ended) = (None, (n % 2 == 0).then_some(Nanos(u64::MAX)));
        (s.pid, s.tid) = (u32::MAX, n as u32 % 3);
    }
    for l in recording.lookups.iter_mut().flatten() {
        (l.result, l.path) = (i64::MIN, Some("\u{0}\"weight\":[1000]".to_owned()));
    }
    recording.processes.clear();
    let mut bytes = Vec::new();
    write(&recording, &analysis, &Layouts::default(), &mut bytes).unwrap();
    check(&serde_json::from_slice(&bytes).unwrap());
}
