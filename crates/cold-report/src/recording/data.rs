//! The data block of the page: names as JSON, then all tables as columns, deflated, as base64.
//!
//! Layout before compression: length of the JSON as 4 bytes (little endian), the JSON, the columns in
//! the order the JSON describes them. Text of the recording is nowhere in the page's markup but here.

use std::collections::{BTreeMap, HashMap};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cold_analyze::model::compare::Comparison;
use cold_model::Nanos;
use cold_model::recording::FileIdx;
use serde_json::{Value, json};

use super::View;
use super::columns::Writer;
use super::marks::Marks;
use super::names::{FILLS, STALLS, TOUCHES};

mod decisions;
mod places;
mod tables;

/// Most bytes of base64 in a page: with scripts and styles it stays below 3 MB.
pub(super) const MOST_BYTES: usize = 2_800_000;
/// Files with names and marks in a page, the costliest first.
const MOST_FILES: usize = 20_000;
/// Rows of a table in a page.
const MOST_ROWS: usize = 5_000;
/// Threads and process images with names in a page.
const MOST_TASKS: usize = 20_000;
/// Length to which names are cut (mangled templates grow to many KiB).
const MOST_TEXT: usize = 300;

/// How much is left out so that the page stays within its size.
#[derive(Debug, Clone, Copy)]
struct Reduction {
    /// Times are multiples of this many nanoseconds.
    quantum: u64,
    /// Marks are thinned to this many cells of time, and of pages per file.
    cells: Option<(u64, u64)>,
    /// Pages that get a symbol's name.
    symbols: usize,
    /// Requests, and stalls, of each recording.
    intervals: usize,
}

const fn to(quantum: u64, cells: Option<(u64, u64)>, symbols: usize, intervals: usize) -> Reduction {
    Reduction { quantum, cells, symbols, intervals }
}

/// From everything to a picture that is still sharp on a small screen.
const REDUCTIONS: [Reduction; 7] = [
    to(1_000, None, 20_000, 150_000),
    to(10_000, None, 5_000, 100_000),
    to(20_000, Some((8_192, 4_096)), 3_000, 60_000),
    to(50_000, Some((4_096, 1_024)), 1_000, 30_000),
    to(100_000, Some((2_048, 512)), 0, 15_000),
    to(200_000, Some((1_024, 256)), 0, 8_000),
    to(500_000, Some((512, 64)), 0, 4_000),
];

/// The data block of one or two recordings, as base64; the last reduction's even if it is too large.
pub(super) fn block(views: &[View<'_>], comparison: Option<&Comparison>) -> String {
    let marks: Vec<Marks> =
        views.iter().map(|view| Marks::new(view.recording, &view.analysis.usage)).collect();
    let mut out = String::new();
    for (level, reduction) in (1..).zip(REDUCTIONS) {
        let raw = raw(views, &marks, comparison, reduction);
        // Base64 of deflated columns has about 0.6 of their bytes; far above the limit it is not tried.
        if level < REDUCTIONS.len() && raw.len() / 2 > MOST_BYTES {
            continue;
        }
        // Level 6 is zlib's default; 9 takes three times as long for 1 %.
        out = STANDARD.encode(miniz_oxide::deflate::compress_to_vec(&raw, 6));
        if out.len() <= MOST_BYTES {
            break;
        }
    }
    out
}

fn raw(
    views: &[View<'_>],
    marks: &[Marks],
    comparison: Option<&Comparison>,
    reduction: Reduction,
) -> Vec<u8> {
    let mut writer = Writer::default();
    let both = views.iter().zip(marks);
    let sides: Vec<Value> = both.map(|(view, marks)| side(view, marks, &mut writer, reduction)).collect();
    let words = json!({
        "fills": FILLS.map(|(_, name)| name),
        "stalls": STALLS.map(|(_, name)| name),
        "touches": TOUCHES,
    });
    let comparison = comparison.map(compared);
    let json = json!({ "sides": sides, "words": words, "comparison": comparison }).to_string();
    let mut out = u32::try_from(json.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    out.extend_from_slice(json.as_bytes());
    out.extend(writer.into_bytes());
    out
}

/// Numbers of a recording in the page: its files by cost, its threads by their beginning.
struct Numbers<'a> {
    view: &'a View<'a>,
    start: Nanos,
    quantum: u64,
    files: HashMap<FileIdx, i64>,
    threads: HashMap<(u32, u32), i64>,
}

impl Numbers<'_> {
    /// A point in time from the start, in quanta; negative before it.
    fn time(&self, at: Nanos) -> i64 {
        let quantum = self.quantum.cast_signed();
        at.0.cast_signed().wrapping_sub(self.start.0.cast_signed()).div_euclid(quantum)
    }

    /// A length in quanta plus 1, rounded up so that nothing becomes nothing; 0: not known.
    fn length(&self, from: Nanos, to: Option<Nanos>) -> i64 {
        to.map_or(0, |to| to.saturating_sub(from).0.div_ceil(self.quantum).cast_signed() + 1)
    }

    /// A file of the page, if it has a place there.
    fn file(&self, file: FileIdx) -> Option<i64> {
        self.files.get(&file).copied()
    }

    /// A thread plus 1; 0: one that is not listed.
    fn thread(&self, pid: u32, tid: u32) -> i64 {
        self.threads.get(&(pid, tid)).map_or(0, |t| t + 1)
    }
}

fn side(view: &View<'_>, all: &Marks, writer: &mut Writer, reduction: Reduction) -> Value {
    let (recording, analysis) = (view.recording, view.analysis);
    let manifest = &recording.manifest;
    let files = analysis.files.iter().take(MOST_FILES).zip(0..).map(|(f, i)| (f.file, i)).collect();
    let threads =
        recording.threads.iter().take(MOST_TASKS).zip(0..).map(|(t, i)| ((t.pid, t.tid), i)).collect();
    let numbers = Numbers { view, start: manifest.start, quantum: reduction.quantum, files, threads };
    let thinned;
    let mut notes = Vec::new();
    let mut marks = all;
    if let Some((times, rows)) = reduction.cells {
        let span = manifest.end.saturating_sub(manifest.start).0;
        thinned = all.thinned(span.div_ceil(times), rows);
        marks = &thinned;
        if marks.len() < all.len() {
            notes.push(format!(
                "To keep this page small it draws {} of {} marks: of marks of one kind within 1/{times} of the \
                 time and 1/{rows} of a file only the largest, so zooming far in shows gaps that are none. The \
                 figures and tables are of all.",
                marks.len(),
                all.len()
            ));
        }
    }
    if analysis.files.len() > MOST_FILES {
        notes.push(format!("Drawn are the {MOST_FILES} costliest of {} files.", analysis.files.len()));
    }
    let (tables, cut) = tables::tables(&numbers, marks, reduction.intervals, writer);
    notes.extend(cut);
    let relative = |at: Nanos| at.saturating_sub(manifest.start).0;
    json!({
        "name": view.name,
        "subject": analysis.headline.subject,
        "quantum": reduction.quantum,
        "page": manifest.page_bytes,
        "end": relative(manifest.end),
        "ready": analysis.headline.ready.value(),
        "ready_means": manifest.ready_means,
        "exact": manifest.exact_need,
        "has": recording.counts().into_iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "notes": notes,
        "files": files_of(&numbers),
        "analysis": analysis_of(&numbers),
        "threads": threads_of(&numbers),
        "devices": devices_of(&numbers),
        "windows": decisions::windows(&numbers),
        "advice": decisions::advice(&numbers),
        "sections": places::sections(&numbers),
        "symbols": places::symbols(&numbers, marks, reduction.symbols),
        "tables": tables,
    })
}

/// A name no longer than the page has room for.
fn short(text: &str) -> String {
    crate::escape::line(text, MOST_TEXT)
}

/// The files, as columns: a hundred thousand objects with the same keys would take longer to parse.
fn files_of(numbers: &Numbers<'_>) -> Value {
    let files: Vec<_> = numbers.view.analysis.files.iter().take(MOST_FILES).collect();
    macro_rules! column {
        ($f:ident => $e:expr) => {
            files.iter().map(|$f| $e).collect::<Vec<_>>()
        };
    }
    json!({
        "path": column!(f => crate::escape::line(&f.path, 4_096)),
        "size": column!(f => f.size),
        "needed": column!(f => f.needed),
        "needed_upper": column!(f => f.needed_upper),
        "read": column!(f => f.read),
        "unused": column!(f => f.unused),
        "cached": column!(f => f.cached),
        "requests": column!(f => f.requests),
        "stalls": column!(f => f.stalls),
        "stall": column!(f => f.stall),
        "first_use": column!(f => f.first_use),
        "reached": column!(f => f.reached),
        "fragments": column!(f => f.fragments),
    })
}

/// The rest of the analysis: what the tables of the page show, each bounded.
fn analysis_of(numbers: &Numbers<'_>) -> Value {
    let a = numbers.view.analysis;
    let file = |f: FileIdx| numbers.file(f);
    json!({
        "files": a.files.len(),
        "needs_told": a.headline.needed.value().is_some() || a.headline.mapped.is_some(),
        "hardly_needed": a.hardly_needed.iter().filter(|i| **i < MOST_FILES).take(MOST_ROWS).collect::<Vec<_>>(),
        "sections": a.sections_by_cost().iter().take(MOST_ROWS).map(|s| json!({
            "file": file(s.file), "segment": short(&s.segment), "section": short(&s.section), "size": s.size,
            "needed": s.needed, "read": s.read, "stall": s.stall,
        })).collect::<Vec<_>>(),
        "packages": a.packages.iter().take(MOST_ROWS).map(|p| json!({
            "name": short(&p.shown()), "language": p.language.to_string(), "files": p.files,
            "read": p.read, "waited": p.waited, "misses": p.misses, "elapsed": p.elapsed,
        })).collect::<Vec<_>>(),
        "symbols": a.symbols.iter().take(MOST_ROWS).map(|s| json!({
            "file": file(s.file), "symbol": short(&s.symbol), "touches": s.touches, "stall": s.stall,
            "first_use": s.first_use, "evidence": s.evidence,
        })).collect::<Vec<_>>(),
        "misses": a.misses.iter().take(MOST_ROWS).map(|m| json!({
            "directory": crate::escape::line(&m.directory, 4_096), "search": m.searched().map(short), "misses": m.misses,
            "time": m.time, "stall": m.stall, "calls": cold_analyze::calls_in_words(&m.kinds),
            "examples": m.examples.iter().map(|e| short(e)).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "searches": cold_analyze::searches(&a.misses).iter().take(MOST_ROWS).map(|s| json!({
            "search": s.name.map(short), "misses": s.misses, "directories": s.directories.len(),
            "time": s.time, "stall": s.stall,
            "most": s.directories.iter().take(3).map(|d| short(&d.directory)).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "stacks": a.stacks.iter().take(MOST_ROWS).map(|s| json!({
            "frames": s.frames.iter().map(|f| short(f)).collect::<Vec<_>>(), "stalls": s.stalls,
            "stall": s.stall, "causes": s.causes, "known": s.stack.is_some(),
        })).collect::<Vec<_>>(),
        "suggestions": a.suggestions.iter().take(MOST_ROWS).map(|s| json!({
            "what": s.what, "why": s.why, "saves_bytes": s.saves_bytes, "saves_requests": s.saves_requests,
            "saves_time": s.saves_time, "estimate": s.estimate,
            "files": s.files.iter().filter_map(|f| file(*f)).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "checks": a.checks,
        "causes": FILLS.map(|(cause, _)| a.headline.causes.get(&cause).map_or(0, |b| b.0)),
        // How many rows there are in all, where more than those of the page.
        "rows": {
            "packages": a.packages.len(), "sections": a.sections_by_cost().len(), "symbols": a.symbols.len(), "misses": a.misses.len(),
            "stacks": a.stacks.len(), "hardly_needed": a.hardly_needed.len(),
        },
    })
}

/// Threads with the name of their process' image and its command line.
fn threads_of(numbers: &Numbers<'_>) -> Value {
    let recording = numbers.view.recording;
    let mut lines: BTreeMap<u32, (String, String)> = BTreeMap::new();
    for process in recording.processes.iter().take(MOST_TASKS) {
        let line = process.arguments.as_ref().map_or(String::new(), |a| short(&a.join(" ")));
        lines.insert(process.pid, (short(&process.name), line));
    }
    let relative = |at: Nanos| at.0.cast_signed().wrapping_sub(numbers.start.0.cast_signed());
    recording
        .threads
        .iter()
        .take(MOST_TASKS)
        .map(|t| {
            let (process, line) = lines.get(&t.pid).map_or(("", ""), |(n, l)| (n.as_str(), l.as_str()));
            json!({
                "pid": t.pid, "tid": t.tid, "name": short(&t.name), "process": process, "line": line,
                "tree": t.in_tree, "began": relative(t.began), "ended": t.ended.map(relative),
            })
        })
        .collect()
}

fn devices_of(numbers: &Numbers<'_>) -> Value {
    let devices = tables::devices(numbers.view.recording);
    let all = &numbers.view.recording.manifest.devices;
    devices
        .iter()
        .map(|dev| {
            let known = all.iter().find(|d| d.dev == *dev);
            let number = || dev.to_string();
            json!({
                "name": known.map_or_else(number, |d| short(&d.name)),
                "model": known.and_then(|d| d.model.as_deref()).map(short),
                "size": known.and_then(|d| d.size.value().copied()),
            })
        })
        .collect()
}

/// A comparison with its files bounded.
fn compared(comparison: &Comparison) -> Value {
    let mut shown = comparison.clone();
    shown.files.truncate(MOST_ROWS);
    let mut value = serde_json::to_value(&shown).unwrap_or(Value::Null);
    if let Some(object) = value.as_object_mut() {
        object.insert("all_files".into(), comparison.files.len().into());
    }
    value
}
