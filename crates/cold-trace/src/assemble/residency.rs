//! Which pages were cached before the start, and which after it. Pure.

use std::collections::HashMap;

use cold_model::Nanos;
use cold_model::pages::LiveRuns;
use cold_model::recording::manifest::{Manifest, Tier};
use cold_model::recording::{FileIdx, Resident};

use super::builder::Builder;
use super::history::{Change, holds};
use crate::machine::FilesNow;

/// Pages that were cached before or after, per file, as sorted runs.
pub(super) type Runs = HashMap<FileIdx, Vec<(u64, u64)>>;

/// What looking at the page cache before and after told.
#[derive(Debug, Default)]
pub(super) struct Residency {
    /// Pages that were there already, sorted; `None`: of no file is it known.
    pub(super) before: Option<Vec<Resident>>,
    pub(super) after: Runs,
    /// Pages that came in between, with nobody having seen when: (file, first, pages).
    pub(super) came: Option<Vec<(FileIdx, u64, u32)>>,
    pub(super) end: Nanos,
}

/// What was cached of the files that the start used: before it by a look, or by one after it and by what came and went
/// meanwhile.
pub(super) fn residency(b: &mut Builder<'_>, manifest: &Manifest, machine: &mut dyn FilesNow) -> Residency {
    let mut before = Runs::new();
    let mut after = Runs::new();
    for fact in &b.input.cache_looks {
        let Some(file) = b.files.by_inode(fact.dev, fact.inode) else { continue };
        let mut runs = fact.runs.clone();
        runs.sort_unstable();
        if fact.after {
            after.insert(file, runs)
        } else {
            before.insert(file, runs)
        };
    }
    let used = b.files_used();
    for file in &used {
        // What the recorder looked at when the start ended is not looked at again.
        let row = b.files.row(*file).filter(|_| !after.contains_key(file));
        if let Some(runs) = row.and_then(|row| machine.resident(row)) {
            after.insert(*file, runs);
        }
    }
    let by_residency = matches!(b.tier, Tier::C | Tier::D) && !before.is_empty() && !after.is_empty();
    let came = by_residency.then(|| {
        let mut came: Vec<(FileIdx, u64, u32)> = Vec::new();
        for (file, runs) in &before {
            came.extend(after.get(file).into_iter().flatten().flat_map(|run| new_pages(*file, *run, runs)));
        }
        came.sort_unstable();
        came
    });
    before.retain(|file, _| used.contains(file));
    let all_seen = manifest.lost.values().chain(b.lost.values()).all(|n| *n == 0);
    if matches!(b.tier, Tier::A | Tier::B) && all_seen {
        for (file, runs) in at_first(&after, b.pages.changes()) {
            before.entry(file).or_insert(runs);
        }
    }
    let before = (!before.is_empty()).then(|| rows(before));
    Residency { before, after, came, end: manifest.end }
}

/// What was cached before these changes, in order of time, of what is after them.
fn at_first(after: &Runs, changes: &[Change]) -> Runs {
    let mut files: HashMap<FileIdx, LiveRuns> = HashMap::new();
    for (file, runs) in after {
        let live = files.entry(*file).or_default();
        for (first, pages) in runs {
            live.insert(&(*first..first.saturating_add(*pages)));
        }
    }
    for change in changes.iter().rev() {
        if let Some(live) = files.get_mut(&change.file) {
            let pages = change.pages();
            if change.came { live.remove(&pages) } else { live.insert(&pages) }
        }
    }
    let runs = |live: LiveRuns| {
        live.within(&(0..u64::MAX)).into_iter().map(|r| (r.start, r.end - r.start)).collect()
    };
    files.into_iter().map(|(file, live)| (file, runs(live))).collect()
}

fn rows(files: Runs) -> Vec<Resident> {
    let mut rows: Vec<Resident> = Vec::new();
    for (file, runs) in files {
        for (first_page, pages) in runs {
            rows.push(Resident { file, first_page, pages: u32::try_from(pages).unwrap_or(u32::MAX) });
        }
    }
    rows.sort_unstable_by_key(|r| (r.file, r.first_page));
    rows
}

/// The parts of a run that the sorted runs `before` do not hold.
fn new_pages(file: FileIdx, run: (u64, u64), before: &[(u64, u64)]) -> Vec<(FileIdx, u64, u32)> {
    let end = run.0.saturating_add(run.1);
    let mut out = Vec::new();
    let mut at = run.0;
    let begin = before.partition_point(|r| r.0.saturating_add(r.1) <= at);
    for old in before.iter().skip(begin).take_while(|r| r.0 < end).chain(std::iter::once(&(end, 0))) {
        if old.0 > at {
            out.push((file, at, u32::try_from(old.0 - at).unwrap_or(u32::MAX)));
        }
        at = at.max(old.0.saturating_add(old.1));
    }
    debug_assert!(out.iter().all(|(_, first, _)| !holds(before, *first)));
    out
}
