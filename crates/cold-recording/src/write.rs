//! Writing a recording so that a crash at any moment leaves the old one, an unfinished one, or the new one.
//!
//! The order: [`begin`] writes a `recording.json` without a list of tables, the recorder appends to the log,
//! [`write()`] writes each table under a temporary name, syncs and renames it, then replaces `recording.json`
//! by one that lists the tables, then removes the log. A recording without that list is unfinished.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use cold_model::recording::{Manifest, Recording, manifest as model};

use crate::manifest::{self, Tables, Written};
use crate::schema::{Table, Visitor, documented, visit};
use crate::validate::validate;
use crate::{Error, Result, columns, log};

/// Suffix of a file that is being written.
const PARTIAL: &str = "partial";

/// Creates the directory of a recording, with the manifest as far as it is known. With `overwrite`, an
/// earlier recording there is replaced; anything else is left alone.
pub fn begin(dir: &Path, manifest: &Manifest, overwrite: bool) -> Result<()> {
    match fs::create_dir(dir) {
        Ok(()) => sync(dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")))?,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => replaceable(dir, overwrite)?,
        Err(e) => return Err(Error::io("create", dir)(e)),
    }
    // The log first: an unfinished manifest beside an old log would be recovered as something it is not.
    remove(&dir.join(log::NAME))?;
    put_manifest(dir, manifest, None)?;
    for table in documented() {
        remove(&dir.join(file_name(table.name)))?;
    }
    sync(dir)
}

/// Whether the directory holds a recording that may be replaced.
fn replaceable(dir: &Path, overwrite: bool) -> Result<()> {
    let no = |why: String| Err(Error::NotReplaced { path: dir.to_owned(), why });
    let meta = fs::symlink_metadata(dir).map_err(Error::io("stat", dir))?;
    if !meta.is_dir() {
        return no(format!("it is a {}, not a recording", cold_sys::open::kind_of(&meta)));
    }
    let entries = fs::read_dir(dir).map_err(Error::io("list", dir))?;
    let mut empty = true;
    for entry in entries {
        let name = entry.map_err(Error::io("list", dir))?.file_name();
        empty = false;
        if !name.to_str().is_some_and(is_ours) {
            return no(format!("it holds {}, which no recording has", name.display()));
        }
    }
    if empty || overwrite && fs::symlink_metadata(dir.join(manifest::NAME)).is_ok() {
        return Ok(());
    }
    if overwrite {
        return no(format!("there is no {} in it", manifest::NAME));
    }
    Err(Error::Exists { path: dir.to_owned() })
}

/// Name of a table's file.
pub(crate) fn file_name(table: &str) -> String {
    format!("{table}.parquet")
}

fn is_ours(name: &str) -> bool {
    let name = name.strip_suffix(PARTIAL).and_then(|n| n.strip_suffix('.')).unwrap_or(name);
    name == manifest::NAME
        || name == log::NAME
        || name.strip_suffix(".parquet").is_some_and(|t| documented().iter().any(|d| d.name == t))
}

/// Writes the whole recording into a directory that [`begin`] made (or that does not exist), and removes the
/// log of raw events. Format and version of the manifest are set here.
///
/// # Errors
/// [`Error::Inconsistent`] when the recording breaks a rule of the format, before anything is written.
pub fn write(dir: &Path, recording: &Recording) -> Result<()> {
    let format = (recording.manifest.format.as_str(), recording.manifest.version);
    if format != (model::FORMAT, model::VERSION) {
        let why = format!("the manifest says {} version {}", format.0, format.1);
        return Err(Error::Inconsistent { why });
    }
    validate(recording)?;
    match manifest::read(dir) {
        Ok((_, None)) => {}
        Ok((_, Some(_))) => return Err(Error::Exists { path: dir.to_owned() }),
        // There is nothing, or an empty directory; begin refuses whatever else it may be.
        Err(Error::Io { .. } | Error::NotARecording { .. }) => {
            begin(dir, &Manifest { complete: false, ..recording.manifest.clone() }, false)?;
        }
        Err(e) => return Err(e),
    }
    let tables = put_tables(dir, recording)?;
    sync(dir)?;
    put_manifest(dir, &recording.manifest, Some(&tables))?;
    sync(dir)?;
    remove(&dir.join(log::NAME))
}

/// Writes the tables as Parquet files into `dir`, without a manifest.
pub(crate) fn put_tables(dir: &Path, recording: &Recording) -> Result<Tables> {
    let mut writer = Files { dir, tables: Tables::new() };
    visit(recording, &mut writer)?;
    Ok(writer.tables)
}

struct Files<'a> {
    dir: &'a Path,
    tables: Tables,
}

impl Visitor for Files<'_> {
    fn table<R: 'static>(&mut self, table: &Table<R>, rows: &[R]) -> Result<()> {
        let path = self.dir.join(file_name(table.name));
        let written = replace(&path, |to| {
            columns::encode(table, rows, to).map_err(|e| io::Error::other(e.to_string()))
        })?;
        if !columns::readable(rows.len(), written.bytes) {
            remove(&path)?;
            let why = format!("{} has {} rows that are all but alike", table.name, rows.len());
            return Err(Error::Inconsistent { why });
        }
        self.tables.insert(table.name.to_owned(), Written { rows: rows.len() as u64, ..written });
        Ok(())
    }
}

fn put_manifest(dir: &Path, manifest: &Manifest, tables: Option<&Tables>) -> Result<()> {
    let path = dir.join(manifest::NAME);
    let document = manifest::document(manifest, tables)
        .map_err(|e| Error::Inconsistent { why: format!("the manifest cannot be written: {e}") })?;
    replace(&path, |to| to.write_all(&document)).map(drop)
}

/// Counts and sums what passes through.
struct Summed {
    file: File,
    bytes: u64,
    crc: crc32fast::Hasher,
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.crc.update(&bytes[..n]);
        self.bytes += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a file under a temporary name, syncs it and puts it in place. The name's old object, whatever it
/// is, is replaced and never followed.
fn replace(path: &Path, fill: impl FnOnce(&mut Summed) -> io::Result<()>) -> Result<Written> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".");
    partial.push(PARTIAL);
    let partial = Path::new(&partial);
    remove(partial)?;
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(partial)
        .map_err(Error::io("create", partial))?;
    let mut to = Summed { file, bytes: 0, crc: crc32fast::Hasher::new() };
    let done = fill(&mut to).and_then(|()| to.file.sync_all());
    if let Err(e) = done.and_then(|()| fs::rename(partial, path)) {
        // Most likely the disk is full; what is left of the attempt would keep it so.
        let _ = fs::remove_file(partial);
        return Err(Error::io("write", path)(e));
    }
    Ok(Written { rows: 0, bytes: to.bytes, crc32: to.crc.finalize() })
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(e)),
        _ => Ok(()),
    }
}

/// Makes the names in a directory durable.
fn sync(dir: &Path) -> Result<()> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(Error::io("sync", dir))
}
