//! Forms of pages and ranges in the order of need.

use std::collections::HashSet;
use std::fmt::Write as _;

use cold_model::{csv, path_text};

use super::{ExportError, PagesWanted, Written};

/// Files that are named in an error.
const NAMED: usize = 4;
/// Pages of a memory file at most: 256 GiB of 4 KiB each.
const MOST_PAGES: u64 = 1 << 26;
/// Name and version of the JSON form.
const SCHEMA: &str = "coldstart.ranges/1";

/// REAP (vHive, `memory/manager/trace.go`): the offset of a page a line, hexadecimal without `0x`, in order.
pub(super) fn reap(wanted: &PagesWanted) -> Result<Written, ExportError> {
    let used: HashSet<usize> = wanted.pieces.iter().map(|p| p.file).collect();
    if used.len() != 1 {
        let files = wanted.files.iter().take(NAMED).map(|f| path_text::encode(&f.path));
        let names = files.collect::<Vec<_>>().join(", ");
        return Err(ExportError::NotOne { count: used.len(), names });
    }
    let page = wanted.page_bytes.max(1);
    let pages = wanted.pieces.iter().fold(0_u64, |sum, p| sum.saturating_add(p.bytes.div_ceil(page)));
    if pages > MOST_PAGES {
        return Err(ExportError::TooMany { pages });
    }
    let mut text = String::new();
    for p in &wanted.pieces {
        for n in 0..p.bytes.div_ceil(page) {
            let _ = writeln!(text, "{:x}", p.offset + n * page); // to a String: cannot fail
        }
    }
    Ok(Written { text, files: 1, left_out: Vec::new() })
}

/// Ranges in the order of need with the names of their files.
pub(super) fn ranges_json(wanted: &PagesWanted) -> Written {
    let files = wanted.files.iter();
    let files: Vec<_> =
        files.map(|f| serde_json::json!({"path": path_text::encode(&f.path), "size": f.size})).collect();
    let pieces = wanted.pieces.iter();
    let ranges: Vec<_> = pieces
        .map(|p| serde_json::json!({"file": p.file, "offset": p.offset, "bytes": p.bytes, "need_ns": p.need_ns}))
        .collect();
    let n = files.len() as u64;
    let document = serde_json::json!({
        "schema": SCHEMA,
        "page_bytes": wanted.page_bytes,
        "files": files,
        "ranges": ranges,
    });
    Written { text: document.to_string() + "\n", files: n, left_out: Vec::new() }
}

/// The same, a row each.
pub(super) fn ranges_csv(wanted: &PagesWanted) -> Written {
    let mut text = String::from("path,offset,bytes,need_ns\n");
    for p in &wanted.pieces {
        let Some(f) = wanted.files.get(p.file) else { continue };
        let path = path_text::encode(&f.path);
        // To a String: cannot fail.
        let _ = writeln!(text, "{},{},{},{}", csv::text(&path), p.offset, p.bytes, p.need_ns);
    }
    Written { text, files: wanted.files.len() as u64, left_out: Vec::new() }
}
