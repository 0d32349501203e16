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
    /// What was cached before the start.
    pub residual: &'a Known<Residual>,
    /// Bytes of the file set that a start leaves in the cache.
    pub warm_bytes: u64,
    /// Why the launcher did not replay its plan.
    pub not_prefetched: Option<String>,
    /// How a restored snapshot differs from what was saved.
    pub not_restored: Option<Taint>,
    /// Bytes of the file set that should have been cached before the start and were not.
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
    found.extend(f.not_prefetched.clone().map(|why| Taint::NotPrefetched { why }));
    found.extend(f.not_restored.clone());
    if !f.state.begins_cold() && f.missing as f64 > f.expected as f64 * MISSING_SHARE {
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
    // After an eviction by reclaim (pages that others map), the cold run itself refaults.
    let refaulted = a.refaulted_pages.unwrap_or(0);
    if !f.state.begins_cold() && refaulted >= RECLAIMED_PAGES {
        found.push(Taint::Refaults { pages: refaulted });
    }
}

fn share_of(expected: u64) -> f64 {
    (expected as f64 * MISSING_SHARE).max(page_size() as f64 * 16.0)
}

fn foreign_reads(f: &Facts<'_>, found: &mut Vec<Taint>) {
    let Some(device) = f.activity.device_read_bytes else { return };
    let foreign = device.saturating_sub(f.tree_bytes + f.activity.own_read_bytes);
    if foreign as f64 > FOREIGN_BYTES as f64 + FOREIGN_SHARE * f.tree_bytes as f64 {
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
mod tests {
    use cold_sys::procfs::CpuTimes;

    use super::*;

    fn kinds(change: impl FnOnce(&mut Facts<'_>, &mut Activity), state: &State) -> Vec<&'static str> {
        kinds_with(0, change, state)
    }

    /// The taints of a quiet run with `cached` bytes left before it, after `change`.
    fn kinds_with(
        cached: u64,
        change: impl FnOnce(&mut Facts<'_>, &mut Activity),
        state: &State,
    ) -> Vec<&'static str> {
        let residual = Known::Value(Residual { bytes: Bytes(cached), ..Residual::default() });
        let mut activity = Activity {
            device_read_bytes: Some(50 << 20),
            cpu: Some(CpuTimes { total: 200, idle: 100, steal: 0 }),
            ..Activity::default()
        };
        let quiet = activity.clone();
        let mut facts = Facts {
            state,
            activity: &quiet,
            tree_bytes: 50 << 20,
            tree_cpu: Nanos(900_000_000),
            residual: &residual,
            warm_bytes: 100 << 20,
            not_prefetched: None,
            not_restored: None,
            missing: 0,
            expected: 100 << 20,
            lost: 0,
            changed: None,
            ending: Ending::Code(0),
            never_ready: false,
            limit: Nanos(1),
            ignore_failure: false,
        };
        change(&mut facts, &mut activity);
        let facts = Facts { activity: &activity, ..facts };
        taints(&facts).iter().map(Taint::kind).collect()
    }

    #[test]
    fn a_quiet_run_has_none() {
        assert!(kinds(|_, _| {}, &State::Cold).is_empty());
    }

    #[test]
    fn each_disturbance_has_its_own_name() {
        type Disturb = Box<dyn Fn(&mut Facts<'_>, &mut Activity)>;
        let cases: Vec<(&str, State, Disturb)> = vec![
            ("caches_dropped", State::Cold, Box::new(|_, a| a.page_cache_drops = Some(1))),
            ("caches_dropped", State::Warm, Box::new(|f, a| (f.lost, a.slab_drops) = (90 << 20, Some(1)))),
            ("pages_reclaimed", State::Cold, Box::new(|_, a| a.reclaimed_pages = Some(5000))),
            ("pages_reclaimed", State::Warm, Box::new(|f, _| f.lost = 5 << 20)),
            ("refaults", State::Warm, Box::new(|_, a| a.refaulted_pages = Some(5000))),
            ("foreign_reads", State::Cold, Box::new(|_, a| a.device_read_bytes = Some(60 << 20))),
            ("foreign_reads", State::Warm, Box::new(|f, _| f.tree_bytes = 0)),
            ("steal", State::Cold, Box::new(|_, a| a.cpu.as_mut().expect("cpu").steal = 30)),
            ("busy_machine", State::Cold, Box::new(|_, a| a.cpu.as_mut().expect("cpu").idle = 0)),
            ("not_warm", State::Warm, Box::new(|f, _| f.missing = 1 << 20)),
            (
                "not_restored",
                State::Snapshot("s".into()),
                Box::new(|f, _| {
                    let (missing, extra) = (Bytes(4096), Bytes(0));
                    f.not_restored = Some(Taint::NotRestored { missing, extra, files: 0 });
                }),
            ),
            (
                "not_prefetched",
                State::Prefetched,
                Box::new(|f, _| f.not_prefetched = Some("the disk is busy".into())),
            ),
            ("file_set_changed", State::Cold, Box::new(|f, _| f.changed = Some("/x".into()))),
            ("failed", State::Cold, Box::new(|f, _| f.ending = Ending::Code(3))),
            ("failed", State::Cold, Box::new(|f, _| f.never_ready = true)),
            ("timed_out", State::Cold, Box::new(|f, _| f.ending = Ending::TimedOut)),
        ];
        for (kind, state, change) in cases {
            // Less idle time also means more steal-free busy time; the tree's own share is kept.
            assert_eq!(kinds(|f, a| change(f, a), &state), vec![kind], "{kind} in {state}");
        }
    }

    #[test]
    fn a_little_left_in_the_cache_marks_but_does_not_disqualify() {
        assert!(kinds_with(9 << 20, |_, _| {}, &State::Cold).is_empty());
        assert_eq!(kinds_with(11 << 20, |_, _| {}, &State::Cold), ["not_cold"]);
    }

    #[test]
    fn refaults_after_our_own_reclaim_do_not_taint_a_cold_run() {
        for state in [State::Cold, State::Prefetched] {
            assert!(kinds(|_, a| a.refaulted_pages = Some(9000), &state).is_empty());
        }
    }

    #[test]
    fn a_prefetched_run_must_begin_cold() {
        assert_eq!(kinds_with(11 << 20, |_, _| {}, &State::Prefetched), ["not_cold"]);
        assert!(kinds(|f, _| f.missing = 1 << 20, &State::Prefetched).is_empty());
    }

    #[test]
    fn each_limit_disqualifies_from_where_the_table_of_limits_says() {
        type Change = fn(&mut Facts<'_>, &mut Activity);
        let cases: [(&str, State, Change, Change); 9] = [
            (
                "pages_reclaimed",
                State::Cold,
                |_, a| a.reclaimed_pages = Some(255),
                |_, a| {
                    a.reclaimed_pages = Some(256);
                },
            ),
            (
                "refaults",
                State::Warm,
                |_, a| a.refaulted_pages = Some(255),
                |_, a| a.refaulted_pages = Some(256),
            ),
            // 0.2% of 100 MiB.
            ("not_warm", State::Light, |f, _| f.missing = 209_715, |f, _| f.missing = 209_716),
            // Of a small file set 16 pages may go.
            (
                "pages_reclaimed",
                State::Cold,
                |f, _| (f.expected, f.lost) = (1 << 20, 16 * page_size()),
                |f, _| {
                    (f.expected, f.lost) = (1 << 20, 17 * page_size());
                },
            ),
            // 1 MiB beside 2% of the tree's own 50 MiB.
            (
                "foreign_reads",
                State::Cold,
                |_, a| a.device_read_bytes = Some(52 << 20),
                |_, a| {
                    a.device_read_bytes = Some((52 << 20) + 1);
                },
            ),
            // What cold itself read is not foreign.
            (
                "foreign_reads",
                State::Cold,
                |_, a| (a.device_read_bytes, a.own_read_bytes) = (Some(60 << 20), 8 << 20),
                |_, a| (a.device_read_bytes, a.own_read_bytes) = (Some(60 << 20), 7 << 20),
            ),
            (
                "steal",
                State::Cold,
                |_, a| a.cpu.as_mut().unwrap().steal = 19,
                |_, a| {
                    a.cpu.as_mut().unwrap().steal = 20;
                },
            ),
            // 100 of 200 ticks are not the tree's 90: 5%.
            (
                "busy_machine",
                State::Cold,
                |f, _| f.tree_cpu = Nanos(10_000_000),
                |f, _| f.tree_cpu = Nanos(0),
            ),
            (
                "failed",
                State::Cold,
                |f, _| (f.ending, f.ignore_failure) = (Ending::Signal(9), true),
                |f, _| {
                    f.ending = Ending::Signal(9);
                },
            ),
        ];
        for (kind, state, good, bad) in cases {
            assert!(kinds(good, &state).is_empty(), "{kind} in {state}: {:?}", kinds(good, &state));
            assert_eq!(kinds(bad, &state), [kind]);
        }
    }

    #[test]
    fn a_drop_explains_the_pages_that_went_with_it() {
        let dropped = |f: &mut Facts<'_>, a: &mut Activity| {
            (a.slab_drops, a.reclaimed_pages, f.lost) = (Some(3), Some(9000), 90 << 20);
        };
        assert_eq!(kinds(dropped, &State::Cold), ["caches_dropped"]);
    }

    #[test]
    fn a_start_that_was_never_ready_counts_as_failed_even_where_failures_are_ignored() {
        let never = |f: &mut Facts<'_>, _: &mut Activity| (f.never_ready, f.ignore_failure) = (true, true);
        assert_eq!(kinds(never, &State::Warm), ["failed"]);
    }

    #[test]
    fn less_than_twenty_ticks_say_nothing_about_the_load() {
        let of = |total, idle, steal, tree| {
            let cpu = Some(CpuTimes { total, idle, steal });
            load(&Activity { cpu, ..Activity::default() }, Nanos(tree)).value().copied()
        };
        assert_eq!(of(19, 0, 19, 0), None);
        let all = of(20, 5, 3, 40_000_000).unwrap();
        // Of 15 busy ticks 3 were stolen and 4 the tree's own.
        let (capacity, others, stolen) = (all.capacity.0, all.others.0, all.stolen.0);
        assert_eq!((capacity, others, stolen), (200_000_000, 80_000_000, 30_000_000));
        // Idle time that went on beyond the total, and a tree that used more than was counted, are nobody's load.
        assert_eq!(of(20, 25, 0, 0).unwrap().others, Nanos(0));
        assert_eq!(of(20, 10, 0, 900_000_000).unwrap().others, Nanos(0));
    }
}
