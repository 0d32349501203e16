use cold_model::Nanos;
use cold_plan::plan::{Gate, Standing};

use super::*;
use crate::default_knobs;
use crate::sample::flash;
use cold_plan::sample::Noise;

/// Runs a tuning against a made-up machine.
fn run(limits: Limits, space: Space, seed: u64, time: impl Fn(Arm, &mut Noise) -> f64) -> TuningVerdict {
    let mut noise = Noise::new(seed);
    let mut tuner = Tuner::new(default_knobs(Some(&flash())), space, Limits { seed, ..limits }, None);
    while let Some(w) = tuner.next() {
        assert!(!w.why.is_empty());
        let t = time(w.arm, &mut noise);
        // One start in twenty is disturbed.
        let void = noise.unit() < 0.05;
        tuner.record(if void { Made::Void } else { Made::Ready((t * 1e9) as u64) });
    }
    tuner.verdict(42, &[9, 7, 5, 7])
}

#[test]
fn a_plan_that_does_nothing_is_rarely_called_proven() {
    const RUNS: u64 = 400;
    let mut proven = 0;
    for seed in 0..RUNS {
        let v = run(Limits::default(), Space::new(Some(&flash()), 3), seed, |_, n| n.time(0.05));
        assert!(v.starts <= Limits::default().starts + 60);
        match v.standing {
            Standing::Proven => proven += 1,
            Standing::Off(why) => assert!(why.contains("pairs)"), "{why}"),
            Standing::Untried => assert!(v.trial.is_none_or(|t| t.pairs < 20)),
        }
    }
    assert!(proven * 100 <= RUNS * 5, "{proven} of {RUNS}");
}

#[test]
fn the_better_knobs_are_found_and_proven() {
    // Waiting for the prefix costs, small gaps cost, many threads help a little.
    let time = |arm: Arm, noise: &mut Noise| {
        let base = match arm {
            Arm::Plain => 1.0,
            Arm::With(k) => {
                let gate = match k.gate {
                    Gate::None => 0.0,
                    Gate::Issued => 0.1,
                    Gate::Arrived => 0.2,
                };
                0.5 + gate + if k.metadata { 0.0 } else { 0.1 }
            }
        };
        base * noise.time(0.02)
    };
    let mut found = 0;
    for seed in 0..50 {
        let v = run(Limits::default(), Space::new(Some(&flash()), 3), seed, time);
        assert_eq!(v.standing, Standing::Proven, "{v:?}");
        let trial = v.trial.expect("proof");
        assert!(trial.high < 0.99 && trial.low < trial.ratio && trial.ratio < trial.high);
        assert!((trial.at, trial.warm_ns) == (42, Some(7)) && trial.prefetched_ns < trial.plain_ns);
        found += u32::from(v.knobs.gate == Gate::None && v.knobs.metadata);
    }
    assert!(found >= 45, "{found} of 50");
}

#[test]
fn a_harmful_plan_is_switched_off_with_its_figures() {
    let time = |arm: Arm, noise: &mut Noise| noise.time(0.02) * if arm == Arm::Plain { 1.0 } else { 1.2 };
    let v = run(Limits::default(), Space::none(), 3, time);
    let Standing::Off(why) = v.standing else { panic!("{:?}", v.standing) };
    assert!(why.starts_with("starts with the plan are slower: 1."), "{why}");
    assert!(v.starts < 40, "{}", v.starts);
}

#[test]
fn what_was_found_goes_into_the_plan_with_the_bound_that_follows() {
    let mut plan = crate::merge(None, &crate::sample::key(), &crate::sample::start(1, &[(0, 0, 8, 0)]), 1);
    plan.device = Some(flash());
    let v = run(Limits::default(), Space::none(), 3, |arm, n| {
        n.time(0.01) * if arm == Arm::Plain { 1.0 } else { 0.5 }
    });
    let better = v.applied_to(&plan, Ground { extents: &|_| None, disk: &|_| None }, None);
    assert_eq!((&better.standing, better.trial, better.knobs), (&Standing::Proven, v.trial, v.knobs));
    assert_eq!(better.bound.expect("a device").cpu_ns, Some(7), "the warm starts of the trial");
    assert!(better.reads().next().is_some() && better.needs_the_same(&plan));
}

#[test]
fn a_tuning_without_proof_or_broken_off_decides_nothing() {
    let limits = Limits { proof_pairs: 0, ..Limits::default() };
    let v = run(limits, Space::new(None, 1), 1, |_, n| n.time(0.02));
    assert_eq!((v.standing, v.trial), (Standing::Untried, None));
    assert!(!v.tried.is_empty());
    // All void: it ends all the same.
    let mut tuner =
        Tuner::new(default_knobs(None), Space::none(), Limits { starts: 30, ..Limits::default() }, None);
    let mut made = 0;
    while tuner.next().is_some() {
        tuner.record(Made::Void);
        made += 1;
    }
    assert_eq!((made, tuner.verdict(1, &[]).standing), (30, Standing::Untried));
}

/// A search among gates with a model that gives these seconds for none, issued and arrived, on a machine where all are
/// alike.
fn among_gates(foretold: [Option<f64>; 3]) -> (Vec<Gate>, TuningVerdict) {
    let begin = Knobs { gate: Gate::Issued, ..default_knobs(Some(&flash())) };
    let all = [Gate::None, Gate::Issued, Gate::Arrived];
    let time = move |knobs: &Knobs| {
        let same = Knobs { gate: begin.gate, ..*knobs } == begin;
        let seconds = foretold[all.iter().position(|gate| *gate == knobs.gate)?]?;
        Some(Nanos::from_secs(if same { seconds } else { 9.0 }))
    };
    let forecast = Forecast::by(time, Some(Nanos::from_secs(2.0)));
    let limits = Limits { proof_pairs: 0, margin: 0.5, ..Limits::default() };
    let mut tuner = Tuner::new(begin, Space::new(Some(&flash()), 3), limits, Some(forecast));
    let mut tried = Vec::new();
    while let Some(wanted) = tuner.next() {
        if let Arm::With(knobs) = wanted.arm
            && wanted.why.starts_with("candidate")
            && !tried.contains(&knobs.gate)
        {
            tried.push(knobs.gate);
        }
        tuner.record(Made::Ready(1_000_000_000));
    }
    (tried, tuner.verdict(1, &[]))
}

#[test]
fn what_the_model_calls_clearly_worse_is_not_tried_and_the_most_hopeful_is_tried_first() {
    let (tried, verdict) = among_gates([Some(1.2), Some(1.0), Some(0.9)]);
    // None comes 20 % later by the model: beyond its error. All other coordinates are at 9 seconds.
    assert_eq!(tried, [Gate::Arrived]);
    assert_eq!((verdict.knobs.gate, verdict.foretold), (Gate::Issued, Some(0.5)));
    let told: Vec<_> = verdict.tried.iter().map(|t| (t.knobs.gate, t.pairs, t.ratio, t.foretold)).collect();
    assert_eq!(told[0], (Gate::Arrived, 3, Some(1.0), Some(0.9)));
    assert_eq!(told[1], (Gate::None, 0, None, Some(1.2)));
    assert!(told[2..].iter().all(|t| (t.1, t.2, t.3) == (0, None, Some(9.0))));
    assert!(verdict.tried.iter().all(|t| !t.taken));
    // Within the error only starts decide, in the model's order; ties in the usual one.
    assert_eq!(among_gates([Some(1.14), Some(1.0), Some(1.1)]).0, [Gate::Arrived, Gate::None]);
    assert_eq!(among_gates([Some(1.0), Some(1.0), Some(1.0)]).0, [Gate::None, Gate::Arrived]);
    // What the model cannot say is measured; of the present setting it has to know, too.
    assert_eq!(among_gates([None, Some(1.0), Some(2.0)]).0, [Gate::None]);
    assert_eq!(among_gates([Some(5.0), None, Some(2.0)]).0[..2], [Gate::Arrived, Gate::None]);
}
