use cold_stats::Pcg;

use super::*;

/// A series of `n` starts: `cost(i)` in µs with 8% noise, one start in 20 much slower, and slow drift of
/// the machine that the control program shares.
fn made(n: usize, seed: u64, cost: impl Fn(f64) -> f64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Pcg::new(seed, 1);
    let phase = rng.unit() * 6.0;
    let series: Vec<(f64, f64)> = (0..n)
        .map(|i| {
            let drift = 1.0 + 0.15 * (phase + i as f64 / 300.0).sin();
            let mut noisy = |v: f64| {
                let slow = if rng.below(20) == 0 { 1.0 + 2.0 * rng.unit() } else { 1.0 };
                v * drift * slow * (1.0 + 0.08 * rng.normal()).max(0.5)
            };
            (noisy(cost(i as f64)), noisy(300.0))
        })
        .collect();
    series.into_iter().unzip()
}

fn judged(n: usize, seed: u64, cost: impl Fn(f64) -> f64) -> Growth {
    let (values, control) = made(n, seed, cost);
    judge_times(&values, &control).expect("long enough")
}

fn right(want: Class, cost: impl Fn(f64) -> f64 + Copy) -> usize {
    (0..100).filter(|seed| judged(1000, *seed, cost).class == want).count()
}

#[test]
fn the_class_of_noisy_times_is_found() {
    for (want, got) in [
        (Class::Constant, right(Class::Constant, |_| 500.0)),
        (Class::Logarithmic, right(Class::Logarithmic, |i| 300.0 + 100.0 * (i + 1.0).ln())),
        (Class::Linear, right(Class::Linear, |i| 500.0 + 0.5 * i)),
        (Class::Quadratic, right(Class::Quadratic, |i| 500.0 + 0.002 * i * i)),
        (Class::Step, right(Class::Step, |i| if i < 600.0 { 500.0 } else { 700.0 })),
    ] {
        assert!(got >= 97, "{want:?}: {got} of 100");
    }
}

#[test]
fn a_constant_cost_under_drift_is_never_called_growing() {
    let growing = (0..400).filter(|s| judged(1000, 1000 + s, |_| 500.0).grows());
    assert_eq!(growing.count(), 0);
}

#[test]
fn a_cost_that_falls_does_not_grow() {
    let g = judged(1000, 7, |i| 900.0 - 0.4 * i);
    assert_eq!(g.class, Class::Constant);
}

#[test]
fn counts_are_exact_and_so_are_their_fits() {
    let one_more_each: Vec<f64> = (0..200).map(|i| 40.0 + f64::from(i)).collect();
    let g = judge(&one_more_each, ValueKind::Exact).expect("long");
    assert_eq!(g.class, Class::Linear);
    assert!((g.fit.coefficients[1] - 1.0).abs() < 1e-9 && (g.slope - 1.0).abs() < 1e-9, "{g:?}");
    assert!((g.at(29_999.0) - 30_039.0).abs() < 1e-6);
    let sum: f64 = (0..30_000).map(|i| 40.0 + f64::from(i)).sum();
    assert!((g.total(30_000) / sum - 1.0).abs() < 1e-4);
    // The total of a + i is n·a + n²/2: at n = 200 its local exponent is n(a + n)/(n·a + n²/2) = 1.71.
    assert!((g.exponent - 1.71).abs() < 0.02, "{}", g.exponent);
    let constant = judge(&[41.0; 200], ValueKind::Exact).expect("long");
    assert_eq!((constant.class, constant.exponent), (Class::Constant, 1.0));
    let square: Vec<f64> = (0..200).map(|i| 10.0 + f64::from(i * i)).collect();
    assert_eq!(judge(&square, ValueKind::Exact).expect("long").class, Class::Quadratic);
    let doubling: Vec<f64> = (0..2000).map(|i| 5.0 + (f64::from(i) + 1.0).log2().floor()).collect();
    assert_eq!(judge(&doubling, ValueKind::Exact).expect("long").class, Class::Logarithmic);
    // One more in the last start only: below what a step needs.
    let mut blip = vec![41.0; 200];
    blip[199] = 99.0;
    assert_eq!(judge(&blip, ValueKind::Exact).expect("long").class, Class::Constant);
}

#[test]
fn too_short_or_not_numbers_is_no_verdict() {
    assert!(judge(&[1.0; 99], ValueKind::Varying).is_none());
    assert!(judge(&[f64::NAN; 200], ValueKind::Varying).is_none());
    assert!(judge_points(&[(0.0, 1.0); 9], 9, ValueKind::Exact).is_none());
}

#[test]
fn sparse_points_of_counts_suffice() {
    let points: Vec<(f64, f64)> =
        (0..12).map(|i| (f64::from(i) * 80.0, 12.0 + f64::from(i) * 80.0)).collect();
    let g = judge_points(&points, 1000, ValueKind::Exact).expect("enough");
    assert_eq!(g.class, Class::Linear);
    assert!((g.slope - 1.0).abs() < 1e-9);
}

/// Observed starts as they lie: groups of four among 2000.
fn clusters(count: impl Fn(f64) -> f64) -> Growth {
    let points: Vec<(f64, f64)> = (0..5)
        .flat_map(|g| (0..4).map(move |i| f64::from(g * 500 + i + g * 4)))
        .map(|x| (x, count(x)))
        .collect();
    judge_points(&points, 2020, ValueKind::Exact).expect("enough")
}

#[test]
fn clustered_points_are_judged_by_their_places() {
    let line = clusters(|i| 12.0 + i);
    assert_eq!(line.class, Class::Linear);
    assert!((line.slope - 1.0).abs() < 1e-9, "{}", line.slope);
    let tenth = clusters(|i| 40.0 + (i / 10.0).floor());
    assert_eq!(tenth.class, Class::Linear);
    assert!((tenth.slope - 0.1).abs() < 0.01, "{}", tenth.slope);
    assert_eq!(clusters(|_| 41.0).class, Class::Constant);
    assert_eq!(clusters(|i| 41.0 + (i % 2.0)).class, Class::Constant, "a lookup more or less by chance");
    assert_eq!(clusters(|i| 41.0 + (i * i / 4.0).floor()).class, Class::Quadratic);
    for at in [100.0, 900.0, 1300.0, 1800.0] {
        assert_eq!(clusters(|i| if i < at { 41.0 } else { 61.0 }).class, Class::Step, "at {at}");
    }
    // Galloping: doubles until a name is free, then halves the distance.
    let gallop = clusters(|i| 30.0 + 2.0 * (i + 1.0).log2().floor());
    assert_eq!(gallop.class, Class::Logarithmic);
}

#[test]
fn strong_drift_that_the_control_shares_only_about_is_no_growth() {
    // Load that slows the control by 60% and the program by 70%.
    let ramp = |i: usize, by: f64| 1.0 + by * i as f64 / 1000.0;
    let mut rng = Pcg::new(5, 1);
    let mut noisy = |v: f64| v * (1.0 + 0.05 * rng.normal());
    let control: Vec<f64> = (0..1000).map(|i| noisy(300.0 * ramp(i, 0.6))).collect();
    let values: Vec<f64> = (0..1000).map(|i| noisy(500.0 * ramp(i, 0.7))).collect();
    assert!((0.3..0.6).contains(&drift(&control)), "{}", drift(&control));
    assert_eq!(judge_times(&values, &control).expect("long").class, Class::Constant);
}
