//! What is drawn in the offset picture: runs of pages that were read (used or not), and runs needed.

use std::collections::HashMap;

use cold_model::Nanos;
use cold_model::recording::{FileIdx, FillCause, Recording, Touch, TouchKind};

/// Fills and touches of neighbouring pages within this time are one mark, at the time of the first:
/// a window of 32 single-page folios enters the cache within some microseconds.
const TOGETHER: u64 = 20_000;

/// Pages that were read into the cache together and have the same use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FillMark {
    pub(super) at: Nanos,
    pub(super) file: FileIdx,
    pub(super) first: u64,
    pub(super) pages: u64,
    pub(super) cause: FillCause,
    /// The start needed these pages.
    pub(super) used: bool,
    pub(super) in_tree: bool,
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// Pages needed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TouchMark {
    pub(super) at: Nanos,
    pub(super) file: FileIdx,
    pub(super) first: u64,
    pub(super) pages: u64,
    pub(super) kind: TouchKind,
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// All marks of a recording, by time.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) fills: Vec<FillMark>,
    pub(super) touches: Vec<TouchMark>,
}

/// Joined runs `[from, to)` of pages, sorted.
pub(super) type Runs = Vec<(u64, u64)>;

/// Per file, the pages needed.
pub(super) fn needed(touches: &[Touch]) -> HashMap<FileIdx, Runs> {
    let mut files: HashMap<FileIdx, Runs> = HashMap::new();
    for t in touches {
        let end = t.first_page.saturating_add(u64::from(t.pages));
        let runs = files.entry(t.file).or_default();
        match runs.last_mut() {
            // Touches that go on where the last one ended are the common case.
            Some(last) if t.first_page >= last.0 && t.first_page <= last.1 => last.1 = last.1.max(end),
            _ => runs.push((t.first_page, end)),
        }
    }
    for runs in files.values_mut() {
        runs.sort_unstable();
        let mut joined: Runs = Vec::with_capacity(runs.len());
        for &(from, to) in runs.iter() {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        *runs = joined;
    }
    files
}

/// Splits pages `[from, to)` at the borders of the runs: `(from, to, inside)`.
fn split(runs: &[(u64, u64)], from: u64, to: u64, mut each: impl FnMut(u64, u64, bool)) {
    let mut at = from;
    let first = runs.partition_point(|r| r.1 <= from);
    for &(begin, end) in runs.get(first..).unwrap_or_default() {
        if begin >= to {
            break;
        }
        if begin > at {
            each(at, begin, false);
        }
        let inside = end.min(to);
        each(at.max(begin), inside, true);
        at = inside;
    }
    if at < to {
        each(at, to, false);
    }
}

impl Marks {
    /// All marks of a recording.
    pub(super) fn new(recording: &Recording) -> Self {
        let touches = recording.touches.as_deref().unwrap_or_default();
        let needed = needed(touches);
        let mut marks = Self::default();
        for fill in recording.fills.iter().flatten() {
            let end = fill.first_page.saturating_add(u64::from(fill.pages));
            let runs = needed.get(&fill.file).map_or(&[][..], Vec::as_slice);
            // Of metadata and of what was written no tier sees the use: they are not called unused.
            let blind = matches!(fill.cause, FillCause::Metadata | FillCause::Write);
            split(runs, fill.first_page, end, |from, to, used| {
                let used = used || blind;
                marks.fill(FillMark {
                    at: fill.at,
                    file: fill.file,
                    first: from,
                    pages: to - from,
                    cause: fill.cause,
                    used,
                    in_tree: fill.in_tree,
                    pid: fill.pid,
                    tid: fill.tid,
                });
            });
        }
        for t in touches {
            marks.touch(TouchMark {
                at: t.at,
                file: t.file,
                first: t.first_page,
                pages: u64::from(t.pages),
                kind: t.kind,
                pid: t.pid,
                tid: t.tid,
            });
        }
        marks
    }

    fn fill(&mut self, mark: FillMark) {
        if let Some(last) = self.fills.last_mut()
            && last.first.checked_add(last.pages) == Some(mark.first)
            && mark.at.saturating_sub(last.at).0 <= TOGETHER
            && (FillMark { at: mark.at, first: mark.first, pages: mark.pages, ..*last }) == mark
        {
            last.pages += mark.pages;
            return;
        }
        self.fills.push(mark);
    }

    fn touch(&mut self, mark: TouchMark) {
        if let Some(last) = self.touches.last_mut()
            && mark.kind != TouchKind::Fault
            && last.first.checked_add(last.pages) == Some(mark.first)
            && mark.at.saturating_sub(last.at).0 <= TOGETHER
            && (TouchMark { at: mark.at, first: mark.first, pages: mark.pages, ..*last }) == mark
        {
            last.pages += mark.pages;
            return;
        }
        self.touches.push(mark);
    }

    /// Of all marks of one kind that begin in the same cell, the one with the most pages. Cells are `time`
    /// nanoseconds wide and `1 / rows` of the pages of their file high.
    pub(super) fn thinned(&self, time: u64, rows: u64) -> Self {
        let mut ends: HashMap<FileIdx, u64> = HashMap::new();
        let all = self.fills.iter().map(|m| (m.file, m.first, m.pages));
        for (file, first, pages) in all.chain(self.touches.iter().map(|m| (m.file, m.first, m.pages))) {
            let end = ends.entry(file).or_default();
            *end = (*end).max(first.saturating_add(pages));
        }
        let cell = |at: Nanos, file: FileIdx, first: u64| {
            let end = ends.get(&file).copied().unwrap_or(0);
            (at.0 / time.max(1), file, first / end.div_ceil(rows.max(1)).max(1))
        };
        Self {
            fills: largest(
                &self.fills,
                |m| m.pages,
                |m| (cell(m.at, m.file, m.first), m.cause as u8, m.used),
            ),
            touches: largest(
                &self.touches,
                |m| m.pages,
                |m| (cell(m.at, m.file, m.first), m.kind as u8, true),
            ),
        }
    }

    /// Number of marks.
    pub(super) fn len(&self) -> usize {
        self.fills.len() + self.touches.len()
    }
}

/// A cell, and what is told apart within it.
type Key = ((u64, FileIdx, u64), u8, bool);

/// The row with the most pages of each key, in their order.
fn largest<T: Copy>(rows: &[T], pages: impl Fn(&T) -> u64, key: impl Fn(&T) -> Key) -> Vec<T> {
    let mut best: HashMap<Key, usize> = HashMap::new();
    for (i, row) in rows.iter().enumerate() {
        let kept = best.entry(key(row)).or_insert(i);
        if pages(row) > pages(&rows[*kept]) {
            *kept = i;
        }
    }
    let mut order: Vec<usize> = best.into_values().collect();
    order.sort_unstable();
    order.into_iter().map(|i| rows[i]).collect()
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn pages_are_split_where_their_use_changes() {
        let runs = [(2, 4), (6, 9)];
        let mut out = Vec::new();
        split(&runs, 0, 8, |a, b, used| out.push((a, b, used)));
        assert_eq!(out, [(0, 2, false), (2, 4, true), (4, 6, false), (6, 8, true)]);
        out.clear();
        split(&runs, 4, 6, |a, b, used| out.push((a, b, used)));
        assert_eq!(out, [(4, 6, false)]);
        out.clear();
        split(&runs, 7, 12, |a, b, used| out.push((a, b, used)));
        assert_eq!(out, [(7, 9, true), (9, 12, false)]);
    }
}
