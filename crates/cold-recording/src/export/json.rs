//! A whole recording as one JSON document.
//!
//! `{"manifest": …, "tables": {"touches": [{"at": …, …}, …], …}}`: the manifest as in `recording.json`, each
//! table as a list of its rows with the documented columns. A table that was not recorded is absent.

use std::io::{self, Write};

use cold_model::recording::Recording;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::schema::{Cell, Table, Visitor, visit};
use crate::{Error, Result};

/// Writes the document, row by row: it needs no memory of its own.
///
/// # Errors
/// The writer's.
pub fn write(recording: &Recording, to: &mut impl Write) -> io::Result<()> {
    to.write_all(b"{\"manifest\":")?;
    serde_json::to_writer(&mut *to, &recording.manifest)?;
    to.write_all(b",\n\"tables\":{")?;
    let mut tables = Tables { to, first: true };
    visit(recording, &mut tables).map_err(|e| match e {
        Error::Io { source, .. } => source,
        other => io::Error::other(other),
    })?;
    to.write_all(b"}}\n")
}

struct Tables<'a, W> {
    to: &'a mut W,
    first: bool,
}

impl<W: Write> Visitor for Tables<'_, W> {
    fn table<R: 'static>(&mut self, table: &Table<R>, rows: &[R]) -> Result<()> {
        self.rows(table, rows).map_err(Error::io("write", table.name.as_ref()))
    }
}

impl<W: Write> Tables<'_, W> {
    fn rows<R>(&mut self, table: &Table<R>, rows: &[R]) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.first) { "" } else { "," };
        write!(self.to, "{comma}\n{:?}:[", table.name)?;
        for (number, row) in rows.iter().enumerate() {
            self.to.write_all(if number > 0 { b",\n" } else { b"\n" })?;
            serde_json::to_writer(&mut *self.to, &Object { table, row, number })?;
        }
        self.to.write_all(b"]")
    }
}

struct Object<'a, R: 'static> {
    table: &'a Table<R>,
    row: &'a R,
    number: usize,
}

impl<R> Serialize for Object<'_, R> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.table.columns.len()))?;
        for column in self.table.columns {
            let name = column.about.name;
            match (column.cell)(self.row, self.number) {
                Cell::Null => map.serialize_entry(name, &())?,
                Cell::Bool(v) => map.serialize_entry(name, &v)?,
                Cell::Int(v) => map.serialize_entry(name, &v)?,
                Cell::Unsigned(v) => map.serialize_entry(name, &v)?,
                Cell::Text(v) => map.serialize_entry(name, &v)?,
                Cell::Word(v) => map.serialize_entry(name, v)?,
                Cell::List(v) => map.serialize_entry(name, v)?,
            }
        }
        map.end()
    }
}
