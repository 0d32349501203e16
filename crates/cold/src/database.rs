//! Opening a database of our own: made where it is missing, refused where it is another program's.

use std::path::Path;
use std::time::{Duration, Instant};

use cold_model::Shown as _;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

/// `PRAGMA application_id` of all of them: "cold" in ASCII. Kinds differ in their version.
const APPLICATION: i32 = 0x636f_6c64;

/// How long others may hold a lock.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause before a lock is tried again.
const PAUSE: Duration = Duration::from_millis(5);

/// What tells one kind of database from others.
pub(crate) struct Kind {
    /// `PRAGMA user_version`.
    pub(crate) version: i32,
    /// SQL that makes the tables of this version.
    pub(crate) schema: &'static str,
    /// What makes each earlier version the next one, in a batch of SQL.
    pub(crate) upgrades: &'static [(i32, &'static str)],
    /// How commits reach the disk, as a batch of pragmas.
    pub(crate) commits: &'static str,
}

/// Why there is no history, in one sentence.
#[derive(Debug)]
pub(crate) struct Problem {
    path: String,
    action: &'static str,
    why: String,
    /// Trying again later may help (a full disk).
    pub(crate) may_pass: bool,
}

/// Opens it to be read and written; a symbolic link is not followed.
pub(crate) fn open(path: &Path, kind: &Kind, make: bool) -> Result<Connection, Problem> {
    let shown = path.shown().to_string();
    let problem = |e: rusqlite::Error| Problem::of(&shown, "opened", &e);
    let create = if make { OpenFlags::SQLITE_OPEN_CREATE } else { OpenFlags::empty() };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | create
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(path, flags).map_err(problem)?;
    db.busy_timeout(PATIENCE).map_err(problem)?;
    // Nothing of another program's database is changed, its mode included.
    patiently(|| begin(&db, kind)).map_err(problem)?;
    let pragma =
        |name: &str| patiently(|| db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0)));
    let application = pragma("application_id").map_err(problem)?;
    let mut version = pragma("user_version").map_err(problem)?;
    while application == APPLICATION
        && let Some((from, upgrade)) = kind.upgrades.iter().find(|(from, _)| *from == version)
    {
        patiently(|| advance(&db, *from, upgrade))
            .map_err(|e| Problem::of(&shown, "made the newer kind", &e))?;
        version = pragma("user_version").map_err(problem)?;
    }
    if (application, version) != (APPLICATION, kind.version) {
        let why =
            format!("it is no history of this program (application {application:#x}, version {version})");
        return Err(Problem { path: shown, action: "used", why, may_pass: false });
    }
    patiently(|| db.execute_batch(kind.commits)).map_err(problem)?;
    Ok(db)
}

/// Does it again while others hold a lock. The database waits for that itself (`busy_timeout`), but not where two could
/// wait for each other: who changes a new one to write-ahead logging while another begins it, is refused at once.
fn patiently<T>(step: impl Fn() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let until = Instant::now() + PATIENCE;
    loop {
        match step() {
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < until => {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

/// The tables, where the file is new.
fn begin(db: &Connection, kind: &Kind) -> rusqlite::Result<()> {
    let has_tables =
        || db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| Ok(row.get::<_, i64>(0)? > 0));
    if has_tables()? {
        return Ok(());
    }
    // Another process may begin it, too (the service, and who asks for its status): the second finds it done.
    let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    if !has_tables()? {
        let Kind { version, schema, .. } = kind;
        transaction.execute_batch(&format!(
            "{schema} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {version};"
        ))?;
    }
    transaction.commit()
}

/// Makes version `from` the next one: all of it or nothing. Another process may do the same; then this one finds it done.
fn advance(db: &Connection, from: i32, upgrade: &str) -> rusqlite::Result<()> {
    let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    if transaction.query_row("PRAGMA user_version", [], |row| row.get::<_, i32>(0))? == from {
        transaction.execute_batch(&format!("{upgrade} PRAGMA user_version = {};", from + 1))?;
    }
    transaction.commit()
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the history {} cannot be {}: {}", self.path, self.action, self.why)
    }
}

impl std::error::Error for Problem {}

impl Problem {
    /// What the database says of an action on this path.
    pub(crate) fn of(path: &str, action: &'static str, error: &rusqlite::Error) -> Self {
        let code = error.sqlite_error_code();
        let lasting = matches!(code, Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt));
        let advice = if lasting { "; move it away, and a new one is begun" } else { "" };
        Self { path: path.to_owned(), action, why: format!("{error}{advice}"), may_pass: !lasting }
    }

    /// Its directory cannot be used.
    pub(crate) fn of_directory(path: &Path, why: String) -> Self {
        Self { path: path.shown().to_string(), action: "made", why, may_pass: true }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn whoever_begins_a_database_at_the_same_time_opens_the_same_one() {
        const KIND: Kind = Kind {
            version: 1,
            schema: "CREATE TABLE one (a); CREATE TABLE two (b);",
            upgrades: &[],
            commits: "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;",
        };
        let dir = tempfile::tempdir().unwrap();
        for n in 0..20 {
            let path = dir.path().join(n.to_string());
            let together = Barrier::new(4);
            std::thread::scope(|scope| {
                let open = || {
                    together.wait();
                    let db = open(&path, &KIND, true).map_err(|problem| problem.to_string())?;
                    db.execute("INSERT INTO two VALUES (1)", []).map_err(|e| e.to_string())
                };
                let all: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
                for one in all {
                    assert_eq!(one.join().unwrap(), Ok(1));
                }
            });
        }
    }
    /// Made version 2 twice, it would have 3 of what it has 2.
    const SECOND: Kind = Kind {
        version: 2,
        schema: "CREATE TABLE one (a); INSERT INTO one VALUES (2);",
        upgrades: &[(1, "UPDATE one SET a = a + 1;")],
        commits: "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;",
    };

    fn first(path: &Path, schema: &'static str) {
        let kind = Kind { version: 1, schema, upgrades: &[], commits: SECOND.commits };
        drop(open(path, &kind, true).unwrap());
    }

    #[test]
    fn whoever_finds_an_older_version_at_the_same_time_advances_it_once() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..20 {
            let path = dir.path().join(n.to_string());
            first(&path, "CREATE TABLE one (a); INSERT INTO one VALUES (1);");
            let together = Barrier::new(4);
            std::thread::scope(|scope| {
                let open = || {
                    together.wait();
                    let db = open(&path, &SECOND, false).map_err(|problem| problem.to_string())?;
                    db.query_row("SELECT a FROM one", [], |row| row.get(0)).map_err(|e| e.to_string())
                };
                let all: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
                for one in all {
                    assert_eq!(one.join().unwrap(), Ok(2));
                }
            });
        }
    }

    #[test]
    fn an_older_version_that_cannot_be_advanced_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("old");
        first(&path, "CREATE TABLE one (a); INSERT INTO one VALUES (1);");
        let broken = Kind { upgrades: &[(1, "UPDATE one SET a = a + 1; DROP TABLE two;")], ..SECOND };
        let problem = open(&path, &broken, false).unwrap_err().to_string();
        assert!(problem.contains("made the newer kind") && problem.contains("two"), "{problem}");
        let db = open(&path, &SECOND, false).unwrap();
        assert_eq!(db.query_row("SELECT a FROM one", [], |row| row.get(0)), Ok(2));
    }
}
