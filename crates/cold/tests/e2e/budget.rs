//! `cold report --fail-if`, `--allow`: budgets of recorded starts.

use std::fs;

use cold_recording::sample;

use crate::support::*;

#[test]
fn budgets_decide_the_exit_code_and_are_written_for_ci() {
    let place = Sandbox::for_all();
    cold_recording::write(&place.path("a.cold"), &sample::small()).unwrap();
    let a = place.text("a.cold");
    let (xml, md) = (place.text("out.xml"), place.text("out.md"));
    let report = |more: &[&str]| {
        let args: Vec<&str> = ["report", "--no-symbols", &a].iter().chain(more).copied().collect();
        place.cold(args).run()
    };
    let failed = report(&["--fail-if", "lookups >= 0", "--junit", &xml, "--markdown", &md]).expect(3);
    assert!(failed.stdout.contains("fail: 'lookups >= 0' holds"), "{}", failed.stdout);
    assert!(fs::read_to_string(&xml).unwrap().contains("failures=\"1\""));
    assert!(fs::read_to_string(&md).unwrap().contains("| fail | lookups &gt;= 0 | a.cold |"));
    report(&["--fail-if", "lookups < 0"]).expect(0);
    let json = report(&["--json", "--fail-if", "lookups >= 0"]).expect(3);
    assert!(json.stdout.contains("\"gates\""), "{}", json.stdout);
    let grown = report(&[&a, "--fail-if", "files > +0", "--fail-if", "processes > 1x"]).expect(0);
    assert!(grown.stdout.contains("pass: 'files > +0'"), "{}", grown.stdout);
    for (wrong, what) in [
        (vec!["--fail-if", "file > 0"], "expected a quantity (files, "),
        (vec!["--fail-if", "files > +0"], "needs two recordings"),
        (vec!["--until", "painted"], "has no marker \"painted\"; it has "),
        (vec!["--junit", &xml], "name one with --fail-if or --allow"),
        (vec!["--allow", "/nowhere"], "cannot read the list"),
    ] {
        let said = report(&wrong).expect(2);
        assert!(said.stderr.contains(what), "{wrong:?}: {}", said.stderr);
    }
}

#[test]
fn a_history_tells_where_a_count_changed() {
    let place = Sandbox::for_all();
    cold_recording::write(&place.path("a.cold"), &sample::small()).unwrap();
    let mut more = sample::small();
    let lookups = more.lookups.as_mut().unwrap();
    let again = lookups.clone();
    lookups.extend(again);
    lookups.sort_by_key(|l| l.at);
    cold_recording::write(&place.path("b.cold"), &more).unwrap();
    let db = place.text("starts.db");
    let record = |name: &str, commit: &str| {
        let args = ["report", "--no-symbols", &place.text(name), "--record", &db, "--commit", commit];
        place.cold(args).run().expect(0);
    };
    (0..6).for_each(|_| record("a.cold", "aaaa"));
    (0..6).for_each(|_| record("b.cold", "bbbb"));
    let told = place.cold(["history", &db, "--figure", "lookups"]).run().expect(0).stdout;
    assert!(told.contains("12") && told.contains("from bbbb ("), "{told}");
    let files = place.cold(["history", &db, "--figure", "files", "--json"]).run().expect(0).json();
    assert_eq!(files["series"][0]["points"].as_array().unwrap().len(), 12);
    assert_eq!(files["series"][0]["changes"].as_array().unwrap().len(), 0, "{files}");
    let missing = place.cold(["history", &place.text("none.db")]).run().expect(1);
    assert!(missing.stderr.contains("none.db cannot be opened"), "{}", missing.stderr);
}

/// One program of C, with a library of its own or without.
fn build(place: &Sandbox, library: bool) {
    fs::write(place.path("extra.c"), "int extra(void) { return 0; }\n").unwrap();
    let dir = place.path("");
    let cc = |words: &[&str]| {
        let status = std::process::Command::new("cc").args(words).current_dir(&dir).status().unwrap();
        assert!(status.success(), "cc {words:?}");
    };
    fs::write(place.path("app.c"), "int extra(void); int main(void) { return extra(); }\n").unwrap();
    if library {
        cc(&["-shared", "-fPIC", "-o", "libextra.so", "extra.c"]);
        cc(&["-o", "app", "app.c", "-L.", "-lextra", "-Wl,-rpath,$ORIGIN"]);
    } else {
        cc(&["-o", "app", "app.c", "extra.c"]);
    }
}

mod root {
    use super::*;

    #[test]
    fn an_unchanged_program_keeps_its_budgets_and_a_library_more_fails_by_its_name() {
        cold_testbed::needs_root!();
        let _machine = together();
        let place = Sandbox::for_all();
        build(&place, false);
        let (app, list) = (place.text("app"), place.text("app.allow"));
        let trace = |name: &str| {
            let path = place.text(name);
            place.cold(["trace", "--evict", "files", "--overwrite", "-o", &path, "--", &app]).run().expect(0);
            path
        };
        let first = trace("first.cold");
        place.cold(["report", "--no-symbols", &first, "--write-allow", &list]).run().expect(0);
        let budgets = |recording: &str| {
            let growth = ["files > +0", "libraries > +0", "lookups-missed > +0", "execs > +0"];
            let mut words = vec!["report", "--no-symbols", &first, recording, "--allow", &list];
            words.extend(growth.iter().flat_map(|g| ["--fail-if", g]));
            place.cold(words).run()
        };
        for _ in 0..10 {
            budgets(&trace("again.cold")).expect(0);
        }
        build(&place, true);
        let said = budgets(&trace("more.cold")).expect(3).stdout;
        assert!(said.contains("fail: 'libraries > +0' holds") && said.contains("libextra.so ("), "{said}");
        assert!(
            said.contains("fail: 'a file is not in app.allow'") && said.contains("by app (process"),
            "{said}"
        );
    }
}
