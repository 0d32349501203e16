//! Files, sections, functions and directories, as tables.

use std::collections::BTreeMap;

use cold_analyze::model::{Analysis, DataSymbol, DataUse, FileUse, Headline, Reached};
use cold_analyze::short_name;
use cold_model::recording::FileIdx;
use cold_model::{Bytes, Nanos, Shown as _};

use super::View;
use crate::table::Table;
use crate::ui::{FAINT, paint};
use crate::words::{count, percent, plural};

/// Columns from which on the table of files has all its figures.
const WIDE: usize = 100;
/// Data sections of one file that are always shown.
const FEW_SECTIONS: usize = 8;
/// Sections and functions are many; the first few tell.
const PARTS: usize = 10;

/// Rows that `limit` left out.
fn rest(lines: &mut Vec<String>, all: usize, limit: usize) {
    if all > limit {
        lines.push(paint(FAINT, format!("… and {} more (--limit)", count((all - limit) as u64))));
    }
}

/// A figure that is nothing is easier to overlook than a 0.
pub(in crate::commands::report) fn bytes(b: Bytes) -> String {
    if b.0 == 0 { "–".to_owned() } else { b.to_string() }
}

/// The same for times.
pub(in crate::commands::report) fn time(t: Nanos) -> String {
    if t.0 == 0 { "–".to_owned() } else { t.to_string() }
}

pub(in crate::commands::report) fn reached(r: Reached) -> &'static str {
    match r {
        Reached::Executed => "executed",
        Reached::Mapped => "mapped",
        Reached::Read => "read",
        Reached::LookedUp => "looked up",
        Reached::ByOthers => "by others",
    }
}

fn needed(f: &FileUse) -> String {
    let upper = if f.needed_upper.0 > 0 { "≤" } else { "" };
    format!("{upper}{}", bytes(f.needed))
}

/// A heading, whether its figures are known in this recording, and a file's cell.
type Column = (&'static str, bool, fn(&FileUse) -> String);

/// A column whose figure this tier cannot know is left out: its zeros would mean nothing.
fn columns(h: &Headline, room: Option<usize>) -> Vec<Column> {
    let (waited, read, requests) =
        (h.waited.value().is_some(), h.read.value().is_some(), h.requests.value().is_some());
    // Where there is little room the name is worth more than the two figures that explain least.
    let wide = room.is_none_or(|columns| columns >= WIDE);
    let all: [Column; 10] = [
        ("WAITED", waited, |f| time(f.stall)),
        ("NEEDED", h.needed.value().is_some(), needed),
        ("MAPPED", h.mapped.is_some(), needed),
        ("CAME IN", h.came_in.is_some(), |f| bytes(f.read_by_others)),
        ("READ", read, |f| bytes(f.read)),
        ("UNUSED", h.unused.value().is_some(), |f| bytes(f.unused)),
        ("REQS", requests, |f| count(f.requests)),
        ("FIRST", wide, |f| f.first_use.map_or_else(|| "–".to_owned(), |t| t.to_string())),
        ("HOW", wide, |f| reached(f.reached).to_owned()),
        ("FILE", true, |f| f.path.clone()),
    ];
    all.into_iter().filter(|(_, known, _)| *known).collect()
}

/// Files that cost anything, the costliest first.
pub(super) fn files(a: &Analysis, view: View) -> Vec<String> {
    let costly: Vec<&FileUse> =
        a.files.iter().filter(|f| f.stall.0 > 0 || f.read.0 > 0 || f.needed.0 > 0).collect();
    if costly.is_empty() {
        return Vec::new();
    }
    let columns = columns(&a.headline, view.table);
    let mut table = Table::new(&columns.iter().map(|c| c.0).collect::<Vec<_>>());
    for f in costly.iter().take(view.limit) {
        table.row(columns.iter().map(|c| c.2(f)).collect(), Vec::new());
    }
    let mut lines = table.lines(view.table);
    rest(&mut lines, costly.len(), view.limit);
    lines
}

/// Libraries of which almost nothing was needed.
pub(super) fn hardly_needed(a: &Analysis, view: View) -> Vec<String> {
    let found: Vec<&FileUse> = a.hardly_needed.iter().filter_map(|i| a.files.get(*i)).collect();
    if found.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["UNUSED", "READ", "NEEDED", "SHARE", "FILE"]);
    for f in found.iter().take(view.few) {
        let share = percent(f.needed.0.min(f.read.0), f.read.0);
        let why = f.hardly_needed.iter().filter(|_| view.details).cloned().collect();
        table.row(vec![bytes(f.unused), bytes(f.read), bytes(f.needed), share, f.path.clone()], why);
    }
    let mut lines = table.lines(view.table);
    rest(&mut lines, found.len(), view.few);
    lines
}

/// What the program's language loaded.
pub(super) fn packages(a: &Analysis, view: View) -> Vec<String> {
    if a.packages.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["TIME", "WAITED", "READ", "FILES", "MISSES", "LANGUAGE", "PACKAGE"]);
    for p in a.packages.iter().take(view.few) {
        let language = p.language.to_string();
        let figures = [time(p.elapsed), time(p.waited), bytes(p.read), count(p.files), count(p.misses)];
        let row = figures.into_iter().chain([language, p.shown()]);
        table.row(row.collect(), Vec::new());
    }
    let mut lines = table.lines(view.table);
    rest(&mut lines, a.packages.len(), view.few);
    lines
}

/// Parts of ELF files that were needed, or waited for; of `only` this file.
pub(super) fn sections(
    a: &Analysis,
    paths: &BTreeMap<FileIdx, &str>,
    only: Option<FileIdx>,
    view: View,
) -> Vec<String> {
    let mut used = a.sections_by_cost();
    used.retain(|s| only.is_none_or(|file| s.file == file));
    if used.is_empty() {
        return Vec::new();
    }
    let limit = view.few.min(PARTS);
    let (waited, read) = (a.headline.waited.value().is_some(), a.headline.read.value().is_some());
    let shown = [waited, true, read, true, true, true];
    let of = |cells: [String; 6]| -> Vec<String> {
        cells.into_iter().zip(shown).filter_map(|(cell, shown)| shown.then_some(cell)).collect()
    };
    let head = ["WAITED", "NEEDED", "READ", "SIZE", "SEGMENT", "SECTION OF FILE"];
    let head: Vec<&str> = head.into_iter().zip(shown).filter_map(|(h, shown)| shown.then_some(h)).collect();
    let mut table = Table::new(&head);
    for s in used.iter().take(limit) {
        let name = format!("{} of {}", s.section, short_name(paths.get(&s.file).copied().unwrap_or("?")));
        let cells = [time(s.stall), bytes(s.needed), bytes(s.read), bytes(s.size), s.segment.clone(), name];
        table.row(of(cells), Vec::new());
    }
    let mut lines = table.lines(view.table);
    rest(&mut lines, used.len(), limit);
    lines
}

/// Functions whose pages were waited for; of `only` this file.
pub(super) fn symbols(
    a: &Analysis,
    paths: &BTreeMap<FileIdx, &str>,
    only: Option<FileIdx>,
    view: View,
) -> Vec<String> {
    let waited: Vec<_> =
        a.symbols.iter().filter(|s| s.stall.0 > 0 && only.is_none_or(|file| s.file == file)).collect();
    if waited.is_empty() {
        return Vec::new();
    }
    let limit = view.few.min(PARTS);
    let mut table = Table::new(&["WAITED", "FAULTS", "FIRST", "FUNCTION"]);
    for s in waited.iter().take(limit) {
        let name = format!("{}`{}", short_name(paths.get(&s.file).copied().unwrap_or("?")), s.symbol);
        table.row(vec![time(s.stall), count(s.touches), s.first_use.to_string(), name], Vec::new());
    }
    let mut lines = table.lines(view.table);
    rest(&mut lines, waited.len(), limit);
    lines
}

/// Traced files: functions entered, and what linking them in that order would bring.
pub(super) fn first_entries(a: &Analysis, paths: &BTreeMap<FileIdx, &str>, view: View) -> Vec<String> {
    if a.first_entries.is_empty() {
        return Vec::new();
    }
    let waited = a.headline.waited.value().is_some();
    let head = ["WAITED", "ENTERED", "NAMED", "PAGES", "IN ORDER", "READ", "IN ORDER", "FILE"];
    let mut table = Table::new(&head[usize::from(!waited)..]);
    for f in a.first_entries.iter().take(view.few) {
        let figures = f.predicted.map_or_else(
            || ["–", "–", "–", "–"].map(str::to_owned),
            |g| {
                let pages = [count(g.today.pages), count(g.ordered.pages)];
                let [today, ordered] = pages;
                [today, ordered, bytes(g.today.read), bytes(g.ordered.read)]
            },
        );
        let path = paths.get(&f.file).copied().unwrap_or("?").to_owned();
        let cells =
            [time(f.stall), count(f.entered), count(f.named)].into_iter().chain(figures).chain([path]);
        let of = format!(
            "by {}; figures of {}{}",
            plural(f.scenarios.len() as u64, "trace"),
            f.scenario.shown(),
            if f.same_command { "" } else { ", which is another command than the recorded one" }
        );
        table.row(cells.skip(usize::from(!waited)).collect(), vec![of]);
    }
    let mut lines = table.lines(view.table);
    rest(&mut lines, a.first_entries.len(), view.few);
    lines
}

/// Functions of a traced file, or of `only` this one, in the order of first entries.
pub(super) fn entered(
    a: &Analysis,
    paths: &BTreeMap<FileIdx, &str>,
    only: Option<FileIdx>,
    view: View,
) -> Vec<String> {
    let found = a.first_entries.iter().find(|f| only.is_none_or(|file| f.file == file));
    let Some(f) = found.filter(|f| !f.functions.is_empty()) else { return Vec::new() };
    let file = short_name(paths.get(&f.file).copied().unwrap_or("?"));
    let limit = view.few.max(PARTS);
    let waited = a.headline.waited.value().is_some();
    let head = ["ENTRY", "WAITED", "OFFSET", "SIZE", "FUNCTION"];
    let shown = [true, waited, true, true, true];
    let head: Vec<&str> = head.into_iter().zip(shown).filter_map(|(h, shown)| shown.then_some(h)).collect();
    let mut table = Table::new(&head);
    for (e, n) in f.functions.iter().zip(1_u64..).take(limit) {
        let name = e.name.as_deref().unwrap_or("(no name)");
        let cells =
            [count(n), time(e.stall), format!("{:#x}", e.offset), bytes(e.bytes), format!("{file}`{name}")];
        table.row(
            cells.into_iter().zip(shown).filter_map(|(c, shown)| shown.then_some(c)).collect(),
            Vec::new(),
        );
    }
    let mut lines = table.lines(view.table);
    rest(&mut lines, usize::try_from(f.entered).unwrap_or(usize::MAX), limit);
    lines
}

/// Symbols named with a section.
const NAMED: usize = 12;

/// Data sections with the symbols on their used pages; of `only` this file.
pub(super) fn data(
    a: &Analysis,
    paths: &BTreeMap<FileIdx, &str>,
    only: Option<FileIdx>,
    view: View,
) -> Vec<String> {
    let of: Vec<&DataUse> = a.data.iter().filter(|d| only.is_none_or(|file| d.file == file)).collect();
    if of.is_empty() {
        return Vec::new();
    }
    let limit = view.few.max(FEW_SECTIONS);
    let mut table =
        Table::new(&["PAGES", "TOUCHED", "PERHAPS", "WRITTEN", "SECTION, AND SYMBOLS ON THESE PAGES"]);
    for d in of.iter().take(limit) {
        let written = d.written.map_or_else(|| "?".to_owned(), count);
        let name = match only {
            Some(_) => d.section.clone(),
            None => format!("{} of {}", d.section, short_name(paths.get(&d.file).copied().unwrap_or("?"))),
        };
        let symbol = |s: &DataSymbol| {
            let written = s.written.filter(|n| *n > 0).map(|n| format!(", {} written", plural(n, "page")));
            let alone = if s.alone == s.pages { "" } else { " shared" };
            format!("{} ({}{alone}{})", s.name, plural(s.pages, "page"), written.unwrap_or_default())
        };
        let mut below: Vec<String> = d.symbols.iter().take(NAMED.min(view.limit)).map(symbol).collect();
        if d.symbols.len() > below.len() {
            below.push(format!("… and {} more", count((d.symbols.len() - below.len()) as u64)));
        }
        table.row(vec![count(d.pages), count(d.touched), count(d.perhaps), written, name], below);
    }
    let mut lines = table.lines(view.table);
    rest(&mut lines, of.len(), limit);
    lines
}

/// Directories named with a search.
const DIRECTORIES: usize = 3;
/// Names named with a search.
const EXAMPLES: usize = 4;

/// Failed lookups by what searched, with the directories in which most failed.
pub(super) fn misses(a: &Analysis, view: View) -> Vec<String> {
    let searches = cold_analyze::searches(&a.misses);
    if searches.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new(&["MISSES", "TIME", "WAITED", "DIRS", "SEARCHED BY"]);
    for s in searches.iter().take(view.few) {
        let name = s.name.unwrap_or("not recognised").to_owned();
        let row =
            vec![count(s.misses), s.time.to_string(), time(s.stall), count(s.directories.len() as u64), name];
        table.row(row, below(s, view.details));
    }
    let mut lines = table.lines(view.table);
    rest(&mut lines, searches.len(), view.few);
    lines
}

/// Where was searched; with `details` also for what, and by which calls.
fn below(s: &cold_analyze::Search<'_>, details: bool) -> Vec<String> {
    // The empty name lies in none, and a name that could not be read in an unknown one.
    let place = |d: &str| if d.is_empty() { "–".to_owned() } else { d.to_owned() };
    let in_each =
        |d: &&cold_analyze::model::MissGroup| format!("{} ({})", place(&d.directory), count(d.misses));
    let mut places: Vec<String> = s.directories.iter().take(DIRECTORIES).map(in_each).collect();
    if s.directories.len() > places.len() {
        places.push("…".to_owned());
    }
    let places = format!("in {}", places.join(", "));
    if !details {
        return vec![places];
    }
    vec![places, format!("{}: {}", cold_analyze::calls_in_words(&s.kinds()), s.examples(EXAMPLES).join(", "))]
}
