//! Traces as text: what `xperf -a dumper` writes, tables that `wpaexporter` or WPA write, and `Layout.ini`.
//!
//! Columns are found by their names, since each version of the tools has its own set and order. Times of `xperf` rows
//! are those of completion. Shapes: rustc-perf's `etw_parser.rs`, oppat's `etw_*.lua`, the SNIA IOTTA traces of
//! Microsoft's servers.

mod cells;
mod dumper;
mod lines;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
mod table;
#[cfg(test)]
mod tests;

pub use lines::Lines;
pub use table::{Field, Map};

use crate::Result;
use crate::etl::Source;
use crate::evidence::Evidence;

/// What was read of a text, and what was not.
#[derive(Debug)]
pub struct GatheredText {
    /// What it tells.
    pub evidence: Evidence,
    /// Rows of kinds that are read.
    pub rows: u64,
    /// Rows of these kinds that could not be read.
    pub bad: u64,
    /// The first of them: its line, from 1, and what is wrong.
    pub first_bad: Option<(u64, String)>,
    /// It is a table of WPA, not rows of xperf.
    pub is_table: bool,
}

/// Reads a trace in text. `map` names columns of a table that have other titles than WPA's own.
///
/// # Errors
/// [`crate::Error::Source`] where the source fails, [`crate::Error::Damaged`] where it is neither form.
pub fn gather<S: Source>(source: S, map: &Map) -> Result<GatheredText> {
    let mut lines = Lines::new(source);
    while let Some(line) = lines.next_line()? {
        let text = line.trim();
        // Comments and blank lines may come before.
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if text == dumper::BEGIN
            || cells::split(text, ',').get(1).is_some_and(|c| c.eq_ignore_ascii_case(dumper::TIME))
        {
            return dumper::gather(text.to_owned(), lines);
        }
        return table::gather(text, lines, map);
    }
    Err(crate::Error::Damaged { what: "a trace in text", at: 0, why: "it is empty" })
}

/// The paths of a `Layout.ini`, in the order in which Windows' defragmenter was to lay them out.
///
/// # Errors
/// [`crate::Error::Source`] where the source fails, [`crate::Error::Damaged`] without `[OptimalLayoutFile]`.
pub fn layout_ini<S: Source>(source: S) -> Result<Vec<String>> {
    let mut lines = Lines::new(source);
    let (mut inside, mut out) = (false, Vec::new());
    while let Some(line) = lines.next_line()? {
        let text = line.trim();
        if let Some(section) = text.strip_prefix('[') {
            inside = section.eq_ignore_ascii_case("OptimalLayoutFile]");
        } else if inside && !text.is_empty() && !text.to_ascii_lowercase().starts_with("version=") {
            out.push(text.to_owned());
        }
    }
    let why = "it has no section [OptimalLayoutFile]";
    if out.is_empty() && !inside {
        return Err(crate::Error::Damaged { what: "a Layout.ini", at: 0, why });
    }
    Ok(out)
}
