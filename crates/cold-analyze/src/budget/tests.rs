use cold_gate::{Outcome, overall};
use cold_model::layout::Layouts;
use cold_model::recording::tables::Began;
use cold_model::recording::{Frame, LookupKind, Recording, Stack, TouchKind};
use cold_model::sample::{PAGE, empty, ms, process};
use cold_model::{Known, Nanos};

use super::allow::AllowList;
use super::until::{phase, until};
use super::*;
use crate::analyze;

/// A program with a library of so many needed pages, and `more` libraries.
fn program(pages: u64, more: &[&str]) -> Recording {
    let mut r = empty();
    let bin = r.file("/bin/prog", 50 * PAGE);
    r.touch(1, bin, 0..3, TouchKind::Fault);
    for (i, path) in ["/lib/libc.so.6"].iter().chain(more).enumerate() {
        let f = r.file(path, 500 * PAGE);
        r.lookup(2 + i as u64, LookupKind::Open, path, 3).file = Some(f);
        r.touch(3 + i as u64, f, 0..pages, TouchKind::Fault);
    }
    r.lookup(5, LookupKind::Open, "/opt/a/x", -2);
    r.lookup(6, LookupKind::Open, "/opt/b/x", -2);
    r
}

fn answers(gate: &[&str], own: &Recording, reference: Option<&Recording>) -> Vec<GateResult> {
    let layouts = Layouts::default();
    let analyses = (analyze(own, &layouts), reference.map(|r| analyze(r, &layouts)));
    let start = |recording, analysis, name| BudgetedStart { name, recording, layouts: &layouts, analysis };
    let budgets: Vec<Budget> = gate.iter().map(|g| Budget::parse(g).unwrap()).collect();
    let reference = reference.zip(analyses.1.as_ref()).map(|(r, a)| start(r, a, "A"));
    judge(&budgets, start(own, &analyses.0, "B"), reference)
}

fn outcome(gate: &str, own: &Recording, reference: Option<&Recording>) -> Outcome {
    overall(&answers(&[gate], own, reference)).clone()
}

#[test]
fn counts_are_judged_as_they_are() {
    let r = program(4, &[]);
    for (gate, fails) in [
        ("files > 1", true),
        ("files > 2", false),
        ("libraries>0", true),
        ("libraries>=2", false),
        ("needed > 27KiB", true),
        ("needed > 28 KiB", false),
        ("faults > 1", true),
        ("lookups > 2", true),
        ("lookups-missed > 1", true),
        ("misses > 2", false),
        ("processes > 0", true),
        ("execs > 0", false),
    ] {
        let expected = if fails { Outcome::Fail } else { Outcome::Pass };
        assert_eq!(outcome(gate, &r, None), expected, "{gate}");
    }
}

#[test]
fn what_may_or_may_not_be_needed_decides_nothing() {
    let mut r = program(4, &[]);
    r.touch(9, 0, 10..20, TouchKind::FaultAround);
    for (gate, decided) in [("needed > 27KiB", true), ("needed > 28KiB", false), ("needed > 68KiB", true)] {
        let outcome = outcome(gate, &r, None);
        assert_eq!(!matches!(outcome, Outcome::Inconclusive { .. }), decided, "{gate}: {outcome:?}");
    }
    assert_eq!(outcome("needed > +40KiB", &r, Some(&program(4, &[]))), Outcome::Pass);
    assert!(matches!(outcome("needed > +0", &r, Some(&r)), Outcome::Inconclusive { .. }));
    let (results, _) = allowed("/bin/* pages=3 margin=0\n**", &r);
    assert_eq!(*overall(&results), Outcome::Pass);
}

#[test]
fn what_is_unknown_passes_no_budget() {
    let mut r = program(4, &[]);
    r.lookups = None;
    let Outcome::Inconclusive { reason, .. } = outcome("lookups > 99", &r, None) else { panic!() };
    assert!(reason.starts_with("lookups is unknown: "), "{reason}");
    assert!(matches!(outcome("files > +0", &program(4, &[]), Some(&r)), Outcome::Inconclusive { .. }));
}

#[test]
fn a_wrong_budget_says_where_and_what() {
    let error = Budget::parse("file > 3").unwrap_err().to_string();
    assert!(error.starts_with("'file > 3': at character 1 expected a quantity (files, "), "{error}");
    for text in ["ready > 1s", "files > 3MiB", "needed > 3", "files 3", "files > 3 y", "", "needed > +1x"] {
        assert!(Budget::parse(text).is_err(), "{text}");
    }
    for (name, _) in Quantity::ALL {
        assert!(Budget::parse(&format!("{name} > 0")).is_ok(), "{name}");
    }
}

#[test]
fn a_new_library_fails_by_its_name_with_who_asked() {
    let (old, mut new) = (program(4, &[]), program(4, &["/lib/libextra.so.1"]));
    assert_eq!(outcome("files > +0", &old, Some(&old)), Outcome::Pass);
    let library = new.files.len() as u32 - 1;
    let frame = Frame { address: 16, file: Some(0), offset: 16, generated: false };
    new.stacks = Some(vec![Stack { frames: vec![frame], truncated: false }]);
    for t in new.touches.iter_mut().flatten().filter(|t| t.file == library) {
        t.stack = Some(0);
    }
    for gate in ["files > +0", "libraries > +0", "needed > +0", "files > 1.2x", "faults > +0"] {
        let result = answers(&[gate], &new, Some(&old)).remove(0);
        assert_eq!(result.outcome, Outcome::Fail, "{gate}");
        let culprits = result.culprits.unwrap();
        assert_eq!(culprits.count, 1, "{gate}: {culprits:?}");
        let one = &culprits.largest[0];
        assert_eq!((one.name.as_str(), one.before), ("/lib/libextra.so.1", None), "{gate}");
        let asked = one.asked.as_ref().unwrap();
        assert_eq!((asked.process.as_str(), asked.pid), ("prog", 10));
        assert_eq!(asked.stack, ["prog+0x10"]);
    }
}

#[test]
fn the_loaders_cache_of_libraries_is_none() {
    let (old, new) = (program(4, &[]), program(4, &["/etc/ld.so.cache", "/lib/notes.so.txt"]));
    assert_eq!(outcome("libraries > +0", &new, Some(&old)), Outcome::Pass);
    assert_eq!(outcome("files > +0", &new, Some(&old)), Outcome::Fail);
    let versions = program(4, &["/lib/libx.so.1.2", "/lib/y.cpython-311.so", "/lib/z.so.6"]);
    assert_eq!(outcome("libraries > +2", &versions, Some(&old)), Outcome::Fail);
}

#[test]
fn more_searching_names_the_directory() {
    let (old, mut new) = (program(4, &[]), program(4, &[]));
    new.lookup(7, LookupKind::Stat, "/opt/c/x", -2);
    let result = answers(&["lookups-missed > +0"], &new, Some(&old)).remove(0);
    let culprits = result.culprits.unwrap();
    assert_eq!((culprits.of, culprits.largest[0].name.as_str()), ("directories", "/opt/c"));
    assert_eq!(culprits.largest[0].asked.as_ref().unwrap().process, "prog");
}

fn allowed(list: &str, r: &Recording) -> (Vec<GateResult>, Vec<String>) {
    let layouts = Layouts::default();
    let analysis = analyze(r, &layouts);
    let start = BudgetedStart { name: "r", recording: r, layouts: &layouts, analysis: &analysis };
    let verdict = AllowList::parse(list).unwrap().judge("list", start);
    (verdict.results, verdict.unused)
}

#[test]
fn a_list_made_of_a_start_allows_it_and_nothing_more() {
    let layouts = Layouts::default();
    let (a, b) = (program(40, &["/lib/a b.so"]), program(44, &[]));
    let both = [analyze(&a, &layouts), analyze(&b, &layouts)];
    let start = |recording, analysis| BudgetedStart { name: "r", recording, layouts: &layouts, analysis };
    let (list, left_out) = allow::write(&[start(&a, &both[0]), start(&b, &both[1])]);
    assert_eq!(left_out, 0);
    assert!(list.contains("\n/lib/libc.so.6 pages=44\n"), "{list}");
    assert!(list.contains("\n/lib/a b.so pages=40 optional\n"), "{list}");
    for r in [&a, &b] {
        let (results, unused) = allowed(&list, r);
        assert_eq!(*overall(&results), Outcome::Pass, "{results:?}");
        assert!(unused.is_empty(), "{unused:?}");
    }
    let (results, _) = allowed(&list, &program(49, &[]));
    assert_eq!(*overall(&results), Outcome::Pass, "44 pages and a tenth more");
    let (results, _) = allowed(&list, &program(50, &["/lib/libnew.so"]));
    let names = |i: usize| {
        let c = results[i].culprits.as_ref().unwrap();
        c.largest.iter().map(|c| (c.name.as_str(), c.amount, c.before)).collect::<Vec<_>>()
    };
    assert_eq!(names(0), [("/lib/libnew.so", 50, None)]);
    assert_eq!(names(1), [("/lib/libc.so.6", 50, Some(44))]);
}

#[test]
fn the_first_line_that_matches_decides_and_idle_ones_are_told() {
    let list =
        "# all\n/bin/*\n/lib/libc.so.? pages=10 margin=0\n\n/lib/** pages=99\n/never\n/ever optional\n";
    let (results, unused) = allowed(list, &program(10, &[]));
    assert_eq!(*overall(&results), Outcome::Pass);
    assert_eq!(unused, ["line 5: /lib/** pages=99", "line 6: /never"]);
    let (results, _) = allowed(list, &program(11, &[]));
    assert_eq!(*overall(&results), Outcome::Fail);
    for (list, line) in [("/a margin=3", 1), ("/a\nb", 2), ("/a pages=x", 1)] {
        assert_eq!(AllowList::parse(list).unwrap_err().line, line, "{list}");
    }
}

#[test]
fn a_list_says_nothing_of_a_start_whose_files_are_not_known() {
    let mut r = program(4, &[]);
    r.lookups = None;
    let (results, _) = allowed("**", &r);
    assert!(matches!(overall(&results), Outcome::Inconclusive { .. }), "{results:?}");
}

#[test]
fn a_marker_ends_what_is_counted() {
    let mut r = program(4, &[]);
    let late = r.file("/late", 9 * PAGE);
    r.touch(500, late, 0..1, TouchKind::Read);
    let mut child = process(11, "helper", Some(late));
    (child.began, child.how) = (ms(400), Began::Exec);
    r.processes.push(child);
    assert_eq!(outcome("files > 2", &r, None), Outcome::Fail);
    let early = until(&r, "exec:late").unwrap();
    assert_eq!(early.manifest.ready, Some(Known::Value(ms(400))));
    let error = until(&r, "painted").unwrap_err();
    assert_eq!(error, "the recording has no marker \"painted\"; it has exec:late, ready, end");
    let mut cut = early;
    cut.manifest.ready = Some(Known::Value(Nanos(ms(400).0 - 1)));
    assert_eq!(outcome("files > 2", &cut, None), Outcome::Pass);
}

#[test]
fn a_phase_counts_what_is_used_between_its_markers() {
    let mut r = program(4, &[]);
    let late = r.file("/late", 9 * PAGE);
    r.touch(500, late, 0..1, TouchKind::Read);
    let mut child = process(11, "helper", Some(late));
    (child.began, child.how) = (ms(400), Began::Exec);
    r.processes.push(child);
    r.manifest.serving = Some(ms(450));
    for (from, to, files, execs) in
        [("start", "ready", 3, 1), ("exec:late", "ready", 1, 1), ("serving", "ready", 1, 0)]
    {
        let part = phase(&r, from, to).unwrap();
        for (quantity, n) in [("files", files), ("execs", execs)] {
            assert_eq!(
                outcome(&format!("{quantity} > {n}"), &part, None),
                Outcome::Pass,
                "{quantity} of {from}..{to}"
            );
            assert_eq!(
                outcome(&format!("{quantity} >= {n}"), &part, None),
                Outcome::Fail,
                "{quantity} of {from}..{to}"
            );
        }
    }
    assert_eq!(phase(&r, "ready", "serving").unwrap_err(), "serving is not after ready");
    assert!(phase(&r, "painted", "ready").unwrap_err().contains("it has exec:late, serving, ready, end"));
}
