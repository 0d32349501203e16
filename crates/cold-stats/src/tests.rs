use crate::compare::{Comparison, Undecided, Verdict, independent, paired};
use crate::{
    Interval, Pcg, changepoint, compare, describe, interval, mad, median, median_u64, modes, quantile, sd,
    trend,
};

/// A start time about 1: log-normal, now and then one that was held up.
pub(crate) fn held_up(rng: &mut Pcg, spread: f64) -> f64 {
    let held_up = if rng.unit() < 0.05 { 1.0 + rng.unit() } else { 1.0 };
    (spread * rng.normal()).exp() * held_up
}

#[test]
fn quantiles_are_type_7() {
    let v = [4.0, 1.0, 3.0, 2.0];
    assert_eq!(median(&v), Some(2.5));
    assert_eq!(quantile(&v, 0.25), Some(1.75));
    assert_eq!(quantile(&v, 0.95), Some(3.849_999_999_999_999_6));
    assert_eq!(quantile(&v, 1.0), Some(4.0));
    assert_eq!(median(&[]), None);
    // By selection, as every draw of a bootstrap is described: the same to the last bit.
    for n in 1..40 {
        let v: Vec<f64> = (0..n).map(|i| 1.0 / f64::from((i * 7) % 11 + 1)).collect();
        assert_eq!(crate::median_of(&mut v.clone()), median(&v), "{n}");
    }
    assert_eq!(median_u64([7, 1, 4, 3]), Some(3), "no time is invented: 3.5 is rounded down");
    assert_eq!(median_u64([]), None, "what was never measured is unknown and not 0");
    assert_eq!(mad(&[1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]), Some(1.0));
    assert_eq!(sd(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), Some((32.0_f64 / 7.0).sqrt()));
    assert_eq!(sd(&[1.0]), None);
}

#[test]
fn the_generator_is_pcg32_and_its_stream_is_pinned() {
    // The first numbers of O'Neill's pcg32-demo with seed 42 and sequence 54.
    let mut rng = Pcg::new(42, 54);
    let first: Vec<u32> = (0..6).map(|_| rng.next_u32()).collect();
    assert_eq!(first, [0xa15c_02b7, 0x7b47_f409, 0xba1d_3330, 0x83d2_f293, 0xbfa4_784b, 0xcbed_606e]);
    let mut again = Pcg::new(42, 54);
    assert_eq!(again.next_u64(), 0xa15c_02b7_7b47_f409);
    let mut counts = [0_u32; 7];
    for _ in 0..70_000 {
        counts[rng.below(7) as usize] += 1;
    }
    assert!(counts.iter().all(|c| (9_500..10_500).contains(c)), "{counts:?}");
}

#[test]
fn order_statistics_match_the_tables() {
    // Conover, Practical Nonparametric Statistics: largest k with 2·P(B(n, ½) ≤ k) ≤ 0.05.
    for (n, cut) in
        [(5, None), (6, Some(0)), (8, Some(0)), (9, Some(1)), (10, Some(1)), (20, Some(5)), (50, Some(17))]
    {
        assert_eq!(interval::order_statistic_cut(n), cut, "n = {n}");
    }
    assert!(interval::order_statistic_cut(2000).is_some());
}

#[test]
fn few_values_give_their_range_with_the_level_it_reaches() {
    assert_eq!(interval::of_median(&[1.0], 1), None);
    let i = interval::of_median(&[3.0, 1.0, 2.0], 1).unwrap();
    assert_eq!((i.low, i.high, i.level), (1.0, 3.0, 0.75));
    assert!(!i.is_full());
    assert_eq!(i.level_shown(), "75.0%");
    let full = interval::of_median(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1).unwrap();
    assert_eq!(full.level_shown(), "95%");
    assert!(interval::of_median(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 1).unwrap().is_full());
}

#[test]
fn precision_is_known_once_the_interval_is() {
    let of = |v: &[f64]| describe(v, 1).unwrap().precision();
    assert_eq!(of(&[98.0, 99.0, 100.0, 101.0, 102.0]), None);
    let six = of(&[98.0, 99.0, 100.0, 100.0, 101.0, 102.0]).unwrap();
    assert!((six - 0.02).abs() < 1e-9, "{six}");
}

#[test]
fn the_median_interval_covers_the_median_in_95_of_100_series() {
    let mut rng = Pcg::new(7, 7);
    for n in [6_usize, 11, 20] {
        let covered = (0..300)
            .filter(|_| {
                let v: Vec<f64> = (0..n).map(|_| rng.normal().exp()).collect();
                let i = interval::of_median(&v, 3).unwrap();
                i.low <= 1.0 && 1.0 <= i.high
            })
            .count();
        assert!(covered >= 280, "n = {n}: {covered} of 300");
    }
}

/// Start times in seconds: lognormal with a common disturbance per round, or two modes.
fn noisy(rng: &mut Pcg, bimodal: bool, sd: f64) -> f64 {
    let mode = if bimodal && rng.unit() < 0.3 { 1.6 } else { 1.0 };
    mode * (sd * rng.normal()).exp()
}

#[test]
fn a_command_against_itself_is_called_different_in_at_most_5_percent() {
    let mut rng = Pcg::new(1, 1);
    for bimodal in [false, true] {
        for n in [6, 10, 20] {
            let (mut wrong_paired, mut wrong_independent) = (0, 0);
            for _ in 0..2000 {
                let pairs: Vec<(f64, f64)> =
                    (0..n).map(|_| (noisy(&mut rng, bimodal, 0.1), noisy(&mut rng, bimodal, 0.1))).collect();
                let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
                let different = |c: Option<Comparison>| {
                    matches!(c.unwrap().verdict(0.0), Verdict::Faster | Verdict::Slower)
                };
                wrong_paired += usize::from(different(paired(&pairs)));
                wrong_independent += usize::from(different(independent(&a, &b)));
            }
            // 5% of 2000 and three standard deviations of that count.
            assert!(wrong_paired <= 129, "paired, n = {n}, bimodal {bimodal}: {wrong_paired}");
            assert!(wrong_independent <= 129, "independent, n = {n}, bimodal {bimodal}: {wrong_independent}");
        }
    }
}

#[test]
fn five_percent_slower_is_found_in_at_least_95_percent() {
    let mut rng = Pcg::new(2, 1);
    for (n, sd) in [(10, 0.01), (10, 0.02), (20, 0.02)] {
        let found = (0..1000)
            .filter(|_| {
                let pairs: Vec<(f64, f64)> =
                    (0..n).map(|_| (1.05 * noisy(&mut rng, false, sd), noisy(&mut rng, false, sd))).collect();
                paired(&pairs).unwrap().verdict(0.0) == Verdict::Slower
            })
            .count();
        assert!(found >= 950, "n = {n}, sd {sd}: {found} of 1000");
    }
}

#[test]
fn the_signed_rank_and_mann_whitney_limits_match_the_tables() {
    // R: psignrank and pwilcox tables at 2.5% per side. n = 10: W ≤ 8; (10, 10): U ≤ 23; (5, 8): U ≤ 6.
    let pairs: Vec<(f64, f64)> = (0..10).map(|i| (f64::exp(f64::from(1 << i)), 1.0)).collect();
    let c = paired(&pairs).unwrap();
    let mut walsh: Vec<f64> = (0..10)
        .flat_map(|i| (i..10).map(move |j| f64::midpoint(f64::from(1 << i), f64::from(1 << j))))
        .collect();
    walsh.sort_by(f64::total_cmp);
    assert!((c.interval.low.ln() - walsh[8]).abs() < 1e-9);
    let check = |m: usize, n: usize, cut: usize| {
        let a: Vec<f64> = (0..m).map(|i| (0.01 * (i as f64).powi(2)).exp()).collect();
        let b: Vec<f64> = (0..n).map(|i| (0.013 * (i as f64).powi(2)).exp()).collect();
        let mut shifts: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| (x / y).ln())).collect();
        shifts.sort_by(f64::total_cmp);
        let i = independent(&a, &b).unwrap().interval;
        assert!((i.low.ln() - shifts[cut]).abs() < 1e-9, "{m}, {n}");
        assert!((i.high.ln() - shifts[m * n - 1 - cut]).abs() < 1e-9, "{m}, {n}");
    };
    check(10, 10, 23);
    check(5, 8, 6);
    check(4, 4, 0);
    assert!(!independent(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]).unwrap().interval.is_full());
}

#[test]
fn verdicts_follow_the_margin_and_say_how_many_runs_are_missing() {
    let at = |ratio: f64, half: f64| Comparison {
        ratio,
        interval: Interval { low: ratio / (1.0 + half), high: ratio * (1.0 + half), level: 0.95 },
        n: 10,
        design: compare::Design::Paired,
    };
    assert_eq!(at(1.10, 0.02).verdict(0.05), Verdict::Slower);
    assert_eq!(at(0.90, 0.02).verdict(0.05), Verdict::Faster);
    assert_eq!(at(1.00, 0.02).verdict(0.05), Verdict::Same);
    // Twice the distance to 1.05 as reach: four times the rounds.
    let d = (1.10_f64 / 1.05).ln();
    let half = (2.0 * d).exp() - 1.0;
    let Verdict::Inconclusive { why: Undecided::CrossesTheMargin, runs_needed: Some(more) } =
        at(1.10, half).verdict(0.05)
    else {
        panic!()
    };
    assert!((30..=31).contains(&more), "{more}");
    let why = Undecided::CrossesTheMargin;
    assert_eq!(at(1.05, 0.02).verdict(0.05), Verdict::Inconclusive { why, runs_needed: None });
    let few = paired(&[(2.0, 1.0), (2.1, 1.0), (2.0, 1.1)]).unwrap();
    let why = Undecided::TooFewRuns;
    assert_eq!(few.verdict(0.0), Verdict::Inconclusive { why, runs_needed: Some(3) });
    assert_eq!(paired(&[(1.0, 1.0)]), None);
}

#[test]
fn two_modes_are_found_where_outlier_tests_are_blind() {
    let m = modes::modes(&[0.10, 0.25, 0.10, 0.25, 0.10, 0.25, 0.10, 0.25, 0.10, 0.25]).unwrap();
    assert_eq!((m.fast, m.slow), (0.10, 0.25));
    assert_eq!(m.slow_runs, [1, 3, 5, 7, 9]);
    let mut rng = Pcg::new(3, 1);
    let noisy_modes: Vec<f64> =
        (0..14).map(|i| (if i % 4 == 3 { 1.6 } else { 1.0 }) * (0.03 * rng.normal()).exp()).collect();
    assert_eq!(modes::modes(&noisy_modes).unwrap().slow_runs, [3, 7, 11]);
    assert_eq!(modes::modes(&[1.0; 12]), None);
}

#[test]
fn one_mode_is_called_two_in_less_than_5_percent() {
    let mut rng = Pcg::new(4, 1);
    for n in [10, 20, 30] {
        let threshold = modes::threshold(n);
        let two = (0..1000)
            .filter(|_| {
                let v: Vec<f64> = (0..n).map(|_| (0.3 * rng.normal()).exp()).collect();
                modes::with_threshold(&v, threshold).is_some()
            })
            .count();
        assert!(two < 50, "n = {n}: {two} of 1000");
    }
}

#[test]
fn drift_is_found_and_noise_is_not() {
    let mut rng = Pcg::new(5, 1);
    let drifting: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i) + 2.0 * rng.normal()).collect();
    let t = trend::trend(&drifting).unwrap();
    assert!(t.p < 0.001 && (t.slope - 1.0).abs() < 0.3, "{t:?}");
    let wrong = (0..1000)
        .filter(|_| {
            let v: Vec<f64> = (0..12).map(|_| rng.normal()).collect();
            trend::trend(&v).unwrap().p < 0.05
        })
        .count();
    assert!(wrong <= 71, "{wrong} of 1000");
    assert!(trend::trend(&[1.0; 10]).unwrap().p > 0.99);
    assert_eq!(trend::trend(&[1.0; 7]), None);
}

#[test]
fn changes_of_level_are_found_at_their_place() {
    let mut rng = Pcg::new(6, 1);
    let mut series = |levels: &[(usize, f64)]| -> Vec<f64> {
        levels.iter().flat_map(|(n, l)| vec![*l; *n]).map(|l| l + 0.02 * rng.normal()).collect()
    };
    let one = changepoint::changes(&series(&[(10, 1.0), (10, 1.3)]), 1);
    assert_eq!(one.iter().map(|c| c.at).collect::<Vec<_>>(), [10]);
    assert!((one[0].before - 1.0).abs() < 0.05 && (one[0].after - 1.3).abs() < 0.05);
    let two = changepoint::changes(&series(&[(60, 1.0), (70, 1.3), (70, 1.1)]), 1);
    assert_eq!(two.iter().map(|c| c.at).collect::<Vec<_>>(), [60, 130]);
    let wrong = (0..300).filter(|_| !changepoint::changes(&series(&[(20, 1.0)]), 1).is_empty()).count();
    assert!(wrong <= 9, "{wrong} of 300");
    assert!(changepoint::changes(&[1.0; 30], 1).is_empty());
}
