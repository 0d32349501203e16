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
    assert_eq!(
        (row.sums.warm, row.sums.followed, row.sums.controls, row.sums.skipped, row.sums.bytes),
        (7, 1, 1, 1, 3 * 4096)
    );
    let marked = [Start { control: true, wall_ns: 9 }, Start { control: false, wall_ns: 5 }];
    assert_eq!(row.marked, marked);
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

/// Version 1 counted warm starts by the day.
#[test]
fn a_history_of_version_1_is_taken_over_with_all_that_it_knows() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("history.db");
    let old = SCHEMA
        .replace("CREATE TABLE warm (\n    at_ns INTEGER", "CREATE TABLE warm (\n    day TEXT")
        .replace("PRIMARY KEY (at_ns, program)", "PRIMARY KEY (day, program)");
    let db = Connection::open(&path).expect("made");
    db.execute_batch(&old).expect("the tables");
    db.execute_batch(
        "INSERT INTO programs VALUES (1, '/usr/bin/a', NULL, 'default', 'a');
         INSERT INTO starts VALUES (1, 1, 5, 'followed', NULL, 7, NULL, NULL, 4096, 1, 0);
         INSERT INTO warm VALUES ('2026-11-01', 1, 3), ('2026-11-02', 1, 4);
         PRAGMA application_id = 0x636f6c64; PRAGMA user_version = 1;",
    )
    .expect("rows");
    drop(db);
    let history = History::open(&path).expect("taken over");
    let noon = 1_793_534_400_000_000_000_i64; // date -u -d 2026-11-01T12:00 +%s
    let warm = |db: &Connection| -> Vec<(i64, i64)> {
        let mut query = db.prepare("SELECT at_ns, starts FROM warm ORDER BY at_ns").expect("a query");
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        rows.map(|row| row.expect("a row")).collect()
    };
    assert_eq!(warm(&history.db), [(noon, 3), (noon + 86_400_000_000_000, 4)]);
    let rows = history.rows().expect("read");
    assert_eq!((rows.len(), rows[0].sums.warm, rows[0].sums.followed), (1, 7, 1));
    drop(history);
    // Once: the second time there is nothing to do.
    let history = History::read(&path).expect("opens").expect("there");
    assert_eq!(warm(&history.db).len(), 2);
}
