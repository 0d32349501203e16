//! Finding and reading prefetch files.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_windows::pf::Prefetch;

use crate::exit::Failure;
use crate::progress::Line;

/// Larger than any prefetch file: the largest public one has 734,696 bytes.
const MOST: u64 = 64 << 20;
/// Directories below each other that are searched.
const DEPTH: u32 = 16;
/// Files between two steps of the progress line.
const STEP: usize = 64;

/// A file that was read.
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) meta: Metadata,
    pub(super) prefetch: Prefetch,
}

/// Files that could not be read, and why.
pub(super) type Failed = Vec<(PathBuf, String)>;

/// Reads all that is named: files as they are, directories for names that end in `.pf`.
pub(super) fn read(paths: &[PathBuf], line: &mut Line<'_>) -> Result<(Vec<Found>, Failed), Failure> {
    let mut files = Vec::new();
    let mut failed = Failed::new();
    for path in paths {
        match path.metadata() {
            Ok(meta) if meta.is_dir() => search(path, DEPTH, &mut files, &mut failed),
            Ok(_) => files.push(path.clone()),
            Err(e) => return Err(Failure::usage(format!("cannot look at {}: {e}", path.shown()))),
        }
    }
    if files.is_empty() && failed.is_empty() {
        let places: Vec<String> = paths.iter().map(|p| p.shown().to_string()).collect();
        return Err(anyhow::anyhow!("no prefetch file (*.pf) in {}", places.join(", ")).into());
    }
    let mut found = Vec::new();
    for (n, path) in files.iter().enumerate() {
        if n % STEP == 0 {
            line.step(&format!("reading file {} of {}", n + 1, files.len()));
        }
        match one(path) {
            Ok(f) => found.push(f),
            Err(why) => failed.push((path.clone(), why)),
        }
    }
    Ok((found, failed))
}

fn search(dir: &Path, depth: u32, files: &mut Vec<PathBuf>, failed: &mut Failed) {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) => return failed.push((dir.to_owned(), e.to_string())),
    };
    let mut names: Vec<PathBuf> = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => names.push(entry.path()),
            Err(e) => failed.push((dir.to_owned(), e.to_string())),
        }
    }
    names.sort();
    for path in names {
        let kind = match path.symlink_metadata() {
            Ok(meta) => meta.file_type(),
            Err(e) => {
                failed.push((path, e.to_string()));
                continue;
            }
        };
        let is_pf = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("pf"));
        // Links are not followed: what they lead to is found where it is.
        if kind.is_dir() && depth > 0 {
            search(&path, depth - 1, files, failed);
        } else if kind.is_dir() {
            failed.push((path, format!("more than {DEPTH} directories deep")));
        } else if kind.is_file() && is_pf {
            files.push(path);
        }
    }
}

fn one(path: &Path) -> Result<Found, String> {
    let (file, meta) = cold_sys::open::regular(path, true).map_err(|e| e.to_string())?;
    let bytes = cold_sys::open::content(&file, MOST).map_err(|e| e.to_string())?;
    let bytes = bytes.ok_or_else(|| format!("{} bytes: larger than any prefetch file", meta.len()))?;
    let prefetch = Prefetch::read(&bytes).map_err(|e| e.to_string())?;
    Ok(Found { path: path.to_owned(), meta, prefetch })
}
