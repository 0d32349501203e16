//! A cold start in the time of a warm one, page by page.
//!
//! Cold starts show what is read. Their need times are those of a clock that stands while storage is waited for
//! ([`cold_analyze::clock`]), but threads that wait reach each other in another order, and processors whose own caches
//! are cold take longer. A warm start has waited for nothing: when it needed a page is when it is needed. So
//!
//! - what both needed has the warm time;
//! - what the warm start only mapped around a fault was needed then or later: by the cold clock, as below, but not
//!   before that;
//! - what only the cold start shows (blocks of file systems, what another run of its threads needed) lies between its
//!   neighbours in the cold order that both needed, where it lay between them by the cold clock.

use std::collections::HashMap;
use std::path::Path;

use cold_plan::plan::{FileKind, PlanFile, Range};

use super::{by_file, changed, pages::Run};
use crate::learn::StartNeeds;

/// The cold start with the need times of the warm one. All pages, files and what is known of them stay.
pub(super) fn aligned(cold: &StartNeeds, warm: &StartNeeds) -> StartNeeds {
    let known = Known::of(warm);
    let mut anchors = Vec::new();
    let mut pieces: Vec<(Range, Option<Run>)> = Vec::with_capacity(cold.ranges.len());
    for range in &cold.ranges {
        let file = cold.files.get(range.file as usize);
        known.split(file, range, &mut pieces);
    }
    anchors.extend(pieces.iter().filter_map(|(range, run)| {
        let run = run.filter(|run| !run.around && !range.around)?;
        Some((range.need_ns, run.need_ns))
    }));
    // Of a file with pages these tell; which of them is the first differs.
    let named = cold.files.iter().filter(|f| matches!(f.kind, FileKind::Directory | FileKind::Name));
    anchors.extend(named.filter_map(|file| Some((file.need_ns, known.file(file)?.need_ns))));
    let line = NeedLine::through(anchors);
    let time = |range: &Range, run: Option<Run>| match run {
        Some(run) if run.around && !range.around => line.at(range.need_ns).max(run.need_ns),
        Some(run) => run.need_ns,
        None => line.at(range.need_ns),
    };
    let mut ranges: Vec<Range> =
        pieces.iter().map(|(range, run)| Range { need_ns: time(range, *run), ..*range }).collect();
    ranges.sort_by_key(|range| (range.need_ns, range.file, range.first_page));
    let in_time = |file: &PlanFile| PlanFile {
        need_ns: known.file(file).map_or_else(|| line.at(file.need_ns), |warm| warm.need_ns),
        ..file.clone()
    };
    StartNeeds { files: cold.files.iter().map(in_time).collect(), ranges, ..cold.clone() }
}

/// What the warm start needed, by path.
struct Known<'a>(HashMap<&'a Path, (&'a PlanFile, Vec<Run>)>);

impl<'a> Known<'a> {
    fn of(warm: &'a StartNeeds) -> Self {
        let files = by_file(&warm.files, &warm.ranges).into_iter();
        Self(files.map(|(file, runs)| (file.path.as_path(), (file, runs))).collect())
    }

    fn get(&self, file: &PlanFile) -> Option<&(&'a PlanFile, Vec<Run>)> {
        let found = self.0.get(file.path.as_path());
        found.filter(|(warm, _)| warm.kind == file.kind && !changed(warm, file))
    }

    fn file(&self, file: &PlanFile) -> Option<&'a PlanFile> {
        self.get(file).map(|(warm, _)| *warm)
    }

    /// The range in pieces, each with the warm run that it is part of.
    fn split(&self, file: Option<&PlanFile>, range: &Range, out: &mut Vec<(Range, Option<Run>)>) {
        let runs = file.and_then(|file| self.get(file)).map_or(&[][..], |(_, runs)| runs);
        let mut at = range.first_page;
        let end = at.saturating_add(u64::from(range.pages));
        let mut piece = |first: u64, end: u64, run| {
            if first < end {
                // No piece has more pages than the range.
                let pages = u32::try_from(end - first).unwrap_or(range.pages);
                out.push((Range { first_page: first, pages, ..*range }, run));
            }
        };
        let from = runs.partition_point(|run| run.end <= at);
        for run in runs.iter().skip(from).take_while(|run| run.first < end) {
            let (first, last) = (run.first.max(at), run.end.min(end));
            piece(at, first, None);
            piece(first, last, Some(*run));
            at = at.max(last);
        }
        piece(at, end, None);
    }
}

/// From cold times to warm ones: straight between what both know.
struct NeedLine(Vec<(u64, u64)>);

impl NeedLine {
    /// Points of a cold and a warm time. The exec is one: both clocks begin there.
    fn through(mut points: Vec<(u64, u64)>) -> Self {
        points.push((0, 0));
        points.sort_unstable();
        // Of what the cold start needed together the warm one needed the first of it then.
        points.dedup_by_key(|point| point.0);
        Self(points)
    }

    fn at(&self, cold: u64) -> u64 {
        let next = self.0.partition_point(|point| point.0 <= cold);
        let before = next.checked_sub(1).and_then(|n| self.0.get(n)).copied().unwrap_or_default();
        let past = cold.saturating_sub(before.0);
        match self.0.get(next) {
            Some(after) => {
                let part = past as f64 / after.0.saturating_sub(before.0).max(1) as f64;
                let step = (after.1.abs_diff(before.1) as f64 * part) as u64;
                if after.1 >= before.1 {
                    before.1.saturating_add(step)
                } else {
                    before.1.saturating_sub(step)
                }
            }
            // Behind all that is known both clocks go on alike.
            None => before.1.saturating_add(past),
        }
    }
}

#[cfg(test)]
mod tests;
