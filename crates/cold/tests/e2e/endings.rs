//! Commands that fail, hang, are killed, or do not want to end.

use cold_model::bench::{Ending, Taint};

use crate::support::*;

const NOBODY: [String; 0] = [];

#[test]
fn a_failing_command_ends_the_benchmark_and_says_how_it_failed() {
    let place = Sandbox::new();
    let log = place.text("log");
    let failing = place.script("failing", "exit 7");
    let ran = place
        .bench(["-r", "1", "--cleanup", &format!("echo clean >> {log}"), "--", &failing])
        .run()
        .expect(1);
    assert!(ran.error().contains("exit code 7"), "{}", ran.stderr);
    assert_eq!(place.lines("log"), ["clean"]);
    let killed = place.script("killed", "kill -11 $$");
    let ran = place.bench(["-r", "1", "--", &killed]).run().expect(1);
    assert!(ran.error().contains("signal 11"), "{}", ran.stderr);
    let ran = place.bench(["--states", "warm", "-r", "1", "-i", "--", &failing]).run().finished();
    assert!(ran.report().runs.iter().all(|r| r.ending == Ending::Code(7) && !tainted(r, "failed")));
}

#[test]
fn a_run_that_hangs_is_ended_at_its_time_limit_and_replaced() {
    let place = Sandbox::new();
    let log = place.text("log");
    // The observed start is quick, the second start hangs with a child, the third is killed from within.
    let text = format!(
        "echo x >> {log}; n=$(wc -l < {log})
         test $n -ne 2 || {{ {0} sleep 600000 & {0} sleep 600000; }}
         test $n -ne 3 || kill -9 $$",
        place.subject()
    );
    let script = place.script("hangs", &text);
    let args = ["--states", "warm", "-w", "1", "-r", "1", "--timeout", "2", "--grace", "1", "--", &script];
    let runs = place.bench(args).run().finished().report().runs;
    let limit = runs[0]
        .taints
        .iter()
        .find_map(|t| if let Taint::TimedOut { limit } = t { Some(limit.0) } else { None });
    assert_eq!((runs[0].ending, limit), (Ending::TimedOut, Some(2_000_000_000)));
    assert!(runs[0].ready.as_secs() >= 2.0);
    assert_eq!(runs[1].ending, Ending::Signal(9));
    assert!(tainted(&runs[1], "failed"));
    assert_eq!(runs[2].ending, Ending::Code(0));
    assert_eq!(place.processes(), NOBODY);
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_after_the_grace_time() {
    let place = Sandbox::new();
    let args =
        ["--states", "warm", "-w", "1", "-r", "1", "--grace", "0.3", "--ready", "stdout:ignoring", "--"];
    let runs = place
        .bench(args.iter().copied().chain([&*place.subject(), "ignore-term"]))
        .run()
        .finished()
        .report()
        .runs;
    assert!(runs.iter().all(|r| r.killed_by_force >= 1 && r.ending == Ending::Ended), "{runs:?}");
    assert_eq!(place.processes(), NOBODY);
}
