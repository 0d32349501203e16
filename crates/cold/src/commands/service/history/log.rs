//! The history as a log of starts, for `cold service replay`.

use std::collections::HashMap;

use cold_model::Nanos;
use cold_service::replay::{Event, Log, Program, What};

use super::History;
use crate::database::Problem;

/// What the history tells of starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) log: Log,
    /// Starts of programs for which nothing was ever read, so that what they need is not known.
    pub(crate) left_out: u64,
}

/// A program of the log by the table's numbers: those of its scenarios.
struct Numbers {
    programs: Vec<Program>,
    place: HashMap<i64, usize>,
}

impl History {
    /// All starts, and when the cache was emptied. A program is what is executed, with all its scenarios, as the
    /// service reads all its plans.
    pub(crate) fn log(&self) -> Result<Told, Problem> {
        self.query_log().map_err(|e| Problem::of(&self.path, "read", &e))
    }

    fn query_log(&self) -> rusqlite::Result<Told> {
        let Numbers { programs, place } = self.numbers()?;
        let (mut events, mut left_out) = (Vec::new(), 0);
        let mut starts = self.db.prepare(
            "SELECT at_ns, program, 1 FROM starts UNION ALL SELECT at_ns, program, starts FROM warm",
        )?;
        let rows =
            starts.query_map([], |row| Ok((at(row, 0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?)))?;
        for row in rows {
            let (at, number, times) = row?;
            let times = times.cast_unsigned();
            match place.get(&number) {
                Some(program) => events.push(Event { at, what: What::Starts { program: *program, times } }),
                None => left_out += times,
            }
        }
        let mut emptied = self.db.prepare("SELECT at_ns FROM events WHERE what = 'emptied'")?;
        for at in emptied.query_map([], |row| at(row, 0))? {
            events.push(Event { at: at?, what: What::Emptied });
        }
        let log = Log::new(programs, events).unwrap_or_default();
        Ok(Told { log, left_out })
    }

    /// Bytes of a scenario: the most that one start had read for it, as others found part of it.
    fn numbers(&self) -> rusqlite::Result<Numbers> {
        let mut query = self.db.prepare(
            "SELECT p.id, p.executable, p.script,
                sum(coalesce((SELECT max(bytes) FROM starts WHERE program = p.id), 0))
                    OVER (PARTITION BY p.executable, coalesce(p.script, ''))
             FROM programs p",
        )?;
        let rows = query.query_map([], |row| {
            let name = row.get::<_, Option<String>>(2)?.map_or_else(|| row.get::<_, String>(1), Ok)?;
            Ok((row.get::<_, i64>(0)?, name, row.get::<_, i64>(3)?.cast_unsigned()))
        })?;
        let (mut programs, mut place, mut known) = (Vec::new(), HashMap::new(), HashMap::new());
        for row in rows {
            let (number, name, bytes) = row?;
            if bytes == 0 {
                continue;
            }
            let at = *known.entry(name).or_insert_with_key(|name| {
                programs.push(Program { name: name.clone(), bytes });
                programs.len() - 1
            });
            place.insert(number, at);
        }
        Ok(Numbers { programs, place })
    }
}

fn at(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Nanos> {
    row.get::<_, i64>(column).map(|ns| Nanos(ns.max(0).cast_unsigned()))
}
