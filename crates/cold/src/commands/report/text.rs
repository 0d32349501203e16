//! The report for people: losses first, then the headline, then what cost most, why, and what would help.

mod advice;
pub(super) mod headline;
mod tables;
#[cfg(test)]
pub(super) mod tests;

use std::collections::BTreeMap;

use cold_analyze::model::Analysis;
use cold_model::recording::FileIdx;

use crate::ui::{STRONG, paint};

/// Lines longer than this tire the eye, however wide the terminal.
pub(super) const MOST_COLUMNS: usize = 120;

/// How much room there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// Columns for sentences.
    pub(crate) columns: usize,
    /// Columns for tables; `None`: nothing is shortened.
    pub(crate) table: Option<usize>,
    /// Rows per table.
    pub(crate) limit: usize,
}

/// Everything, line by line.
pub(super) fn lines(analysis: &Analysis, view: View) -> Vec<String> {
    let mut out = headline::lines(&analysis.headline, view);
    section(&mut out, cold_analyze::story_title(analysis), advice::why(analysis, view));
    let paths = paths(analysis);
    for (title, body) in [
        ("Files that cost most", tables::files(analysis, view)),
        ("Read, but hardly needed", tables::hardly_needed(analysis, view)),
        ("Looked for in vain", tables::misses(analysis, view)),
        ("Stacks that waited longest", advice::stacks(analysis, view)),
        ("What would help", advice::suggestions(analysis, &paths, view)),
        ("Sections of these files", tables::sections(analysis, &paths, view)),
        ("Functions", tables::symbols(analysis, &paths, view)),
        ("Checks", advice::checks(analysis, view)),
    ] {
        section(&mut out, title, body);
    }
    out
}

/// A titled part, left out when there is nothing to say.
pub(super) fn section(out: &mut Vec<String>, title: &str, body: Vec<String>) {
    if !body.is_empty() {
        out.push(String::new());
        out.push(paint(STRONG, title));
        out.extend(body);
    }
}

/// Names of files by their index in the recording.
fn paths(analysis: &Analysis) -> BTreeMap<FileIdx, &str> {
    analysis.files.iter().map(|f| (f.file, f.path.as_str())).collect()
}

/// The tables of sections and of functions alone, for one file.
pub(super) fn parts(analysis: &Analysis, view: View) -> (Vec<String>, Vec<String>) {
    let paths = paths(analysis);
    (tables::sections(analysis, &paths, view), tables::symbols(analysis, &paths, view))
}
