use super::*;

fn name(executable: &str, scenario: &str) -> Name {
    Name { executable: executable.into(), script: None, scenario: scenario.into() }
}

fn start(name: &Name, what: What, at_ns: u64, wall_ns: Option<u64>) -> Entry {
    Entry::Start {
        name: name.clone(),
        at_ns,
        what,
        why: (what == What::Skipped).then(|| "memory".to_owned()),
        wall_ns,
        cpu_ns: None,
        first_read_ns: Some(250_000),
        bytes: 4096,
        requests: 1,
        late: false,
    }
}

#[test]
fn what_was_added_is_there_when_it_is_opened_again_and_gone_when_forgotten() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("history.db");
    assert!(History::read(&path).expect("no error").is_none());
    let (a, b) = (name("/usr/bin/a", "default"), name("/usr/bin/b", "x"));
    let now = now_ns();
    let check = Check { at_ns: now, plan: u64::MAX, planned: 8192, unneeded: 4096 };
    let mut history = History::open(&path).expect("made");
    history
        .add(&[
            start(&a, What::Followed, now, Some(5)),
            start(&a, What::Control, now + 1, Some(9)),
            start(&a, What::Skipped, now + 2, None),
            Entry::Warm { name: a.clone(), starts: 3 },
            Entry::Warm { name: a.clone(), starts: 4 },
            start(&b, What::Common, now, None),
            Entry::Event { what: "began", detail: String::new() },
            Entry::Checked { name: a.clone(), check: Check { unneeded: 1, ..check } },
            Entry::Checked { name: a.clone(), check },
        ])
        .expect("written");
    drop(history);
    let mut history = History::read(&path).expect("opens").expect("there");
    let rows = history.rows().expect("read");
    assert_eq!(rows.iter().map(|r| &r.name).collect::<Vec<_>>(), [&a, &b]);
    let uses = history.uses().expect("read");
    assert_eq!(
        uses.iter().map(|u| (u.executable.as_str(), u.starts)).collect::<Vec<_>>(),
        [("/usr/bin/a", 10), ("/usr/bin/b", 1)]
    );
    assert!(uses.iter().all(|u| (0.0..1.0).contains(&u.days_ago)), "{uses:?}");
    let row = &rows[0];
    assert_eq!((row.check, rows[1].check), (Some(check), None), "the latest one");
    assert_eq!(
        (row.sums.warm, row.sums.followed, row.sums.controls, row.sums.skipped, row.sums.bytes),
        (7, 1, 1, 1, 3 * 4096)
    );
    let marked = [Start { control: true, wall_ns: 9 }, Start { control: false, wall_ns: 5 }];
    assert_eq!(row.latest, marked);
    let last = history.last("a", 2).expect("read");
    assert_eq!(last.iter().map(|s| s.what.as_str()).collect::<Vec<_>>(), ["skipped", "control"]);
    assert_eq!(history.last("/usr/bin/b", 9).expect("read").len(), 1, "by its path, too");
    assert_eq!(history.forget(Some("a")).expect("forgotten"), 10);
    assert_eq!(history.rows().expect("read").len(), 1);
    history.forget(None).expect("forgotten");
    assert!(history.rows().expect("read").is_empty());
    drop(history);
    let bytes = std::fs::read(&path).expect("read");
    assert!(!bytes.windows(10).any(|w| w == b"/usr/bin/a"), "nothing of it stays in the file");
}

#[test]
fn old_starts_go_and_late_ones_stay() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut history = History::open(&dir.path().join("h.db")).expect("made");
    let (a, now) = (name("/a", "default"), now_ns());
    let old = now - KEPT.as_nanos() as u64 - 1;
    history
        .add(&[start(&a, What::Followed, old, None), start(&a, What::Followed, now, None)])
        .expect("written");
    history.shorten().expect("shortened");
    assert_eq!(history.rows().expect("read")[0].sums.followed, 1);
}

#[test]
fn time_is_saved_by_all_starts_also_by_those_that_are_compared_no_more() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut history = History::open(&dir.path().join("h.db")).expect("made");
    let (a, starts) = (name("/a", "default"), COMPARED.cast_unsigned() * 2);
    let control = |at: u64| start(&a, What::Control, at, Some(30_000_000 + at));
    let served = |at: u64| start(&a, What::Followed, at, Some(10_000_000 + at));
    let mut entries: Vec<Entry> =
        (1..=starts).map(|at| if at % 50 == 0 { control(at) } else { served(at) }).collect();
    entries.push(start(&a, What::Followed, starts + 1, None)); // never came to its mark
    history.add(&entries).expect("written");
    let rows = history.rows().expect("read");
    let row = &rows[0];
    assert_eq!((row.latest.len() as u64, row.all.starts), (COMPARED.cast_unsigned(), starts * 49 / 50));
    let saved = row.saved().expect("controls");
    let truth = (starts * 49 / 50 * 20_000_000) as f64;
    assert!((saved.ns / truth - 1.0).abs() < 0.01, "{saved:?}, not {truth}");
}

#[test]
fn a_file_that_is_no_history_is_left_as_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("h.db");
    std::fs::write(&path, "a letter to a friend, long enough to be read as a header of a database …")
        .expect("written");
    let before = std::fs::read(&path).expect("read");
    let problem = History::open(&path).expect_err("refused");
    assert!(!problem.may_pass && problem.to_string().contains("move it away"), "{problem}");
    assert_eq!(std::fs::read(&path).expect("read"), before);
    let other = dir.path().join("other.db");
    Connection::open(&other).and_then(|db| db.execute_batch("CREATE TABLE mine (x)")).expect("made");
    let problem = History::open(&other).expect_err("refused").to_string();
    assert!(problem.contains("no history of this program"), "{problem}");
}

#[test]
fn the_same_plan_with_and_without_a_script_are_two() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut history = History::open(&dir.path().join("h.db")).expect("made");
    let plain = name("/usr/bin/python3", "default");
    let script = Name { script: Some("/srv/app.py".into()), ..plain.clone() };
    for _ in 0..2 {
        history
            .add(&[start(&plain, What::Followed, 1, None), start(&script, What::Followed, 1, None)])
            .expect("added");
    }
    let rows = history.rows().expect("read");
    assert_eq!(rows.iter().map(|r| r.sums.followed).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(history.last("app.py", 9).expect("read").len(), 2);
}

/// What version 1 made; it is never changed again.
const VERSION_1: &str = "
CREATE TABLE programs (
    id INTEGER PRIMARY KEY,
    executable TEXT NOT NULL,
    script TEXT,
    scenario TEXT NOT NULL,
    name TEXT NOT NULL);
CREATE UNIQUE INDEX programs_key ON programs (executable, coalesce(script, ''), scenario);
CREATE TABLE starts (
    id INTEGER PRIMARY KEY,
    program INTEGER NOT NULL REFERENCES programs (id),
    at_ns INTEGER NOT NULL,
    what TEXT NOT NULL,
    why TEXT,
    wall_ns INTEGER,
    cpu_ns INTEGER,
    first_read_ns INTEGER,
    bytes INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    late INTEGER NOT NULL);
CREATE INDEX starts_by_program ON starts (program, at_ns);
CREATE TABLE warm (
    day TEXT NOT NULL,
    program INTEGER NOT NULL REFERENCES programs (id),
    starts INTEGER NOT NULL,
    PRIMARY KEY (day, program)) WITHOUT ROWID;
CREATE TABLE events (at_ns INTEGER NOT NULL, what TEXT NOT NULL, detail TEXT);
";

/// A history of version 1 with these rows, left as a service leaves it: with a log of its last commits.
fn version_1(path: &Path, rows: &str) -> Connection {
    let db = Connection::open(path).expect("made");
    let header = "PRAGMA application_id = 0x636f6c64; PRAGMA user_version = 1; PRAGMA journal_mode = WAL;";
    db.execute_batch(&format!("{VERSION_1} {header} {rows}")).expect("rows");
    db
}

/// All rows of a query, each as one text in which what is unknown is `NULL` and numbers differ from texts.
fn told(db: &Connection, from: &str) -> Vec<String> {
    let mut query = db.prepare(&format!("SELECT * FROM {from}")).expect("a query");
    let columns = query.column_count();
    let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<String> {
        let each = (0..columns).map(|at| row.get::<_, rusqlite::types::Value>(at).map(|v| format!("{v:?}")));
        Ok(each.collect::<rusqlite::Result<Vec<_>>>()?.join(" "))
    };
    query.query_map([], row).expect("rows").map(|row| row.expect("a row")).collect()
}

#[test]
fn a_history_of_version_1_loses_nothing_and_what_it_did_not_know_stays_unknown() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("history.db");
    let writer = version_1(
        &path,
        "INSERT INTO programs VALUES (1, '/usr/bin/a', NULL, 'default', 'a'),
            (2, '/usr/bin/python3', '/srv/app.py', '~common', 'app.py'), (9, '/usr/bin/python3', NULL, 'x', 'python3');
         INSERT INTO starts VALUES (1, 1, 5, 'followed', NULL, 7, 3, 250000, 4096, 1, 0),
            (2, 1, 6, 'control', NULL, 9, NULL, NULL, 0, 0, 0), (3, 2, 8, 'common', NULL, NULL, NULL, 2, 8192, 2, 1),
            (7, 9, 9, 'skipped', 'too little memory was free', NULL, NULL, NULL, 0, 0, 0);
         INSERT INTO events VALUES (4, 'began', NULL), (10, 'switched off', 'a.plan: it brings nothing');
         INSERT INTO warm VALUES ('2026-11-01', 1, 3), ('2026-11-02', 1, 4), ('2026-11-02', 9, 5);",
    );
    let kept = ["programs ORDER BY id", "starts ORDER BY id", "events ORDER BY at_ns"];
    let before = kept.map(|from| told(&writer, from));
    // Version 1's process still has it open, as when a package is upgraded.
    let history = History::open(&path).expect("taken over");
    assert_eq!(kept.map(|from| told(&history.db, from)), before);
    let noon = 1_793_534_400_000_000_000_i64; // date -u -d 2026-11-01T12:00 +%s
    let next = noon + 86_400_000_000_000;
    assert_eq!(
        told(&history.db, "warm ORDER BY at_ns, program"),
        [(noon, 1, 3), (next, 1, 4), (next, 9, 5)]
            .map(|(at, program, starts)| format!("Integer({at}) Integer({program}) Integer({starts})"))
    );
    let rows = history.rows().expect("read");
    assert_eq!(rows.iter().map(|row| row.sums.warm).collect::<Vec<_>>(), [7, 5, 0], "by executable, script");
    assert_eq!(rows[0].latest, [Start { control: true, wall_ns: 9 }, Start { control: false, wall_ns: 7 }]);
    let last = history.last("a", 9).expect("read");
    assert_eq!(last.iter().map(|seen| seen.first_read_ns).collect::<Vec<_>>(), [None, Some(250_000)]);
    assert_eq!(history.last("python3", 9).expect("read")[0].wall_ns, None);
    drop((history, writer));
    // Once: the second time there is nothing to do.
    let history = History::read(&path).expect("opens").expect("there");
    assert_eq!(told(&history.db, "warm").len(), 3);
    // Nothing tells it from one that was begun today.
    let new = History::open(&dir.path().join("new.db")).expect("made");
    let shape = |history: &History| {
        let tables = "(SELECT m.name, c.name, c.type, c.\"notnull\", c.dflt_value, c.pk FROM sqlite_schema m,
            pragma_table_xinfo(m.name) c ORDER BY 1, 2)";
        (told(&history.db, tables), told(&history.db, "pragma_user_version"))
    };
    assert_eq!(shape(&history), shape(&new));
}

#[test]
fn warm_starts_of_version_1_are_counted_from_today_on_and_none_comes_from_the_future() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("history.db");
    // The clock was set back since.
    let rows = "INSERT INTO programs VALUES (1, '/usr/bin/a', NULL, 'default', 'a');
        INSERT INTO warm VALUES (date('now'), 1, 3), (date('now', '+1 day'), 1, 4), (date('now', '+2 days'), 1, 5);";
    drop(version_1(&path, rows));
    let mut history = History::open(&path).expect("taken over");
    assert_eq!(told(&history.db, &format!("warm WHERE at_ns > {}", now_ns())), [""; 0]);
    assert_eq!(history.rows().expect("read")[0].sums.warm, 12);
    history.add(&[Entry::Warm { name: name("/usr/bin/a", "default"), starts: 2 }]).expect("added");
    let uses = history.uses().expect("read");
    assert_eq!(uses.iter().map(|used| used.starts).sum::<u64>(), 14, "{uses:?}");
    let told = history.log().expect("read");
    assert_eq!((told.left_out, told.log.events().len()), (14, 0), "nothing was ever read for it");
}
