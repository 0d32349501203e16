//! The tables, and what makes those of earlier versions the same.

use crate::database::Kind;

/// In a macro, as `concat!` takes nothing else.
macro_rules! checks {
    () => {
        "
CREATE TABLE checks (
    program INTEGER PRIMARY KEY REFERENCES programs (id),
    at_ns INTEGER NOT NULL,
    plan TEXT NOT NULL,
    planned INTEGER NOT NULL,
    unneeded INTEGER NOT NULL);
"
    };
}

const SCHEMA: &str = concat!(
    checks!(),
    "
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
    at_ns INTEGER NOT NULL,
    program INTEGER NOT NULL REFERENCES programs (id),
    starts INTEGER NOT NULL,
    PRIMARY KEY (at_ns, program)) WITHOUT ROWID;
CREATE TABLE events (at_ns INTEGER NOT NULL, what TEXT NOT NULL, detail TEXT);
"
);

/// Version 1 knew the day of warm starts only; they are taken to have come at noon, and none later than now.
const FROM_1: &str = "
ALTER TABLE warm RENAME TO warm_by_day;
CREATE TABLE warm (
    at_ns INTEGER NOT NULL,
    program INTEGER NOT NULL REFERENCES programs (id),
    starts INTEGER NOT NULL,
    PRIMARY KEY (at_ns, program)) WITHOUT ROWID;
INSERT INTO warm SELECT min(unixepoch(day) + 43200, unixepoch() / 60 * 60) * 1000000000, program, sum(starts)
    FROM warm_by_day GROUP BY 1, 2;
DROP TABLE warm_by_day;
";

/// Version 2 knew nothing of what plans read in vain.
const FROM_2: &str = checks!();

/// The database.
pub(super) const KIND: Kind = Kind {
    version: 3,
    schema: SCHEMA,
    upgrades: &[(1, FROM_1), (2, FROM_2)],
    // With a log a commit waits for no disk; a power cut costs the last moments, never the rest.
    commits: "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -512;",
};
