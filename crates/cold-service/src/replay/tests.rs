use super::made::Made;
use super::*;

const SECOND: u64 = 1_000_000_000;

fn log(bytes: &[u64], events: &[(u64, Option<usize>)]) -> Log {
    let programs =
        bytes.iter().enumerate().map(|(i, n)| Program { name: i.to_string(), bytes: *n }).collect();
    let events = events.iter().map(|(at, program)| {
        let what = program.map_or(What::Emptied, |program| What::Starts { program, times: 1 });
        Event { at: Nanos(at * SECOND), what }
    });
    Log::new(programs, events.collect()).expect("a log")
}

/// Program 0 twice and 1 once, then after the cache was emptied 1 and 2 at their ease.
fn three() -> Log {
    let events = [
        (0, Some(0)),
        (1, Some(0)),
        (2, Some(1)),
        (100, None),
        (120, Some(1)),
        (130, Some(2)),
        (200, Some(1)),
    ];
    log(&[10, 20, 40], &events)
}

#[test]
fn by_hand() {
    let of = |policy, room| {
        let out = play(&three(), policy, room);
        (out.first, out.hits, out.read_bytes, out.used_bytes)
    };
    assert_eq!(of(Policy::Nothing, 100), (4, 0, 0, 0));
    assert_eq!(of(Policy::All, 0), (4, 1, 30, 20), "2 was not started before");
    assert_eq!(of(Policy::Recency, 29), (4, 1, 20, 20));
    assert_eq!(of(Policy::Recency, 19), (4, 0, 10, 0), "1 does not fit and is passed over");
    assert_eq!(of(Policy::Lru, 19), (4, 0, 0, 0), "a cache would have dropped 0 for 1");
    assert_eq!(of(Policy::Frequency, 29), (4, 0, 10, 0));
    assert_eq!(of(Policy::OWN, 29), (4, 0, 10, 0), "two starts within seconds of one");
    assert_eq!(of(Policy::Halving(HALF_LIFE, By::Byte), 29), (4, 0, 10, 0));
    assert_eq!(of(Policy::Foreseen, 29), (4, 1, 20, 20));
    assert_eq!(of(Policy::Foreseen, 60), (4, 2, 60, 60));
    let out = play(&three(), Policy::OWN, 100);
    assert_eq!((out.starts, out.hits), (6, 1));
    assert_eq!((out.lost_bytes, out.saved_bytes), (4 * BESIDES + 10 + 20 + 20 + 40, BESIDES + 20));
}

#[test]
fn what_is_held_is_weighed_by_its_time() {
    // Read at 110, 20 bytes used at 120, 10 held on to the end at 200.
    let out = play(&three(), Policy::All, 0);
    assert_eq!(out.most_held_bytes, 30);
    let wanted = (30.0 * 10.0 + 10.0 * 80.0) / 200.0;
    assert!((out.held_bytes - wanted).abs() < 1e-9, "{out:?}");
    assert_eq!(out.vain_bytes(), 10);
}

#[test]
fn who_starts_before_it_has_rested_is_cold_under_every_policy() {
    let events = [
        (0, Some(0)),
        (100, None),
        (105, Some(0)),
        (114, Some(1)),
        (200, None),
        (209, Some(1)),
        (300, Some(0)),
    ];
    for policy in Policy::compared() {
        let out = play(&log(&[1, 1], &events), policy, 10);
        let least = u64::from(policy != Policy::Nothing);
        assert_eq!((out.first, out.hits), (5, least), "{policy:?}");
    }
}

#[test]
fn nobody_hits_more_than_who_foresees_and_nothing_hits_nothing() {
    for seed in 0..20 {
        let log = Made { days: 10, ..Made::default() }.log(seed);
        for room in [5 << 20, 50 << 20, 500 << 20] {
            let best = play(&log, Policy::Foreseen, room);
            assert_eq!(best.vain_bytes(), 0, "what is foreseen is used");
            for policy in Policy::compared() {
                let out = play(&log, policy, room);
                assert_eq!((out.starts, out.first), (best.starts, best.first), "the log's own figures");
                assert!(out.hits <= out.first && out.used_bytes <= out.read_bytes);
                if policy != Policy::All {
                    assert!(out.hits <= best.hits, "{policy:?} {seed} {room}: {out:?} {best:?}");
                    assert!(out.most_held_bytes <= room);
                }
                assert!(out.held_bytes <= out.most_held_bytes as f64);
            }
            assert_eq!(play(&log, Policy::Nothing, room).hits, 0);
            assert!(play(&log, Policy::All, room).hits > 0);
        }
    }
}

#[test]
fn a_log_of_nothing_brings_nothing() {
    for policy in Policy::compared() {
        assert_eq!(play(&Log::default(), policy, 10), Outcome::default());
    }
    let event = Event { at: Nanos(0), what: What::Starts { program: 0, times: 1 } };
    assert_eq!(Log::new(Vec::new(), vec![event]), None);
}
