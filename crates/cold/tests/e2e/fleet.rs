//! Recordings of many machines: what DuckDB answers against what is counted here one by one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cold_fleet::sample::{self, MACHINES, SLOW_VERSION, VERSIONS};
use cold_recording::fleet::FleetStart;
use cold_testbed::need;
use serde_json::Value;

use crate::support::*;

/// DuckDB's command line: `COLD_DUCKDB`, or that in PATH.
fn duckdb() -> Option<String> {
    let named = std::env::var("COLD_DUCKDB").unwrap_or_else(|_| "duckdb".to_owned());
    let there = Command::new(&named).arg("--version").output().is_ok_and(|o| o.status.success());
    need(there, &format!("{named} (pip install duckdb-cli)")).then_some(named)
}

/// A page of a file: program's version, path, build-id, size, number.
type Page = (String, String, String, u64, u64);

fn pages_of(start: &FleetStart) -> Vec<Page> {
    let regular = start.pages.iter().filter(|p| p.kind == "regular");
    let each = regular.flat_map(|p| {
        let version = start.partition.version.clone();
        let page = move |n| (version.clone(), p.path.clone(), p.build_id.clone(), p.size, n);
        (p.first_page..p.first_page + p.pages).map(page)
    });
    each.collect()
}

/// In how many of these starts each page was needed, and how many starts each version has.
fn counted(starts: &[&FleetStart]) -> (HashMap<Page, u64>, HashMap<String, u64>) {
    let (mut pages, mut versions) = (HashMap::new(), HashMap::new());
    for start in starts {
        *versions.entry(start.partition.version.clone()).or_insert(0) += 1;
        for page in pages_of(start) {
            *pages.entry(page).or_insert(0) += 1;
        }
    }
    (pages, versions)
}

fn agreed(starts: &[&FleetStart], share: f64) -> BTreeMap<Page, u64> {
    let (pages, versions) = counted(starts);
    pages.into_iter().filter(|(p, used)| *used as f64 >= share * versions[&p.0] as f64).collect()
}

fn text(row: &Value, name: &str) -> String {
    row[name].as_str().unwrap_or_else(|| panic!("{name}: {row}")).to_owned()
}

fn number(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}"))
}

/// 240 starts, and the dataset of them.
struct Fleet {
    place: Sandbox,
    starts: Vec<FleetStart>,
}

/// The same for the tests that only ask it: making it takes seconds of CPU. It goes with the last of them.
fn fleet() -> Arc<Fleet> {
    static MADE: Mutex<Weak<Fleet>> = Mutex::new(Weak::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.upgrade().unwrap_or_else(|| {
        let place = Sandbox::new();
        let like = cold_recording::sample::firefox_like(1000, 1);
        let starts: Vec<FleetStart> = (0..240).map(|n| sample::start(&like, n, 240).unwrap()).collect();
        for start in &starts {
            cold_recording::fleet::add(&place.path("fleet"), start).unwrap();
        }
        let new = Arc::new(Fleet { place, starts });
        *made = Arc::downgrade(&new);
        new
    })
}

#[test]
fn answers_are_what_counting_one_by_one_gives() {
    let Some(duckdb) = duckdb() else { return };
    let fleet = fleet();
    let (place, all) = (&fleet.place, fleet.starts.iter().collect::<Vec<_>>());
    let dataset = place.text("fleet");
    let ask = |question: &str, options: &[&str]| -> Vec<Value> {
        let words = ["fleet", "query", &dataset, question, "--json", "--duckdb", &duckdb];
        let told = place.cold([&words, options].concat()).run().expect(0).json();
        told.as_array().unwrap().clone()
    };

    let overview = ask("overview", &[]);
    assert_eq!((number(&overview[0], "starts"), number(&overview[0], "versions")), (240, 5), "{overview:?}");

    for share in ["0.5", "0.9", "1"] {
        let expected = agreed(&all, share.parse().unwrap());
        let mut told = BTreeMap::new();
        for row in ask("consensus", &["--share", share]) {
            let first = number(&row, "first_page");
            for n in first..first + number(&row, "pages") {
                let page = (
                    text(&row, "version"),
                    text(&row, "path"),
                    text(&row, "build_id"),
                    number(&row, "size"),
                    n,
                );
                assert!(told.insert(page, number(&row, "used")).is_none(), "twice: {row}");
            }
        }
        assert_eq!(told.len(), expected.len(), "share {share}");
        assert!(told == expected, "share {share}");
    }

    let (pages, versions) = counted(&all);
    for row in ask("stability", &[]) {
        let (version, path) = (text(&row, "version"), text(&row, "path"));
        let own: Vec<u64> =
            pages.iter().filter(|(p, _)| p.0 == version && p.1 == path).map(|(_, used)| *used).collect();
        let in_all = own.iter().filter(|used| **used == versions[&version]).count() as u64;
        assert_eq!(number(&row, "any_pages"), own.len() as u64, "{row}");
        assert_eq!(number(&row, "all_pages"), in_all, "{row}");
        assert_eq!(number(&row, "needed_pages"), own.iter().sum::<u64>(), "{row}");
        let jaccard = row["jaccard"].as_f64().unwrap();
        assert!((jaccard - in_all as f64 / own.len() as f64).abs() < 1e-9, "{row}");
    }

    let (held, teachers): (Vec<&FleetStart>, Vec<&FleetStart>) = all.iter().partition(|s| s.start.fold == 3);
    let plan = agreed(&teachers, 0.5);
    let rows = ask("coverage", &["--hold-out", "3"]);
    let judged: BTreeSet<String> = held.iter().map(|s| s.partition.version.clone()).collect();
    assert_eq!(rows.len(), judged.len());
    for row in rows {
        let version = text(&row, "version");
        let of: Vec<_> = held.iter().filter(|s| s.partition.version == version).collect();
        let needed: Vec<Page> = of.iter().flat_map(|s| pages_of(s)).collect();
        let covered = needed.iter().filter(|p| plan.contains_key(*p)).count() as u64;
        let planned = plan.keys().filter(|p| p.0 == version).count() as u64 * of.len() as u64;
        let told = ["held_out", "needed_pages", "covered_pages", "planned_pages"].map(|c| number(&row, c));
        assert_eq!(told, [of.len() as u64, needed.len() as u64, covered, planned], "{row}");
    }
}

#[test]
fn the_slow_version_and_the_slow_machines_are_found_and_no_others() {
    let Some(duckdb) = duckdb() else { return };
    let fleet = fleet();
    let place = &fleet.place;
    let dataset = place.text("fleet");
    let ask = |question: &str| -> Vec<Value> {
        let words = ["fleet", "query", &dataset, question, "--json", "--duckdb", &duckdb];
        place.cold(words).run().expect(0).json().as_array().unwrap().clone()
    };
    let rows = ask("regressions");
    assert_eq!(rows.len(), VERSIONS.len() * MACHINES.len());
    for row in rows {
        let expected = match text(&row, "version").as_str() {
            "1.0" => "first",
            SLOW_VERSION => "slower",
            "1.4" => "faster",
            _ => "no difference proved",
        };
        assert_eq!(text(&row, "verdict"), expected, "{row}");
        let between = ["low", "median", "high"].map(|c| row[c].as_f64().unwrap());
        assert!(between.is_sorted(), "{row}");
    }
    for row in ask("outliers") {
        let slow = text(&row, "machine") == MACHINES[MACHINES.len() - 1];
        assert_eq!(text(&row, "verdict") == "slower", slow, "{row}");
    }
    // The table for people fits, and says what it is about.
    let words = ["fleet", "query", &dataset, "outliers", "--duckdb", &duckdb];
    let shown = place.cold(words).run().expect(0).stdout;
    assert!(shown.contains("tablet") && shown.contains("slower"), "{shown}");
}

#[test]
fn what_cannot_be_added_or_asked_is_said_and_the_rest_is_there() {
    let place = Sandbox::new();
    let recording = place.path("app.cold");
    cold_recording::write(&recording, &cold_recording::sample::firefox_like(1000, 2)).unwrap();
    let dataset = place.text("fleet");
    let both =
        [&dataset, place.path("none.cold").to_str().unwrap(), recording.to_str().unwrap()].map(str::to_owned);
    let add = |options: &[&str]| {
        let words: Vec<&str> = ["fleet", "add"]
            .into_iter()
            .chain(both.iter().map(String::as_str))
            .chain(options.iter().copied())
            .collect();
        place.cold(words).run().expect(1)
    };
    let told = add(&["--program", "a b/../c"]);
    assert!(
        told.stdout.contains("added 1 start") && told.stderr.contains("none.cold adds nothing"),
        "{told:?}"
    );
    assert!(place.path("fleet/starts/program=a_b_.._c").is_dir(), "no other directory");
    let again = add(&["--program", "a b/../c"]);
    assert!(again.stdout.contains("added 0 starts; 1 start"), "{again:?}");

    let refused = place.cold(["fleet", "query", &dataset, "--duckdb", "/nonexistent"]).run().expect(1);
    assert!(
        refused.stderr.contains("cannot start /nonexistent") && refused.stderr.contains("duckdb-cli"),
        "{refused:?}"
    );
    let said = place.cold(["fleet", "query", &dataset, "--duckdb", "/bin/false"]).run().expect(1).stderr;
    assert!(said.contains("/bin/false ended with exit status: 1"), "{said}");
    let said =
        place.cold(["fleet", "query", &dataset, "--duckdb", "/bin/true", "--json"]).run().expect(0).stdout;
    assert_eq!(said.trim(), "[]", "no answer is no row");
    place.cold(["fleet", "query", "/nonexistent"]).run().expect(2);
    place.cold(["fleet", "query", &dataset, "nothing"]).run().expect(2);
    place.cold(["fleet", "query", &dataset, "--share", "1.5"]).run().expect(2);
    let sql = place
        .cold(["fleet", "sql", "s3://bucket/fleet", "coverage", "--engine", "spark"])
        .run()
        .expect(0)
        .stdout;
    assert!(sql.contains("USING parquet OPTIONS (path 's3://bucket/fleet/pages')"), "{sql}");
}

mod root {
    use cold_testbed::disk::Preset;
    use cold_testbed::need_root;

    use super::*;
    use crate::prefetch::root::World;

    #[test]
    fn a_plan_of_recordings_is_worth_what_a_learnt_one_is_and_names_can_be_hidden() {
        if !need_root() {
            return;
        }
        let Some(duckdb) = duckdb() else { return };
        let _machine = together();
        let w = World::new(Preset::Cloud);
        let dataset = w.place.text("fleet");
        let recordings: Vec<String> = (0..3).map(|n| w.place.text(&format!("{n}.cold"))).collect();
        for name in &recordings {
            let words = ["trace", "--evict", "files", "--no-stacks", "-o", name, "--"].map(str::to_owned);
            w.place.cold(words.into_iter().chain(w.program()).collect::<Vec<_>>()).run().expect(0);
        }
        let add = |dataset: &str, options: &[&str]| {
            let names = recordings.iter().map(String::as_str);
            let words = ["fleet", "add", dataset].into_iter().chain(names).chain(options.iter().copied());
            w.place.cold(words.collect::<Vec<_>>()).run().expect(0)
        };
        assert!(add(&dataset, &[]).stdout.contains("added 3 starts"));
        let file = w.place.text("app.json");
        let plan = ["fleet", "plan", &dataset, "--duckdb", &duckdb, "-o", &file];
        w.place.cold(plan).run().expect(0);
        w.place.cold(["prefetch", "import", "--store", &w.store(), &file]).run().expect(0);
        let imported = w.planned(&w.cold(&["prefetch", "show"], &["--json"]).run().expect(0).json());
        let shown = w.cold(&["launch", "--explain"], &[]).run().expect(0).stdout;
        assert!(shown.contains("would be followed") || shown.contains("are cached"), "{shown}");
        // What a lesson on this machine finds. Strangers may bend one: which of two pages was needed first.
        attempts(|| {
            let _ = std::fs::remove_dir_all(w.store());
            let learnt = w.planned(&w.learn());
            check(imported == learnt, || format!("imported {imported:?}, learnt {learnt:?}"))
        });

        // With hidden names the same starts tell no path of the test, and no plan can be made of them.
        let hidden = w.place.text("hidden");
        add(&hidden, &["--redact"]);
        let rows = ["fleet", "query", &hidden, "consensus", "--json", "--duckdb", &duckdb];
        let rows = w.place.cold(rows).run().expect(0).json();
        let paths: BTreeSet<String> = rows.as_array().unwrap().iter().map(|r| text(r, "path")).collect();
        let own = w.slow.mount_point().to_str().unwrap().to_owned();
        assert!(paths.iter().any(|p| p.starts_with("redacted/")), "{paths:?}");
        assert!(paths.iter().all(|p| !p.contains(&own)), "{paths:?}");
        let overview = ["fleet", "query", &hidden, "overview", "--json", "--duckdb", &duckdb];
        let program = text(&w.place.cold(overview).run().expect(0).json()[0], "program");
        assert!(program.starts_with("redacted-"), "{program}");
        let refused = w.place.cold(["fleet", "plan", &hidden, "--duckdb", &duckdb]).run().expect(1).stderr;
        assert!(refused.contains("redacted"), "{refused}");
    }
}
