//! Several commands, parameters, names, hooks, streams, and the seed.

use std::fs;

use crate::support::*;

#[test]
fn hooks_run_around_the_starts_in_their_order_also_after_a_failure() {
    let place = Sandbox::new();
    let log = place.text("log");
    let script = place.script("run", &format!("echo run $HYPERFINE_ITERATION >> {log}"));
    let say = |what: &str| format!("echo {what} $HYPERFINE_ITERATION >> {log}");
    let (setup, prepare, conclude, cleanup) = (say("setup"), say("prepare"), say("conclude"), say("cleanup"));
    let hooks = ["-s", &setup, "-p", &prepare, "-c", &conclude, "--cleanup", &cleanup];
    let fixed = ["--states", "warm", "-w", "1", "-r", "2"];
    attempts(|| {
        let _ = fs::remove_file(&log);
        let ran =
            place.bench(fixed.iter().chain(&hooks).chain(&["--", &script])).run().done_or_disturbed()?;
        check(ran.report().runs.len() == 2, || "a run was replaced".into())?;
        let lines = place.lines("log");
        let expected = [
            "setup",
            "prepare",
            "run",
            "conclude", // observed
            "prepare 0",
            "run 0",
            "conclude 0",
            "prepare 1",
            "run 1",
            "conclude 1",
            "cleanup",
        ];
        let trimmed: Vec<&str> = lines.iter().map(|l| l.trim_end()).collect();
        check(trimmed == expected, || format!("{trimmed:?}"))
    });
    fs::remove_file(&log).unwrap();
    let failing = ["-p", "exit 3", "-s", &setup, "--cleanup", &cleanup, "--", &script];
    let ran = place.bench(fixed.iter().chain(&failing)).run().expect(1);
    assert!(ran.error().contains("--prepare \"exit 3\" failed (exit code 3)"), "{}", ran.stderr);
    assert_eq!(place.lines("log").iter().map(|l| l.trim_end()).collect::<Vec<_>>(), ["setup", "cleanup"]);
}

#[test]
fn parameters_make_commands_and_names() {
    let place = Sandbox::new();
    let line = format!("{} sleep {{ms}}", place.subject());
    let fixed = ["--states", "warm", "-w", "1", "-r", "1"];
    let list = ["-L", "ms", "0,1,2", "-n", "sleep of {ms} ms", &line];
    let report = place.bench(fixed.iter().chain(&list)).run().finished().report();
    let names: Vec<_> = report.commands.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["sleep of 0 ms", "sleep of 1 ms", "sleep of 2 ms"]);
    assert_eq!(report.commands[2].line, format!("{} sleep 2", place.subject()));
    assert_eq!(report.commands[1].parameters, [("ms".to_owned(), "1".to_owned())]);
    let scan = ["-P", "ms", "1", "5", "-D", "2", &line];
    let report = place.bench(fixed.iter().chain(&scan)).run().finished().report();
    let values: Vec<_> = report.commands.iter().map(|c| c.parameters[0].1.as_str()).collect();
    assert_eq!(values, ["1", "3", "5"]);
}

#[test]
fn the_slower_of_two_commands_is_found_and_the_seed_repeats_the_order() {
    let _machine = alone();
    let place = Sandbox::new();
    let lines = [40, 1].map(|ms| format!("{} sleep {ms}", place.subject()));
    let fixed = ["--states", "warm", "-w", "1", "-r", "6", "-n", "slow", "-n", "quick"];
    let order = |seed: &str| {
        let ran = place
            .bench(fixed.iter().chain(&["--seed", seed, &lines[0], &lines[1]]))
            .run()
            .done_or_disturbed()?;
        let report = ran.report();
        check(report.runs.len() == 12, || format!("{:?}", kinds(&report.runs)))?;
        assert_eq!(report.seed.to_string(), seed);
        let comparison = &ran.json()["comparisons"][0];
        let ratio = comparison["comparison"]["ratio"].as_f64().unwrap();
        assert_eq!(comparison["names"].as_array().unwrap().len(), 2);
        check(ratio.max(1.0 / ratio) > 2.0, || format!("ratio {ratio}"))?;
        Ok(report.runs.iter().map(|r| r.series).collect::<Vec<_>>())
    };
    let [first, same, other] = ["1", "1", "2"].map(|seed| attempts(|| order(seed)));
    assert_eq!(first, same);
    assert_ne!(first, other, "12 runs in 6 drawn pairs: the same once in 64");
    // Interleaved: each round has both.
    assert!(first.chunks(2).all(|round| round.contains(&0) && round.contains(&1)), "{first:?}");
}

#[test]
fn shells_streams_and_several_hooks() {
    let place = Sandbox::new();
    let (log, input, output) = (place.text("log"), place.text("input"), place.text("output"));
    fs::write(&input, "from the file\n").unwrap();
    let line = format!("read x; echo \"$x\" | tee -a {log}");
    let args = [
        "--states", "warm", "-w", "1", "-r", "1", "--shell", "sh", "--input", &input, "--output", &output,
        &line,
    ];
    place.bench(args).run().finished();
    let lines = place.lines("log");
    assert!(lines.len() >= 2 && lines.iter().all(|l| l == "from the file"), "{lines:?}");
    assert!(place.lines("output").contains(&"from the file".to_owned()));
    // One --prepare per command.
    let subject = place.subject();
    let (a, b) = (format!("echo a >> {log}.a"), format!("echo b >> {log}.b"));
    let lines = [format!("{subject} sleep 0"), format!("{subject} sleep 1")];
    let args = ["--states", "warm", "-w", "1", "-r", "1", "-p", &a, "-p", &b, &lines[0], &lines[1]];
    place.bench(args).run().finished();
    assert!(place.lines("log.a").iter().all(|l| l == "a") && place.lines("log.a").len() >= 2);
    assert!(place.lines("log.b").iter().all(|l| l == "b") && place.lines("log.b").len() >= 2);
}
