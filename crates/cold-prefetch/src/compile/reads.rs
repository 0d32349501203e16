//! From kept ranges to reads: merging over gaps, chunks, places on the disk.

use std::path::Path;

use cold_model::{DeviceModel, Extent};
use cold_plan::Plan;
use cold_plan::plan::{FileKind, Knobs, Order, PAGE, PlanFile};

use super::{is_critical, is_kept, starts_of};

/// One read of one piece of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) file: u32,
    pub(super) first: u64,
    pub(super) end: u64,
    /// Least need time of the kept pages in it.
    pub(super) need_ns: u64,
    pub(super) critical: bool,
    /// Of a block device.
    pub(super) metadata: bool,
    /// Place on the disk; the largest number where it is not known.
    pub(super) physical: u64,
}

/// A kept range.
#[derive(Debug, Clone, Copy)]
struct ReadPiece {
    first: u64,
    end: u64,
    need_ns: u64,
}

/// Pieces that are read together.
struct Run {
    pieces: Vec<ReadPiece>,
    need_ns: u64,
}

pub(super) fn reads(
    plan: &Plan,
    knobs: &Knobs,
    device: Option<&DeviceModel>,
    extents: &dyn Fn(&Path) -> Option<Vec<Extent>>,
) -> Vec<Read> {
    let cap = device.map_or(u64::MAX, |d| d.readahead_cap);
    let chunk = (u64::from(knobs.chunk_bytes).min(cap) / PAGE).max(1);
    let mut out = Vec::new();
    for (index, pieces) in kept(plan, knobs).into_iter().enumerate() {
        let Some(file) = plan.files.get(index).filter(|_| !pieces.is_empty()) else { continue };
        let places = if knobs.order == Order::Physical { places(file, extents) } else { Vec::new() };
        for run in runs(pieces, knobs) {
            chunks(&run, index as u32, file, chunk, &places, knobs, &mut out);
        }
    }
    out
}

/// Per file the kept ranges by page, without overlaps and without what lies beyond the end.
fn kept(plan: &Plan, knobs: &Knobs) -> Vec<Vec<ReadPiece>> {
    let mut of: Vec<Vec<ReadPiece>> = vec![Vec::new(); plan.files.len()];
    for r in &plan.ranges {
        let Some(file) = plan.files.get(r.file as usize) else { continue };
        let readable = match file.kind {
            FileKind::Regular => true,
            FileKind::BlockDevice => knobs.metadata,
            FileKind::Directory | FileKind::Name => false,
        };
        if !readable || !is_kept(r.uses, knobs.min_uses, starts_of(plan, file.kind)) {
            continue;
        }
        let last = match file.kind {
            FileKind::Regular => file.identity.size.div_ceil(PAGE),
            // Whatever can be named as an offset in bytes.
            _ => i64::MAX as u64 / PAGE,
        };
        let end = r.first_page.saturating_add(u64::from(r.pages)).min(last);
        if r.first_page < end {
            of[r.file as usize].push(ReadPiece { first: r.first_page, end, need_ns: r.need_ns });
        }
    }
    for pieces in &mut of {
        pieces.sort_by_key(|p| (p.first, p.need_ns));
        let mut end = 0;
        pieces.retain_mut(|p| {
            p.first = p.first.max(end);
            end = end.max(p.end);
            p.first < p.end
        });
    }
    of
}

fn runs(pieces: Vec<ReadPiece>, knobs: &Knobs) -> Vec<Run> {
    let window = u64::from(knobs.window_us) * 1000;
    let gap_pages = u64::from(knobs.gap_bytes) / PAGE;
    let mut out: Vec<Run> = Vec::new();
    for p in pieces {
        if let Some(run) = out.last_mut()
            && let Some(last) = run.pieces.last()
        {
            let apart = run.need_ns.abs_diff(p.need_ns) > window
                || is_critical(run.need_ns, knobs) != is_critical(p.need_ns, knobs);
            let later = match (apart, run.need_ns > p.need_ns) {
                (false, _) => 0,
                (true, true) => last.end - run.pieces.first().map_or(last.first, |f| f.first),
                (true, false) => p.end - p.first,
            };
            if (p.first - last.end).saturating_add(later) <= gap_pages {
                run.need_ns = run.need_ns.min(p.need_ns);
                run.pieces.push(p);
                continue;
            }
        }
        out.push(Run { need_ns: p.need_ns, pieces: vec![p] });
    }
    out
}

fn chunks(
    run: &Run,
    index: u32,
    file: &PlanFile,
    chunk: u64,
    places: &[Extent],
    knobs: &Knobs,
    out: &mut Vec<Read>,
) {
    let (Some(first), Some(last)) = (run.pieces.first(), run.pieces.last()) else { return };
    let mut at = first.first;
    let mut next = 0;
    while at < last.end {
        let (physical, boundary) = physical(file, places, at);
        let end = (at + chunk).min(last.end).min(boundary);
        while run.pieces.get(next).is_some_and(|p| p.end <= at) {
            next += 1;
        }
        let inside = run.pieces[next..].iter().take_while(|p| p.first < end);
        // A chunk that lies in a gap as a whole is no bridge.
        if let Some(need_ns) = inside.map(|p| p.need_ns).min() {
            out.push(Read {
                file: index,
                first: at,
                end,
                need_ns,
                // What is read together is critical together, where the gap rule joined it.
                critical: is_critical(need_ns, knobs),
                metadata: file.kind == FileKind::BlockDevice,
                physical,
            });
        }
        at = end;
    }
}

/// Extents by offset; a block device lies on itself.
fn places(file: &PlanFile, extents: &dyn Fn(&Path) -> Option<Vec<Extent>>) -> Vec<Extent> {
    if file.kind == FileKind::BlockDevice {
        return Vec::new();
    }
    let mut list = extents(&file.path).unwrap_or_default();
    list.sort_by_key(|e| e.logical);
    list
}

/// Place of a page, and the first page that lies elsewhere.
fn physical(file: &PlanFile, places: &[Extent], page: u64) -> (u64, u64) {
    if file.kind == FileKind::BlockDevice {
        return (page * PAGE, u64::MAX);
    }
    let at = page * PAGE;
    let i = places.partition_point(|e| e.logical <= at);
    let inside = i.checked_sub(1).and_then(|i| places.get(i)).filter(|e| at - e.logical < e.bytes);
    let next = places.get(i).map_or(u64::MAX, |e| e.logical.div_ceil(PAGE));
    match inside {
        Some(e) => {
            // Extents that go on where the one before ends are no boundary.
            let goes_on = |a: &Extent, b: &Extent| {
                b.logical == a.logical.saturating_add(a.bytes)
                    && b.physical == a.physical.saturating_add(a.bytes)
            };
            let (mut last, mut n) = (e, i);
            while let Some(next) = places.get(n).filter(|next| goes_on(last, next)) {
                (last, n) = (next, n + 1);
            }
            let end = last.logical.saturating_add(last.bytes).div_ceil(PAGE).max(page + 1);
            (e.physical.saturating_add(at - e.logical), end)
        }
        None => (u64::MAX, next.max(page + 1)),
    }
}
