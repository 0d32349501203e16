//! The page in a real browser: no errors on the console, and every chart drew something.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cold_model::layout::Layouts;
use cold_model::recording::Recording;
use cold_recording::sample;
use cold_report::recording::{View, html};

/// Chromium's name, or `None` after a loud word; where CI=true it has to be there.
fn chromium() -> Option<&'static str> {
    let there = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| there(name));
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none_or(|v| v != "true"), "needs chromium");
        eprintln!("SKIPPED (needs chromium)");
    }
    found
}

/// Loads a page and gives its document after all scripts ran, and what the browser logged.
fn load(browser: &str, page: &Path, directory: &Path) -> (String, String) {
    let (out, log) = (directory.join("document"), directory.join("log"));
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--window-size=1280,900"])
        .args(["--virtual-time-budget=60000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_mins(3);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser did not end: {}", std::fs::read_to_string(&log).unwrap());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let read = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    (read(out), read(log))
}

/// What the page says about itself after drawing.
fn drawn(browser: &str, page: &str) -> serde_json::Value {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("page.html");
    std::fs::write(&path, page).unwrap();
    let (document, log) = load(browser, &path, directory.path());
    let console: Vec<&str> = log.lines().filter(|l| l.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:#?}");
    let attribute = document.split("data-drawn=\"").nth(1).and_then(|rest| rest.split('"').next());
    let said = attribute.unwrap_or_else(|| panic!("the page did not finish: {log}")).replace("&quot;", "\"");
    serde_json::from_str(&said).unwrap()
}

fn assert_drew(said: &serde_json::Value, least: &[(&str, u64)]) {
    assert_eq!(said["errors"].as_array().map(Vec::len), Some(0), "{said}");
    for (chart, count) in least {
        assert!(said[chart].as_u64().is_some_and(|n| n >= *count), "{chart}: {said}");
    }
}

#[test]
fn every_chart_draws_and_nothing_goes_wrong() {
    let Some(browser) = chromium() else { return };
    let recording = sample::firefox_like(20_000, 5);
    let layouts = Layouts::default();
    let analysis = cold_analyze::analyze(&recording, &layouts);
    let said = drawn(browser, &html::page(&recording, &layouts, &analysis));
    let stalls = recording.stalls.as_ref().unwrap().len() as u64;
    let timeline = ("timeline", stalls / 2);
    assert_drew(
        &said,
        &[("offsets", 5_000), ("device", 500), ("depth", 100), timeline, ("frames", 10), ("rows", 20)],
    );
    let tops: Vec<u64> =
        said["frameTops"].as_array().unwrap().iter().filter_map(serde_json::Value::as_u64).collect();
    assert!(tops[0] == 0 && tops[1..].iter().all(|t| *t > 0), "the root is at the top: {tops:?}");
    let comparison = cold_analyze::compare(&recording, &analysis, &recording, &analysis);
    let view = View { name: "one.cold", recording: &recording, layouts: &layouts, analysis: &analysis };
    let said = drawn(browser, &html::page_of_two(view, view, &comparison));
    assert_drew(&said, &[("offsets", 10_000), ("device", 1_000), ("frames", 20)]);
}

/// A recording of an ordinary user has only touches, one that was killed at once has nothing.
#[test]
fn missing_tables_are_no_error() {
    let Some(browser) = chromium() else { return };
    let mut recording = sample::small();
    (recording.fills, recording.device_reads, recording.transfers, recording.stalls) =
        (None, None, None, None);
    let layouts = Layouts::default();
    let page = |r: &Recording| html::page(r, &layouts, &cold_analyze::analyze(r, &layouts));
    assert_drew(&drawn(browser, &page(&recording)), &[("offsets", 10)]);
    assert_drew(&drawn(browser, &page(&Recording::default())), &[]);
}
