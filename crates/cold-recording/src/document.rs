//! The JSON document beside the tables: it says what format and version they are of.

use std::io;
use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, Result};

/// What it says, at most `most` bytes; `None` where there is none.
pub(crate) fn bytes(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    let (file, _) = match cold_sys::open::regular(path, false) {
        Ok(opened) => opened,
        Err(cold_sys::Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(e) => return Err(e.into()),
    };
    match cold_sys::open::content(&file, most).map_err(Error::io("read", path))? {
        None => Err(Error::damaged(path, format!("it is larger than {most} bytes"))),
        bytes => Ok(bytes),
    }
}

/// Whether it is of this format, and of a version that is known. To be asked first: the rest of a later version may look
/// different.
pub(crate) fn check(bytes: &[u8], path: &Path, format: &str, version: u32) -> Result<()> {
    #[derive(Deserialize)]
    struct Head {
        format: String,
        version: u64,
    }
    let head: Head = serde_json::from_slice(bytes).map_err(|e| Error::damaged(path, e.to_string()))?;
    if head.format != format {
        let why = format!("its format is {:?}, not {format:?}", head.format);
        return Err(Error::NotARecording { path: path.to_owned(), why });
    }
    if head.version > u64::from(version) {
        return Err(Error::Future { path: path.to_owned(), found: head.version, known: version });
    }
    if head.version == 0 {
        return Err(Error::damaged(path, "there is no format version 0"));
    }
    Ok(())
}
