//! Arithmetic of page runs with a history.

use cold_plan::plan::Range;

use super::{median_step, shift};
use crate::learn::JOIN_NS;

/// Pages `first..end` of one file with one history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) need_ns: u64,
    pub(super) uses: u8,
    pub(super) around: bool,
}

impl Run {
    pub(super) fn of(r: &Range) -> Self {
        Self {
            first: r.first_page,
            end: r.first_page.saturating_add(u64::from(r.pages)),
            need_ns: r.need_ns,
            uses: r.uses,
            around: r.around,
        }
    }
    /// As ranges; more than one where the pages do not fit into one.
    pub(super) fn ranges(self, file: u32) -> impl Iterator<Item = Range> {
        let most = u64::from(u32::MAX);
        (0..(self.end - self.first).div_ceil(most)).map(move |n| {
            let first_page = self.first + n * most;
            Range {
                file,
                first_page,
                pages: (self.end - first_page).min(most) as u32,
                need_ns: self.need_ns,
                uses: self.uses,
                around: self.around,
            }
        })
    }
}

/// The old runs with the new start laid over them. Both sorted by page; overlaps within one list (a damaged
/// plan) count once. `seen`: the start would have shown a use of the others.
pub(super) fn overlay(old: &[Run], new: &[Run], seen: bool) -> Vec<Run> {
    let mut cuts: Vec<u64> = old.iter().chain(new).flat_map(|r| [r.first, r.end]).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let (mut i, mut j) = (0, 0);
    let mut out: Vec<Run> = Vec::new();
    for piece in cuts.windows(2) {
        let (first, end) = (piece[0], piece[1]);
        while old.get(i).is_some_and(|r| r.end <= first) {
            i += 1;
        }
        while new.get(j).is_some_and(|r| r.end <= first) {
            j += 1;
        }
        let was = old.get(i).filter(|r| r.first <= first);
        let is = new.get(j).filter(|r| r.first <= first);
        let run = match (was, is) {
            (None, None) => continue,
            (None, Some(n)) => Run { first, end, uses: 1, ..*n },
            (Some(o), None) => Run { first, end, uses: shift(o.uses, false, seen), ..*o },
            (Some(o), Some(n)) => Run {
                first,
                end,
                need_ns: median_step(o.need_ns, n.need_ns, o.uses.count_ones()),
                uses: shift(o.uses, true, true),
                around: o.around && n.around,
            },
        };
        if run.uses != 0 {
            join(&mut out, run);
        }
    }
    out
}

/// Appends a run; together with the last one where nothing tells them apart.
fn join(out: &mut Vec<Run>, run: Run) {
    match out.last_mut() {
        Some(last)
            if last.end == run.first
                && (last.uses, last.around) == (run.uses, run.around)
                && last.need_ns.abs_diff(run.need_ns) <= JOIN_NS =>
        {
            last.end = run.end;
            last.need_ns = last.need_ns.min(run.need_ns);
        }
        _ => out.push(run),
    }
}
