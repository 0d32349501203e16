//! Adds one observed start to a plan, page by page.
//!
//! Every range and file carries in which of the last 8 starts it was used (bit 0 the latest), as Windows'
//! prefetcher does; here the histories shift, ranges are split where the starts differ, and what no start of
//! the last 8 used vanishes. A start cannot call unused what it could not see ([`Sees`]): there histories stay
//! as they are, and what it did see adds its bit.
//!
//! Need times are a running median: of two starts the mean, then each start moves the value towards its own
//! by at most an eighth (at least 1 ms), so that one odd start does not reorder a plan. Cold starts that were learnt
//! together with a warm one are in its time (module `align`).

mod align;
mod pages;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cold_plan::Plan;
use cold_plan::plan::{FileKind, Key, Learnt, PlanFile, Range, Standing};

use crate::knobs::default_knobs;
use crate::learn::{Sees, StartNeeds};
use pages::Run;

/// The plan with all starts of a lesson added, in their order; as [`merge()`]. Those that were not warm have the need
/// times of the warm one, where the lesson has one. `None` where there is neither plan nor start.
pub fn lesson(plan: Option<Plan>, key: &Key, starts: &[StartNeeds], at: u64) -> Option<Plan> {
    // Of several the one that others disturbed least.
    let warm = starts.iter().filter(|start| start.warm).min_by_key(|start| start.computing_ns);
    starts.iter().fold(plan, |plan, start| {
        let aligned = warm.filter(|_| !start.warm).map(|warm| align::aligned(start, warm));
        Some(merge(plan.as_ref(), key, aligned.as_ref().unwrap_or(start), at))
    })
}

/// The plan with the start added. `at`: now, in seconds since 1970; `key` with the executable's identity of
/// now. Steps, bound and device are left empty: compile it next. A trial stays, so that the caller can see
/// what it was about; a plan that was off is on again when the executable changed.
pub fn merge(plan: Option<&Plan>, key: &Key, start: &StartNeeds, at: u64) -> Plan {
    let first = Learnt { first: at, tier: start.tier, ..Learnt::default() };
    let empty = Plan::unmade(key.clone(), first, Vec::new(), Vec::new(), default_knobs(None));
    let old = plan.unwrap_or(&empty);
    let (files, ranges) = contents(old, start);
    let replaced = old.key.identity != key.identity;
    Plan {
        key: key.clone(),
        learnt: learnt(&old.learnt, start, at),
        files,
        ranges,
        knobs: old.knobs,
        device: old.device.clone(),
        bound: None,
        steps: Vec::new(),
        standing: if replaced { Standing::Untried } else { old.standing.clone() },
        trial: if replaced { None } else { old.trial },
    }
}

fn learnt(old: &Learnt, start: &StartNeeds, at: u64) -> Learnt {
    let cold = start.proved_cold;
    let n = u64::from(old.starts);
    let warm = old.starts > old.cold_starts;
    // Warm starts know it better: the first of them replaces what cold ones said.
    // The least, because recording, and whatever else ran beside it, only adds to it.
    let computing = match (cold, warm) {
        (true, true) => old.cpu_ns,
        (false, false) => start.computing_ns,
        _ if old.cpu_ns == 0 => start.computing_ns,
        _ => old.cpu_ns.min(start.computing_ns),
    };
    Learnt {
        starts: old.starts.saturating_add(1),
        cold_starts: old.cold_starts.saturating_add(u32::from(cold)),
        // A for the best, so the greater letter is the lower tier.
        tier: if n == 0 { start.tier } else { old.tier.max(start.tier) },
        exact: old.exact || start.exact,
        one_thread: start.one_thread && (n == 0 || old.one_thread),
        // As the latest was: another condition is another mark.
        goes_on: start.goes_on,
        first: if n == 0 { at } else { old.first },
        last: at,
        cpu_ns: computing,
        // Reading nothing ahead makes an exact start slower: it tells the time only where no other does.
        cold_ready_ns: if cold && !(start.exact && old.cold_ready_ns > 0) {
            median_step(old.cold_ready_ns, start.ready_ns, old.cold_starts)
        } else {
            old.cold_ready_ns
        },
        own_cpu_ns: if start.own_cpu_ns > 0 {
            median_step(old.own_cpu_ns, start.own_cpu_ns, if old.own_cpu_ns > 0 { old.starts } else { 0 })
        } else {
            old.own_cpu_ns
        },
    }
}

/// The running median after one more value, when `n` made the old one.
pub(crate) fn median_step(old: u64, new: u64, n: u32) -> u64 {
    match n {
        0 => new,
        1 => old.midpoint(new),
        _ => {
            let most = (old / 8).max(1_000_000);
            if new >= old { old + (new - old).min(most) } else { old - (old - new).min(most) }
        }
    }
}

/// A history after one more start.
pub(crate) fn shift(uses: u8, used: bool, seen: bool) -> u8 {
    if used {
        uses << 1 | 1
    } else if seen {
        uses << 1
    } else {
        uses
    }
}

fn sees(sees: Sees, kind: FileKind) -> bool {
    match kind {
        FileKind::Regular => sees.pages,
        FileKind::Directory | FileKind::Name => sees.lookups,
        FileKind::BlockDevice => sees.metadata,
    }
}

#[derive(Default)]
struct Both<'a> {
    old: Option<(&'a PlanFile, Vec<Run>)>,
    new: Option<(&'a PlanFile, Vec<Run>)>,
}

fn contents(old: &Plan, start: &StartNeeds) -> (Vec<PlanFile>, Vec<Range>) {
    let mut paths: HashMap<&Path, Both<'_>> = HashMap::new();
    for (file, runs) in by_file(&old.files, &old.ranges) {
        paths.entry(&file.path).or_default().old = Some((file, runs));
    }
    for (file, runs) in by_file(&start.files, &start.ranges) {
        paths.entry(&file.path).or_default().new = Some((file, runs));
    }
    let mut merged: Vec<(PlanFile, Vec<Run>)> =
        paths.into_values().filter_map(|b| one(b, start.sees, start.exact)).collect();
    merged.sort_by(|a, b| (a.0.need_ns, &a.0.path).cmp(&(b.0.need_ns, &b.0.path)));
    let mut ranges = Vec::new();
    for (index, (_, runs)) in merged.iter().enumerate() {
        ranges.extend(runs.iter().flat_map(|r| r.ranges(index as u32)));
    }
    ranges.sort_by_key(|r| (r.need_ns, r.file, r.first_page));
    (merged.into_iter().map(|(file, _)| file).collect(), ranges)
}

fn by_file<'a>(files: &'a [PlanFile], ranges: &[Range]) -> Vec<(&'a PlanFile, Vec<Run>)> {
    let mut out: Vec<(&PlanFile, Vec<Run>)> = files.iter().map(|f| (f, Vec::new())).collect();
    for r in ranges {
        if let Some((_, runs)) = out.get_mut(r.file as usize) {
            runs.push(Run::of(r));
        }
    }
    for (_, runs) in &mut out {
        runs.sort_by_key(|r| r.first);
    }
    out
}

/// One path's file and runs after the start, which is `exact` or not; `None`: it vanishes.
fn one(both: Both<'_>, seen: Sees, exact: bool) -> Option<(PlanFile, Vec<Run>)> {
    let (old, new) = match (both.old, both.new) {
        (None, None) => return None,
        (None, Some((file, runs))) => return kept(PlanFile { exact, ..file.clone() }, runs),
        (Some((file, runs)), None) => {
            let seen = sees(seen, file.kind);
            let uses = shift(file.uses, false, seen);
            let runs = pages::overlay(&runs, &[], seen);
            return kept(PlanFile { uses, ..file.clone() }, runs);
        }
        (Some(old), Some(new)) => (old, new),
    };
    let (file, mut runs) = old;
    let (now, mut new_runs) = new;
    let same_kind = file.kind == now.kind;
    let mut known = file.exact;
    if !same_kind || changed(file, now) {
        // It may have been seen in another role only: a file that this start merely looked up.
        if !same_kind && file.kind == FileKind::Regular && now.kind != FileKind::Regular {
            let seen = sees(seen, file.kind);
            let uses = shift(file.uses, true, true);
            return kept(PlanFile { uses, ..file.clone() }, pages::overlay(&runs, &[], seen));
        }
        (runs, known) = (Vec::new(), false);
    }
    // What an exact start knows of a file, no widened one adds to. In an exact one, too, folios that were cached before
    // and blocks that the file system reads whole are mapped around faults: these pages stay in doubt, all others do not.
    match (known, exact) {
        (true, false) => new_runs = known_only(&runs, new_runs),
        (false, true) => runs = known_only(&new_runs, runs),
        _ => {}
    }
    let runs = pages::overlay(&runs, &new_runs, sees(seen, now.kind));
    let need_ns = median_step(file.need_ns, now.need_ns, file.uses.count_ones());
    let uses = shift(file.uses, true, true);
    kept(PlanFile { need_ns, uses, exact: known || exact, ..now.clone() }, runs)
}

/// Another file under the same name, or the same one changed. Devices carry their own content.
fn changed(a: &PlanFile, b: &PlanFile) -> bool {
    let (x, y) = (&a.identity, &b.identity);
    let build = x.build_id != y.build_id && x.build_id != [0; 20] && y.build_id != [0; 20];
    a.kind == FileKind::Regular && ((x.inode, x.size, x.mtime_ns) != (y.inode, y.size, y.mtime_ns) || build)
}

fn kept(file: PlanFile, runs: Vec<Run>) -> Option<(PlanFile, Vec<Run>)> {
    let paged = matches!(file.kind, FileKind::Regular | FileKind::BlockDevice);
    (file.uses != 0 && (!paged || !runs.is_empty())).then_some((file, runs))
}

/// Of runs that were mapped around faults, the pages that exact starts knew; of others, all.
fn known_only(known: &[Run], widened: Vec<Run>) -> Vec<Run> {
    let known = cold_model::pages::Runs::of(known.iter().map(|r| r.first..r.end).collect());
    let mut out = Vec::new();
    for r in widened {
        if r.around {
            out.extend(known.within(&(r.first..r.end)).map(|p| Run { first: p.start, end: p.end, ..r }));
        } else {
            out.push(r);
        }
    }
    out
}

/// Paths of the files of which the start found another one than the plan has, by which their ranges dropped.
pub fn replaced(plan: &Plan, start: &StartNeeds) -> Vec<PathBuf> {
    let old: HashMap<&Path, &PlanFile> = plan.files.iter().map(|f| (f.path.as_path(), f)).collect();
    let differs =
        |f: &&PlanFile| old.get(f.path.as_path()).is_some_and(|o| o.kind == f.kind && changed(o, f));
    start.files.iter().filter(differs).map(|f| f.path.clone()).collect()
}

#[cfg(test)]
mod tests;
