//! Makes a plan's steps for a device.
//!
//! 1. **Keep** a range used in at least S of the last 8 starts; of fewer starts, in as many as there are. Pages
//!    that were only mapped around a fault are kept like others, where no exact start has told better: of
//!    the 1024 such pages of `python3.11` in a warm start of `import json, http.client, email` an exact start
//!    touched 770, of the 632 of `libcrypto` 270 (Linux 6.18), and each one left out costs a request of its own.
//! 2. **Merge** neighbours in a file when what is read in vain is at most the gap: the hole between them and,
//!    where the two are needed at different times (further apart than the window, or on the two sides of the
//!    critical prefix), the later one's bytes too. So a late range goes in front of early ones only when
//!    its bytes cost less than its own request.
//! 3. **Chunk** to at most what one call delivers, and never beyond the last page of the file.
//! 4. **Order**: the critical prefix first; then by need, or by place on the disk within windows of need time.
//!    Metadata goes ahead of the data that needs it: blocks of the file system, then names and directories,
//!    then the opening of a file, then its pages.

mod reads;

use std::path::Path;

use cold_model::{DeviceModel, Extent};
use cold_plan::Plan;
use cold_plan::plan::{FileKind, Knobs, Op, Order, PAGE, Step};

use reads::Read;

/// How long before its first need metadata is fetched: opening a file takes several reads one after
/// another, and nothing of the file can be asked for before.
const LEAD_NS: u64 = 5_000_000;

/// Fills in knobs, device and steps. `extents` tells where a file lies on its device (asked only for
/// [`Order::Physical`]); a file of which it does not know comes after the others of its window.
pub fn compile(
    plan: &mut Plan,
    knobs: &Knobs,
    device: Option<&DeviceModel>,
    extents: &dyn Fn(&Path) -> Option<Vec<Extent>>,
) {
    let reads = reads::reads(plan, knobs, device, extents);
    let mut steps: Vec<Placed> = reads.iter().map(|r| placed_read(r, knobs)).collect();
    if knobs.metadata {
        steps.extend(metadata(plan, knobs, &reads));
    }
    steps.sort_by_key(|p| (p.place, p.step.file, p.step.offset));
    plan.steps = steps.into_iter().map(|p| p.step).collect();
    plan.knobs = *knobs;
    plan.device = device.cloned();
}

/// Need time (nanoseconds) and bytes of each read that such knobs lead to, wherever the files lie.
pub(crate) fn asked_for(plan: &Plan, knobs: &Knobs, device: &DeviceModel) -> Vec<(u64, u64)> {
    let reads = reads::reads(plan, knobs, Some(device), &|_| None);
    reads.iter().map(|r| (r.need_ns, (r.end - r.first) * PAGE)).collect()
}

/// Whether a history of use suffices, where `starts` could have shown a use.
pub fn is_kept(uses: u8, min_uses: u8, starts: u32) -> bool {
    let needed = u32::from(min_uses).min(starts.min(8)).max(1);
    uses.count_ones() >= needed
}

/// The starts that could have shown a use of such a file.
pub(crate) fn starts_of(plan: &Plan, kind: FileKind) -> u32 {
    match kind {
        // Blocks of metadata are seen only while they are read.
        FileKind::BlockDevice => plan.learnt.cold_starts.max(1),
        _ => plan.learnt.starts,
    }
}

/// What steps are sorted by, the first difference deciding.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
struct SortKey {
    /// Not of the critical prefix.
    tail: bool,
    /// Need time in ns, or the number of its window.
    time: u64,
    class: u8,
    /// Place on the disk; 0 where the order is by need alone.
    physical: u64,
    need_ns: u64,
}

struct Placed {
    place: SortKey,
    step: Step,
}

fn is_critical(need_ns: u64, knobs: &Knobs) -> bool {
    need_ns < u64::from(knobs.critical_us) * 1000
}

fn place(knobs: &Knobs, critical: bool, need_ns: u64, lead_ns: u64, class: u8, physical: u64) -> SortKey {
    let at = need_ns.saturating_sub(lead_ns);
    let window = u64::from(knobs.window_us) * 1000;
    match knobs.order {
        Order::Physical if window > 0 => {
            SortKey { tail: !critical, time: at / window, class, physical, need_ns }
        }
        _ => SortKey { tail: !critical, time: at, class, physical: 0, need_ns },
    }
}

fn placed_read(r: &Read, knobs: &Knobs) -> Placed {
    let (class, lead) = if r.metadata { (0, 2 * LEAD_NS) } else { (3, 0) };
    Placed {
        place: place(knobs, r.critical, r.need_ns, lead, class, r.physical),
        step: Step {
            op: Op::Read,
            critical: r.critical,
            file: r.file,
            offset: r.first * PAGE,
            bytes: ((r.end - r.first) * PAGE) as u32,
            need_ns: r.need_ns,
        },
    }
}

/// Steps without pages: names, listings, openings.
fn metadata(plan: &Plan, knobs: &Knobs, reads: &[Read]) -> Vec<Placed> {
    let mut first_read = vec![None::<u64>; plan.files.len()];
    for r in reads {
        if let Some(first) = first_read.get_mut(r.file as usize) {
            *first = Some(first.map_or(r.need_ns, |n| n.min(r.need_ns)));
        }
    }
    let mut out = Vec::new();
    for (i, f) in plan.files.iter().enumerate() {
        let kept = is_kept(f.uses, knobs.min_uses, starts_of(plan, f.kind));
        let (op, class, need_ns) = match (f.kind, first_read[i]) {
            (FileKind::Directory, _) if kept => (Op::List, 1, f.need_ns),
            (FileKind::Name, _) if kept => (Op::Stat, 1, f.need_ns),
            (FileKind::Regular, Some(first)) => (Op::Open, 2, f.need_ns.min(first)),
            _ => continue,
        };
        let critical = is_critical(need_ns, knobs);
        out.push(Placed {
            place: place(knobs, critical, need_ns, LEAD_NS, class, 0),
            step: Step { op, critical, file: i as u32, offset: 0, bytes: 0, need_ns },
        });
    }
    out
}

#[cfg(test)]
mod tests;
