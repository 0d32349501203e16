//! Traces of first entries that belong to a recording: those that are named, else those that lie beside it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_model::order::Trace;

use crate::exit::Failure;
use crate::progress::Line;

/// Traces beside a recording that are looked at.
const MOST: usize = 100;

/// The traces in `named`; where none is, those beside the recording `dir` that tell of the same build as one of its
/// files. Of these a damaged one is passed over, with a warning.
///
/// # Errors
/// A named one cannot be read.
pub(crate) fn of(
    dir: &Path,
    builds: &HashSet<&str>,
    named: &[PathBuf],
    warnings: &mut Vec<String>,
    line: &mut Line<'_>,
) -> Result<Vec<(PathBuf, Trace)>, Failure> {
    let read = |path: &PathBuf| Ok((path.clone(), cold_recording::order::read(path)?));
    if !named.is_empty() {
        let all: Result<_, cold_recording::Error> = named.iter().map(read).collect();
        return Ok(all?);
    }
    let mut found = Vec::new();
    for path in beside(dir) {
        let is_of_it = match cold_recording::order::builds(&path) {
            Ok(of) => of.iter().any(|build| builds.contains(build.as_str())),
            // A trace that is being written, or another's directory of that name.
            Err(_) => false,
        };
        if !is_of_it {
            continue;
        }
        line.step(&format!("reading {}", path.shown()));
        match read(&path) {
            Ok(trace) => found.push(trace),
            Err(e) => warnings.push(format!("{} is left out: {e}", path.shown())),
        }
    }
    Ok(found)
}

/// Directories `*.order` in the one that holds `dir`, by name.
fn beside(dir: &Path) -> Vec<PathBuf> {
    // `NAME.cold` alone has an empty parent; `..` and `/` none that would be meant.
    let parent = dir.parent().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
    let entries = parent.and_then(|p| std::fs::read_dir(p).ok()).into_iter().flatten().flatten();
    let is_trace = |e: &std::fs::DirEntry| {
        e.file_name().as_encoded_bytes().ends_with(b".order") && e.file_type().is_ok_and(|t| t.is_dir())
    };
    let mut paths: Vec<PathBuf> =
        entries.filter(is_trace).map(|e| dir.with_file_name(e.file_name())).collect();
    paths.sort();
    paths.truncate(MOST);
    paths
}
