//! From facts to taints. The limits stand here (those of steal and load with the type that holds the shares), fixed
//! before any time is looked at.

use std::path::PathBuf;

use cold_model::bench::{BUSY_PERCENT, Ending, Residual, STEAL_PERCENT, STILL_COLD, State, Taint};
use cold_model::recording::manifest::Load;
use cold_model::{Bytes, Known, Nanos};
use cold_sys::page::page_size;

use crate::counters::Activity;

/// Reclaim takes a few pages now and then on any machine; this many (1 MiB) can be felt.
const RECLAIMED_PAGES: u64 = 256;
/// Foreign reads below this are noise (a log rotation, a cron job's own start) …
const FOREIGN_BYTES: u64 = 1 << 20;
/// … unless the tree itself reads little: then also this share of its reads counts for it.
const FOREIGN_SHARE: f64 = 0.02;
/// One or two ticks of 10 ms may be rounding.
const STEAL_TICKS: u64 = 3;
/// `USER_HZ` is 100 on every architecture this runs on: a tick is 10 ms.
const TICK: u64 = 10_000_000;
/// Shares are taken of at least this many ticks (10 ms each): shorter runs say nothing.
const TICKS: u64 = 20;
/// A warm run may miss this share of the pages that were cached after the last warm-up start: the
/// kernel's read-around and the program's own temporary files move a few.
const MISSING_SHARE: f64 = 0.002;

/// Everything known about a run that may disqualify it.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The state the run should have started from.
    pub state: &'a State,
    /// The machine's activity during the run.
    pub activity: &'a Activity,
    /// Bytes the tree itself read from storage.
    pub tree_bytes: u64,
    /// CPU time the tree used.
    pub tree_cpu: Nanos,
    /// Bytes of the file set that the evictions before it reclaimed, as others map them: these come back as refaults.
    pub reclaimed: u64,
    /// What was cached before the start.
    pub residual: &'a Known<Residual>,
    /// Bytes of the file set that a start leaves in the cache.
    pub warm_bytes: u64,
    /// Why the launcher did not replay its plan.
    pub not_prefetched: Option<String>,
    /// Why the setting of its state could not be made, where it has one.
    pub not_set: Option<String>,
    /// How a restored snapshot differs from what was saved.
    pub not_restored: Option<Taint>,
    /// Bytes of the file set that should have been cached before the start and were not: before a cold one of files
    /// that stay as they are.
    pub missing: u64,
    /// Bytes of the file set that should have been cached.
    pub expected: u64,
    /// Bytes of the file set that were cached at the start and are not at the end.
    pub lost: u64,
    /// A file that changed since it was observed.
    pub changed: Option<PathBuf>,
    /// How the command ended.
    pub ending: Ending,
    /// It never got ready.
    pub never_ready: bool,
    /// The time limit.
    pub limit: Nanos,
    /// Whether failures are counted as good.
    pub ignore_failure: bool,
}

/// The taints that follow.
pub fn taints(f: &Facts<'_>) -> Vec<Taint> {
    let mut found = Vec::new();
    state(f, &mut found);
    memory(f, &mut found);
    foreign_reads(f, &mut found);
    cpu(f, &mut found);
    if let Some(path) = &f.changed {
        found.push(Taint::FileSetChanged { path: path.clone() });
    }
    match f.ending {
        Ending::TimedOut => found.push(Taint::TimedOut { limit: f.limit }),
        Ending::Code(c) if c != 0 && !f.ignore_failure => found.push(Taint::Failed { ending: f.ending }),
        Ending::Signal(_) if !f.ignore_failure => found.push(Taint::Failed { ending: f.ending }),
        // It ended by itself, successfully even, but was never what the user calls ready.
        _ if f.never_ready => found.push(Taint::Failed { ending: f.ending }),
        _ => {}
    }
    found
}

fn state(f: &Facts<'_>, found: &mut Vec<Taint>) {
    if f.state.begins_cold()
        && let Known::Value(r) = f.residual
        && r.bytes.0 as f64 > f.warm_bytes as f64 * STILL_COLD
    {
        found.push(Taint::NotCold { bytes: r.bytes, holders: r.holders(), held: r.held() });
    }
    found.extend(f.not_set.clone().map(|why| Taint::NotSet { why }));
    found.extend(f.not_prefetched.clone().map(|why| Taint::NotPrefetched { why }));
    found.extend(f.not_restored.clone());
    // What else a program uses is to be as it was where only the program is to be absent.
    let others_stay = f.residual.value().is_some_and(|r| r.left.is_some());
    if (!f.state.begins_cold() || others_stay) && f.missing as f64 > f.expected as f64 * MISSING_SHARE {
        found.push(Taint::NotWarm { bytes: Bytes(f.missing) });
    }
}

fn memory(f: &Facts<'_>, found: &mut Vec<Taint>) {
    let a = f.activity;
    let drops = a.page_cache_drops.unwrap_or(0).max(a.slab_drops.unwrap_or(0));
    if drops > 0 {
        found.push(Taint::CachesDropped { times: drops });
    }
    // Pages of the file set that vanished are evidence by themselves: reclaim by DAMON does not show
    // in pgsteal_*. A drop explains them already.
    let lost = f.lost / page_size();
    let reclaimed = a.reclaimed_pages.unwrap_or(0);
    if drops == 0 && (reclaimed >= RECLAIMED_PAGES || lost as f64 > share_of(f.expected) / page_size() as f64)
    {
        found.push(Taint::PagesReclaimed { pages: reclaimed.max(lost) });
    }
    // A cold start reads without a refault what was evicted: eviction but by reclaim forgets when a page was last in the
    // cache. Pages that DAMON takes meanwhile come back as refaults, and nothing else shows that they were taken. Those
    // that were reclaimed for this start do so once.
    let refaulted = a.refaulted_pages.unwrap_or(0);
    let most = if f.state.begins_cold() {
        foreign_limit(f).saturating_add(f.reclaimed) / page_size()
    } else {
        RECLAIMED_PAGES
    };
    if refaulted >= most {
        found.push(Taint::Refaults { pages: refaulted });
    }
}

fn share_of(expected: u64) -> f64 {
    (expected as f64 * MISSING_SHARE).max(page_size() as f64 * 16.0)
}

/// Bytes read by others, or again, that a run may have.
fn foreign_limit(f: &Facts<'_>) -> u64 {
    FOREIGN_BYTES + (FOREIGN_SHARE * f.tree_bytes as f64) as u64
}

fn foreign_reads(f: &Facts<'_>, found: &mut Vec<Taint>) {
    let Some(device) = f.activity.device_read_bytes else { return };
    let foreign = device.saturating_sub(f.tree_bytes + f.activity.own_read_bytes);
    if foreign > foreign_limit(f) {
        let readers = f.activity.other_readers.iter().take(3).map(|(name, _)| name.clone()).collect();
        found.push(Taint::ForeignReads { bytes: Bytes(foreign), readers });
    }
}

fn cpu(f: &Facts<'_>, found: &mut Vec<Taint>) {
    let Known::Value(load) = load(f.activity, f.tree_cpu) else { return };
    let (steal, busy) = (load.stolen_percent(), load.others_percent());
    if steal >= STEAL_PERCENT && load.stolen.0 >= STEAL_TICKS * TICK {
        found.push(Taint::Steal { percent: steal });
    }
    if busy >= BUSY_PERCENT {
        found.push(Taint::BusyMachine { percent: busy });
    }
}

/// What others did to the CPUs beside a tree that used `tree_cpu`; unknown where the time was too short to tell.
pub fn load(activity: &Activity, tree_cpu: Nanos) -> Known<Load> {
    let Some(cpu) = activity.cpu else { return Known::unknown("/proc/stat could not be read") };
    if cpu.total < TICKS {
        return Known::unknown("the start was too short: the kernel counts CPU time in ticks of 10 ms");
    }
    let busy = Nanos((cpu.total - cpu.idle.min(cpu.total)) * TICK);
    let stolen = Nanos(cpu.steal * TICK);
    let others = busy.saturating_sub(stolen).saturating_sub(tree_cpu);
    Known::Value(Load { capacity: Nanos(cpu.total * TICK), others, stolen })
}

#[cfg(test)]
mod tests;
