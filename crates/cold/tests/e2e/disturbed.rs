//! What disturbs a measurement is noticed, named, and does not spoil the summary.

use std::fs;

use cold_model::bench::{State, Taint};

use crate::support::*;

/// Bytes that the holder keeps at least.
const LEAST: u64 = 2 << 20;

#[test]
fn a_file_that_another_process_maps_marks_the_runs_and_names_the_process() {
    let _machine = together();
    let place = Sandbox::new();
    let file = place.file("data", 4 * MIB);
    let path = file.to_str().unwrap();
    let other = Other::start(&place.subject(), &["hold", path], "holding");
    let holder = format!("cold-subject[{}]", other.pid());
    let command = ["--", &place.subject(), "touch-mapped", path, "0-99"];
    let ran = place.bench(["--states", "cold", "-r", "2"].iter().chain(&command)).run().expect(4);
    let report = ran.report();
    assert!(report.stopped.as_ref().unwrap().contains("not_cold"), "{:?}", report.stopped);
    for run in &report.runs {
        let held = run.taints.iter().find_map(|t| match t {
            Taint::NotCold { bytes, holders, .. } => Some((bytes.0, holders)),
            _ => None,
        });
        let (bytes, holders) = held.unwrap();
        // It maps 4 MiB; background reclaim may take idle pages from it, but never most of them in this time.
        assert!(bytes >= LEAST && holders.contains(&holder), "{bytes} {holders:?}");
    }
    // Whoever maps the C library, too, holds less: who holds the file stands first, with its bytes.
    if rustix::process::geteuid().is_root() {
        for run in &report.runs {
            let residual = run.residual.value().unwrap();
            let held = &residual.files.iter().find(|f| f.path == file).unwrap().held[0];
            let bytes = held.bytes.value().map_or(0, |bytes| bytes.0);
            assert!(held.holder == holder && (LEAST..=4 << 20).contains(&bytes), "{run:?}");
            assert_eq!(residual.held()[0].holder, holder, "{run:?}");
        }
        let findings = ran.json()["findings"].to_string();
        for text in [format!("kept warm by {holder} ("), format!("(held by {holder} ")] {
            let (_, bytes) = findings.split_once(&text).unwrap();
            assert!(bytes.split_once(" MiB").unwrap().0.parse::<f64>().unwrap() >= 2.0, "{findings}");
        }
    }
    let ran =
        place.bench(["--states", "cold", "-r", "2", "--require-cold"].iter().chain(&command)).run().expect(5);
    assert!(ran.error().contains(&holder), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    drop(other);
    attempts(|| {
        // With nobody holding it the same is cold.
        let ran = place.bench(["--states", "cold", "-r", "1", "--require-cold"].iter().chain(&command)).run();
        check(ran.code() != 5, || ran.stderr.clone())?;
        ran.done_or_disturbed().map(drop)
    });
}

#[test]
fn a_disturbed_run_is_replaced_and_does_not_enter_the_summary() {
    let _machine = alone();
    let place = Sandbox::new();
    let counter = place.text("counter");
    // The observed start is the first, then one that makes it warm if need be; the third run fails.
    let args = [
        "--states",
        "warm",
        "-w",
        "1",
        "-r",
        "3",
        "--",
        &place.subject(),
        "fail-nth",
        "3",
        &counter,
        "--code",
        "9",
    ];
    attempts(|| {
        let _ = fs::remove_file(&counter);
        let ran = place.bench(args).run().done_or_disturbed()?;
        let report = ran.report();
        let failed: Vec<_> = report.runs.iter().filter(|r| tainted(r, "failed")).collect();
        check(report.runs.len() == 4, || format!("{:?}", kinds(&report.runs)))?;
        assert_eq!(failed.len(), 1);
        assert_eq!(counted(&report, &State::Warm).len(), 3);
        let summary = &ran.json()["summary"][0];
        assert_eq!((&summary["counted"], &summary["tainted"]), (&3.into(), &1.into()));
        assert_eq!(summary["taints"]["failed"], 1);
        Ok(())
    });
}

/// A start that saves a file of its own in fewer pages than it had: they went with their content, and nobody
/// took them.
#[test]
fn pages_of_a_file_that_the_start_itself_rewrites_are_not_reclaimed() {
    let _machine = together();
    let place = Sandbox::new();
    let saved = place.file("saved", 100 * PAGE as usize);
    let saved = saved.to_str().unwrap();
    // By turns 100 pages and 20, so that every other start leaves 80 pages fewer than it found.
    let save = place.script(
        "save",
        &format!("if [ $(wc -c <{saved}) -gt 100000 ]; then n=20; else n=100; fi; cat {saved} >/dev/null; head -c $((n * 4096)) /dev/zero >{saved}"),
    );
    attempts(|| {
        let ran = place.bench(["--states", "warm", "-r", "4", "--", &save]).run().done_or_disturbed()?;
        let report = ran.report();
        check(!report.runs.iter().any(|r| tainted(r, "pages_reclaimed")), || {
            format!("{:?}", kinds(&report.runs))
        })
    });
}

mod root {
    use super::*;

    use cold_testbed::needs_root;

    #[test]
    fn dropped_caches_taint_the_runs_that_saw_it_and_no_others() {
        needs_root!();
        let _machine = alone();
        let place = Sandbox::new();
        let once = place.text("once");
        // In the background of the first run: eight drops in 1.6 s.
        let dropper = "for i in 1 2 3 4 5 6 7 8; do sleep 0.2; echo 1 > /proc/sys/vm/drop_caches; done";
        let prepare = format!("test -e {once} || {{ touch {once}; ({dropper}) & }}");
        attempts(|| {
            let _ = fs::remove_file(&once);
            let args =
                ["--states", "cold", "-r", "1", "-p", &prepare, "--", &place.subject(), "sleep", "600"];
            let ran = place.bench(args).run().finished();
            let report = ran.report();
            let last = report.runs.last().unwrap();
            // On a busy machine the first run may be over before the first drop, or begin after the last.
            let seen = report.runs.iter().any(|r| tainted(r, "caches_dropped"));
            check(seen && report.runs.len() > 1, || format!("{:?}", kinds(&report.runs)))?;
            check(only_busy(last), || format!("{:?}", kinds(&report.runs)))?;
            let summary = &ran.json()["summary"][0];
            let good: Vec<_> = report.runs.iter().filter(|r| r.counts()).collect();
            assert!(good.iter().all(|r| !tainted(r, "caches_dropped")));
            assert_eq!(summary["counted"], good.len());
            if let [only] = good[..] {
                assert_eq!(summary["metrics"]["ready"]["median"].as_f64().unwrap() as u64, only.ready.0);
            }
            Ok(())
        });
    }

    #[test]
    fn another_reader_of_the_same_disk_is_named() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::new();
        let (big, stop, log) = (place.file("big", 32 * MIB), place.text("stop"), place.text("log"));
        let reader = "
import os, sys
f = os.open(sys.argv[1], os.O_RDONLY); print('reading', flush=True)
while not os.path.exists(sys.argv[2]):
    os.lseek(f, 0, 0); os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED)
    while os.read(f, 1 << 20): pass
import time; time.sleep(600)";
        attempts(|| {
            let _ = (fs::remove_file(&stop), fs::remove_file(&log));
            let other =
                Other::start("/usr/bin/python3", &["-c", reader, big.to_str().unwrap(), &stop], "reading");
            // It reads during the observed start and two runs.
            let conclude = format!("echo >> {log}; test $(wc -l < {log}) -lt 3 || touch {stop}");
            let args =
                ["--states", "cold", "-r", "1", "-c", &conclude, "--", &place.subject(), "sleep", "200"];
            let ran = place.bench(args).run().finished();
            let report = ran.report();
            let pid = format!("[{}]", other.pid());
            let named = |t: &Taint| match t {
                Taint::ForeignReads { bytes, readers } => {
                    bytes.0 > 1 << 20 && readers.iter().any(|r| r.ends_with(&pid))
                }
                _ => false,
            };
            for run in &report.runs[..2] {
                assert!(run.taints.iter().any(named), "{:?}", run.taints);
                assert_eq!(run.read_requests.value(), None, "they cannot be told apart");
            }
            let last = report.runs.last().unwrap();
            check(only_busy(last) && report.runs.len() > 2, || format!("{:?}", kinds(&report.runs)))
        });
    }

    #[test]
    fn locked_pages_survive_the_eviction_of_the_whole_machine_and_are_named() {
        needs_root!();
        let _machine = alone();
        let place = Sandbox::new();
        let file = place.file("data", 2 * MIB);
        let other = locker(&file);
        let args = ["bench", "--evict", "all", "--states", "cold", "-r", "1", "--require-cold", "--"];
        let rest = [&place.subject(), "touch-mapped", file.to_str().unwrap(), "0"];
        let ran = place.cold(args.iter().copied().chain(rest)).run().expect(5);
        assert!(ran.error().contains(&format!("[{}]", other.pid())), "{}", ran.stderr);
    }
}
