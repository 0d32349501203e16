//! From touches to page ranges.

use std::collections::{HashMap, HashSet};

use cold_analyze::{Usage, replay};
use cold_model::Nanos;
use cold_model::observed;
use cold_model::pages::{LiveRuns, Range as Pages, Runs};
use cold_model::recording::tables::Began;
use cold_model::recording::{FileIdx, FileKind, FillCause, Recording, Touch, TouchKind};
use cold_plan::plan::{FileKind as PlanKind, PAGE, PlanFile, Range};

use super::JOIN_NS;
use super::select::Selection;
use cold_analyze::clock::DependencyClock;

/// Files up to this size are read whole by the kernel at the first read (the default read-ahead), so
/// they are taken whole where it is not seen which pages were read.
const WHOLE_BYTES: u64 = 128 << 10;

/// A need of some pages, nanoseconds from the exec without waits.
#[derive(Debug, Clone)]
struct Need {
    file: FileIdx,
    pages: Pages,
    at_ns: u64,
}

/// All ranges of regular files, in no particular order.
pub(super) fn ranges(
    recording: &Recording,
    clock: &DependencyClock,
    selection: &mut Selection<'_>,
    reads_seen: bool,
) -> Vec<Range> {
    let usage = replay(recording);
    let mut exact = Vec::new();
    let mut around = Vec::new();
    let known = known_to_the_program(recording);
    for t in recording.touches.iter().flatten().filter(|t| clock.before_ready(t.at)) {
        // Before the exec the process still is the one that starts it; of its touches only the kernel's
        // reading of the new program counts.
        if t.at < clock.exec() && t.kind != TouchKind::Read && !known.contains(&t.file) {
            continue;
        }
        let list = if t.kind == TouchKind::FaultAround { &mut around } else { &mut exact };
        list.push(need(t, clock));
    }
    let touched: HashSet<FileIdx> = exact.iter().chain(&around).map(|n| n.file).collect();
    let mut out = Vec::new();
    let mut take = |needs: Vec<Need>, allowed: &dyn Fn(&Usage) -> Runs, around: bool| {
        for (file, found) in first_needs(needs, &usage, allowed) {
            if recording.files.get(file as usize).is_none_or(|f| f.kind != FileKind::Regular) {
                continue;
            }
            for n in found {
                if let Some(index) = selection.file(file, n.at_ns) {
                    push(&mut out, index, &n.pages, n.at_ns, around);
                }
            }
        }
    };
    take(exact, &|u| u.exact.minus(&u.written), false);
    take(around, &|u| u.upper.minus(&u.written), true);
    if !reads_seen {
        let filled = filled(recording, clock, &usage);
        take(filled, &|u| u.read.minus(&u.needed).minus(&u.metadata), true);
    }
    // Those of which no page was asked for.
    for file in touched {
        selection.made(file);
    }
    out
}

fn need(t: &Touch, clock: &DependencyClock) -> Need {
    let pages = t.first_page..t.first_page.saturating_add(u64::from(t.pages));
    Need { file: t.file, pages, at_ns: clock.need(t.at, t.tid) }
}

/// Files that the tree executed or mapped itself.
fn known_to_the_program(recording: &Recording) -> HashSet<FileIdx> {
    let executed = recording.processes.iter().filter(|p| p.how == Began::Exec).filter_map(|p| p.executable);
    executed.chain(recording.mappings.iter().flatten().map(|m| m.file)).collect()
}

/// Where reads are not seen, what was read from storage stands for them: an upper bound by read-ahead.
/// At tiers C and D its times are not known either; the file's first mapping or touch stands for them.
fn filled(recording: &Recording, clock: &DependencyClock, usage: &[Usage]) -> Vec<Need> {
    let mut first: HashMap<FileIdx, u64> = HashMap::new();
    for m in recording.mappings.iter().flatten().filter(|m| clock.before_ready(m.at)) {
        let need = clock.need(m.at, m.pid);
        first.entry(m.file).and_modify(|n| *n = need.min(*n)).or_insert(need);
    }
    recording
        .fills
        .iter()
        .flatten()
        .filter(|f| f.in_tree && f.cause != FillCause::Write)
        .map(|f| {
            let touched = usage.get(f.file as usize).and_then(|u| u.first_touch);
            let at = if clock.before_ready(f.at) { Some(f.at) } else { touched };
            let need_ns = at
                .map(|at: Nanos| clock.need(at, f.tid))
                .or_else(|| first.get(&f.file).copied())
                .unwrap_or(0);
            let pages = f.first_page..f.first_page.saturating_add(u64::from(f.pages));
            Need { file: f.file, pages, at_ns: need_ns }
        })
        .collect()
}

/// Per file the first need of each allowed page, adjacent pages of one time together, by page.
fn first_needs(
    mut needs: Vec<Need>,
    usage: &[Usage],
    allowed: &dyn Fn(&Usage) -> Runs,
) -> Vec<(FileIdx, Vec<Need>)> {
    needs.sort_by_key(|n| n.at_ns);
    let mut allowed_of: HashMap<FileIdx, Runs> = HashMap::new();
    let mut seen: HashMap<FileIdx, LiveRuns> = HashMap::new();
    let mut of: HashMap<FileIdx, Vec<Need>> = HashMap::new();
    for n in needs {
        let Some(u) = usage.get(n.file as usize) else { continue };
        let allowed = allowed_of.entry(n.file).or_insert_with(|| allowed(u));
        let seen = seen.entry(n.file).or_default();
        for hole in seen.holes(&n.pages) {
            of.entry(n.file)
                .or_default()
                .extend(allowed.within(&hole).map(|pages| Need { pages, ..n.clone() }));
        }
        seen.insert(&n.pages);
    }
    let mut out: Vec<(FileIdx, Vec<Need>)> = of.into_iter().collect();
    // The order of a hash map is another one in every run.
    out.sort_by_key(|(file, _)| *file);
    for (_, list) in &mut out {
        list.sort_by_key(|n| n.pages.start);
        let mut joined: Vec<Need> = Vec::with_capacity(list.len());
        for n in list.drain(..) {
            match joined.last_mut() {
                Some(last) if last.pages.end == n.pages.start && last.at_ns.abs_diff(n.at_ns) <= JOIN_NS => {
                    last.pages.end = n.pages.end;
                    last.at_ns = last.at_ns.min(n.at_ns);
                }
                _ => joined.push(n),
            }
        }
        *list = joined;
    }
    out
}

/// Recorded pages, of `page` bytes, as a plan counts them. A plan serves every kernel for its processor: some of arm64
/// have pages of 64 KiB. The last page of a file ends with it.
pub(super) fn in_plan_pages(ranges: &[Range], files: &[PlanFile], page: u64) -> Vec<Range> {
    let each = page / PAGE;
    let mut out = Vec::with_capacity(ranges.len());
    for r in ranges {
        let last = match files.get(r.file as usize) {
            Some(f) if f.kind == PlanKind::Regular => f.identity.size.div_ceil(PAGE),
            _ => u64::MAX,
        };
        let first = r.first_page.saturating_mul(each);
        let end = first.saturating_add(u64::from(r.pages) * each).min(last);
        push(&mut out, r.file, &(first..end), r.need_ns, r.around);
    }
    out
}

/// Appends the pages; a run longer than a range can tell becomes several.
pub(super) fn push(out: &mut Vec<Range>, file: u32, pages: &Pages, need_ns: u64, around: bool) {
    let mut first = pages.start;
    while first < pages.end {
        let n = (pages.end - first).min(u64::from(u32::MAX));
        out.push(Range { file, first_page: first, pages: n as u32, need_ns, uses: 1, around });
        first += n;
    }
}

/// Whole small files that were opened and of which no page is known.
pub(super) fn add_opened(
    ranges: &mut Vec<Range>,
    opened: &observed::ObservedStart,
    clock: &DependencyClock,
    selection: &mut Selection<'_>,
    page: u64,
) {
    let known: HashSet<u32> = ranges.iter().map(|r| r.file).collect();
    for f in opened.files.iter().filter(|f| f.how.opened && f.size.0 <= WHOLE_BYTES) {
        let Some(file) = selection.opened(f).filter(|i| !known.contains(i)) else { continue };
        // The observation slowed the start down, by about the same factor everywhere.
        let slower = (opened.duration.0 as f64 / clock.window_ns().max(1) as f64).max(1.0);
        let need_ns = ((f.first.0 as f64 / slower) as u64).min(clock.window_ns());
        selection.earlier(file, need_ns);
        push(ranges, file, &(0..f.size.0.div_ceil(page)), need_ns, true);
    }
}
