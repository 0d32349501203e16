//! Forms of builders of images.

use std::fmt::Write as _;

use super::{PagesWanted, Sieve, Written};

/// Why a name cannot stand in a document of text.
const NO_TEXT: &str = "their names are no UTF-8 text";
/// overlaybd's buffer for the list, in bytes.
const OVERLAYBD_LIST: usize = 65_536;
/// The highest priority of mksquashfs. What no line names has 0, so the lowest of a list is 1.
const SQUASHFS_HIGHEST: u64 = 32_767;

/// The files' names that are text, in the order of need, with their index.
fn names<'a>(wanted: &'a PagesWanted, sieve: &mut Sieve) -> Vec<(usize, &'a str)> {
    let mut out = Vec::new();
    for (i, f) in wanted.files.iter().enumerate() {
        match f.path.to_str() {
            Some(name) => out.push((i, name)),
            None => sieve.drop(NO_TEXT, &f.path.to_string_lossy()),
        }
    }
    out
}

/// The same without those that would break a form of lines.
fn lines<'a>(wanted: &'a PagesWanted, sieve: &mut Sieve) -> Vec<&'a str> {
    let mut out = Vec::new();
    for (_, name) in names(wanted, sieve) {
        if name.contains(['\n', '\r']) {
            sieve.drop("their names hold the end of a line", name);
        } else {
            out.push(name);
        }
    }
    out
}

fn written(text: String, files: usize, sieve: Sieve) -> Written {
    Written { text, files: files as u64, left_out: sieve.0 }
}

/// Nydus (`builder/src/optimize_prefetch.rs`): version `v1`, absolute paths, `[offset, size]`. Its test of overlap takes
/// a chunk whose border a range merely touches, on both sides: a range that begins at a chunk's first byte would bring
/// the chunk before it, too. So ranges begin and end one byte inside the pages.
pub(super) fn nydus(wanted: &PagesWanted) -> Written {
    let mut sieve = Sieve::default();
    let ranges = wanted.ranges_by_file();
    let names = names(wanted, &mut sieve);
    let files: Vec<_> = names
        .iter()
        .map(|&(i, path)| {
            let inside = |&(offset, bytes): &(u64, u64)| {
                let begin = if offset == 0 { 0 } else { offset + 1 };
                [begin, (offset + bytes).saturating_sub(1).saturating_sub(begin).max(1)]
            };
            let ranges: Vec<[u64; 2]> = ranges.get(i).into_iter().flatten().map(inside).collect();
            serde_json::json!({"path": path, "ranges": ranges})
        })
        .collect();
    let n = files.len();
    written(serde_json::json!({"version": "v1", "files": files}).to_string() + "\n", n, sieve)
}

/// stargz-snapshotter's record (`recorder`): a JSON object a line, `path` without the leading slash, in order.
pub(super) fn estargz(wanted: &PagesWanted) -> Written {
    let mut sieve = Sieve::default();
    let names = names(wanted, &mut sieve);
    let line = |(_, path): &(usize, &str)| {
        serde_json::json!({"path": path.trim_start_matches('/')}).to_string() + "\n"
    };
    let text: String = names.iter().map(line).collect();
    written(text, names.len(), sieve)
}

/// SOCI: a JSON array of paths; it knows whole files only.
pub(super) fn soci(wanted: &PagesWanted) -> Written {
    let mut sieve = Sieve::default();
    let names: Vec<&str> = names(wanted, &mut sieve).into_iter().map(|(_, path)| path).collect();
    written(serde_json::json!(names).to_string() + "\n", names.len(), sieve)
}

/// overlaybd: a path a line. Its reader silently drops names with other characters than `A-Za-z0-9_.-/` (`libstdc++`
/// is one), and what lies beyond 65,536 bytes: both are left out here, and said.
pub(super) fn overlaybd_list(wanted: &PagesWanted) -> Written {
    let mut sieve = Sieve::default();
    let (mut text, mut files) = (String::new(), 0);
    for name in lines(wanted, &mut sieve) {
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-/".contains(c)) {
            sieve.drop("overlaybd reads only letters, digits and _.-/ in names", name);
        } else if text.len() + name.len() + 1 > OVERLAYBD_LIST {
            sieve.drop("overlaybd reads only 65,536 bytes of a list", name);
        } else {
            text.push_str(name);
            text.push('\n');
            files += 1;
        }
    }
    written(text, files, sieve)
}

/// mksquashfs (`sort.c`): `path priority`, the highest first, relative to the source directory. Blanks, backslashes and
/// a `#` in front are escaped.
pub(super) fn squashfs_sort(wanted: &PagesWanted) -> Written {
    let mut sieve = Sieve::default();
    let (mut text, mut files) = (String::new(), 0);
    for (i, name) in lines(wanted, &mut sieve).into_iter().enumerate() {
        for c in name.trim_start_matches('/').chars() {
            if c.is_whitespace() || c == '\\' || c == '#' {
                text.push('\\');
            }
            text.push(c);
        }
        let priority = SQUASHFS_HIGHEST.saturating_sub(i as u64).max(1);
        let _ = writeln!(text, " {priority}"); // to a String: cannot fail
        files += 1;
    }
    written(text, files, sieve)
}
