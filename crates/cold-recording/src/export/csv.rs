//! One CSV file per table (RFC 4180, UTF-8, lines end with `\n`).
//!
//! Columns are those of the table, in its order; behind each column that names a file stands its path. A
//! field without quotes that is empty is null, `""` is an empty text. Lists are JSON arrays. What a spreadsheet
//! would compute has an apostrophe in front ([`cold_model::csv`]).

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cold_model::csv;
use cold_model::recording::{File, Recording};
use cold_sys::whole::{Ownership, WholeFile};

use crate::schema::{Cell, ColumnKind, Table, Visitor, visit};
use crate::{Error, Result};

/// Writes the tables into `dir`, which is created if need be: all of them, or none where the disk is full. A file
/// that exists is not overwritten.
pub fn write(dir: &Path, recording: &Recording) -> Result<()> {
    let new = dir.symlink_metadata().is_err();
    fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
    let mut tables = Tables { dir, files: &recording.files, open: Vec::new() };
    let written = visit(recording, &mut tables);
    if written.is_err() && new {
        let _ = fs::remove_dir(dir); // nothing got into it
    }
    written?;
    for (path, file) in tables.open {
        file.commit().map_err(cannot_write(&path))?;
    }
    Ok(())
}

fn cannot_write(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |e| match e.kind() {
        io::ErrorKind::AlreadyExists => Error::Exists { path: path.to_owned() },
        _ => Error::io("write", path)(e),
    }
}

struct Tables<'a> {
    dir: &'a Path,
    files: &'a [File],
    /// Written, without names.
    open: Vec<(PathBuf, WholeFile)>,
}

impl Visitor for Tables<'_> {
    fn table<R: 'static>(&mut self, table: &Table<R>, rows: &[R]) -> Result<()> {
        let path = self.dir.join(format!("{}.csv", table.name));
        let written = WholeFile::create_new(&path, Ownership::Result).and_then(|mut file| {
            self.rows(table, rows, &mut file)?;
            file.flush()?;
            Ok(file)
        });
        self.open.push((path.clone(), written.map_err(cannot_write(&path))?));
        Ok(())
    }
}

impl Tables<'_> {
    fn rows<R>(&self, table: &Table<R>, rows: &[R], to: &mut impl Write) -> io::Result<()> {
        for (n, column) in table.columns.iter().enumerate() {
            let (comma, name) = (if n > 0 { "," } else { "" }, column.about.name);
            write!(to, "{comma}{name}")?;
            if column.about.kind == ColumnKind::Ref("files") {
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
                if column.about.kind == ColumnKind::Ref("files") {
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
    match text {
        "" => to.write_all(b"\"\""),
        text => to.write_all(csv::text(text).as_bytes()),
    }
}
