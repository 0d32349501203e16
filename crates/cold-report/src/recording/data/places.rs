//! Names of places in files: sections, and the function on a needed page.

use std::collections::{BTreeMap, HashSet};

use cold_model::recording::FileIdx;
use serde_json::{Value, json};

use super::super::marks::Marks;
use super::{Numbers, short};

/// Sections of a file in a page (`-ffunction-sections` objects have thousands).
const MOST_SECTIONS: usize = 200;

/// Per file of the page its sections: name, offset, bytes.
pub(super) fn sections(numbers: &Numbers<'_>) -> Value {
    let mut out = serde_json::Map::new();
    for (file, layout) in &numbers.view.layouts.files {
        let Some(place) = numbers.file(*file) else { continue };
        let rows: Vec<Value> = layout
            .sections
            .iter()
            .filter(|s| s.bytes > 0)
            .take(MOST_SECTIONS)
            .map(|s| json!([short(&s.name), s.offset, s.bytes]))
            .collect();
        if !rows.is_empty() {
            out.insert(place.to_string(), rows.into());
        }
    }
    out.into()
}

/// Per file the needed pages that have symbols, with the first one's name and how many more there are.
pub(super) fn symbols(numbers: &Numbers<'_>, marks: &Marks, most: usize) -> Value {
    let page_bytes = numbers.view.recording.page_bytes();
    let mut seen: HashSet<(FileIdx, u64)> = HashSet::new();
    let mut out: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
    for mark in &marks.touches {
        if seen.len() >= most {
            break;
        }
        let Some(layout) = numbers.view.layouts.files.get(&mark.file) else { continue };
        let Some(place) = numbers.file(mark.file) else { continue };
        // Only the first page of a run: runs are what reads and fault-around make, not code.
        if !seen.insert((mark.file, mark.first)) {
            continue;
        }
        let from = mark.first.saturating_mul(page_bytes);
        let to = from.saturating_add(page_bytes);
        let end = layout.symbols.partition_point(|s| s.offset < to);
        let mut begin = layout.symbols.partition_point(|s| s.offset < from);
        // The one before may reach into the page.
        if begin > 0 && layout.symbols.get(begin - 1).is_some_and(|s| s.offset + s.bytes > from) {
            begin -= 1;
        }
        let Some(first) = layout.symbols.get(begin..end).and_then(<[_]>::first) else { continue };
        out.entry(place).or_default().push(json!([mark.first, short(&first.name), end - begin - 1]));
    }
    out.into_iter()
        .map(|(file, rows)| (file.to_string(), Value::from(rows)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
