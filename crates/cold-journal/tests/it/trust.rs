//! Journals are untrusted input.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use cold_journal::{Error, Outcome, leftovers, recover};
use proptest::prelude::*;

/// A line with its checksum.
pub(crate) fn line(json: &str) -> String {
    format!("{:08x} {json}\n", crc32fast::hash(json.as_bytes()))
}

/// The pid of a process that has ended.
fn dead_pid() -> u32 {
    let mut child = Command::new("true").spawn().expect("spawn");
    child.wait().expect("wait");
    child.id()
}

pub(crate) fn header(boot: &str) -> String {
    line(&format!(
        r#"{{"header":{{"format":"coldstart.journal/1","owner":{{"pid":{},"starttime":1,"boot_id":"{boot}","comm":"cold"}}}}}}"#,
        dead_pid()
    ))
}

pub(crate) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("boot id").trim().to_owned()
}

pub(crate) fn setting(id: u64, path: &Path, old: &str, new: &str) -> String {
    let path = path.display();
    line(&format!(
        r#"{{"change":{{"id":{id},"change":{{"kind":"setting","path":"{path}","old":"{old}","new":"{new}"}}}}}}"#
    ))
}

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) setting: PathBuf,
}

impl World {
    pub(crate) fn new(value: &str) -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        fs::create_dir(dir.path().join("journal")).expect("create");
        fs::set_permissions(dir.path().join("journal"), PermissionsExt::from_mode(0o700)).expect("chmod");
        let setting = dir.path().join("setting");
        fs::write(&setting, value).expect("write");
        Self { dir, setting }
    }
    pub(crate) fn journal(&self) -> PathBuf {
        self.dir.path().join("journal")
    }
    pub(crate) fn write(&self, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.journal().join(format!("{}-1-0.journal", dead_pid()));
        fs::write(&path, bytes).expect("write");
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("chmod");
        path
    }
    pub(crate) fn value(&self) -> String {
        fs::read_to_string(&self.setting).expect("read").trim().to_owned()
    }
}

#[test]
fn a_journal_cut_at_any_byte_is_read_safely() {
    let w = World::new("0");
    let whole = header(&boot()) + &setting(0, &w.setting, "128", "0") + &setting(1, &w.setting, "x", "y");
    let second = header(&boot()).len() + setting(0, &w.setting, "128", "0").len();
    for cut in 0..=whole.len() {
        fs::write(&w.setting, "0").expect("write");
        w.write(&whole.as_bytes()[..cut]);
        let undone = recover(&w.journal()).expect("recover");
        // A whole record without its newline counts: its checksum is right.
        let want = if cut + 1 >= second { "128" } else { "0" };
        assert_eq!(w.value(), want, "cut at {cut}: {undone:?}");
        assert_eq!(fs::read_dir(w.journal()).expect("list").count(), 0);
    }
}

#[test]
fn a_damaged_line_in_the_middle_does_not_hide_the_changes_after_it() {
    let w = World::new("0");
    let damaged = setting(0, &w.setting, "5", "6").replace("old", "olD");
    w.write(header(&boot()) + &damaged + &setting(1, &w.setting, "128", "0"));
    let left = leftovers(&w.journal()).expect("list");
    assert_eq!(left.iter().map(cold_journal::Leftover::damaged_lines).collect::<Vec<_>>(), [1]);
    drop(left);
    recover(&w.journal()).expect("recover");
    assert_eq!(w.value(), "128");
}

#[test]
fn settings_of_an_earlier_boot_are_not_restored_but_files_are_removed() {
    let w = World::new("0");
    let file = w.dir.path().join("decoy");
    fs::write(&file, "").expect("write");
    let id = |p: &Path| {
        use std::os::unix::fs::MetadataExt;
        let m = p.metadata().expect("stat");
        format!(r#"{{"dev":{},"ino":{}}}"#, m.dev(), m.ino())
    };
    let record = line(&format!(
        r#"{{"change":{{"id":1,"change":{{"kind":"file","path":"{}","parent":{}}}}}}}"#,
        file.display(),
        id(w.dir.path())
    ));
    w.write(header("another-boot") + &setting(0, &w.setting, "128", "0") + &record);
    let outcomes: Vec<_> =
        recover(&w.journal()).expect("recover").into_iter().map(|u| u.outcome.expect("ok")).collect();
    assert_eq!(outcomes, [Outcome::Restored, Outcome::GoneWithReboot]);
    assert_eq!((w.value().as_str(), file.exists()), ("0", false));
}

#[test]
fn a_journal_or_directory_that_others_may_write_is_refused() {
    let w = World::new("0");
    let path = w.write(header(&boot()) + &setting(0, &w.setting, "128", "0"));
    fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).expect("chmod");
    assert!(matches!(recover(&w.journal()), Err(Error::Untrusted { .. })));
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("chmod");
    fs::set_permissions(w.journal(), PermissionsExt::from_mode(0o777)).expect("chmod");
    assert!(matches!(recover(&w.journal()), Err(Error::Untrusted { .. })));
    assert_eq!(w.value(), "0");
}

#[test]
fn a_symbolic_link_is_not_followed() {
    let w = World::new("0");
    let path = w.write(header(&boot()) + &setting(0, &w.setting, "128", "0"));
    let elsewhere = w.dir.path().join("elsewhere");
    fs::rename(&path, &elsewhere).expect("rename");
    symlink(&elsewhere, &path).expect("link");
    recover(&w.journal()).expect_err("a link");
    assert_eq!(w.value(), "0");
}

#[test]
fn a_journal_locked_by_another_process_is_left_to_it() {
    let w = World::new("0");
    let path = w.write(header(&boot()) + &setting(0, &w.setting, "128", "0"));
    let held = fs::File::open(&path).expect("open");
    held.lock().expect("lock");
    assert!(leftovers(&w.journal()).expect("list").is_empty());
    drop(held);
    assert_eq!(leftovers(&w.journal()).expect("list").len(), 1);
}

#[test]
fn a_journal_that_has_just_begun_is_not_taken_for_a_leftover() {
    let w = World::new("0");
    let (dir, done) = (w.journal(), std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                recover(&dir).expect("recover");
            }
        });
        for _ in 0..300 {
            let journal = cold_journal::Journal::open_in(&dir);
            let (made, guard) = journal.create_directory(w.dir.path(), "scratch").expect("directory");
            let held = fs::read_dir(&dir).expect("list").count();
            assert!(made.exists() && held == 1, "{held} journals");
            assert_eq!(guard.undo().expect("undone"), Outcome::Restored);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let w = World::new("0");
        w.write(&bytes);
        recover(&w.journal()).expect("recover");
        prop_assert_eq!(w.value(), "0");
    }
}
