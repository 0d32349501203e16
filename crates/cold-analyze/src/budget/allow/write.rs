//! A list made of recordings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::pattern::Pattern;
use super::{MARGIN_PAGES, MARGIN_PERCENT, used_files};
use crate::budget::BudgetedStart;
use crate::context::Context;

/// The files of all these starts with the most pages that one of them needed, by path; those that not every start used
/// are `optional`. Names with a line feed cannot stand in a list: their number is the second value.
pub fn write(starts: &[BudgetedStart<'_>]) -> (String, u64) {
    let mut files: BTreeMap<String, (u64, usize)> = BTreeMap::new();
    for start in starts {
        let cx = Context::new(start.recording, start.layouts);
        // Pages of two files of one name (one of them deleted) are looked at one by one, as the judgement does.
        let mut own: BTreeMap<&str, u64> = BTreeMap::new();
        for f in used_files(start, &cx) {
            let pages = own.entry(&f.path).or_default();
            *pages = (*pages).max(f.needed.0 / cx.page);
        }
        for (path, pages) in own {
            let row = files.entry(path.to_owned()).or_default();
            *row = (row.0.max(pages), row.1 + 1);
        }
    }
    let mut out =
        String::from("# Files that a start may use before it is ready, and how many pages of each.\n");
    for start in starts {
        let subject = start.analysis.headline.subject.replace(['\n', '\r'], " ");
        // Writing to a String cannot fail.
        let _ = writeln!(out, "# {}: {subject}", start.name.replace(['\n', '\r'], " "));
    }
    let _ = writeln!(
        out,
        "# More by {MARGIN_PERCENT}% (at least {MARGIN_PAGES} pages) passes; margin=N or margin=N% on a line \
         changes that.\n# * stands for any part of a name, ** for any part of a path; the first line that matches \
         decides."
    );
    let mut left_out = 0;
    for (path, (pages, seen)) in files {
        if path.contains(['\n', '\r']) || path != path.trim() || !path.starts_with('/') {
            left_out += 1;
            continue;
        }
        let optional = if seen < starts.len() { " optional" } else { "" };
        let _ = writeln!(out, "{} pages={pages}{optional}", Pattern::escaped(&path));
    }
    (out, left_out)
}
