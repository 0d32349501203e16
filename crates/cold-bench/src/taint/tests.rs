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
    let activity = Activity {
        device_read_bytes: Some(50 << 20),
        cpu: Some(CpuTimes { total: 200, idle: 100, steal: 0 }),
        ..Activity::default()
    };
    kinds_of(&residual, activity, change, state)
}

fn kinds_of(
    residual: &Known<Residual>,
    mut activity: Activity,
    change: impl FnOnce(&mut Facts<'_>, &mut Activity),
    state: &State,
) -> Vec<&'static str> {
    let quiet = activity.clone();
    let mut facts = Facts {
        state,
        activity: &quiet,
        tree_bytes: 50 << 20,
        tree_cpu: Nanos(900_000_000),
        reclaimed: 0,
        residual,
        warm_bytes: 100 << 20,
        not_prefetched: None,
        not_set: None,
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
        (
            "not_set",
            State::ReadAhead(Bytes(128 << 10)),
            Box::new(|f, _| f.not_set = Some("only root can".into())),
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
        let after = |pages: u64| {
            kinds(|f, a| (f.reclaimed, a.refaulted_pages) = (pages * page_size(), Some(9000)), &state)
        };
        assert!(after(9000).is_empty());
        assert!(after(u64::MAX / page_size()).is_empty(), "nobody knows what was reclaimed");
        assert_eq!(after(0), ["refaults"], "taken and read again while it ran");
        // Each page that was reclaimed comes back once: 3000 more did than these and 2 MiB.
        assert_eq!(after(5000), ["refaults"]);
    }
}

#[test]
fn a_prefetched_run_must_begin_cold() {
    assert_eq!(kinds_with(11 << 20, |_, _| {}, &State::Prefetched), ["not_cold"]);
    assert!(kinds(|f, _| f.missing = 1 << 20, &State::Prefetched).is_empty());
    // Where only the program had to be absent, the others had to stay.
    let left = Known::Value(Residual { left: Some(Bytes(1)), ..Residual::default() });
    let missing = |bytes| {
        let activity = Activity::default();
        let change = |f: &mut Facts<'_>, _: &mut Activity| f.missing = bytes;
        kinds_of(&left, activity, change, &State::Cold)
    };
    assert_eq!((missing(1 << 20), missing(4096)), (vec!["not_warm"], vec![]));
}

#[test]
fn each_limit_disqualifies_from_where_the_table_of_limits_says() {
    type Change = fn(&mut Facts<'_>, &mut Activity);
    let cases: [(&str, State, Change, Change); 10] = [
        (
            "pages_reclaimed",
            State::Cold,
            |_, a| a.reclaimed_pages = Some(255),
            |_, a| {
                a.reclaimed_pages = Some(256);
            },
        ),
        ("refaults", State::Warm, |_, a| a.refaulted_pages = Some(255), |_, a| a.refaulted_pages = Some(256)),
        // 1 MiB and 2% of the 50 MiB that the tree read: 512 pages.
        (
            "refaults",
            State::Cold,
            |_, a| a.refaulted_pages = Some((2 << 20) / page_size() - 1),
            |_, a| a.refaulted_pages = Some((2 << 20) / page_size()),
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
        ("busy_machine", State::Cold, |f, _| f.tree_cpu = Nanos(10_000_000), |f, _| f.tree_cpu = Nanos(0)),
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
