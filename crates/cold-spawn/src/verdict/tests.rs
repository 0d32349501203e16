use cold_model::Nanos;
use cold_sys::spawn::Timing;

use super::*;
use crate::evidence::{End, NameScan};

fn timing(ns: f64) -> Timing {
    Timing {
        program: 0,
        began: Nanos(1000),
        created: Nanos(1000),
        ended: Nanos(1000 + ns as u64),
        status: 0,
        user: Nanos(ns as u64),
        system: Nanos(0),
        minor_faults: 0,
        major_faults: 0,
    }
}

/// 400 starts; the control costs 300 µs, and each 40th start is followed by an observed one.
fn measured(cost: impl Fn(u64) -> f64, names: impl Fn(u64) -> u64) -> Measured {
    let scan = |i: u64| NameScan {
        directory: "/logs".into(),
        prefix: "a.".into(),
        suffix: String::new(),
        first: 0,
        last: names(i),
        lookups: names(i) + 1,
        end: End::Created,
        ns: 1000,
        lookup: 0,
        stack: None,
    };
    Measured {
        starts: (0..400).map(|i| (i, timing(cost(i) + (i % 7) as f64))).collect(),
        control: (0..400).map(|i| timing(300_000.0 + f64::from(i % 5))).collect(),
        observed: (0..20)
            .map(|g| (g * 20, Evidence { scans: vec![scan(g * 20)], lookups: 9, ..Evidence::default() }))
            .collect(),
        ..Measured::default()
    }
}

#[test]
fn counts_decide_before_time_does() {
    let hidden = judge(&measured(|_| 500_000.0, |i| 5 + i), Some(30_000)).verdict;
    assert_eq!((hidden.class, hidden.from), (Class::Linear, From::Counts));
    assert!(hidden.grows() && hidden.time.is_none() && hidden.predictions.is_empty(), "{hidden:?}");

    let seen = judge(&measured(|i| 500_000.0 + 1000.0 * i as f64, |i| 5 + i), Some(30_000)).verdict;
    let [now, ten, named] = &seen.predictions[..] else { panic!("{seen:?}") };
    assert_eq!((now.starts, ten.starts, named.starts), (400, 4000, 30_000));
    for (p, ns) in [(now, 900_000.0), (ten, 4_500_000.0), (named, 30_500_000.0)] {
        assert!((p.each_ns / ns - 1.0).abs() < 0.01, "{p:?}");
    }
    assert!((named.total_ns / (30_000.0 * 500e3 + 1e3 * 30_000.0 * 15_000.0) - 1.0).abs() < 0.01);
}

#[test]
fn time_decides_where_counts_are_constant() {
    let v = judge(&measured(|i| 500_000.0 + 1000.0 * i as f64, |_| 5), None).verdict;
    assert_eq!((v.class, v.from), (Class::Linear, From::Time));
    // The same, but the CPU is no busier: load, or somebody else's work.
    let mut waiting = measured(|i| 500_000.0 + 1000.0 * i as f64, |_| 5);
    waiting.starts.iter_mut().for_each(|(i, t)| t.user = Nanos(400_000 + *i % 7));
    let judged = judge(&waiting, None);
    assert_eq!((judged.verdict.class, judged.only_waits()), (Class::Constant, true));
    let v = judge(&measured(|_| 500_000.0, |_| 5), None).verdict;
    assert_eq!((v.class, v.from, v.grows()), (Class::Constant, From::Time, false));
    assert!((v.exponent - 1.0).abs() < 1e-3 && v.predictions.len() == 2, "{v:?}");
    let v = judge(&measured(|i| if i < 200 { 500_000.0 } else { 700_000.0 }, |_| 5), None).verdict;
    assert_eq!((v.class, v.grows()), (Class::Step, false), "a step does not go on");
}

#[test]
fn too_few_starts_decide_nothing() {
    let v = judge(&Measured::default(), None).verdict;
    assert_eq!((v.class, v.from), (Class::Constant, From::Nothing));
}
