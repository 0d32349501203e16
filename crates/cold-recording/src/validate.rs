//! The rules that every recording keeps, checked before it is written and after it is read.

use std::collections::HashMap;

use cold_model::recording::{Recording, manifest};

use crate::schema::{Cell, ColumnKind, Table, Visitor, visit};
use crate::{Error, Result};

/// Checks that every reference leads to a row, every table is sorted by its first column of time (transfers:
/// by request), every page range lies inside a possible file, and no number passes 63 bits where the
/// format has no more.
///
/// # Errors
/// [`Error::Inconsistent`], naming table and row.
pub fn validate(r: &Recording) -> Result<()> {
    let page = r.manifest.page_bytes;
    let wrong = |why: String| Err(Error::Inconsistent { why });
    if r.manifest.format != manifest::FORMAT {
        return wrong(format!(
            "the manifest's format is {:?}, not {:?}",
            r.manifest.format,
            manifest::FORMAT
        ));
    }
    if !page.is_power_of_two() || !(1024..=1 << 24).contains(&page) {
        return wrong(format!("a page size of {page} bytes"));
    }
    let rows: HashMap<&str, usize> = r.counts().into_iter().collect();
    if let Some((name, n)) = rows.iter().find(|(_, n)| u32::try_from(**n).is_err()) {
        return wrong(format!("{name} has {n} rows, more than a reference can name"));
    }
    visit(r, &mut Check { rows, page: page.into() })
}

struct Check {
    rows: HashMap<&'static str, usize>,
    page: u64,
}

impl Visitor for Check {
    fn table<R: 'static>(&mut self, table: &Table<R>, rows: &[R]) -> Result<()> {
        for column in table.columns {
            let about = column.about;
            let target = match about.kind {
                ColumnKind::Ref(target) => self.rows.get(target).map_or(0, |n| *n as u64),
                _ => u64::MAX,
            };
            let limit = if about.kind == ColumnKind::Unsigned { u64::MAX } else { i64::MAX as u64 };
            let bad = |n, why: String| {
                let (table, column) = (table.name, about.name);
                Err(Error::Inconsistent { why: format!("{table}, row {n}: {column} {why}") })
            };
            if !matches!(about.kind, ColumnKind::Ref(_) | ColumnKind::Time | ColumnKind::Int) {
                continue;
            }
            for (n, row) in rows.iter().enumerate() {
                match (column.cell)(row, n) {
                    Cell::Unsigned(v) if v > limit => return bad(n, format!("is {v}, beyond 63 bits")),
                    Cell::Int(v) if target != u64::MAX && u64::try_from(v).is_ok_and(|v| v >= target) => {
                        return bad(n, format!("names row {v} of a table with {target} rows"));
                    }
                    _ => {}
                }
            }
        }
        Self::order(table, rows)?;
        for (n, row) in rows.iter().enumerate() {
            if let Some(why) = (table.check)(row, self.page) {
                return Err(Error::Inconsistent { why: format!("{}, row {n}: {why}", table.name) });
            }
        }
        Ok(())
    }
}

impl Check {
    /// Sorted by the first column of time, or by the request where there is none.
    fn order<R: 'static>(table: &Table<R>, rows: &[R]) -> Result<()> {
        let time = table.columns.iter().find(|c| c.about.kind == ColumnKind::Time);
        let request = table.columns.iter().find(|c| c.about.kind == ColumnKind::Ref("device_reads"));
        let Some(column) = time.or(request) else { return Ok(()) };
        let mut last = 0;
        for (n, row) in rows.iter().enumerate() {
            let value = match (column.cell)(row, n) {
                Cell::Unsigned(v) => v,
                Cell::Int(v) => v.cast_unsigned(),
                _ => continue,
            };
            if value < last {
                let (table, column) = (table.name, column.about.name);
                let why = format!("{table}, row {n}: not sorted by {column} ({value} behind {last})");
                return Err(Error::Inconsistent { why });
            }
            last = value;
        }
        Ok(())
    }
}
