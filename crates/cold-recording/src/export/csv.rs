//! One CSV file per table (RFC 4180, UTF-8, lines end with `\n`).
//!
//! Columns are those of the table, in its order; behind each column that names a file stands its path. A
//! field without quotes that is empty is null, `""` is an empty text. Lists are JSON arrays.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use cold_model::recording::{File, Recording};

use crate::schema::{Cell, Kind, Table, Visitor, visit};
use crate::{Error, Result};

/// Writes the tables into `dir`, which is created if need be. A file that exists is not overwritten.
pub fn write(dir: &Path, recording: &Recording) -> Result<()> {
    fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
    visit(recording, &mut Tables { dir, files: &recording.files })
}

struct Tables<'a> {
    dir: &'a Path,
    files: &'a [File],
}

impl Visitor for Tables<'_> {
    fn table<R: 'static>(&mut self, table: &Table<R>, rows: &[R]) -> Result<()> {
        let path = self.dir.join(format!("{}.csv", table.name));
        let file =
            OpenOptions::new().write(true).create_new(true).open(&path).map_err(|e| match e.kind() {
                io::ErrorKind::AlreadyExists => Error::Exists { path: path.clone() },
                _ => Error::io("create", &path)(e),
            })?;
        let mut to = BufWriter::with_capacity(1 << 16, file);
        self.rows(table, rows, &mut to).and_then(|()| to.flush()).map_err(Error::io("write", &path))
    }
}

impl Tables<'_> {
    fn rows<R>(&self, table: &Table<R>, rows: &[R], to: &mut impl Write) -> io::Result<()> {
        for (n, column) in table.columns.iter().enumerate() {
            let (comma, name) = (if n > 0 { "," } else { "" }, column.about.name);
            write!(to, "{comma}{name}")?;
            if column.about.kind == Kind::Ref("files") {
                write!(to, ",{name}_path")?;
            }
        }
        writeln!(to)?;
        for (number, row) in rows.iter().enumerate() {
            for (n, column) in table.columns.iter().enumerate() {
                if n > 0 {
                    to.write_all(b",")?;
                }
                let cell = (column.cell)(row, number);
                field(&cell, to)?;
                if column.about.kind == Kind::Ref("files") {
                    to.write_all(b",")?;
                    if let Some(path) = self.path(&cell) {
                        text(path, to)?;
                    }
                }
            }
            writeln!(to)?;
        }
        Ok(())
    }

    fn path(&self, cell: &Cell<'_>) -> Option<&str> {
        let Cell::Int(n) = cell else { return None };
        self.files.get(usize::try_from(*n).ok()?)?.path.as_deref()
    }
}

fn field(cell: &Cell<'_>, to: &mut impl Write) -> io::Result<()> {
    match cell {
        Cell::Null => Ok(()),
        Cell::Bool(b) => write!(to, "{b}"),
        Cell::Int(v) => write!(to, "{v}"),
        Cell::Unsigned(v) => write!(to, "{v}"),
        Cell::Text(t) => text(t, to),
        Cell::Word(word) => to.write_all(word.as_bytes()),
        Cell::List(list) => text(&serde_json::to_string(list)?, to),
    }
}

fn text(text: &str, to: &mut impl Write) -> io::Result<()> {
    if !text.is_empty() && !text.contains(['"', ',', '\n', '\r']) {
        return to.write_all(text.as_bytes());
    }
    write!(to, "\"{}\"", text.replace('"', "\"\""))
}
