//! Guards, nesting, and the changes of others.

use std::fs;

use cold_journal::{Journal, Outcome, leftovers};

fn world() -> (tempfile::TempDir, Journal, std::path::PathBuf) {
    let dir = tempfile::tempdir().expect("tempdir");
    let journal = Journal::open_in(dir.path().join("journal"));
    let setting = dir.path().join("setting");
    fs::write(&setting, "128\n").expect("write");
    (dir, journal, setting)
}

#[test]
fn a_setting_changed_by_others_is_left_alone_and_reported() {
    let (dir, journal, setting) = world();
    let guard = journal.set(&setting, "0").expect("set");
    fs::write(&setting, "77\n").expect("write");
    assert_eq!(guard.undo().expect("undo"), Outcome::ChangedByOthers { found: "\"77\"".to_owned() });
    assert_eq!(fs::read_to_string(&setting).expect("read"), "77\n");
    assert_eq!(fs::read_dir(dir.path().join("journal")).expect("list").count(), 0);
}

#[test]
fn guards_of_one_setting_dropped_in_any_order_restore_the_first_value() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (_dir, journal, setting) = world();
        let mut guards: Vec<_> =
            ["1", "2", "3"].map(|v| Some(journal.set(&setting, v).expect("set"))).into_iter().collect();
        for i in order {
            drop(guards[i].take());
        }
        assert_eq!(fs::read_to_string(&setting).expect("read"), "128\n", "{order:?}");
    }
}

#[test]
fn a_choice_is_written_back_as_a_word() {
    let (_dir, journal, setting) = world();
    fs::write(&setting, "always [madvise] never\n").expect("write");
    drop(journal.set(&setting, "never").expect("set"));
    assert_eq!(fs::read_to_string(&setting).expect("read"), "madvise\n");
}

#[test]
fn after_undoing_everything_no_change_is_made_any_more() {
    let (_dir, journal, setting) = world();
    let guard = journal.set(&setting, "0").expect("set");
    assert_eq!(journal.undo_all().len(), 1);
    let refused = journal.set(&setting, "1").expect_err("closed");
    assert!(refused.to_string().contains("closed"), "{refused}");
    assert_eq!(guard.undo().expect("undo"), Outcome::AlreadyUndone);
    assert_eq!(fs::read_to_string(&setting).expect("read"), "128\n");
}

#[test]
fn a_living_process_keeps_its_journal() {
    let (dir, journal, setting) = world();
    let _guard = journal.set(&setting, "0").expect("set");
    assert!(leftovers(&dir.path().join("journal")).expect("list").is_empty());
    assert_eq!(fs::read_to_string(&setting).expect("read"), "0\n");
}

#[test]
fn a_released_file_stays() {
    let (dir, journal, _) = world();
    let (path, _file, guard) = journal.create_file(dir.path(), "keep").expect("create");
    guard.release().expect("release");
    assert!(path.exists());
    assert_eq!(fs::read_dir(dir.path().join("journal")).expect("list").count(), 0);
}

#[test]
fn a_file_that_took_the_name_is_not_removed() {
    let (dir, journal, _) = world();
    let (path, _file, guard) = journal.create_file(dir.path(), "name").expect("create");
    fs::rename(&path, dir.path().join("moved")).expect("rename");
    fs::write(&path, "somebody else's").expect("write");
    assert!(matches!(guard.undo().expect("undo"), Outcome::ChangedByOthers { .. }));
    assert_eq!(fs::read_to_string(&path).expect("read"), "somebody else's");
}

#[test]
fn nothing_is_changed_when_the_journal_cannot_be_written() {
    let (dir, _, setting) = world();
    fs::write(dir.path().join("file"), "").expect("write");
    let journal = Journal::open_in(dir.path().join("file/journal"));
    journal.set(&setting, "0").expect_err("no journal");
    assert_eq!(fs::read_to_string(&setting).expect("read"), "128\n");
}

#[test]
fn a_setting_that_refuses_the_value_leaves_no_record() {
    let (dir, journal, _) = world();
    journal.set(std::path::Path::new("/proc/self/stat"), "0").expect_err("read-only");
    assert_eq!(fs::read_dir(dir.path().join("journal")).expect("list").count(), 0);
}
