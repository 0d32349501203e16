//! Each file's part, and the libraries of which hardly anything was needed.

mod counts;

use std::collections::{BTreeSet, HashMap};

use cold_model::pages::Runs;
use cold_model::recording::{FileIdx, LookupKind, TouchKind};
use cold_model::{Bytes, Nanos, path_text};

use crate::context::Context;
use crate::model::{FileUse, Reached};

pub(crate) use counts::{counts, used};

/// A library is hardly needed below this part of what was read of it …
const HARDLY_PART: f64 = 0.1;
/// … or with at most this many pages needed: header, dynamic section and relocations touch that many.
const HARDLY_PAGES: u64 = 4;
/// Less than this read of a library is not worth a line.
const HARDLY_LEAST: u64 = 64 << 10;

pub(crate) fn files(cx: &Context<'_>) -> Vec<FileUse> {
    let requests = cx.requests_of_files();
    let first = cx.first_uses();
    let reached = Reaching::of(cx);
    let mut stalls: HashMap<FileIdx, (u64, Nanos)> = HashMap::new();
    for w in &cx.waits {
        if let Some(file) = w.file {
            let s = stalls.entry(file).or_insert((0, Nanos(0)));
            *s = (s.0 + 1, s.1 + w.length());
        }
    }
    // A trace that tells only what was read says nothing of it.
    let tells_needs = !cx.recording.tells_only_reads();
    let has_times = !cx.recording.tells_only_pages();
    let needed = |pages: &Runs| if tells_needs { cx.bytes(pages.pages()) } else { Bytes(0) };
    let mut out: Vec<FileUse> = Vec::new();
    for (i, u) in cx.usage.iter().enumerate() {
        let file = i as FileIdx;
        let (count, stall) = stalls.get(&file).copied().unwrap_or_default();
        let asked = cx.asked.as_ref().and_then(|asked| asked.get(i).copied());
        let used = FileUse {
            file,
            path: cx.path(file),
            size: cx.recording.files.get(i).and_then(|f| f.size).map(Bytes),
            needed: needed(&u.needed),
            needed_upper: needed(&u.upper),
            read: asked.unwrap_or_else(|| cx.bytes(u.read.pages())),
            unused: if cx.reads_seen() { cx.bytes(u.unused().pages()) } else { Bytes(0) },
            cached: cx.bytes(u.cached().pages()),
            read_by_others: cx.bytes(u.by_others.pages()),
            // Clusters overlap what is in memory already: that is no second read of a page that was given up.
            refilled: if tells_needs { cx.bytes(u.refilled) } else { Bytes(0) },
            direct: cx.direct.get(i).map_or(Bytes(0), |runs| cx.bytes(runs.pages())),
            requests: requests.get(&file).copied().unwrap_or(0),
            stalls: count,
            stall,
            first_use: first.get(&file).filter(|_| has_times).map(|t| cx.window.since_start(*t)),
            reached: reached.of_file(cx, file, count > 0),
            fragments: u.needed.runs().len() as u64,
            causes: u.causes.iter().map(|(c, n)| (*c, cx.bytes(*n))).collect(),
            hardly_needed: None,
        };
        let idle = used.reached == Reached::ByOthers && used.read_by_others == Bytes(0);
        if !idle {
            out.push(used);
        }
    }
    out.sort_by(|a, b| {
        (b.stall, b.read, b.needed).cmp(&(a.stall, a.read, a.needed)).then_with(|| a.path.cmp(&b.path))
    });
    out
}

/// What the tree did with each file.
struct Reaching {
    executed: BTreeSet<FileIdx>,
    mapped: BTreeSet<FileIdx>,
    read: BTreeSet<FileIdx>,
    looked_up: BTreeSet<FileIdx>,
}

impl Reaching {
    fn of(cx: &Context<'_>) -> Self {
        let r = cx.recording;
        let touched = |wanted: fn(TouchKind) -> bool| -> BTreeSet<FileIdx> {
            let all = r.touches.iter().flatten();
            all.filter(|t| wanted(t.kind) && cx.window.holds(t.at)).map(|t| t.file).collect()
        };
        let processes = r.processes.iter().filter(|p| p.in_tree && cx.window.holds(p.began));
        let mut executed: BTreeSet<_> = processes.filter_map(|p| p.executable).collect();
        let mut looked_up = BTreeSet::new();
        for (_, l) in cx.lookups() {
            if let Some(file) = l.file {
                if l.kind == LookupKind::Exec && l.result >= 0 {
                    executed.insert(file);
                }
                looked_up.insert(file);
            }
        }
        let mut mapped = touched(|k| k != TouchKind::Read);
        mapped.extend(r.mappings.iter().flatten().filter(|m| cx.window.holds(m.at)).map(|m| m.file));
        Self { executed, mapped, read: touched(|k| k == TouchKind::Read), looked_up }
    }

    /// The strongest use: a program is also read by its loader, a library read before it is mapped.
    fn of_file(&self, cx: &Context<'_>, file: FileIdx, waited: bool) -> Reached {
        let filled = cx.usage.get(file as usize).is_some_and(|u| !u.read.is_empty() || !u.written.is_empty());
        if self.executed.contains(&file) {
            Reached::Executed
        } else if self.mapped.contains(&file) {
            Reached::Mapped
        } else if self.read.contains(&file) || past_touches(cx, file as usize) {
            Reached::Read
        } else if self.looked_up.contains(&file) || filled || waited {
            // Filled by the tree without a touch: metadata on the way of a lookup, or read-ahead.
            Reached::LookedUp
        } else {
            Reached::ByOthers
        }
    }
}

/// Pages of it were read without a touch: past the cache, or by a request that alone tells of it.
fn past_touches(cx: &Context<'_>, row: usize) -> bool {
    let asked = cx.asked.as_ref().and_then(|asked| asked.get(row));
    cx.direct.get(row).is_some_and(|d| !d.is_empty()) || asked.is_some_and(|bytes| bytes.0 > 0)
}

/// Marks the libraries that were read but hardly needed and lists them, most unused bytes first.
pub(crate) fn hardly_needed(cx: &Context<'_>, files: &mut [FileUse]) -> Vec<usize> {
    if cx.recording.touches.is_none() || cx.recording.fills.is_none() || !cx.reads_seen() {
        return Vec::new();
    }
    for f in files.iter_mut() {
        let library = f.reached == Reached::Mapped
            && (cx.layouts.files.contains_key(&f.file) || path_text::is_library(&f.path));
        let share = f.needed.0 as f64 / f.read.0.max(1) as f64;
        let few = f.needed.0 <= HARDLY_PAGES * cx.page;
        if library && f.read.0 >= HARDLY_LEAST && f.unused.0 > 0 && (share < HARDLY_PART || few) {
            f.hardly_needed = Some(why(cx, f, share));
        }
    }
    let mut out: Vec<usize> = (0..files.len()).filter(|&i| files[i].hardly_needed.is_some()).collect();
    out.sort_by_key(|&i| std::cmp::Reverse(files[i].unused));
    out
}

fn why(cx: &Context<'_>, f: &FileUse, share: f64) -> String {
    let mut text = format!(
        "{} of {} read was needed ({})",
        f.needed,
        f.read,
        cold_model::figures::percent(share * 100.0)
    );
    let (Some(layout), Some(usage)) = (cx.layouts.files.get(&f.file), cx.usage.get(f.file as usize)) else {
        return text;
    };
    let code = layout.segments.iter().filter(|s| s.access.contains('x'));
    let touched = code
        .map(|s| crate::sections::pages_of(s.offset, s.bytes, cx.page))
        .any(|pages| !usage.exact.and(&pages).is_empty());
    text.push_str(if touched {
        "; some of its code ran"
    } else {
        ": headers and relocations, none of its code"
    });
    text
}

#[cfg(test)]
mod tests;
