//! Use of a program's data by section and symbol: constants, variables, and what is relocated before it is constant.

use cold_model::Bytes;
use cold_model::layout::{FileLayout, Section, Symbol};
use cold_model::pages::Runs;
use cold_model::recording::FileIdx;

use crate::context::Context;
use crate::model::{DataSymbol, DataUse};
use crate::sections::pages_of;
use crate::usage::Usage;

/// At most this many symbols of a section are listed.
const LISTED: usize = 200;

/// Data sections of files of which a page was touched or is known to be written to, in the files' order.
pub(crate) fn data(cx: &Context<'_>) -> Vec<DataUse> {
    let mut out = Vec::new();
    for (file, layout) in &cx.layouts.files {
        let Some(usage) = cx.usage.get(*file as usize) else { continue };
        let written = written(cx, *file);
        let sections = layout.sections.iter().filter(|s| s.address != 0 && is_data(&s.name));
        out.extend(sections.filter_map(|s| of_section(cx, *file, layout, s, usage, written.as_ref())));
    }
    out
}

/// `.data`, `.rodata`, `.data.rel.ro` and their parts.
fn is_data(name: &str) -> bool {
    [".data", ".rodata"]
        .iter()
        .any(|kind| name.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

/// Pages that traced starts of the recorded command wrote to; of other commands where none is of it.
fn written(cx: &Context<'_>, file: FileIdx) -> Option<Runs> {
    let traced = cx.layouts.traced.get(&file)?;
    let own = traced.of_command(&cx.recording.manifest.command);
    let scenarios = own.map_or(&traced.scenarios[..], std::slice::from_ref);
    scenarios
        .iter()
        .filter_map(|s| s.written.as_ref())
        .fold(None, |all: Option<Runs>, runs| Some(all.map_or_else(|| runs.clone(), |all| all.or(runs))))
}

fn of_section(
    cx: &Context<'_>,
    file: FileIdx,
    layout: &FileLayout,
    section: &Section,
    usage: &Usage,
    written: Option<&Runs>,
) -> Option<DataUse> {
    let pages = pages_of(section.offset, section.bytes, cx.page);
    let (exact, perhaps) = (usage.exact.and(&pages), usage.upper.and(&pages));
    let written = written.map(|runs| runs.and(&pages));
    // What was written was touched, though perhaps in another start.
    let used = exact.or(&perhaps).or(written.as_ref().unwrap_or(&Runs::default()));
    if used.is_empty() {
        return None;
    }
    Some(DataUse {
        file,
        section: section.name.clone(),
        size: Bytes(section.bytes),
        pages: pages.pages(),
        touched: exact.pages(),
        perhaps: perhaps.pages(),
        written: written.as_ref().map(Runs::pages),
        symbols: symbols(cx, layout, section, &used, written.as_ref()),
    })
}

/// The symbols on these pages, those on most pages first.
fn symbols(
    cx: &Context<'_>,
    layout: &FileLayout,
    section: &Section,
    used: &Runs,
    written: Option<&Runs>,
) -> Vec<DataSymbol> {
    let end = section.offset.saturating_add(section.bytes);
    let of = |s: &&Symbol| (section.offset..end).contains(&s.offset);
    let on = |s: &Symbol| pages_of(s.offset, s.bytes.max(1).min(end - s.offset), cx.page);
    let all: Vec<(&Symbol, Runs)> = layout
        .symbols
        .iter()
        .filter(of)
        .map(|s| (s, on(s).and(used)))
        .filter(|(_, on)| !on.is_empty())
        .collect();
    // Symbols come by offset: a page is shared where the one before or behind reaches into it.
    let mut ends = 0;
    let mut shared = Vec::new();
    for (_, on) in &all {
        let (first, last) = (on.runs().first().map_or(0, |r| r.start), on.runs().last().map_or(0, |r| r.end));
        shared.push(first..ends.min(last));
        ends = ends.max(last);
    }
    let shared = Runs::of(shared);
    let mut found: Vec<DataSymbol> = all
        .into_iter()
        .map(|(s, on)| DataSymbol {
            name: s.name.clone(),
            offset: s.offset,
            bytes: Bytes(s.bytes),
            pages: on.pages(),
            alone: on.minus(&shared).pages(),
            written: written.map(|w| w.and(&on).pages()),
        })
        .collect();
    found.sort_by_key(|s| (std::cmp::Reverse((s.pages, s.bytes)), s.offset));
    found.truncate(LISTED);
    found
}

#[cfg(test)]
mod tests {
    use cold_model::layout::{Layouts, Traced, TracedScenario};
    use cold_model::order::TracedFile;
    use cold_model::recording::TouchKind;
    use cold_model::sample::{PAGE, empty};

    use super::*;
    use crate::analyze;

    fn layouts(written: Option<Runs>) -> Layouts {
        let section = |name: &str, page: u64, bytes: u64| Section {
            name: name.to_owned(),
            offset: page * PAGE,
            bytes,
            address: 0x1000,
        };
        let symbol = |name: &str, offset, bytes| Symbol { name: name.to_owned(), offset, bytes };
        let layout = FileLayout {
            sections: vec![
                section(".text", 0, 10 * PAGE),
                section(".rodata", 10, 5 * PAGE),
                section(".data", 20, 4 * PAGE),
                section(".database", 30, PAGE),
            ],
            symbols: vec![
                symbol("f", 0, 40_000),
                symbol("small", 10 * PAGE, 16),
                symbol("table", 10 * PAGE + 16, 3 * PAGE),
                symbol("label", 13 * PAGE + 16, 0),
                symbol("counter", 20 * PAGE, 8),
                symbol("state", 21 * PAGE, PAGE),
                symbol("other", 30 * PAGE, PAGE),
            ],
            ..FileLayout::default()
        };
        let file = TracedFile {
            path: "/p".into(),
            build_id: None,
            linked: cold_model::order::Linked::Pie,
            is_go: false,
            texts: vec![],
            functions: vec![],
        };
        let scenario = TracedScenario {
            name: "s".to_owned(),
            command: vec!["prog".to_owned(), "two words".to_owned()],
            from: "s.order".into(),
            entered: vec![],
            written,
        };
        let mut layouts = Layouts::default();
        layouts.files.insert(0, layout);
        layouts.traced.insert(0, Traced { file, scenarios: vec![scenario] });
        layouts
    }

    #[test]
    fn pages_of_data_are_told_with_the_symbols_on_them() {
        let mut r = empty();
        let f = r.file("/p", 100 * PAGE);
        for page in [2, 11, 12, 13, 20, 30] {
            r.touch(page, f, page..page + 1, TouchKind::Fault);
        }
        let found = analyze(&r, &layouts(Some(Runs::of(vec![20..21, 21..22])))).data;
        let [rodata, data] = &found[..] else { panic!("{found:?}") };
        assert_eq!((rodata.section.as_str(), rodata.pages, rodata.touched), (".rodata", 5, 3));
        assert_eq!(rodata.written, Some(0));
        let told = |d: &DataUse| -> Vec<(String, u64, u64)> {
            d.symbols.iter().map(|s| (s.name.clone(), s.pages, s.alone)).collect()
        };
        let row = |name: &str, pages, alone| (name.to_owned(), pages, alone);
        // Of the table's pages 10 to 13 the first was not touched, the last is shared with a label.
        assert_eq!(told(rodata), [row("table", 3, 2), row("label", 1, 0)]);
        assert_eq!((data.section.as_str(), data.touched, data.written), (".data", 1, Some(2)));
        assert_eq!(told(data), [row("state", 1, 1), row("counter", 1, 1)]);
        assert_eq!(
            data.symbols[0].written,
            Some(1),
            "written in the traced start, not seen in the recorded one"
        );
    }

    #[test]
    fn what_no_trace_tells_is_unknown() {
        let mut r = empty();
        let f = r.file("/p", 100 * PAGE);
        r.touch(1, f, 11..12, TouchKind::Fault);
        let found = analyze(&r, &layouts(None)).data;
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].written, found[0].symbols[0].written), (None, None));
    }
}
