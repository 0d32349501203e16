//! `--file`: which pages of one file were needed and read, as a map and as runs.

use cold_analyze::model::{Analysis, FileUse};
use cold_analyze::page_map::{Cell, PageMap};
use cold_model::Bytes;
use cold_model::layout::{FileLayout, Layouts};
use cold_model::recording::Recording;

use super::text::{View, section};
use crate::table::Table;
use crate::ui::{FAINT, STRONG, paint};
use crate::words::{count, plural};

/// Cells per row of the map.
const CELLS: usize = 64;
/// Rows of the map at most: a larger file gets larger cells.
const ROWS: u64 = 48;
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
    let pages = PageMap::of(recording, analysis.usage.get(f.file as usize), f);
    let page = recording.page_bytes();
    section(out, "Pages", map(&pages, page, layout));
    section(out, "Runs of needed pages", runs(&pages, page, layout, view));
    let [sections, data, symbols, entered] = super::text::parts(analysis, f.file, view);
    section(out, "Sections", sections);
    section(out, "Data", data);
    section(out, "Functions", symbols);
    section(out, "Functions by first entry", entered);
}

/// One letter per cell: the best thing that can be said of its pages.
fn map(pages: &PageMap, page: u64, layout: Option<&FileLayout>) -> Vec<String> {
    if pages.count == 0 {
        return Vec::new();
    }
    let cell = pages.count.div_ceil(CELLS as u64 * ROWS).max(1);
    let letter = |first: u64| match pages.cell(first..(first + cell).min(pages.count)) {
        Cell::NeededAndRead => '#',
        Cell::NeededAndCached => 'c',
        Cell::ReadInVain => '-',
        Cell::Neither => '.',
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

fn runs(pages: &PageMap, page: u64, layout: Option<&FileLayout>, view: View) -> Vec<String> {
    let all = pages.needed.runs();
    if all.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["OFFSET", "BYTES", "FIRST USE", "SECTION"]);
    for run in all.iter().take(view.limit) {
        let first = pages.first_use(run.clone()).unwrap_or_default();
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
