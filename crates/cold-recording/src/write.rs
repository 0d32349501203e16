//! Writing a recording so that a crash at any moment leaves the old one, an unfinished one, or the new one.
//!
//! The order: [`begin`] writes a `recording.json` without a list of tables, the recorder appends to the log,
//! [`write()`] writes all tables into files without names, names them, then replaces `recording.json` by one that
//! lists the tables, then removes the log. A recording without that list is unfinished.
//!
//! What is recorded holds command lines and paths of every process: it is for its owner alone.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_model::recording::{Manifest, Recording, manifest as model};
use cold_sys::whole::{Ownership, WholeFile};

use crate::manifest::{self, Tables, Written};
use crate::schema::{Table, Visitor, documented, visit};
use crate::validate::validate;
use crate::{Error, Result, columns, log};

/// Suffix that earlier versions gave to a file that was being written.
const PARTIAL: &str = "partial";
/// Files of a recording that is made, whatever the umask.
pub(crate) const PRIVATE: Ownership = Ownership::Own(0o600);

/// Creates the directory of a recording, for its owner alone, with the manifest as far as it is known. With
/// `overwrite`, an earlier recording there is replaced; anything else is left alone.
pub fn begin(dir: &Path, manifest: &Manifest, overwrite: bool) -> Result<()> {
    make_directory(dir, 0o700, overwrite)?;
    // The log first: an unfinished manifest beside an old log would be recovered as something it is not.
    remove(&dir.join(log::NAME))?;
    put_manifest(dir, manifest, None, PRIVATE)?;
    for table in documented() {
        remove(&dir.join(file_name(table.name)))?;
    }
    sync(dir)
}

/// Makes the directory of a recording, which must not be there. What is recorded is for nobody else's eyes.
pub fn make(dir: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(dir)
}

fn make_directory(dir: &Path, mode: u32, overwrite: bool) -> Result<()> {
    match DirBuilder::new().mode(mode).create(dir) {
        Ok(()) => sync(dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => replaceable(dir, overwrite),
        Err(e) => Err(Error::io("create", dir)(e)),
    }
}

/// Whether the directory holds a recording that may be replaced.
fn replaceable(dir: &Path, overwrite: bool) -> Result<()> {
    let no = |why: String| Err(Error::NotReplaced { path: dir.to_owned(), why });
    let meta = fs::symlink_metadata(dir).map_err(Error::io("stat", dir))?;
    if !meta.is_dir() {
        return no(format!("it is a {}, not a recording", cold_sys::open::kind_of(&meta)));
    }
    // Who can replace what is written there says what the recording says.
    if let Some(why) = cold_sys::place::distrust(&meta, &[cold_sys::caps::effective_user()]) {
        return no(why);
    }
    let entries = fs::read_dir(dir).map_err(Error::io("list", dir))?;
    let mut empty = true;
    for entry in entries {
        let name = entry.map_err(Error::io("list", dir))?.file_name();
        empty = false;
        if !name.to_str().is_some_and(is_part) {
            return no(format!("it holds {}, which no recording has", name.shown()));
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

/// Whether a recording has a file of this name, while it is made or later.
pub fn is_part(name: &str) -> bool {
    let name = name.strip_suffix(PARTIAL).and_then(|n| n.strip_suffix('.')).unwrap_or(name);
    name == manifest::NAME
        || name == log::NAME
        || name.strip_suffix(".parquet").is_some_and(|t| documented().iter().any(|d| d.name == t))
}

/// Writes the whole recording into a directory that [`begin`] made, and removes the log of raw events; or into a
/// new directory, as a result that a user asked for, which others may read as far as the umask says.
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
    let (kind, new) = match manifest::read(dir) {
        Ok((_, None)) => (PRIVATE, false),
        Ok((_, Some(_))) => return Err(Error::Exists { path: dir.to_owned() }),
        // There is nothing, or an empty directory; whatever else it may be is refused.
        Err(Error::Io { .. } | Error::NotARecording { .. }) => {
            let new = dir.symlink_metadata().is_err();
            make_directory(dir, 0o777, false)?;
            (Ownership::Result, new)
        }
        Err(e) => return Err(e),
    };
    let done = put_tables(dir, recording, kind)
        .and_then(|tables| put_manifest(dir, &recording.manifest, Some(&tables), kind));
    if done.is_err() && new {
        let _ = fs::remove_dir(dir); // only if nothing got into it
    }
    done?;
    sync(dir)?;
    remove(&dir.join(log::NAME))
}

/// Writes the tables as Parquet files into `dir`, without a manifest: all of them, or none where the disk is full.
pub(crate) fn put_tables(dir: &Path, recording: &Recording, kind: Ownership) -> Result<Tables> {
    let mut writer = Files::new(dir, kind);
    visit(recording, &mut writer)?;
    writer.commit()
}

/// Tables on their way to a directory, without names until all of them are written.
pub(crate) struct Files<'a> {
    dir: &'a Path,
    kind: Ownership,
    tables: Tables,
    /// Written, without names.
    open: Vec<(PathBuf, WholeFile)>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(dir: &'a Path, kind: Ownership) -> Self {
        Self { dir, kind, tables: Tables::new(), open: Vec::new() }
    }

    /// Gives all of them their names.
    pub(crate) fn commit(self) -> Result<Tables> {
        for (path, file) in self.open {
            file.commit().map_err(Error::io("write", &path))?;
        }
        sync(self.dir)?;
        Ok(self.tables)
    }
}

impl Visitor for Files<'_> {
    fn table<R: 'static>(&mut self, table: &Table<R>, rows: &[R]) -> Result<()> {
        let path = self.dir.join(file_name(table.name));
        let (file, written) = fill(&path, self.kind, |to| {
            columns::encode(table, rows, to).map_err(|e| io::Error::other(e.to_string()))
        })?;
        if !columns::readable(rows.len(), written.bytes) {
            let why = format!("{} has {} rows that are all but alike", table.name, rows.len());
            return Err(Error::Inconsistent { why });
        }
        self.open.push((path, file));
        self.tables.insert(table.name.to_owned(), Written { rows: rows.len() as u64, ..written });
        Ok(())
    }
}

fn put_manifest(dir: &Path, manifest: &Manifest, tables: Option<&Tables>, kind: Ownership) -> Result<()> {
    let path = dir.join(manifest::NAME);
    let document = manifest::document(manifest, tables)
        .map_err(|e| Error::Inconsistent { why: format!("the manifest cannot be written: {e}") })?;
    cold_sys::whole::write(&path, kind, &document).map_err(Error::io("write", &path))
}

/// Counts and sums what passes through.
struct Summed {
    file: WholeFile,
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

/// Writes a file that gets its name later. The name's old object, whatever it is, is then replaced and never
/// followed.
fn fill(
    path: &Path,
    kind: Ownership,
    content: impl FnOnce(&mut Summed) -> io::Result<()>,
) -> Result<(WholeFile, Written)> {
    let written = || {
        let mut to = Summed { file: WholeFile::create(path, kind)?, bytes: 0, crc: crc32fast::Hasher::new() };
        content(&mut to)?;
        to.flush()?;
        Ok((to.file, Written { rows: 0, bytes: to.bytes, crc32: to.crc.finalize() }))
    };
    written().map_err(Error::io("write", path))
}

#[allow(clippy::disallowed_methods, reason = "names of a recording, in the directory of one")]
pub(crate) fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path)(e)),
        _ => Ok(()),
    }
}

fn sync(dir: &Path) -> Result<()> {
    cold_sys::whole::sync_names(dir).map_err(Error::io("sync", dir))
}
