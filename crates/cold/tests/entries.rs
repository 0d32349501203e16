//! First entries of functions, on programs with a known order and on real ones, through the helper inside `cold`.

// clippy's allowance for tests does not reach the helper functions of an integration test.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

#[path = "entries/support.rs"]
mod support;

use cold_model::bench::Ending;
use cold_model::order::{Exclude, Tracing};
use support::*;

/// Names of the program's own functions in the order in which they were entered.
const OWN: [&str; 13] = [
    "main",
    "one",
    "two",
    "three",
    "never",
    "in_child",
    "after_child",
    "in_vfork",
    "after_exec",
    "last",
    "together",
    "of_library",
    "inner",
];

#[test]
fn functions_are_told_in_the_order_of_their_first_entries_however_the_program_is_linked() {
    for (linkage, flags) in LINKAGES {
        let Some(program) = order(linkage, flags) else { return };
        let start = trace(&[program.to_str().unwrap(), "plain"], &[]);
        assert_eq!(start.facts.ending, Ending::Code(0), "{linkage}: {start:?}");
        assert_eq!(names(&start, &OWN), ["main", "one", "three", "two"], "{linkage}");
        let file = start.files.iter().find(|f| f.path == program).unwrap();
        assert_eq!(serde_json::to_value(file.linked).unwrap(), linkage);
        // What runs before main, loader and C library included.
        let first = start.entries[0];
        let loader = &start.files[first.file as usize];
        assert_eq!(
            loader.path == program,
            linkage.starts_with("static"),
            "{linkage}: {}",
            loader.path.display()
        );
        assert!(start.entries.windows(2).all(|w| w[0].at <= w[1].at), "{linkage}");
        let mut seen: Vec<_> = start.entries.iter().map(|e| (e.file, e.function)).collect();
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all, "{linkage}: each once");
        assert!(start.facts.notes.is_empty() || !is_root(), "{:?}", start.facts.notes);
    }
}

#[test]
fn programs_of_musl_are_traced_with_their_threads_and_children() {
    for (linkage, flags) in LINKAGES {
        let Some(program) = order_of_musl(linkage, flags) else { return };
        let program = program.to_str().unwrap();
        let start = trace(&[program, "plain"], &[]);
        assert_eq!(names(&start, &OWN), ["main", "one", "three", "two"], "{linkage}");
        let (start, out) = trace_output(&[program, "children"], &[]);
        assert_eq!((out, start.facts.ending), untraced(&[program, "children"]), "{linkage}");
        let start = trace(&[program, "threads"], &[]);
        assert_eq!((start.facts.ending, start.facts.threads), (Ending::Code(0), 16), "{linkage}");
    }
}

#[test]
fn two_traces_of_a_program_of_one_thread_agree() {
    let Some(program) = order("pie", &["-pie"]) else { return };
    let told = || {
        let start = trace(&[program.to_str().unwrap(), "plain"], &[]);
        start
            .entries
            .iter()
            .map(|e| start.files[e.file as usize].functions[e.function as usize].address)
            .collect::<Vec<_>>()
    };
    assert_eq!(told(), told());
}

#[test]
fn threads_children_and_execs_are_followed_and_die_of_nothing() {
    for (linkage, flags) in LINKAGES {
        let Some(program) = order(linkage, flags) else { return };
        let run = |role: &str| {
            let start = trace(&[program.to_str().unwrap(), role], &[]);
            assert!(start.facts.crashes.is_empty(), "{linkage} {role}: {:?}", start.facts.crashes);
            start
        };
        let start = run("threads");
        assert_eq!((start.facts.ending, start.facts.threads), (Ending::Code(0), 16), "{linkage}");
        assert_eq!(names(&start, &OWN), ["main", "together", "last"], "{linkage}");
        let start = run("children");
        assert_eq!(
            (start.facts.ending, start.facts.processes),
            (Ending::Code(0), 22),
            "{linkage}: {:?}",
            start.facts.notes
        );
        let expected = ["main", "one", "in_child", "after_child", "in_vfork", "after_exec", "last"];
        assert_eq!(names(&start, &OWN), expected, "{linkage}");
        let start = run("thread_exec");
        assert_eq!(start.facts.ending, Ending::Code(7), "{linkage}");
        let told = names(&start, &OWN);
        assert!(told.contains(&"one") && told.last() == Some(&"after_exec"), "{linkage}: {told:?}");
        let start = run("stopping");
        assert_eq!(
            (start.facts.ending, names(&start, &OWN)),
            (Ending::Code(0), vec!["main", "one", "two"]),
            "{linkage}"
        );
        let start = run("undumpable");
        assert_eq!(start.facts.ending, Ending::Code(0), "{linkage}: {:?}", start.facts.notes);
    }
}

#[test]
fn a_programs_own_traps_and_signals_reach_it() {
    let Some(program) = order("pie", &["-pie"]) else { return };
    let argv = [program.to_str().unwrap(), "signals"];
    let (start, out) = trace_output(&argv, &[]);
    assert_eq!((start.facts.ending, out.as_str()), (Ending::Signal(9), "2 1\n"));
    assert_eq!(names(&start, &OWN), ["main"], "left alone from the handler on");
    assert!(start.facts.notes.iter().any(|n| n.contains("uses SIGTRAP itself")), "{:?}", start.facts.notes);
    let (start, out) =
        trace_output(&["sh", "-c", "trap '' TRAP; kill -TRAP $$; cat; kill -TRAP $$; echo alive"], &[]);
    assert_eq!((start.facts.ending, out.as_str()), (Ending::Code(0), "alive\n"));
    assert!(start.facts.notes.iter().any(|n| n.contains("SIGTRAP ignored")), "{:?}", start.facts.notes);
}

#[test]
fn a_program_that_handles_traps_is_traced_where_asked_and_the_loss_of_its_handler_told() {
    let Some(program) = order("pie", &["-pie"]) else { return };
    let argv = [program.to_str().unwrap(), "handles"];
    let (start, out) = trace_as(&argv, &Tracing { own_traps: true, ..Tracing::default() });
    assert_eq!((start.facts.ending, out.as_str()), (Ending::Code(0), "1\n"));
    assert_eq!(names(&start, &OWN), ["main", "one", "two", "three"]);
    let lost = |n: &String| n.contains("blocked SIGTRAP when it entered a function");
    assert!(start.facts.notes.iter().any(lost), "{:?}", start.facts.notes);
    let left = trace(&argv, &[]);
    assert_eq!(names(&left, &OWN), ["main"], "not asked to");
}

#[test]
fn a_library_that_is_loaded_later_is_traced() {
    let Some((program, library)) = order("pie", &["-pie"]).zip(library()) else { return };
    let argv = [program.to_str().unwrap(), "library", library.to_str().unwrap()];
    let (start, out) = trace_output(&argv, &[]);
    assert_eq!((start.facts.ending, out.as_str()), (Ending::Code(0), "42\n"));
    assert_eq!(names(&start, &OWN), ["main", "one", "of_library", "inner", "two"]);
}

#[test]
fn a_program_that_runs_or_reads_its_own_code_is_told_and_left_alone_where_asked() {
    let Some(program) = order("pie", &["-pie"]) else { return };
    let path = program.to_str().unwrap();
    let start = trace(&[path, "copies"], &[]);
    assert_eq!(start.facts.ending, Ending::Signal(5));
    let [crash] = &start.facts.crashes[..] else { panic!("{:?}", start.facts.crashes) };
    assert!(crash.place.contains("outside") && crash.signal == 5, "{crash:?}");
    let copied = crash.copied.as_deref().unwrap();
    let exclude = crash.exclude.as_deref().unwrap();
    // All of the program's own but main: copied to where no file is.
    let same = &OWN[1..=10];
    assert!(same.iter().any(|name| copied.starts_with(name)), "equal functions are not told apart: {copied}");
    assert!(exclude.starts_with("order-pie:"), "{exclude}");
    let without = |text: &str| vec![Exclude::parse(text).unwrap()];
    let (start, out) = trace_output(&[path, "copies"], &without("order-pie:in_child"));
    assert_eq!((start.facts.ending, out.as_str()), (Ending::Code(0), "ran a copy\n"));
    let start = trace(&[path, "checks"], &[]);
    assert_eq!((start.facts.ending, start.facts.crashes.len()), (Ending::Signal(6), 1), "{start:?}");
    let (start, out) = trace_output(&[path, "checks"], &without("after_*"));
    assert_eq!((start.facts.ending, out.as_str()), (Ending::Code(0), "unchanged\n"));
    let start = trace(&[path, "plain"], &without("order-pie:"));
    assert!(names(&start, &OWN).is_empty(), "a whole file");
}

#[test]
fn the_files_are_as_they_were() {
    let Some(program) = order("static", &["-static", "-no-pie"]) else { return };
    let before = std::fs::read(&program).unwrap();
    trace(&[program.to_str().unwrap(), "children"], &[]);
    assert!(std::fs::read(&program).unwrap() == before);
}

#[test]
fn real_programs_say_and_do_what_they_do_untraced() {
    let mut traced = 0;
    for argv in PROGRAMS {
        if !exists(argv[0]) {
            continue;
        }
        let (expected, code) = untraced(argv);
        let (start, out) = trace_output(argv, &[]);
        assert_eq!(out, expected, "{argv:?}: {:?}", start.facts.notes);
        assert_eq!(start.facts.ending, code, "{argv:?}: {:?} {:?}", start.facts.crashes, start.facts.notes);
        let crashed = matches!(code, Ending::Signal(6)); // by its own wish
        assert!(
            start.facts.crashes.is_empty() != crashed && start.entries.len() > 10,
            "{argv:?}: {:?}",
            start.facts.crashes
        );
        traced += 1;
    }
    eprintln!("{traced} of {} command lines", PROGRAMS.len());
    assert!(traced >= 15, "{traced} programs are here");
}
