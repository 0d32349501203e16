//! Reading a recording that anybody may have made.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use cold_model::recording::Recording;

use crate::manifest::{self, Tables, Written};
use crate::schema::{Source, Table, collect, documented};
use crate::validate::validate;
use crate::write::file_name;
use crate::{Error, Result, columns};

/// Reads and validates the recording in `dir`. A table that was not recorded is `None`.
///
/// # Errors
/// [`Error::Unfinished`] when its recorder was killed (the raw events can be recovered), [`Error::Future`]
/// for a later version, [`Error::Damaged`] with the file and the reason.
pub fn read(dir: &Path) -> Result<Recording> {
    let (manifest, tables) = manifest::read(dir)?;
    let Some(tables) = tables else { return Err(Error::Unfinished { dir: dir.to_owned() }) };
    let path = dir.join(manifest::NAME);
    let known = documented();
    if let Some(name) = tables.keys().find(|n| known.iter().all(|d| d.name != n.as_str())) {
        return Err(Error::damaged(
            &path,
            format!("it lists a table {name:?}, which the format does not have"),
        ));
    }
    for name in ["processes", "threads", "files"] {
        if !tables.contains_key(name) {
            return Err(Error::damaged(&path, format!("it does not list the table {name}")));
        }
    }
    let mut recording = collect(&mut Files { dir, tables }).map_err(|e| in_file(e, dir))?;
    recording.manifest = manifest;
    validate(&recording).map_err(|e| in_file(e, dir))?;
    Ok(recording)
}

/// A rule broken by a file is the file's damage.
fn in_file(error: Error, dir: &Path) -> Error {
    match error {
        Error::Inconsistent { why } => Error::damaged(dir, why),
        other => other,
    }
}

/// Tables of a directory, as its manifest lists them.
pub(crate) struct Files<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) tables: Tables,
}

impl Source for Files<'_> {
    fn rows<R: 'static>(&mut self, table: &Table<R>) -> Result<Option<Vec<R>>> {
        let Some(written) = self.tables.get(table.name) else { return Ok(None) };
        let path = self.dir.join(file_name(table.name));
        let (mut file, _) = cold_sys::open::regular(&path, false)?;
        unchanged(&mut file, written, &path)?;
        let rows = columns::decode(table, file, &path)?;
        if rows.len() as u64 != written.rows {
            return Err(Error::damaged(&path, format!("it has {} of {} rows", rows.len(), written.rows)));
        }
        Ok(Some(rows))
    }
}

/// The file is the one that was written. So accidents are told before the Parquet library sees them.
fn unchanged(file: &mut File, written: &Written, path: &Path) -> Result<()> {
    let mut crc = crc32fast::Hasher::new();
    let mut bytes = 0;
    let mut buffer = vec![0; 1 << 18];
    loop {
        let n = file.read(&mut buffer).map_err(Error::io("read", path))?;
        if n == 0 {
            break;
        }
        crc.update(&buffer[..n]);
        bytes += n as u64;
    }
    if bytes != written.bytes {
        return Err(Error::damaged(path, format!("it has {bytes} of {} bytes", written.bytes)));
    }
    if crc.finalize() != written.crc32 {
        return Err(Error::damaged(path, "its checksum is not the one it was written with"));
    }
    file.rewind().map_err(Error::io("read", path))
}
