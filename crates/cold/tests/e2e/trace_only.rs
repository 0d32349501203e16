//! `cold trace --only-file`: which pages of one file are touched, in what order, by a monitor whose virtual machine's
//! memory the file is. A program that maps a file of 64 MiB and touches known pages stands in for it.

use std::fs;

use cold_model::recording::{Recording, TouchKind};
use cold_testbed::needs_root;

use crate::support::*;
use crate::trace::recorded;

/// Bytes of the memory file.
const MEMORY: usize = 64 << 20;
/// Pages that are touched.
const TOUCHED: u64 = 200;

/// Different pages in an order that no read-ahead guesses: steps of a prime number of pages, around the file.
fn pattern() -> Vec<u64> {
    let pages = MEMORY as u64 / PAGE;
    (0..TOUCHED).map(|n| n * 7919 % pages).collect()
}

fn argument(pages: &[u64]) -> String {
    pages.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

/// Pages that the lines of REAP's `trace` name.
fn restored(place: &Sandbox, recording: &str) -> Vec<u64> {
    let args = ["prefetch", "export", recording, "--format", "reap", "-o", "trace"];
    place.cold(args).run().expect(0);
    let text = fs::read_to_string(place.path("trace")).unwrap();
    let offset = |line: &str| u64::from_str_radix(line, 16).unwrap();
    text.lines().map(|line| offset(line) / PAGE).collect()
}

/// Nothing of another file is in it.
fn of_one_file(place: &Sandbox, r: &Recording) {
    let path = place.path("memory.bin").canonicalize().unwrap();
    let names: Vec<_> = r.files.iter().map(|f| f.path.as_deref()).collect();
    assert_eq!(names, [path.to_str()]);
    assert_eq!(r.manifest.only_file.as_deref(), path.to_str());
    assert!(r.manifest.notes.iter().any(|n| n.contains("only what concerns")), "{:?}", r.manifest.notes);
    assert_eq!((&r.stacks, &r.off_cpu), (&None, &None));
}

#[test]
fn it_names_a_regular_file() {
    let place = Sandbox::for_all();
    for (file, says) in [("none.bin", "No such file"), (".", "no regular file")] {
        let args = ["trace", "--only-file", file, "--", "true"];
        let ran = place.cold(args).run().expect(2);
        assert!(ran.stderr.contains("--only-file") && ran.stderr.contains(says), "{}", ran.stderr);
    }
    assert!(!place.path("true.cold").exists());
}

#[test]
fn pages_of_a_mapped_memory_file_are_restored_in_the_order_of_their_touches() {
    needs_root!();
    let _machine = alone(); // the window of fault-around is the whole machine's
    let _settings = exactly();
    let place = Sandbox::new();
    place.file("memory.bin", MEMORY);
    let (subject, pages) = (place.subject(), pattern());
    let trace =
        ["trace", "--evict", "files", "--only-file", "memory.bin", "--exact-need", "-o", "vm.cold", "--"];
    let touch = [subject.as_str(), "touch-mapped", "memory.bin", &argument(&pages)];
    place.cold(trace.iter().chain(&touch)).run().expect(0);
    let r = recorded(&place, "vm.cold");
    if r.fills.is_none() || !r.manifest.exact_need {
        assert!(std::env::var_os("CI").is_none(), "tier {}, {:?}", r.manifest.tier, r.manifest.notes);
        return;
    }
    of_one_file(&place, &r);
    assert_eq!(restored(&place, "vm.cold"), pages);
    let refused = place.cold(["fleet", "add", "fleet", "vm.cold"]).run().expect(1);
    let told = refused.stdout + &refused.stderr;
    assert!(told.contains("--only-file"), "a start of which the most was left out: {told}");
}

#[test]
fn a_monitor_that_runs_already_is_attached_to() {
    needs_root!();
    let _machine = together();
    let place = Sandbox::new();
    place.file("memory.bin", MEMORY);
    let (subject, pages) = (place.subject(), pattern());
    place.cold(["cache", "evict", "memory.bin"]).run().expect(0);
    // As a monitor does that restores a snapshot: no neighbours are read, so none can be mapped.
    let script = r#"exec 3<"$1"; shift; echo on; read -r go <go; exec "$@""#;
    run("mkfifo", &[&place.text("go")]);
    let memory = place.text("memory.bin");
    let pages_of = argument(&pages);
    let start = ["-c", script, "monitor", &memory, &subject, "touch-mapped", "--random", &memory, &pages_of];
    let in_place = format!("cd {} && exec \"$0\" \"$@\"", place.path(".").display());
    let mut words = vec!["-c", &in_place, "sh"];
    words.extend(start);
    let monitor = Other::start("sh", &words, "on");
    let pid = monitor.pid().to_string();
    let args = ["trace", "--attach", &pid, "--only-file", "memory.bin", "-o", "vm.cold"];
    let started = place.cold(args).start();
    crate::trace_attach::root::recording(&place, "vm.cold");
    fs::write(place.path("go"), "go\n").unwrap();
    started.end().expect(0);
    let r = recorded(&place, "vm.cold");
    of_one_file(&place, &r);
    let faults = r.touches.iter().flatten().filter(|t| t.kind == TouchKind::Fault);
    assert_eq!(faults.map(|t| t.first_page).collect::<Vec<_>>(), pages);
    if r.fills.is_some() {
        assert_eq!(restored(&place, "vm.cold"), pages);
    }
}
