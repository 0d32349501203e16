//! What is drawn in the offset picture: runs of pages that were read (used or not), and runs needed.

use std::collections::HashMap;

use cold_analyze::{Usage, Window, replay_within};
use cold_model::Nanos;
use cold_model::pages::Runs;
use cold_model::recording::{FileIdx, FillCause, Recording, TouchKind};

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

/// Per file the pages that count as needed, by the analysis' own rule: of what the kernel maps around a fault
/// only what was there, and of the start only what came before ready. Later marks, which no figure counts, go by
/// the same rule over the whole recording.
struct Needed<'a> {
    until: Nanos,
    to_ready: &'a [Usage],
    to_end: Vec<Usage>,
}

impl<'a> Needed<'a> {
    fn of(recording: &Recording, to_ready: &'a [Usage]) -> Self {
        let window = Window::of(recording);
        let whole = Window { until: recording.manifest.end.max(window.until), ..window };
        let late = |at: Nanos| at > window.until;
        let goes_on = recording.fills.iter().flatten().any(|f| late(f.at))
            || recording.touches.iter().flatten().any(|t| late(t.at));
        let to_end = if goes_on { replay_within(recording, whole) } else { Vec::new() };
        Self { until: window.until, to_ready, to_end }
    }

    /// Those of a file, as far as a mark of this time goes by them.
    fn pages(&self, at: Nanos, file: FileIdx) -> Option<&Usage> {
        let late = at > self.until && !self.to_end.is_empty();
        (if late { &self.to_end } else { self.to_ready }).get(file as usize)
    }
}

/// Splits pages `[from, to)` at the borders of the runs: `(from, to, inside)`.
fn split(runs: &Runs, from: u64, to: u64, mut each: impl FnMut(u64, u64, bool)) {
    let mut at = from;
    for inside in runs.within(&(from..to)) {
        if inside.start > at {
            each(at, inside.start, false);
        }
        at = inside.end;
        each(inside.start, inside.end, true);
    }
    if at < to {
        each(at, to, false);
    }
}

impl Marks {
    /// All marks of a recording; `to_ready` as in its analysis.
    pub(super) fn new(recording: &Recording, to_ready: &[Usage]) -> Self {
        let needed = Needed::of(recording, to_ready);
        let mut marks = Self::default();
        for fill in recording.fills.iter().flatten() {
            let Some(pages) = needed.pages(fill.at, fill.file) else { continue };
            let end = fill.first_page.saturating_add(u64::from(fill.pages));
            // Of metadata and of what was written no tier sees the use: they are not called unused.
            let blind = matches!(fill.cause, FillCause::Metadata | FillCause::Write);
            let mut mark = |from, to, used| {
                marks.fill(FillMark {
                    at: fill.at,
                    file: fill.file,
                    first: from,
                    pages: to - from,
                    cause: fill.cause,
                    used: used || blind,
                    in_tree: fill.in_tree,
                    pid: fill.pid,
                    tid: fill.tid,
                });
            };
            split(&pages.needed, fill.first_page, end, |from, to, needed| {
                if needed {
                    mark(from, to, true);
                } else {
                    split(&pages.metadata, from, to, &mut mark);
                }
            });
        }
        for t in recording.touches.iter().flatten() {
            let Some(pages) = needed.pages(t.at, t.file) else { continue };
            let end = t.first_page.saturating_add(u64::from(t.pages));
            let mark = TouchMark {
                at: t.at,
                file: t.file,
                first: t.first_page,
                pages: u64::from(t.pages),
                kind: t.kind,
                pid: t.pid,
                tid: t.tid,
            };
            if t.kind == TouchKind::FaultAround {
                let around = t.first_page..end;
                for r in pages.needed.within(&around) {
                    marks.touch(TouchMark { first: r.start, pages: r.end - r.start, ..mark });
                }
            } else {
                marks.touch(mark);
            }
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
        let cell = |at: Nanos, file: FileIdx, first: u64, kind: u8, used: bool| {
            let end = ends.get(&file).copied().unwrap_or(0);
            let row = first / end.div_ceil(rows.max(1)).max(1);
            Cell { column: at.0 / time.max(1), file, row, kind, used }
        };
        Self {
            fills: largest(&self.fills, |m| m.pages, |m| cell(m.at, m.file, m.first, m.cause as u8, m.used)),
            touches: largest(&self.touches, |m| m.pages, |m| cell(m.at, m.file, m.first, m.kind as u8, true)),
        }
    }

    /// Number of marks.
    pub(super) fn len(&self) -> usize {
        self.fills.len() + self.touches.len()
    }
}

/// Marks of which one is drawn: those of one kind that begin in the same cell.
#[derive(PartialEq, Eq, Hash)]
struct Cell {
    /// Column: time in widths of a cell.
    column: u64,
    file: FileIdx,
    /// Row within the file, in heights of a cell.
    row: u64,
    /// Cause of a fill, kind of a touch.
    kind: u8,
    used: bool,
}

/// The row with the most pages of each key, in their order.
fn largest<T: Copy>(rows: &[T], pages: impl Fn(&T) -> u64, key: impl Fn(&T) -> Cell) -> Vec<T> {
    let mut best: HashMap<Cell, usize> = HashMap::new();
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
    use cold_analyze::replay;
    use cold_model::recording::TouchKind::{Fault, FaultAround};
    use cold_model::sample::{PAGE, empty};

    use super::*;

    #[test]
    fn pages_are_split_where_their_use_changes() {
        let runs = Runs::of(vec![2..4, 6..9]);
        let parts = |from, to| {
            let mut out = Vec::new();
            split(&runs, from, to, |a, b, used| out.push((a, b, used)));
            out
        };
        assert_eq!(parts(0, 8), [(0, 2, false), (2, 4, true), (4, 6, false), (6, 8, true)]);
        assert_eq!(parts(4, 6), [(4, 6, false)]);
        assert_eq!(parts(7, 12), [(7, 9, true), (9, 12, false)]);
    }

    /// The pages of the tree's fills until ready that a picture shows as read and not needed.
    fn shown_unused(r: &Recording) -> Vec<Runs> {
        let mut of = vec![Vec::new(); r.files.len()];
        let until = Window::of(r).until;
        for m in Marks::new(r, &replay(r)).fills.iter().filter(|m| !m.used && m.in_tree && m.at <= until) {
            of[m.file as usize].push(m.first..m.first + m.pages);
        }
        of.into_iter().map(Runs::of).collect()
    }

    #[test]
    fn the_picture_calls_unused_what_the_figures_call_unused() {
        let mut r = empty();
        let f = r.file("/a", 100 * PAGE);
        r.fault(1, 1, f, 10, 8..16);
        // Mapped around a fault that found nothing there (a hole), and read in only later.
        r.touch(4, f, 18..22, FaultAround);
        r.fill(5, f, 18..24, FillCause::ReadAround);
        // Read before ready, and needed only after it.
        r.fill(6, f, 40..42, FillCause::ReadAhead);
        r.touch(1500, f, 40..41, Fault);
        let figures = replay(&r)[0].unused();
        assert_eq!(figures.runs(), [8..10, 11..16, 18..24, 40..42]);
        assert_eq!(shown_unused(&r), [figures]);
        let around = |m: &&TouchMark| m.kind == FaultAround;
        let drawn = Marks::new(&r, &replay(&r))
            .touches
            .iter()
            .filter(around)
            .map(|m| (m.first, m.pages))
            .collect::<Vec<_>>();
        assert!(!drawn.iter().any(|(first, _)| *first >= 18), "holes are not drawn: {drawn:?}");

        let r = cold_recording::sample::firefox_like(20_000, 3);
        let figures: Vec<Runs> = replay(&r).iter().map(Usage::unused).collect();
        assert!(figures.iter().map(Runs::pages).sum::<u64>() > 100);
        assert_eq!(shown_unused(&r), figures);
    }

    #[test]
    fn after_ready_the_whole_recording_tells() {
        let mut r = empty();
        let f = r.file("/a", 100 * PAGE);
        r.fill(1400, f, 40..44, FillCause::ReadAhead);
        r.touch(1500, f, 40..41, Fault);
        let fills: Vec<_> =
            Marks::new(&r, &replay(&r)).fills.iter().map(|m| (m.first, m.pages, m.used)).collect();
        assert_eq!(fills, [(40, 1, true), (41, 3, false)]);
    }
}
