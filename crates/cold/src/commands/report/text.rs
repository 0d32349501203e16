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
    /// Rows of the table of files.
    pub(crate) limit: usize,
    /// Rows of every other table.
    pub(crate) few: usize,
    /// Also stacks, sections, functions and the checks that hold.
    pub(crate) details: bool,
}

/// The report line by line: the answer first, then what it rests on. Without `details` it fits two screens.
pub(super) fn lines(analysis: &Analysis, view: View) -> Vec<String> {
    let mut out = headline::lines(&analysis.headline, view);
    let paths = paths(analysis);
    section(&mut out, cold_analyze::story_title(analysis), advice::why(analysis, view));
    section(&mut out, "What would help", advice::suggestions(analysis, &paths, view));
    for (title, body) in [
        ("Files that cost most", tables::files(analysis, view)),
        ("Read, but hardly needed", tables::hardly_needed(analysis, view)),
        ("Looked for in vain", tables::misses(analysis, view)),
        ("Functions entered, by traces of the same build", tables::first_entries(analysis, &paths, view)),
    ] {
        section(&mut out, title, body);
    }
    if view.details {
        for (title, body) in [
            ("Packages", tables::packages(analysis, view)),
            ("Stacks that waited longest", advice::stacks(analysis, view)),
            ("Sections of these files", tables::sections(analysis, &paths, None, view)),
            ("Functions", tables::symbols(analysis, &paths, None, view)),
            ("Functions by first entry", tables::entered(analysis, &paths, None, view)),
        ] {
            section(&mut out, title, body);
        }
    }
    section(&mut out, "Checks", advice::checks(analysis, view));
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

/// The tables of sections, data, functions, and functions by first entry alone, of one file.
pub(super) fn parts(analysis: &Analysis, file: FileIdx, view: View) -> [Vec<String>; 4] {
    let (paths, only) = (paths(analysis), Some(file));
    [tables::sections, tables::data, tables::symbols, tables::entered]
        .map(|table| table(analysis, &paths, only, view))
}

/// The table of data alone, of one file.
pub(super) fn data(analysis: &Analysis, file: FileIdx, view: View) -> Vec<String> {
    tables::data(analysis, &paths(analysis), Some(file), view)
}
