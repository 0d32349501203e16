//! Metadata that a start needs before data: the file systems' own blocks, directories, names.

use std::collections::HashMap;

use cold_analyze::pages::LiveRuns;
use cold_model::recording::{self, FileIdx, LookupKind, Recording};
use cold_plan::plan::{FileKind, Range};

use super::clock::Clock;
use super::pages::push;
use super::select::Selection;

/// Blocks that were read from block devices because a file system wanted them. Only reading shows them: a
/// warm start needs them as well, and nobody sees it.
pub(super) fn blocks(
    recording: &Recording,
    clock: &Clock,
    selection: &mut Selection<'_>,
    ranges: &mut Vec<Range>,
) {
    let device = |file: FileIdx| {
        recording.files.get(file as usize).is_some_and(|f| f.kind == recording::FileKind::BlockDevice)
    };
    let mut seen: HashMap<FileIdx, LiveRuns> = HashMap::new();
    for f in recording.fills.iter().flatten() {
        if !f.in_tree
            || !device(f.file)
            || !clock.before_ready(f.at)
            || f.cause == recording::FillCause::Write
        {
            continue;
        }
        let need_ns = clock.need(f.at, f.tid);
        let Some(index) = selection.file(f.file, need_ns) else { continue };
        let pages = f.first_page..f.first_page.saturating_add(u64::from(f.pages));
        let seen = seen.entry(f.file).or_default();
        for hole in seen.holes(&pages) {
            push(ranges, index, &hole, need_ns, false);
        }
        seen.insert(&pages);
    }
}

/// Names and directories that were found. What is not there is not looked up again.
pub(super) fn lookups(recording: &Recording, clock: &Clock, selection: &mut Selection<'_>) {
    for l in recording.lookups.iter().flatten() {
        if l.result < 0 || !clock.before_ready(l.at) || l.at < clock.exec() && l.kind != LookupKind::Exec {
            continue;
        }
        if l.file.is_some_and(|f| !selection.can_be_named(f)) {
            continue;
        }
        let row = l.file.and_then(|f| recording.files.get(f as usize));
        let directory = row.is_some_and(|f| f.kind == recording::FileKind::Directory);
        let need_ns = clock.need(l.at, l.tid);
        let listed = l.kind == LookupKind::List;
        let opened = directory && l.kind == LookupKind::Open;
        let kind = if listed || opened { FileKind::Directory } else { FileKind::Name };
        // A listing is of an open directory, whose path the call does not name.
        let known = row.filter(|_| listed).and_then(|f| f.path.as_deref());
        if let Some(path) = l.path.as_deref().or(known) {
            selection.name(path, kind, need_ns);
        }
    }
}
