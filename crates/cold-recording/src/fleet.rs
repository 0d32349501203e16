//! A fleet's dataset: what many recordings tell, as Parquet files that any engine of SQL reads
//! (docs/formats/fleet.md).
//!
//! One file per start and table, in directories that name program, version, machine class and day the way Hive does:
//! `pages/program=python3/version=3.11.2/machine=4cpu-16GiB-x86_64/day=2026-11-24/0123….parquet`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cold_sys::whole::{Ownership, WholeFile};

use crate::schema::Table;
use crate::schema::tables::fleet::{PAGES, REMEDIES, STARTS};
use crate::{Error, Result, columns};

/// A start. Fields as docs/formats/fleet.md has them.
#[derive(Debug, Clone, PartialEq)]
pub struct StartRow {
    /// 32 hexadecimal digits.
    pub start: String,
    /// Nanoseconds since 1970.
    pub started: u64,
    /// 0 to 9.
    pub fold: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// Path of the program, or a digest of it.
    pub executable: String,
    /// Empty: none, or not known.
    pub executable_build_id: String,
    /// Bytes; 0: not known.
    pub executable_size: u64,
    /// Empty: the executable itself.
    pub script: String,
    /// `uname -r`.
    pub kernel: String,
    /// Empty: not known.
    pub os: String,
    /// `A` to `D`.
    pub tier: String,
    /// `cold`, `warm`, …
    pub state: String,
    /// Faults were exact to the page.
    pub exact: bool,
    /// One thread of one process until ready.
    pub one_thread: bool,
    /// Complete, nothing lost.
    pub whole: bool,
    /// The same, and a measurement.
    pub undisturbed: bool,
    /// Start to ready, nanoseconds.
    pub ready: u64,
    /// The same without waits for storage, nanoseconds.
    pub computing: u64,
    /// Nanoseconds; `None`, here and below: not known.
    pub waited: Option<u64>,
    /// Bytes of pages that were needed, at most.
    pub needed: Option<u64>,
    /// Bytes read into the page cache.
    pub read: Option<u64>,
    /// Of `read`, bytes that were not needed.
    pub unused: Option<u64>,
    /// Read requests to devices.
    pub requests: Option<u64>,
    /// Regular files executed, mapped or opened.
    pub files: Option<u64>,
    /// Names that were looked up.
    pub lookups: Option<u64>,
    /// Of `lookups`, those that found nothing.
    pub misses: Option<u64>,
}

/// Pages of a file, a directory or a name that a start needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesRow {
    /// [`StartRow::start`].
    pub start: String,
    /// `regular`, `directory` or `name`.
    pub kind: String,
    /// As [`StartRow::executable`].
    pub path: String,
    /// Empty: none, or not known.
    pub build_id: String,
    /// Size of the file in bytes.
    pub size: u64,
    /// Of 4096 bytes.
    pub first_page: u64,
    /// 0 for directories and names.
    pub pages: u64,
    /// Nanoseconds from the exec.
    pub need: u64,
    /// Only an upper bound.
    pub around: bool,
    /// JSON: name, offset and bytes of each loaded section; empty: none, or not known.
    pub sections: String,
}

/// What would help a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemedyRow {
    /// [`StartRow::start`].
    pub start: String,
    /// Name of the advice (`prefetch_plan`, …), which does not change.
    pub remedy: String,
    /// Nanoseconds that it would save; `None`: not known.
    pub saves: Option<u64>,
}

/// What a start adds to a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetStart {
    /// Values of the partitions: program, version, machine class, day.
    pub partition: Partition,
    /// The start itself.
    pub start: StartRow,
    /// What it needed.
    pub pages: Vec<PagesRow>,
    /// What would help it.
    pub remedies: Vec<RemedyRow>,
}

/// By what a dataset is divided. Values are names of directories: other characters than letters, digits, `.`, `_` and
/// `-` become `_` ([`Partition::value`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Name of the program.
    pub program: String,
    /// Version of the program, as its package or its build-id tells.
    pub version: String,
    /// Class of the machine.
    pub machine: String,
    /// `2026-11-24`, UTC.
    pub day: String,
}

impl Partition {
    /// A text as such a value: the same wherever it is used.
    pub fn value(text: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
        let value: String = text.chars().map(plain).take(100).collect();
        // `.` and `..` are directories, and an empty value is null to some engines.
        if value.chars().all(|c| c == '.') { format!("_{value}") } else { value }
    }

    fn directory(&self) -> PathBuf {
        let Self { program, version, machine, day } = self;
        [("program", program), ("version", version), ("machine", machine), ("day", day)]
            .iter()
            .map(|(key, value)| format!("{key}={}", Self::value(value)))
            .collect()
    }
}

/// Whether a start was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It was not there.
    New,
    /// It was there, and is as it was.
    Before,
}

/// Adds a start to the dataset at `dataset`, which is made where it is not there. Each file is whole or not there, and
/// that of `starts` is the last.
///
/// # Errors
/// [`Error::Io`].
pub fn add(dataset: &Path, start: &FleetStart) -> Result<Added> {
    let place = start.partition.directory();
    let name = format!("{}.parquet", start.start.start);
    let path = |table: &str| dataset.join(table).join(&place).join(&name);
    if path(STARTS.name).symlink_metadata().is_ok() {
        return Ok(Added::Before);
    }
    put(&path(PAGES.name), &PAGES, &start.pages)?;
    put(&path(REMEDIES.name), &REMEDIES, &start.remedies)?;
    put(&path(STARTS.name), &STARTS, std::slice::from_ref(&start.start))
}

/// Makes the file where there is none. One that is there is the same start's, left by an addition that was cut off:
/// files are whole, and their names say what is in them. Nothing is ever replaced, and no link followed.
fn put<R: 'static>(path: &Path, table: &Table<R>, rows: &[R]) -> Result<Added> {
    let failed = |e: io::Error| Error::io("write", path)(e);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
    }
    let made = WholeFile::create_new(path, Ownership::Result).and_then(|mut file| {
        columns::encode(table, rows, &mut file).map_err(|e| io::Error::other(e.to_string()))?;
        file.commit()
    });
    match made {
        Ok(()) => Ok(Added::New),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(Added::Before),
        Err(e) => Err(failed(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_partitions_are_names_of_directories() {
        for (text, value) in [
            ("1:3.11.2-6+deb12u1", "1_3.11.2-6_deb12u1"),
            ("../../etc", ".._.._etc"),
            ("", "_"),
            ("..", "_.."),
            ("größe", "gr__e"),
        ] {
            assert_eq!(Partition::value(text), value);
        }
    }

    fn start() -> FleetStart {
        let row = StartRow {
            start: "0123".into(),
            started: 1,
            fold: 0,
            scenario: "plain".into(),
            executable: "/usr/bin/app".into(),
            executable_build_id: String::new(),
            executable_size: 0,
            script: String::new(),
            kernel: "6.18".into(),
            os: String::new(),
            tier: "A".into(),
            state: "cold".into(),
            exact: false,
            one_thread: true,
            whole: true,
            undisturbed: true,
            ready: 5,
            computing: 3,
            waited: None,
            needed: None,
            read: None,
            unused: None,
            requests: None,
            files: None,
            lookups: None,
            misses: None,
        };
        let part = |text: &str| text.to_owned();
        let partition = Partition {
            program: part("app"),
            version: part("1"),
            machine: part("m"),
            day: part("2026-11-24"),
        };
        FleetStart { partition, start: row, pages: Vec::new(), remedies: Vec::new() }
    }

    #[test]
    fn a_start_is_there_once_and_one_that_was_cut_off_is_completed() {
        let dir = tempfile::tempdir().unwrap();
        let start = start();
        assert_eq!(add(dir.path(), &start).unwrap(), Added::New);
        assert_eq!(add(dir.path(), &start).unwrap(), Added::Before);
        let of = |table: &str| {
            dir.path().join(table).join("program=app/version=1/machine=m/day=2026-11-24/0123.parquet")
        };
        fs::remove_file(of("starts")).unwrap();
        let before = fs::metadata(of("pages")).unwrap().modified().unwrap();
        assert_eq!(add(dir.path(), &start).unwrap(), Added::New);
        assert_eq!(fs::metadata(of("pages")).unwrap().modified().unwrap(), before, "it stays as it is");
    }

    #[test]
    fn nothing_is_replaced_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        fs::write(&own, "mine").unwrap();
        let place = dir.path().join("fleet/pages/program=app/version=1/machine=m/day=2026-11-24");
        fs::create_dir_all(&place).unwrap();
        std::os::unix::fs::symlink(&own, place.join("0123.parquet")).unwrap();
        add(&dir.path().join("fleet"), &start()).unwrap();
        assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
    }
}
