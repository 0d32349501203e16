//! What the page caches of kernels that are not running did, written down by scripts/page-cache: the model of their
//! version does the same.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)] // the lints know only functions marked as tests

use cold_model::pages::Runs;
use cold_sim::op::{FileId, MapId, Op};
use cold_sim::verify::{Follower, Seen, SeriesOutcome, Workload};
use cold_sim::{LinuxVersion, Paging, Policy, SimFile};
use serde_json::Value;

fn number(document: &Value, name: &str) -> u64 {
    document[name].as_u64().unwrap_or_else(|| panic!("no {name}"))
}

fn runs(pairs: &Value) -> Runs {
    let pairs = pairs.as_array().expect("pairs").iter();
    Runs::of(pairs.map(|pair| pair[0].as_u64().unwrap()..pair[1].as_u64().unwrap()).collect())
}

/// One series; `None` where a page went away that nobody of us dropped.
fn follow(document: &Value, files: &[SimFile], policy: Policy, case: usize) -> Option<SeriesOutcome> {
    let mut follower = Follower::new(policy, Paging::default(), files);
    let mut outcome = SeriesOutcome::default();
    let mut cached = vec![Runs::default(); files.len()];
    let (mut files_of_opens, mut files_of_maps) = (Vec::<FileId>::new(), Vec::<FileId>::new());
    let seed = number(document, "seed");
    let workload = Workload::new(seed, case as u64, number(document, "page_bytes"), files);
    for (at, (op, saw)) in workload.zip(document["cases"][case].as_array().unwrap()).enumerate() {
        follower.step(&op);
        let file = match op {
            Op::Open { file, .. } => {
                files_of_opens.push(file);
                file
            }
            Op::Map { open, .. } => {
                files_of_maps.push(files_of_opens[open.0 as usize]);
                files_of_opens[open.0 as usize]
            }
            Op::Read { open, .. } | Op::WillNeed { open, .. } | Op::AdviseOpen { open, .. } => {
                files_of_opens[open.0 as usize]
            }
            Op::Touch { map, .. }
            | Op::AdviseMap { map, .. }
            | Op::Populate { map, .. }
            | Op::Forget { map, .. } => files_of_maps[map.0 as usize],
            Op::DontNeed { file, .. } => file,
            Op::Unmap { .. } => continue,
        };
        let before = &mut cached[file.0 as usize];
        let mut now = before.minus(&runs(&saw[1]));
        runs(&saw[0]).runs().iter().for_each(|run| now.insert(run));
        let touched = |map: MapId| (map, runs(&saw[2]));
        let mapped = match op {
            Op::Touch { map, .. } => Some(touched(map)),
            _ => None,
        };
        let seen = Seen { case: case as u64, at: at as u64, op, file, cached: now, mapped };
        if seen.disturbed(before) {
            return None;
        }
        seen.judge(&mut follower, &mut outcome);
        *before = seen.cached;
    }
    Some(outcome)
}

/// Each series that a kernel did, by the rules of a version: operations compared, those that differ by timing, and the
/// first differences.
fn followed(name: &str, version: LinuxVersion) -> Vec<SeriesOutcome> {
    let path = format!("{}/tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let about = |bytes: &Value| SimFile {
        bytes: bytes.as_u64().unwrap(),
        window_pages: number(&document, "window_pages"),
        io_pages: number(&document, "io_pages"),
        large_folios: document["large_folios"].as_bool().unwrap(),
    };
    let files: Vec<_> = document["files"].as_array().unwrap().iter().map(about).collect();
    let cases = document["cases"].as_array().unwrap().len();
    (0..cases).filter_map(|case| follow(&document, &files, Policy::Linux(version), case)).collect()
}

fn is_followed(name: &str, version: LinuxVersion) {
    let outcomes = followed(name, version);
    let operations: u64 = outcomes.iter().map(|o| o.operations).sum();
    let timing: u64 = outcomes.iter().map(|o| o.timing).sum();
    println!("{name}: {} series, {operations} operations, {timing} by timing", outcomes.len());
    let differences: Vec<_> = outcomes.into_iter().filter_map(|o| o.difference).collect();
    for difference in &differences {
        println!("{difference:?}");
    }
    assert_eq!(differences, []);
    assert!(operations > 1000, "{operations}");
}

#[test]
fn linux_5_10_on_ext4() {
    is_followed("5.10-ext4", LinuxVersion::V5_10);
}

#[test]
fn linux_5_10_on_xfs() {
    is_followed("5.10-xfs", LinuxVersion::V5_10);
}

#[test]
fn linux_6_1_on_ext4() {
    is_followed("6.1-ext4", LinuxVersion::V6_1);
}

#[test]
fn linux_6_1_on_xfs() {
    is_followed("6.1-xfs", LinuxVersion::V6_1);
}

#[test]
fn linux_6_12_on_ext4() {
    is_followed("6.12-ext4", LinuxVersion::V6_12);
}

#[test]
fn linux_6_12_on_xfs() {
    is_followed("6.12-xfs", LinuxVersion::V6_12);
}

#[test]
fn linux_6_16_on_ext4() {
    is_followed("6.16-ext4", LinuxVersion::V6_16);
}

#[test]
fn linux_6_16_on_xfs() {
    is_followed("6.16-xfs", LinuxVersion::V6_16);
}

#[test]
fn linux_6_17_on_ext4() {
    is_followed("6.17-ext4", LinuxVersion::V6_17);
}

#[test]
fn linux_6_17_on_xfs() {
    is_followed("6.17-xfs", LinuxVersion::V6_17);
}

#[test]
fn linux_7_3_on_ext4() {
    is_followed("7.3-ext4", LinuxVersion::V7);
}

#[test]
fn linux_7_3_on_xfs() {
    is_followed("7.3-xfs", LinuxVersion::V7);
}

#[test]
fn another_versions_rules_are_told_apart() {
    for (name, other) in [("6.1-ext4", LinuxVersion::V6_12), ("6.12-ext4", LinuxVersion::V6_18)] {
        let differ = followed(name, other).iter().filter(|o| o.difference.is_some()).count();
        assert!(differ >= 2, "{name} against {other:?}: {differ} series differ");
    }
}
