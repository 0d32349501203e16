//! The database of a history (docs/formats/history.md).

use std::collections::BTreeMap;
use std::path::Path;

use cold_gate::{Point, Unit};
use cold_model::Shown as _;
use rusqlite::{Connection, params};

use crate::database::{self, Kind, Problem};

const SCHEMA: &str = "
CREATE TABLE points (
    id INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    commit_id TEXT,
    machine TEXT NOT NULL,
    kernel TEXT NOT NULL,
    command TEXT NOT NULL);
CREATE TABLE figures (
    point INTEGER NOT NULL REFERENCES points (id),
    name TEXT NOT NULL,
    unit TEXT NOT NULL,
    value REAL NOT NULL,
    low REAL,
    high REAL,
    PRIMARY KEY (point, name)) WITHOUT ROWID;
";

const KIND: Kind = Kind {
    // The service's history has version 1.
    version: 1001,
    schema: SCHEMA,
    upgrades: &[],
    // One file and no log beside it: it is copied from job to job.
    commits: "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;",
};

/// Values that are read of one series: the latest. The search for changes takes the square of their number.
const MOST: usize = 1000;

const UNITS: [(Unit, &str); 3] = [(Unit::Time, "ns"), (Unit::Bytes, "bytes"), (Unit::Count, "count")];

/// The open database.
pub(crate) struct Store {
    db: Connection,
    path: String,
}

/// One figure of one command on one kind of machine, the oldest value first.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    pub(crate) machine: String,
    pub(crate) command: String,
    pub(crate) figure: String,
    pub(crate) unit: Unit,
    pub(crate) values: Vec<Value>,
}

/// A figure (of several runs the median) with the commit that it was measured at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Value {
    pub(crate) at: String,
    pub(crate) commit: Option<String>,
    pub(crate) median: f64,
    pub(crate) interval: Option<(f64, f64)>,
}

impl Store {
    /// To be added to, where a path is given; made where it is missing.
    pub(crate) fn to_record(path: Option<&Path>) -> Result<Option<Self>, Problem> {
        path.map(|p| Self::open(p, true)).transpose()
    }

    /// The history at `path`; with `make` it is made where it is not there.
    pub(crate) fn open(path: &Path, make: bool) -> Result<Self, Problem> {
        Ok(Self { db: database::open(path, &KIND, make)?, path: path.shown().to_string() })
    }

    /// Adds a point, of this commit or that of the directory's repository.
    pub(crate) fn add(&mut self, point: &Point, commit: Option<&str>) -> Result<(), Problem> {
        let commit = match commit {
            Some(commit) => Some(commit.to_owned()),
            None => std::env::current_dir().ok().and_then(|d| crate::git::head(&d)),
        };
        let at = jiff::Timestamp::now().to_string();
        let path = self.path.clone();
        self.insert(point, commit.as_deref(), &at).map_err(|e| Problem::of(&path, "written", &e))
    }

    fn insert(&mut self, point: &Point, commit: Option<&str>, at: &str) -> rusqlite::Result<()> {
        let all = self.db.transaction()?;
        all.execute(
            "INSERT INTO points (at, commit_id, machine, kernel, command) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![at, commit, point.machine, point.kernel, point.command],
        )?;
        let id = all.last_insert_rowid();
        for f in &point.figures {
            let unit = UNITS.iter().find(|(u, _)| *u == f.unit).map_or("", |(_, name)| name);
            let (low, high) = (f.interval.map(|i| i.0), f.interval.map(|i| i.1));
            all.execute(
                "INSERT INTO figures (point, name, unit, value, low, high) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![id, f.name, unit, f.value, low, high],
            )?;
        }
        all.commit()
    }

    /// All series, by command, machine and figure.
    pub(crate) fn series(&self) -> Result<Vec<Series>, Problem> {
        self.query().map_err(|e| Problem::of(&self.path, "read", &e))
    }

    fn query(&self) -> rusqlite::Result<Vec<Series>> {
        let mut query = self.db.prepare(
            "SELECT p.command, p.machine, f.name, f.unit, p.at, p.commit_id, f.value, f.low, f.high
             FROM figures f JOIN points p ON p.id = f.point ORDER BY p.id",
        )?;
        let mut rows = query.query([])?;
        let mut out: BTreeMap<(String, String, String), (Unit, Vec<Value>)> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let unit: String = row.get(3)?;
            let value: f64 = row.get(6)?;
            let Some(unit) = UNITS.iter().find(|(_, name)| *name == unit).map(|(u, _)| *u) else { continue };
            let (low, high): (Option<f64>, Option<f64>) = (row.get(7)?, row.get(8)?);
            let key = (row.get(0)?, row.get(1)?, row.get(2)?);
            let (_, values) = out.entry(key).or_insert_with(|| (unit, Vec::new()));
            values.push(Value {
                at: row.get(4)?,
                commit: row.get(5)?,
                median: value,
                interval: low.zip(high),
            });
        }
        let series = out.into_iter().map(|((command, machine, figure), (unit, mut values))| {
            values.drain(..values.len().saturating_sub(MOST));
            Series { machine, command, figure, unit, values }
        });
        Ok(series.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cold_gate::Figure;

    fn point(machine: &str, value: f64) -> Point {
        let figure = Figure { name: "files".into(), unit: Unit::Count, value, interval: Some((1.0, 2.0)) };
        Point { machine: machine.into(), kernel: "6".into(), command: "app".into(), figures: vec![figure] }
    }

    #[test]
    fn machines_are_not_mixed_and_values_keep_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.db");
        assert!(Store::open(&path, false).is_err(), "none is made to be read");
        for (machine, value, commit) in [("b", 3.0, "x"), ("a", 1.0, "y"), ("b", 2.0, "z")] {
            let mut store = Store::to_record(Some(&path)).unwrap().unwrap();
            store.add(&point(machine, value), Some(commit)).unwrap();
        }
        let series = Store::open(&path, false).unwrap().series().unwrap();
        let told: Vec<_> = series
            .iter()
            .map(|s| (s.machine.as_str(), s.values.iter().map(|v| v.median).collect::<Vec<_>>()))
            .collect();
        assert_eq!(told, [("a", vec![1.0]), ("b", vec![3.0, 2.0])]);
        assert_eq!(series[1].values[1].commit.as_deref(), Some("z"));
        assert_eq!(series[0].values[0].interval, Some((1.0, 2.0)));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "one file, no log beside it");
    }

    #[test]
    fn another_database_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("h.db");
        let foreign = Connection::open(&path).unwrap();
        foreign.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (a);").unwrap();
        drop(foreign);
        let before = std::fs::read(&path).unwrap();
        let Err(problem) = Store::open(&path, true) else { panic!("used") };
        assert!(problem.to_string().contains("is no history of this program"), "{problem}");
        assert!(std::fs::read(&path).unwrap() == before, "it is another program's: nothing of it is changed");
    }
}
