//! `recording.json`: the manifest and the list of the tables with their sizes and checksums.

use std::collections::BTreeMap;
use std::path::Path;

use cold_model::recording::{Manifest, manifest};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, document};

/// Name of the manifest's file in a recording's directory.
pub const NAME: &str = "recording.json";
/// Largest that is read.
const MOST: u64 = 64 << 20;

/// What `recording.json` says about a table's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    /// Bytes of the file.
    pub(crate) bytes: u64,
    /// CRC-32 of the file.
    pub(crate) crc32: u32,
}

/// Tables by name.
pub(crate) type Tables = BTreeMap<String, Written>;

/// The document. Without `tables` the recorder has not ended, or was killed.
pub(crate) fn document(manifest: &Manifest, tables: Option<&Tables>) -> serde_json::Result<Vec<u8>> {
    let mut document = serde_json::to_value(manifest)?;
    if let (Some(object), Some(tables)) = (document.as_object_mut(), tables) {
        object.insert("tables".to_owned(), serde_json::to_value(tables)?);
    }
    let mut bytes = serde_json::to_vec_pretty(&document)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The manifest of the recording in `dir`, and its tables if it was finished. Use it to show what an
/// unfinished recording is about.
pub fn manifest_of(dir: &Path) -> Result<Manifest> {
    read(dir).map(|(manifest, _)| manifest)
}

pub(crate) fn read(dir: &Path) -> Result<(Manifest, Option<Tables>)> {
    let path = dir.join(NAME);
    match std::fs::symlink_metadata(dir) {
        Err(e) => return Err(Error::io("open", dir)(e)),
        Ok(meta) if meta.is_dir() || meta.is_symlink() => {}
        Ok(_) => {
            let why = "it is not a directory".to_owned();
            return Err(Error::NotARecording { path: dir.to_owned(), why });
        }
    }
    let bytes = document::bytes(&path, MOST)?.ok_or_else(|| {
        let why = format!("there is no {NAME} in it");
        Error::NotARecording { path: dir.to_owned(), why }
    })?;
    parse(&bytes, &path)
}

/// Reads the document; `path` is for messages.
pub(crate) fn parse(bytes: &[u8], path: &Path) -> Result<(Manifest, Option<Tables>)> {
    #[derive(Deserialize)]
    struct Tail {
        tables: Option<Tables>,
    }
    document::check(bytes, path, manifest::FORMAT, manifest::VERSION)?;
    let wrong = |e: serde_json::Error| Error::damaged(path, e.to_string());
    let manifest: Manifest = serde_json::from_slice(bytes).map_err(wrong)?;
    let tail: Tail = serde_json::from_slice(bytes).map_err(wrong)?;
    Ok((manifest, tail.tables))
}
