//! What the service did, in a database that anybody's SQL can read (docs/formats/service-history.md).
//!
//! Never in the way of a start: written by a thread of its own, in batches. Where it cannot be written (a full disk,
//! a damaged file) the service goes on without, and says so.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cold_model::{Nanos, Shown as _, path_text};
use cold_plan::plan::Key;
use cold_service::{Saved, Served, Start};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use crate::database::{self, Problem};
use schema::KIND;

/// Starts are kept for so long, and
const KEPT: Duration = Duration::from_hours(24 * 90);
/// no more than so many: about 20 MB.
const MOST_STARTS: i64 = 200_000;
/// Starts of a plan that are compared with each other, the latest: more would take long and tell little.
const COMPARED: i64 = 1000;
/// Warm starts are counted by the minute: when they came after the cache was emptied tells what keeping is worth.
const MINUTE: u64 = 60_000_000_000;

/// Which plan a start had, in text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Name {
    pub(crate) executable: String,
    pub(crate) script: Option<String>,
    pub(crate) scenario: String,
}

impl Name {
    /// Of a program, or of a script and its interpreter.
    pub(crate) fn new(executable: &Path, script: Option<&Path>, scenario: &str) -> Self {
        let script = script.map(path_text::encode);
        Self { executable: path_text::encode(executable), script, scenario: scenario.to_owned() }
    }

    /// Of a plan.
    pub(crate) fn of(key: &Key) -> Self {
        Self::new(&key.executable, key.script.as_deref(), &key.scenario)
    }

    /// What was executed, as people call it: the script where there is one.
    pub(crate) fn program(&self) -> &str {
        self.script.as_ref().unwrap_or(&self.executable)
    }
}

/// What was done for a cold start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Its plan was followed.
    Followed,
    /// It was only watched, to compare.
    Control,
    /// Only what all scenarios share was read: its own has no plan.
    Common,
    /// Nothing was read.
    Skipped,
}

impl What {
    /// As the table has it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Followed => "followed",
            Self::Control => "control",
            Self::Common => "common",
            Self::Skipped => "skipped",
        }
    }
}

/// A line of the history.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    /// A start that was not found warm.
    Start {
        name: Name,
        /// Nanoseconds since 1970.
        at_ns: u64,
        what: What,
        why: Option<String>,
        wall_ns: Option<u64>,
        cpu_ns: Option<u64>,
        /// From hearing of the start to the first request for pages.
        first_read_ns: Option<u64>,
        bytes: u64,
        requests: u32,
        late: bool,
    },
    /// Starts of a program that were warm, or came too soon after a warm one to be looked at.
    Warm { name: Name, starts: u64 },
    /// The machine was booted, which empties the cache; written down once for each boot.
    Booted {
        /// When, in nanoseconds since 1970.
        at_ns: u64,
        /// The kernel's name of this boot.
        boot: String,
    },
    /// A start was recorded that shows what it did not need of its plan.
    Checked { name: Name, check: Check },
    /// Something else: the service began, a plan was switched off.
    Event { what: &'static str, detail: String },
}

/// What a recorded start needed of its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Check {
    /// When, in nanoseconds since 1970.
    pub(crate) at_ns: u64,
    /// The plan's number.
    #[serde(skip)]
    pub(crate) plan: u64,
    /// Bytes of files that it reads.
    pub(crate) planned: u64,
    /// Of these, bytes that the start did not need, at least.
    pub(crate) unneeded: u64,
}

/// Starts by what was done for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Sums {
    /// Starts that found their pages, or came too soon after such a one to be looked at.
    pub(crate) warm: u64,
    /// Starts that were followed by the plan.
    pub(crate) followed: u64,
    /// Starts that went without it, to compare.
    pub(crate) controls: u64,
    /// Starts of which only what all scenarios share was read.
    pub(crate) common: u64,
    /// Cold starts that were not followed.
    pub(crate) skipped: u64,
    /// Bytes asked for.
    pub(crate) bytes: u64,
}

/// Starts of one plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: Name,
    pub(crate) sums: Sums,
    /// The latest cold starts that came to their mark, controls among them.
    pub(crate) latest: Vec<Start>,
    /// All that were followed and did.
    pub(crate) all: Served,
    /// By the latest start that was recorded.
    pub(crate) check: Option<Check>,
}

impl Row {
    /// What its plan has saved.
    pub(crate) fn saved(&self) -> Option<Saved> {
        cold_service::saved(&self.latest, self.all)
    }
}

/// How often a program was started on a day.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Used {
    pub(crate) executable: String,
    pub(crate) script: Option<String>,
    pub(crate) days_ago: f64,
    pub(crate) starts: u64,
}

/// One start, for people.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) name: Name,
    pub(crate) at_ns: u64,
    pub(crate) what: String,
    pub(crate) why: Option<String>,
    pub(crate) wall_ns: Option<u64>,
    pub(crate) first_read_ns: Option<u64>,
    pub(crate) bytes: u64,
}

/// The open database.
#[derive(Debug)]
pub(crate) struct History {
    db: Connection,
    path: String,
}

impl History {
    /// To be written by the service, in a directory of its own; made where it is missing.
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        Ok(Self { db: database::open(path, &KIND, true)?, path: path.shown().to_string() })
    }

    /// To be read; `None` where there is none.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, Problem> {
        if path.symlink_metadata().is_err() {
            return Ok(None);
        }
        // Without the right to write, SQLite cannot join a log that a service is writing.
        Ok(Some(Self { db: database::open(path, &KIND, false)?, path: path.shown().to_string() }))
    }

    /// Adds all of these or none.
    pub(crate) fn add(&mut self, entries: &[Entry]) -> Result<(), Problem> {
        let path = self.path.clone();
        self.write(|db| entries.iter().try_for_each(|entry| add(db, entry)))
            .map_err(|e| Problem::of(&path, "written", &e))
    }

    fn write(&mut self, work: impl FnOnce(&Connection) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        let transaction = self.db.transaction()?;
        work(&transaction)?;
        transaction.commit()
    }

    /// Removes what is too old, and the oldest of too many.
    pub(crate) fn shorten(&mut self) -> Result<(), Problem> {
        let path = self.path.clone();
        let limit = ns(now_ns()).saturating_sub(ns(KEPT.as_nanos() as u64));
        self.write(|db| {
            db.execute("DELETE FROM starts WHERE at_ns < ?1", [limit])?;
            db.execute("DELETE FROM starts WHERE id <= (SELECT max(id) FROM starts) - ?1", [MOST_STARTS])?;
            db.execute("DELETE FROM events WHERE at_ns < ?1", [limit])?;
            db.execute("DELETE FROM checks WHERE at_ns < ?1", [limit])?;
            db.execute("DELETE FROM warm WHERE at_ns < ?1", [limit])?;
            db.execute(
                "DELETE FROM warm WHERE at_ns <= (SELECT at_ns FROM warm ORDER BY at_ns DESC LIMIT 1 OFFSET ?1)",
                [MOST_STARTS],
            )?;
            Ok(())
        })
        .map_err(|e| Problem::of(&path, "shortened", &e))
    }

    /// Forgets the starts of the programs that are called so (by path, or its last name), or of all. How many starts.
    pub(crate) fn forget(&mut self, program: Option<&str>) -> Result<u64, Problem> {
        let path = self.path.clone();
        let problem = |e: rusqlite::Error| Problem::of(&path, "changed", &e);
        let mut gone = 0;
        self.write(|db| {
            let wanted =
                "SELECT id FROM programs WHERE ?1 IS NULL OR name = ?1 OR executable = ?1 OR script = ?1";
            gone = db.execute(&format!("DELETE FROM starts WHERE program IN ({wanted})"), [program])?;
            let warm: i64 = db.query_row(
                &format!("SELECT coalesce(sum(starts), 0) FROM warm WHERE program IN ({wanted})"),
                [program],
                |row| row.get(0),
            )?;
            gone += usize::try_from(warm).unwrap_or_default();
            db.execute(&format!("DELETE FROM warm WHERE program IN ({wanted})"), [program])?;
            db.execute(&format!("DELETE FROM checks WHERE program IN ({wanted})"), [program])?;
            db.execute(&format!("DELETE FROM programs WHERE id IN ({wanted})"), [program])?;
            if program.is_none() {
                db.execute("DELETE FROM events", [])?;
            }
            Ok(())
        })
        .map_err(problem)?;
        // What is deleted must not stay readable in free pages.
        self.db.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);").map_err(problem)?;
        Ok(gone as u64)
    }

    /// Figures of every plan, by name.
    pub(crate) fn rows(&self) -> Result<Vec<Row>, Problem> {
        self.query_rows().map_err(|e| Problem::of(&self.path, "read", &e))
    }

    fn query_rows(&self) -> rusqlite::Result<Vec<Row>> {
        let mut query = self.db.prepare(
            "SELECT p.id, p.executable, p.script, p.scenario,
                (SELECT coalesce(sum(starts), 0) FROM warm WHERE program = p.id),
                count(*) FILTER (WHERE s.what = 'followed'), count(*) FILTER (WHERE s.what = 'control'),
                count(*) FILTER (WHERE s.what = 'common'), count(*) FILTER (WHERE s.what = 'skipped'),
                coalesce(sum(s.bytes), 0), count(s.wall_ns) FILTER (WHERE s.what = 'followed'),
                coalesce(sum(s.wall_ns) FILTER (WHERE s.what = 'followed'), 0)
             FROM programs p LEFT JOIN starts s ON s.program = p.id
             GROUP BY p.id ORDER BY p.executable, p.script, p.scenario",
        )?;
        let rows = query.query_map([], |row| {
            let n = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
            let id: i64 = row.get(0)?;
            let name = Name { executable: row.get(1)?, script: row.get(2)?, scenario: row.get(3)? };
            let (followed, controls, common) = (n(5)?, n(6)?, n(7)?);
            let sums = Sums { warm: n(4)?, followed, controls, common, skipped: n(8)?, bytes: n(9)? };
            let all = Served { starts: n(10)?, took: Nanos(n(11)?) };
            Ok((id, Row { name, sums, latest: Vec::new(), all, check: None }))
        })?;
        let mut out: Vec<(i64, Row)> = rows.collect::<rusqlite::Result<_>>()?;
        let mut marked = self.db.prepare(
            "SELECT what = 'control', wall_ns FROM starts
             WHERE program = ?1 AND wall_ns IS NOT NULL AND what IN ('followed', 'control')
             ORDER BY at_ns DESC LIMIT ?2",
        )?;
        for (id, row) in &mut out {
            let starts = marked.query_map([*id, COMPARED], |row| {
                Ok(Start { control: row.get(0)?, wall_ns: row.get::<_, i64>(1)?.cast_unsigned() })
            })?;
            row.latest = starts.collect::<rusqlite::Result<_>>()?;
        }
        let checks = self.query_checks()?;
        for (id, row) in &mut out {
            row.check = checks.get(id).copied();
        }
        Ok(out.into_iter().map(|(_, row)| row).collect())
    }

    fn query_checks(&self) -> rusqlite::Result<HashMap<i64, Check>> {
        let mut query = self.db.prepare("SELECT program, at_ns, plan, planned, unneeded FROM checks")?;
        let checks = query.query_map([], |row| {
            let n = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
            let plan = u64::from_str_radix(&row.get::<_, String>(2)?, 16).unwrap_or_default();
            Ok((row.get(0)?, Check { at_ns: n(1)?, plan, planned: n(3)?, unneeded: n(4)? }))
        })?;
        checks.collect()
    }

    /// Starts of the last two weeks, by program and day.
    pub(crate) fn uses(&self) -> Result<Vec<Used>, Problem> {
        let query = || {
            let mut query = self.db.prepare(
                "SELECT p.executable, p.script, max(d.days, 0.0), sum(d.starts) FROM programs p JOIN (
                    SELECT program, julianday('now') - julianday(at_ns / 1000000000, 'unixepoch') AS days, starts
                    FROM (SELECT program, at_ns, starts FROM warm UNION ALL SELECT program, at_ns, 1 FROM starts)
                 ) d ON d.program = p.id
                 WHERE d.days < 14 GROUP BY p.executable, p.script, cast(d.days AS INTEGER)",
            )?;
            let rows = query.query_map([], |row| {
                let starts = row.get::<_, i64>(3)?.cast_unsigned();
                Ok(Used { executable: row.get(0)?, script: row.get(1)?, days_ago: row.get(2)?, starts })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        query().map_err(|e| Problem::of(&self.path, "read", &e))
    }

    /// The last starts of a program, the latest first.
    pub(crate) fn last(&self, program: &str, most: u32) -> Result<Vec<Seen>, Problem> {
        let query = || {
            let mut query = self.db.prepare(
                "SELECT p.executable, p.script, p.scenario, s.at_ns, s.what, s.why, s.wall_ns, s.first_read_ns, s.bytes
                 FROM starts s JOIN programs p ON p.id = s.program
                 WHERE p.name = ?1 OR p.executable = ?1 OR p.script = ?1
                 ORDER BY s.at_ns DESC LIMIT ?2",
            )?;
            let rows = query.query_map(params![program, most], |row| {
                let n = |at| row.get::<_, Option<i64>>(at).map(|n| n.map(i64::cast_unsigned));
                Ok(Seen {
                    name: Name { executable: row.get(0)?, script: row.get(1)?, scenario: row.get(2)? },
                    at_ns: n(3)?.unwrap_or_default(),
                    what: row.get(4)?,
                    why: row.get(5)?,
                    wall_ns: n(6)?,
                    first_read_ns: n(7)?,
                    bytes: n(8)?.unwrap_or_default(),
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        query().map_err(|e| Problem::of(&self.path, "read", &e))
    }
}

fn add(db: &Connection, entry: &Entry) -> rusqlite::Result<()> {
    match entry {
        Entry::Start { name, at_ns, what, why, wall_ns, cpu_ns, first_read_ns, bytes, requests, late } => {
            let program = program(db, name)?;
            db.prepare(
                "INSERT INTO starts
                    (program, at_ns, what, why, wall_ns, cpu_ns, first_read_ns, bytes, requests, late)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                program,
                ns(*at_ns),
                what.text(),
                why,
                wall_ns.map(ns),
                cpu_ns.map(ns),
                first_read_ns.map(ns),
                ns(*bytes),
                requests,
                late
            ])?;
        }
        Entry::Warm { name, starts } => {
            let program = program(db, name)?;
            db.prepare(
                "INSERT INTO warm (at_ns, program, starts) VALUES (?1, ?2, ?3)
                 ON CONFLICT (at_ns, program) DO UPDATE SET starts = starts + excluded.starts",
            )?
            .execute(params![ns(now_ns() / MINUTE * MINUTE), program, ns(*starts)])?;
        }
        Entry::Checked { name, check: Check { at_ns, plan, planned, unneeded } } => {
            let program = program(db, name)?;
            db.prepare(
                "INSERT OR REPLACE INTO checks (program, at_ns, plan, planned, unneeded) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![program, ns(*at_ns), format!("{plan:016x}"), ns(*planned), ns(*unneeded)])?;
        }
        Entry::Booted { at_ns, boot } => {
            db.prepare(
                "INSERT INTO events (at_ns, what, detail) SELECT ?1, 'emptied', ?2
                 WHERE NOT EXISTS (SELECT 1 FROM events WHERE what = 'emptied' AND detail = ?2)",
            )?
            .execute(params![ns(*at_ns), format!("boot {boot}")])?;
        }
        Entry::Event { what, detail } => {
            db.prepare("INSERT INTO events (at_ns, what, detail) VALUES (?1, ?2, ?3)")?.execute(params![
                ns(now_ns()),
                what,
                detail
            ])?;
        }
    }
    Ok(())
}

fn program(db: &Connection, name: &Name) -> rusqlite::Result<i64> {
    let of = name.script.as_ref().unwrap_or(&name.executable);
    let short = path_text::base(of);
    let all = params![name.executable, name.script, name.scenario, short];
    db.prepare(
        "INSERT INTO programs (executable, script, scenario, name) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
    )?
    .execute(all)?;
    db.prepare(
        "SELECT id FROM programs
         WHERE executable = ?1 AND coalesce(script, '') = coalesce(?2, '') AND scenario = ?3",
    )?
    .query_row(params![name.executable, name.script, name.scenario], |row| row.get(0))
}

/// The database's numbers have a sign.
fn ns(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Nanoseconds since 1970.
pub(crate) fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

mod log;
mod schema;

#[cfg(test)]
mod tests;
