use cold_model::Bytes;
use proptest::prelude::*;

use super::*;
use crate::sample::{noise, report};

fn cold_and_warm() -> Report {
    report(&[("a", State::Cold, noise(400.0, 0.03, 20, 1)), ("a", State::Warm, noise(100.0, 0.02, 20, 2))])
}

fn outcome(gate: &str, report: &Report, baseline: Option<&Report>) -> &'static str {
    let results = Gate::parse(gate).unwrap().evaluate(report, baseline);
    match overall(&results) {
        Outcome::Pass => "pass",
        Outcome::Inconclusive { .. } => "inconclusive",
        Outcome::Fail => "fail",
    }
}

#[test]
fn a_prefetched_start_is_judged_against_both_others() {
    let mut r = cold_and_warm();
    assert_eq!(outcome("prefetched/cold > 0.9", &r, None), "inconclusive");
    r = report(&[
        ("a", State::Cold, noise(400.0, 0.03, 20, 1)),
        ("a", State::Prefetched, noise(120.0, 0.03, 20, 3)),
        ("a", State::Warm, noise(100.0, 0.02, 20, 2)),
    ]);
    assert_eq!(outcome("prefetched/cold > 0.9", &r, None), "pass");
    assert_eq!(outcome("prefetched/warm > 1.1", &r, None), "fail");
    assert_eq!(outcome("prefetched.median > 1s", &r, None), "pass");
    let names: Vec<_> = crate::summary::analyze(&r, 0.0).comparisons.into_iter().map(|c| c.names).collect();
    let expected = [["cold", "warm"], ["prefetched", "warm"], ["prefetched", "cold"]];
    assert_eq!(names, expected.map(|pair| pair.map(str::to_owned)));
}

#[test]
fn times_are_judged_by_their_interval() {
    let r = cold_and_warm();
    let expected = [
        ("warm.median > 250ms", "pass"),
        ("warm.median > 50ms", "fail"),
        ("warm.median > 100 ms", "inconclusive"),
        ("warm.median<=0.25s", "fail"),
        ("cold.p95 > 600ms", "pass"),
        ("cold.mean < 1s", "fail"),
        ("cold.max > 350000us", "fail"),
        ("cold.min < 1000000ns", "pass"),
        ("cold/warm > 3", "fail"),
        ("cold/warm > 4x", "inconclusive"),
        ("cold/warm >= 5", "pass"),
    ];
    for (gate, answer) in expected {
        assert_eq!(outcome(gate, &r, None), answer, "{gate}");
    }
    let result = &Gate::parse("warm.median > 100ms").unwrap().evaluate(&r, None)[0];
    let Outcome::Inconclusive { reason, runs_needed } = &result.outcome else { panic!("{result:?}") };
    assert_eq!(reason, "the interval crosses the limit");
    assert!(runs_needed.is_none_or(|n| n > 0));
}

#[test]
fn counts_are_judged_as_they_are() {
    let r = cold_and_warm();
    for (gate, answer) in [
        ("files > 300", "pass"),
        ("files >= 212", "fail"),
        ("misses > 50", "fail"),
        ("cold.read_bytes > 20MiB", "pass"),
        ("cold.read_bytes.max > 5 MB", "fail"),
        ("cold.requests > 184", "fail"),
        ("warm.major_faults > 0", "pass"),
        ("cold.peak_memory > 10 MiB", "fail"),
    ] {
        assert_eq!(outcome(gate, &r, None), answer, "{gate}");
    }
}

#[test]
fn the_unknown_never_passes() {
    let mut r = cold_and_warm();
    let result = &Gate::parse("cold.stall > 1s").unwrap().evaluate(&r, None)[0];
    assert_eq!(
        result.outcome,
        Outcome::Inconclusive { reason: "unknown: delay accounting is off".into(), runs_needed: None }
    );
    r.commands[0].files = Known::unknown("not observed");
    assert_eq!(outcome("files > 300", &r, None), "inconclusive");
    assert_eq!(outcome("light.median > 1s", &r, None), "inconclusive");
    assert_eq!(outcome("b:warm.median > 1s", &r, None), "inconclusive");
    assert_eq!(outcome("cold.median > 1.1x", &r, None), "inconclusive");
    r.runs[0].read_bytes = Known::unknown("gone");
    assert_eq!(outcome("cold.read_bytes > 20MiB", &r, None), "inconclusive");
    let few = report(&[("a", State::Warm, vec![100.0; 3])]);
    let result = &Gate::parse("warm.median > 1s").unwrap().evaluate(&few, None)[0];
    assert_eq!(
        result.outcome,
        Outcome::Inconclusive {
            reason: "3 runs are too few for a 95% interval".into(),
            runs_needed: Some(3)
        }
    );
}

#[test]
fn x_is_relative_to_the_baseline_or_the_first_command() {
    let base = cold_and_warm();
    let slower = report(&[("a", State::Cold, noise(480.0, 0.03, 20, 3))]);
    assert_eq!(outcome("cold.median > 1.10x", &slower, Some(&base)), "fail");
    assert_eq!(outcome("cold.median > 1.30x", &slower, Some(&base)), "pass");
    assert_eq!(outcome("cold.median > 1.20x", &slower, Some(&base)), "inconclusive");
    assert_eq!(outcome("cold.mean > 1.10x", &slower, Some(&base)), "fail");
    assert_eq!(outcome("cold.max > 1.10x", &slower, Some(&base)), "fail");
    assert_eq!(outcome("files > 1x", &slower, Some(&base)), "pass");
    assert_eq!(outcome("warm.major_faults > 1x", &base, Some(&base)), "inconclusive");

    let two = report(&[
        ("old", State::Cold, noise(400.0, 0.03, 20, 4)),
        ("new", State::Cold, noise(500.0, 0.03, 20, 5)),
    ]);
    let results = Gate::parse("cold.median > 1.10x").unwrap().evaluate(&two, None);
    assert_eq!(results.len(), 1);
    assert_eq!((results[0].command.as_str(), &results[0].outcome), ("new", &Outcome::Fail));
    assert!(results[0].observed.starts_with("1.2"), "{}", results[0].observed);
    assert_eq!(outcome("old:cold.median > 450ms", &two, None), "pass");
    assert_eq!(outcome("cold.median > 450ms", &two, None), "fail");
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    let message = |gate: &str| Gate::parse(gate).unwrap_err().to_string();
    assert_eq!(
        message("cool.median > 3ms"),
        "'cool.median > 3ms': at character 1 expected files, misses, read or a state (cold, prefetched, light, warm, snapshot), \
         found 'cool.median'"
    );
    assert_eq!(
        message("cold.median > 3"),
        "'cold.median > 3': at character 16 expected a unit of time (ns, us, µs, ms, s) or x, found the end"
    );
    assert_eq!(
        message("größe:cold.median = 3ms"),
        "'größe:cold.median = 3ms': at character 19 expected >, >=, < or <=, found '='"
    );
    assert!(message("files > 3ms").contains("at character 10 expected no unit or x"));
    assert!(message("cold.read_bytes > 3ms").contains("a unit of size"));
    assert!(message("cold.median > 3ms now").contains("expected the end of the condition, found 'now'"));
    assert!(message(":files > 3").contains("the name of a command"));
    assert!(message("").contains("found the end"));
}

#[test]
fn more_than_the_baseline_is_told_by_name() {
    use cold_model::bench::UsedFile;
    use cold_model::observed::Misses;
    let mut base = cold_and_warm();
    let file = |path: &str, bytes| UsedFile { path: path.into(), bytes: Bytes(bytes) };
    base.commands[0].files = cold_model::Known::Value(2);
    base.commands[0].misses = cold_model::Known::Value(9);
    base.commands[0].file_names = Some(vec![file("/a", 1), file("/b", 2)]);
    base.commands[0].missed_in = Some(vec![Misses { dir: "/lib".into(), count: 9 }]);
    let mut now = base.clone();
    let new = (0..30).map(|n| file(&format!("/new/{n:02}"), 100 + n));
    now.commands[0].files = cold_model::Known::Value(31);
    now.commands[0].file_names = Some(std::iter::once(file("/b", 7)).chain(new).collect());
    now.commands[0].misses = cold_model::Known::Value(20);
    let missed = [("/lib", 12), ("/etc", 8)].map(|(dir, count)| Misses { dir: dir.into(), count });
    now.commands[0].missed_in = Some(missed.to_vec());
    for run in &mut now.runs {
        run.read_bytes = cold_model::Known::Value(Bytes(50 << 20));
    }
    for run in &mut base.runs {
        run.read_bytes = cold_model::Known::Value(Bytes(20 << 20));
    }
    let result = |gate: &str, now| Gate::parse(gate).unwrap().evaluate(now, Some(&base)).remove(0);
    let failed = result("files > +28", &now);
    assert_eq!((failed.outcome, failed.observed.as_str()), (Outcome::Fail, "31 against 2, 29 more"));
    let Some(News::Files(new)) = failed.news else { panic!() };
    assert_eq!((new.count, new.amount, new.largest.len()), (30, 30 * 100 + 435, 20));
    assert_eq!((new.largest[0].0.0.to_str(), new.largest[0].1), (Some("/new/29"), 129));
    let passed = result("files > +29", &now);
    assert_eq!((passed.outcome, passed.news), (Outcome::Pass, None));
    assert_eq!(result("files < +0", &base).observed, "2 against 2, 0 more");
    let read = result("read > +20MiB", &now);
    assert_eq!(read.observed, "50.0 MiB against 20.0 MiB, 30.0 MiB more");
    assert!(read.outcome == Outcome::Fail && read.news.is_some());
    assert_eq!(result("read > +30MiB", &now).outcome, Outcome::Pass);
    let Some(News::Misses(new)) = result("misses > +5", &now).news else { panic!() };
    let named: Vec<_> = new.largest.iter().map(|(dir, n)| (dir.0.to_str().unwrap(), *n)).collect();
    assert_eq!(named, [("/etc", 8), ("/lib", 3)]);
    // A baseline of an earlier version has no names: the gate is answered all the same.
    let mut old = base.clone();
    old.commands[0].file_names = None;
    let failed = Gate::parse("files > +28").unwrap().evaluate(&now, Some(&old)).remove(0);
    assert_eq!((failed.outcome, failed.news), (Outcome::Fail, None));
    let message = |gate: &str| Gate::parse(gate).unwrap_err().to_string();
    assert!(message("cold.median > +3ms").contains("for times write x"), "{}", message("cold.median > +3ms"));
    assert!(message("cold/warm > +3").contains("no +"));
    assert!(message("files > +3x").contains("no unit"));
    let commands = ["a".to_owned()];
    let alone = Gate::parse("files > +3").unwrap().check(&commands, &[State::Cold], false);
    assert!(alone.unwrap_err().to_string().contains("needs --baseline"));
}

#[test]
fn gates_without_an_answer_are_refused_before_anything_runs() {
    let check = |gate: &str, commands: &[&str], baseline: bool| {
        let commands: Vec<String> = commands.iter().map(ToString::to_string).collect();
        let gate = Gate::parse(gate).unwrap();
        gate.check(&commands, &[State::Cold, State::Warm], baseline).map_err(|e| e.to_string())
    };
    assert_eq!(check("cold.median > 1.1x", &["a", "b"], false), Ok(()));
    assert_eq!(check("cold.median > 1.1x", &["a"], true), Ok(()));
    assert_eq!(check("cold/warm > 3x", &["a"], false), Ok(()));
    assert!(check("cold.median > 1.1x", &["a"], false).unwrap_err().contains("needs --baseline"));
    assert!(
        check("a:cold.median > 1.1x", &["a", "b"], false)
            .unwrap_err()
            .contains("compare with the first command")
    );
    assert!(check("light.median > 1s", &["a"], false).unwrap_err().contains("not measured"));
    assert!(check("c:files > 1", &["a"], false).unwrap_err().contains("no command named \"c\""));
}

#[test]
fn the_baseline_is_read_back_and_others_are_named() {
    let mut r = cold_and_warm();
    r.runs[0].taints.push(cold_model::bench::Taint::NotCold {
        bytes: Bytes(4096),
        holders: vec![],
        held: vec![],
    });
    let text = serde_json::to_string(&r).unwrap();
    assert_eq!(baseline::parse(&text).unwrap(), r);
    let error = |text: &str| baseline::parse(text).unwrap_err().to_string();
    assert!(error("{\"results\": []}").starts_with("is an export of hyperfine 1"));
    assert!(error("{\"results\": [], \"schema_version\": 2}").starts_with("is an export of hyperfine 2"));
    assert!(error("{\"schema\": \"coldstart.bench/9\"}").contains("coldstart.bench/9"));
    assert!(error("{}").contains("no \"schema\""));
    assert!(error("nonsense").starts_with("is not JSON"));
    assert!(error("{\"schema\": \"coldstart.bench/1\"}").contains("damaged"));
    r.runs[0].series = 7;
    assert!(error(&serde_json::to_string(&r).unwrap()).contains("run 0 names a series"));
}

#[test]
fn a_command_is_found_in_the_baseline_by_its_name_or_when_both_have_just_one() {
    let of = |names: &[&str]| {
        let series: Vec<_> = names.iter().map(|n| (*n, State::Cold, vec![1.0])).collect();
        report(&series)
    };
    let find = |baseline: &[&str], now: &[&str], n| baseline::command_of(&of(baseline), &of(now), n);
    assert_eq!(find(&["x", "a"], &["a", "b"], 0), Some(1));
    assert_eq!(find(&["old"], &["new"], 0), Some(0), "it was renamed");
    assert_eq!(find(&["old"], &["new", "other"], 0), None);
    assert_eq!(find(&["old", "older"], &["new"], 0), None);
    assert_eq!(find(&["a"], &["a"], 1), None, "there is no such command");
    let series = |state: &State| baseline::series_of(&of(&["x", "a"]), &of(&["a"]), 0, state);
    assert_eq!((series(&State::Cold), series(&State::Warm)), (Some(1), None));
}

#[test]
fn a_baseline_whose_series_name_no_command_is_damaged() {
    let mut r = cold_and_warm();
    r.series[1].command = 1;
    let why = baseline::parse(&serde_json::to_string(&r).unwrap()).unwrap_err().to_string();
    assert!(why.ends_with("is damaged: series 1 names a command that is not there"), "{why}");
    for (text, found) in
        [("{\"schema\": 7}", "7"), ("{\"schema\": null}", "null"), ("{\"schema\": []}", "[]")]
    {
        let why = baseline::parse(text).unwrap_err().to_string();
        assert!(why.starts_with(&format!("has the schema {found:?}")), "{why}");
    }
    assert!(baseline::parse("[]").unwrap_err().to_string().contains("no \"schema\""));
}

#[test]
fn a_fail_outweighs_what_is_unknown_and_that_a_pass() {
    let result = |outcome| GateResult::new("", "", String::new(), outcome);
    let unknown = || Outcome::Inconclusive { reason: "r".into(), runs_needed: None };
    let of = |outcomes: Vec<Outcome>| overall(&outcomes.into_iter().map(result).collect::<Vec<_>>()).clone();
    assert_eq!(of(vec![Outcome::Fail, unknown(), Outcome::Pass]), Outcome::Fail);
    assert_eq!(of(vec![Outcome::Pass, unknown(), Outcome::Pass]), unknown());
    assert_eq!(of(vec![]), Outcome::Pass);
}

#[test]
fn a_ratio_to_nothing_is_no_pass() {
    let r = report(&[("a", State::Warm, vec![100.0; 8])]);
    // Warm runs read nothing: half of nothing, and twice of it, cannot be told.
    for gate in ["warm.read_bytes > 2x", "warm.requests < 0.5x", "warm.major_faults.max > 1x"] {
        assert_eq!(outcome(gate, &r, Some(&r)), "inconclusive", "{gate}");
    }
    assert_eq!(outcome("warm.read_bytes > +0B", &r, Some(&r)), "pass");
    assert_eq!(outcome("warm.major_faults >= +0", &r, Some(&r)), "fail");
}

#[test]
fn two_snapshots_leave_open_which_one_is_meant() {
    let of = |name: &str| State::Snapshot(name.into());
    let one = report(&[("a", of("x"), vec![100.0; 8])]);
    assert_eq!(outcome("snapshot.median < 1s", &one, None), "fail");
    let two = report(&[("a", of("x"), vec![100.0; 8]), ("a", of("y"), vec![100.0; 8])]);
    assert_eq!(outcome("snapshot.median < 1s", &two, None), "inconclusive");
}

proptest! {
    #[test]
    fn any_text_parses_or_is_refused(text in ".{0,60}") {
        let _ = Gate::parse(&text);
    }
    #[test]
    fn well_formed_gates_parse(
        name in "([a-z/ >]{1,8}:)?",
        left in "(files|misses|cold/warm|light\\.(requests|major_faults(\\.p95)?))",
        op in "(>|<|>=|<=)",
        space in " {0,3}",
        limit in "[0-9]{1,6}(\\.[0-9]{1,3})?",
    ) {
        let text = format!("{name}{left}{space}{op}{space}{limit}");
        let parsed = Gate::parse(&text);
        prop_assert_eq!(parsed.is_ok(), !(name.starts_with(' ') && name.trim_matches([' ', ':']).is_empty()), "{}", text);
    }
}
