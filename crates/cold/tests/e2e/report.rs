//! `cold report` of made-up recordings: what it says, writes and refuses.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use cold_model::recording::Recording;
use cold_recording::sample;

use crate::support::*;

/// A recording on disk.
fn written(place: &Sandbox, name: &str, recording: &Recording) -> String {
    cold_recording::write(&place.path(name), recording).unwrap();
    place.text(name)
}

#[track_caller]
fn golden(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("COLD_BLESS").is_some() {
        fs::write(&path, text).unwrap();
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert!(wanted == text, "tests/golden/{name} differs (COLD_BLESS=1 writes it):\n{text}");
}

#[test]
fn text_of_one_of_two_and_of_one_file() {
    let place = Sandbox::for_all();
    let a = written(&place, "a.cold", &sample::small());
    let b = written(&place, "b.cold", &sample::firefox_like(2000, 1));
    let one = place.cold(["report", "--no-symbols", &a]).run().expect(0);
    golden("report-sample.txt", &one.stdout);
    assert!(!one.stdout.contains('\u{1b}'), "colour only on a terminal");
    let two = place.cold(["report", "--no-symbols", "-n", "5", &a, &b]).run().expect(0);
    golden("report-two.txt", &two.stdout);
    let path = sample::small().files.iter().find_map(|f| f.path.clone()).unwrap();
    let file = place.cold(["report", "--no-symbols", "--file", &path, &a]).run().expect(0);
    assert!(file.stdout.contains(&path) && file.stdout.contains("per letter"), "{}", file.stdout);
    let none = place.cold(["report", "--no-symbols", "--file", "no such file", &a]).run().expect(2);
    assert!(none.error().contains("no file of a.cold"), "{}", none.stderr);
}

#[test]
fn every_export_is_written_and_the_recording_reads_back_the_same() {
    let place = Sandbox::for_all();
    let recording = sample::firefox_like(3000, 7);
    let dir = written(&place, "a.cold", &recording);
    let args = ["report", "--no-symbols", &dir, "--json"];
    let files =
        ["--html", "p.html", "--svg", "p.svg", "--perfetto", "p.pftrace", "--firefox-profile", "p.json"];
    let dirs = ["--csv", "csv", "--parquet", "again.cold"];
    let ran = place.cold(args.iter().chain(&files).chain(&dirs)).run().expect(0);
    let document = ran.json();
    assert_eq!(document["schema"], "coldstart.report/1");
    assert!(document["headline"]["needed"].is_u64(), "{}", document["headline"]);
    let page = fs::read_to_string(place.path("p.html")).unwrap();
    assert!(page.starts_with("<!") && !page.contains("src=\"http"), "self-contained");
    assert!(fs::read_to_string(place.path("p.svg")).unwrap().contains("</svg>"));
    let plain = fs::read(place.path("p.json")).unwrap();
    let profile: serde_json::Value = serde_json::from_slice(&plain).unwrap();
    assert!(profile["threads"].as_array().is_some_and(|t| !t.is_empty()));
    place.cold(["report", "--no-symbols", &dir, "--firefox-profile", "p.json.gz"]).run().expect(0);
    let mut unpacked = Vec::new();
    let packed = fs::File::open(place.path("p.json.gz")).unwrap();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut unpacked).unwrap();
    assert!(unpacked == plain, "the same profile, compressed");
    assert!(fs::metadata(place.path("p.pftrace")).unwrap().len() > 1000);
    let csv = fs::read_to_string(place.path("csv/fills.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + recording.fills.as_ref().unwrap().len());
    assert_eq!(cold_recording::read(&place.path("again.cold")).unwrap(), recording);
    // What exists is not overwritten where a whole directory would be.
    let ran = place.cold(["report", &dir, "--csv", "csv"]).run().expect(2);
    assert!(ran.error().contains("csv exists"), "{}", ran.stderr);
    let ran = place.cold(["report", &dir, "--html", "no/such/p.html"]).run().expect(2);
    assert!(ran.error().contains("no directory"), "{}", ran.stderr);
    let ran = place.cold(["report", &dir, &dir, "--perfetto", "two"]).run().expect(2);
    assert!(ran.error().contains("one recording"), "{}", ran.stderr);
}

#[test]
fn what_is_no_recording_or_a_damaged_one_is_said() {
    let place = Sandbox::for_all();
    let ran = place.cold(["report", "missing.cold"]).run().expect(1);
    assert!(ran.error().contains("missing.cold"), "{}", ran.stderr);
    fs::create_dir(place.path("empty.cold")).unwrap();
    place.cold(["report", "empty.cold"]).run().expect(1).error();
    place.cold(["report"]).run().expect(2);
    let dir = PathBuf::from(written(&place, "a.cold", &sample::small()));
    let files: Vec<PathBuf> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().path()).collect();
    for file in &files {
        let whole = fs::read(file).unwrap();
        // The last byte of the manifest is a newline, which nobody misses.
        let json = usize::from(file.ends_with("recording.json"));
        for cut in [0, 1, whole.len() / 2, whole.len() - 1 - json] {
            fs::write(file, &whole[..cut]).unwrap();
            refused(&place, &dir, file);
        }
        for at in (0..whole.len()).step_by(whole.len() / 7 + 1) {
            let mut bad = whole.clone();
            bad[at] ^= 0x55;
            fs::write(file, &bad).unwrap();
            if json == 0 {
                refused(&place, &dir, file);
                continue;
            }
            // A changed byte may be harmless (a letter of a name); it must never be more than an error.
            let ran = place.cold(["report", "--no-symbols", dir.to_str().unwrap()]).run();
            assert!(matches!(ran.code(), 0 | 1), "{} at {at}: {}", file.display(), ran.stderr);
        }
        fs::write(file, &whole).unwrap();
    }
    let json = dir.join("recording.json");
    let text = fs::read_to_string(&json).unwrap();
    let future = text.replacen("\"version\": 1", "\"version\": 99", 1);
    assert_ne!(text, future);
    fs::write(&json, future).unwrap();
    let ran = place.cold(["report", dir.to_str().unwrap()]).run().expect(1);
    assert!(ran.error().contains("99") && ran.error().contains("update"), "{}", ran.stderr);
}

#[track_caller]
fn refused(place: &Sandbox, dir: &Path, file: &Path) {
    let ran = place.cold(["report", "--no-symbols", dir.to_str().unwrap()]).run().expect(1);
    let (line, path) = (ran.error(), file.to_str().unwrap());
    assert!(line.contains(&format!("{path} ")) && !line.contains("panicked"), "{path}: {}", ran.stderr);
    assert!(line.len() > path.len() + 20, "with a reason: {line}");
}
