//! Files below /sys and /proc that hold one value.

use std::fs::File;
use std::path::Path;

use crate::{Error, Result};

/// No setting is longer than a page.
const LONGEST: u64 = 4096;

/// The value of a setting in the form in which it can be written back: blanks are single, and of a
/// choice (`always [madvise] never`) only the chosen one is kept.
pub(crate) fn canonical(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let chosen = words.iter().find_map(|w| w.strip_prefix('[')?.strip_suffix(']'));
    chosen.map_or_else(|| words.join(" "), str::to_owned)
}

/// Reads a setting in its [`canonical`] form.
pub(crate) fn read(path: &Path) -> Result<String> {
    let read = File::open(path).and_then(|f| cold_sys::open::content(&f, LONGEST));
    let Some(bytes) = read.map_err(|e| Error::io("read", path, e))? else {
        return Err(Error::refused("read", path, "it is longer than 4096 bytes, which no setting is"));
    };
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(canonical(text)),
        Err(_) => Err(Error::refused("read", path, "it is not text")),
    }
}

/// Writes a setting in one piece; never creates a file.
pub(crate) fn write(path: &Path, value: &str) -> Result<()> {
    cold_sys::knob::write(path, &format!("{value}\n")).map_err(|e| Error::io("write", path, e))
}
