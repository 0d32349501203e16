//! `--file`: which pages of one file were needed and read, as a map and as runs.

use std::collections::BTreeMap;

use cold_analyze::Usage;
use cold_analyze::model::{Analysis, FileUse};
use cold_model::layout::{FileLayout, Layouts};
use cold_model::pages::Runs;
use cold_model::recording::Recording;
use cold_model::{Bytes, Nanos};

use super::text::{View, section};
use crate::table::Table;
use crate::ui::{FAINT, STRONG, paint};
use crate::words::{count, plural};

/// Cells per row of the map.
const CELLS: usize = 64;
/// Rows of the map at most: a larger file gets larger cells.
const ROWS: u64 = 48;
/// Pages that are looked at, of a file that claims to be larger (4 TiB).
const MOST_PAGES: u64 = 1 << 30;

/// Pages of one file by what happened to them.
struct Pages {
    needed: Runs,
    read: Runs,
    /// When each page was first needed, from the start.
    first: BTreeMap<u64, Nanos>,
    count: u64,
}

/// Files whose path contains `pattern`, in detail, the costliest first.
pub(super) fn lines(
    recording: &Recording,
    layouts: &Layouts,
    analysis: &Analysis,
    pattern: &str,
    view: View,
) -> Vec<String> {
    let found: Vec<&FileUse> = analysis.files.iter().filter(|f| f.path.contains(pattern)).collect();
    let mut out = Vec::new();
    for f in found.iter().take(view.limit) {
        if !out.is_empty() {
            out.push(String::new());
        }
        one(recording, layouts, analysis, f, view, &mut out);
    }
    if found.len() > view.limit {
        out.push(paint(FAINT, format!("… and {} more files (--limit)", found.len() - view.limit)));
    }
    out
}

fn one(
    recording: &Recording,
    layouts: &Layouts,
    analysis: &Analysis,
    f: &FileUse,
    view: View,
    out: &mut Vec<String>,
) {
    out.push(paint(STRONG, &f.path));
    let size = f.size.map_or_else(|| "size unknown".to_owned(), |b| b.to_string());
    out.push(format!(
        "  {size}; needed {} in {}; read {}; unused {}; cached before {}; waited {}",
        f.needed,
        plural(f.fragments, "run"),
        f.read,
        f.unused,
        f.cached,
        f.stall
    ));
    if let Some(why) = layouts.missing.get(&f.file) {
        out.push(paint(FAINT, format!("  no sections or symbols: {why}")));
    }
    let layout = layouts.files.get(&f.file);
    let pages = pages(recording, analysis.usage.get(f.file as usize), f);
    let page = recording.page_bytes();
    section(out, "Pages", map(&pages, page, layout));
    section(out, "Runs of needed pages", runs(&pages, page, layout, view));
    let [sections, data, symbols, entered] = super::text::parts(analysis, f.file, view);
    section(out, "Sections", sections);
    section(out, "Data", data);
    section(out, "Functions", symbols);
    section(out, "Functions by first entry", entered);
}

fn pages(recording: &Recording, usage: Option<&Usage>, f: &FileUse) -> Pages {
    let page = recording.page_bytes();
    let needed = usage.map(|u| u.needed.clone()).unwrap_or_default();
    let read = usage.map(|u| u.read.or(&u.by_others).or(&u.written)).unwrap_or_default();
    let last = [&needed, &read].into_iter().filter_map(|set| Some(set.runs().last()?.end)).max();
    let count = f.size.map(|b| b.0.div_ceil(page)).or(last).unwrap_or(0).min(MOST_PAGES);
    let mut first = BTreeMap::new();
    for t in recording.touches.iter().flatten().filter(|t| t.file == f.file) {
        let at = t.at.saturating_sub(recording.manifest.start);
        let touched = t.first_page..t.first_page.saturating_add(t.pages.into());
        for p in needed.within(&touched).flatten() {
            first.entry(p).and_modify(|first: &mut Nanos| *first = (*first).min(at)).or_insert(at);
        }
    }
    let there = Runs::one(0..count);
    Pages { needed: needed.and(&there), read: read.and(&there), first, count }
}

/// One letter per cell: the best thing that can be said of its pages.
fn map(pages: &Pages, page: u64, layout: Option<&FileLayout>) -> Vec<String> {
    if pages.count == 0 {
        return Vec::new();
    }
    let cell = pages.count.div_ceil(CELLS as u64 * ROWS).max(1);
    let letter = |first: u64| {
        let range = first..(first + cell).min(pages.count);
        let any = |set: &Runs| set.within(&range).next().is_some();
        match (any(&pages.needed), any(&pages.read)) {
            (true, true) => '#',
            (true, false) => 'c',
            (false, true) => '-',
            (false, false) => '.',
        }
    };
    let mut out = vec![paint(
        FAINT,
        format!(
            "  {} per letter: # needed, c needed and cached before, - read in vain, . neither",
            Bytes(cell * page)
        ),
    )];
    let mut first = 0;
    while first < pages.count {
        let row: String = (0..CELLS as u64)
            .map(|i| first + i * cell)
            .take_while(|p| *p < pages.count)
            .map(letter)
            .collect();
        let name = section_at(layout, first * page).unwrap_or_default();
        out.push(format!("  {:>12} {row:CELLS$} {}", first * page, paint(FAINT, name)));
        first += CELLS as u64 * cell;
    }
    out
}

/// Name of the section that holds an offset.
fn section_at(layout: Option<&FileLayout>, offset: u64) -> Option<String> {
    let found =
        layout?.sections.iter().find(|s| (s.offset..s.offset.saturating_add(s.bytes)).contains(&offset))?;
    Some(found.name.clone())
}

fn runs(pages: &Pages, page: u64, layout: Option<&FileLayout>, view: View) -> Vec<String> {
    let all = pages.needed.runs();
    if all.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["OFFSET", "BYTES", "FIRST USE", "SECTION"]);
    for run in all.iter().take(view.limit) {
        let first = pages.first.range(run.clone()).map(|(_, t)| *t).min().unwrap_or_default();
        let section = section_at(layout, run.start * page).unwrap_or_default();
        table.row(
            vec![
                count(run.start * page),
                Bytes((run.end - run.start) * page).to_string(),
                first.to_string(),
                section,
            ],
            Vec::new(),
        );
    }
    let mut lines = table.lines(view.table);
    if all.len() > view.limit {
        lines.push(paint(FAINT, format!("… and {} more (--limit)", all.len() - view.limit)));
    }
    lines
}

/// Whether any file has the pattern in its path.
pub(super) fn matches(analysis: &Analysis, pattern: &str) -> bool {
    analysis.files.iter().any(|f| f.path.contains(pattern))
}
