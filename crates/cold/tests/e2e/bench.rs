//! Cold and warm starts of a program whose needs are known.

use cold_model::Known;
use cold_model::bench::{Ending, State};

use crate::support::*;

#[test]
fn a_cold_start_reads_what_a_warm_one_finds_cached() {
    let _machine = together();
    let place = Sandbox::new();
    let file = place.file("data", 8 * MIB);
    attempts(|| {
        let args = ["--states", "cold,warm", "-r", "3", "--", &place.subject(), "touch-mapped"];
        let args = args.iter().copied().chain([file.to_str().unwrap(), "0-299"]);
        let report = place.bench(args).run().finished().report();
        assert_eq!(report.schema, "coldstart.bench/1");
        assert_eq!((report.commands.len(), report.series.len()), (1, 2));
        let command = &report.commands[0];
        // The program and its data, and nothing else: it is linked statically.
        assert_eq!((&command.files, &command.misses), (&Known::Value(2), &Known::Value(0)));
        let (cold, warm) = (undisturbed(&report, &State::Cold, 3)?, undisturbed(&report, &State::Warm, 3)?);
        for run in cold.iter().chain(&warm) {
            assert_eq!((run.ending, run.processes, run.killed_by_force), (Ending::Code(0), 1, 0));
            assert_eq!(run.exit, Known::Value(run.ready), "it is ready when it has ended");
            assert!(run.ready.0 > 0);
        }
        for run in &cold {
            let residual = run.residual.value().unwrap();
            assert_eq!(residual.unknown_bytes.0, 0);
            check(residual.bytes.0 == 0, || format!("not cold: {residual:?}"))?;
            let bytes = run.read_bytes.value().unwrap().0;
            assert!((300 * PAGE..64 << 20).contains(&bytes), "{bytes} bytes read");
            assert!(*run.read_requests.value().unwrap() > 0 && run.major_faults > 0);
        }
        for run in &warm {
            let bytes = run.read_bytes.value().unwrap().0;
            check(bytes == 0, || format!("a warm start read {bytes} bytes"))?;
            assert!(run.residual.value().unwrap().bytes.0 >= 300 * PAGE);
        }
        Ok(())
    });
    assert_eq!(place.temporary(), [] as [std::path::PathBuf; 0]);
}

#[test]
fn a_light_start_lies_between_and_repeats_one_start_after_an_eviction() {
    let _machine = together();
    let place = Sandbox::new();
    let (log, file) = (place.text("log"), place.file("data", 2 * MIB));
    let line = format!("echo x >> {log}; exec {} touch-mapped {} 0-99", place.subject(), file.display());
    let script = place.script("run", &line);
    attempts(|| {
        let _ = std::fs::remove_file(&log);
        let report = place.bench(["--states", "light", "-r", "2", "--", &script]).run().finished().report();
        let runs = undisturbed(&report, &State::Light, report.runs.len())?;
        // One observed start, and two starts per run. A state reached only at the second try has more.
        let starts = place.lines("log").len();
        check(runs.len() >= 2 && starts == 1 + 2 * runs.len(), || format!("{starts} starts: {runs:?}"))?;
        for run in runs {
            assert!(run.residual.value().unwrap().bytes.0 >= 100 * PAGE);
        }
        Ok(())
    });
}

#[test]
fn the_text_says_what_was_measured_and_what_was_proved() {
    let _machine = together();
    let place = Sandbox::new();
    attempts(|| {
        let args =
            ["bench", "--evict", "files", "-r", "2", "--seed", "7", "--", &place.subject(), "sleep", "10"];
        let ran = place.cold(args).run();
        check(ran.code() != 4, || ran.stdout.clone())?;
        let ran = ran.expect(0);
        for part in ["cold", "warm", "cold-subject", "seed 7", "ms"] {
            assert!(ran.stdout.contains(part), "{part} is missing from\n{}", ran.stdout);
        }
        assert!(!ran.stdout.contains('\u{1b}'), "no colours outside a terminal");
        Ok(())
    });
}
