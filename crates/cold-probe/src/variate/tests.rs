use super::*;

fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance.sqrt())
}

#[test]
fn the_old_variate_is_wider_than_stated_and_the_true_one_is_not() {
    const N: usize = 400_000;
    for (variate, sd, most) in [(Variate::Nt, (14.0_f64 / 12.0).sqrt(), 7.0), (Variate::True, 1.0, 6.7)] {
        let mut rng = Pcg::new(42, 0);
        let values: Vec<f64> = (0..N).map(|_| variate.standard(&mut rng)).collect();
        let (mean, found) = moments(&values);
        // Four standard errors of the mean and of the deviation.
        assert!(mean.abs() < 4.0 * sd / (N as f64).sqrt(), "{variate:?}: mean {mean}");
        assert!(
            (found / sd - 1.0).abs() < 4.0 / (2.0 * N as f64).sqrt(),
            "{variate:?}: sd {found}, not {sd}"
        );
        assert!(values.iter().all(|v| v.abs() <= most), "{variate:?}: beyond {most}");
        // Kurtosis: 3 for the normal distribution; 3 - 1.2/14 for a sum of 14 uniform numbers.
        let kurtosis = values.iter().map(|v| ((v - mean) / found).powi(4)).sum::<f64>() / N as f64;
        let expected = if variate == Variate::Nt { 3.0 - 1.2 / 14.0 } else { 3.0 };
        assert!((kurtosis - expected).abs() < 0.03, "{variate:?}: kurtosis {kurtosis}, not {expected}");
    }
    assert!(((14.0_f64 / 12.0).sqrt() - 1.080).abs() < 0.0005);
}

#[test]
fn folding_is_that_of_the_book() {
    assert!((fold(205.0, 100.0) - 5.0).abs() < 1e-9);
    assert_eq!((fold(105.0, 100.0), fold(-7.0, 100.0), fold(50.0, 100.0)), (95.0, 7.0, 50.0));
    assert_eq!((fold(f64::NAN, 100.0), fold(3.0, 0.0)), (0.0, 0.0));
    for v in [-1e9, 1e9, 301.0, -250.0] {
        assert!((0.0..=100.0).contains(&fold(v, 100.0)), "{v}");
    }
}

#[test]
fn the_stream_of_a_seed_never_changes() {
    let mut rng = Pcg::new(1993, 1);
    let mut nt = Seeker::new(Seek::middle(1024), Variate::Nt, 1024);
    let found: Vec<u64> = (0..8).map(|_| nt.seek(&mut rng)).collect();
    assert_eq!(found, GOLDEN_NT);
    let mut normal = Seeker::new(Seek::span(2560, 1024), Variate::True, 2560);
    let found: Vec<u64> = (0..8).map(|_| normal.seek(&mut rng)).collect();
    assert_eq!(found, GOLDEN_TRUE);
    let mut zipf = Seeker::new(Seek::Zipf { theta: 0.9 }, Variate::True, 1000);
    let found: Vec<u64> = (0..8).map(|_| zipf.seek(&mut rng)).collect();
    assert_eq!(found, GOLDEN_ZIPF);
}

const GOLDEN_NT: [u64; 8] = [444, 844, 748, 547, 283, 237, 389, 575];
const GOLDEN_TRUE: [u64; 8] = [1116, 1187, 1010, 1119, 1534, 1204, 1563, 1169];
const GOLDEN_ZIPF: [u64; 8] = [147, 486, 105, 5, 0, 222, 526, 0];

#[test]
fn normal_places_lie_together_in_the_file() {
    // 2560 records, deviation 10% of them: what fio spreads to 741 records stays at 256 here.
    let mut rng = Pcg::new(7, 0);
    let mut seeker = Seeker::new(Seek::Normal(Normal { mean: 1280.0, sd: 256.0 }), Variate::True, 2560);
    let places: Vec<f64> = (0..100_000).map(|_| seeker.seek(&mut rng) as f64).collect();
    let (mean, sd) = moments(&places);
    assert!((mean - 1280.0).abs() < 5.0 && (sd - 256.0).abs() < 5.0, "{mean} {sd}");
    let within = places.iter().filter(|p| (**p - 1280.0).abs() <= 256.0).count() as f64 / 1e5;
    assert!((within - 0.683).abs() < 0.01, "{within} within one deviation");
    // Spread alike over the file they would have a deviation of 739.
    let mut uniform = Seeker::new(Seek::Uniform { from: 0, to: 2560 }, Variate::True, 2560);
    let (_, wide) = moments(&(0..100_000).map(|_| uniform.seek(&mut rng) as f64).collect::<Vec<_>>());
    assert!((wide - 739.0).abs() < 10.0, "{wide}");
}

#[test]
fn zipf_places_follow_their_law_in_order() {
    let (mut rng, n) = (Pcg::new(3, 0), 1000_u64);
    let mut seeker = Seeker::new(Seek::Zipf { theta: 0.8 }, Variate::True, n);
    let mut counts = vec![0_u64; n as usize];
    for _ in 0..200_000 {
        counts[seeker.seek(&mut rng) as usize] += 1;
    }
    let zeta: f64 = (1..=n).map(|i| (i as f64).powf(-0.8)).sum();
    for rank in [0_usize, 1] {
        let (found, expected) = (counts[rank] as f64 / 2e5, ((rank + 1) as f64).powf(-0.8) / zeta);
        assert!((found / expected - 1.0).abs() < 0.1, "rank {rank}: {found} not {expected}");
    }
    let (first, last) = (counts[..100].iter().sum::<u64>(), counts[900..].iter().sum::<u64>());
    assert!(first > 5 * last && last > 0, "{first} {last}");
}

#[test]
fn sequences_wrap_and_uniform_stays_inside() {
    let mut rng = Pcg::new(1, 0);
    let mut s = Seeker::new(Seek::Sequential, Variate::Nt, 3);
    let mut found = Vec::new();
    for _ in 0..5 {
        let at = s.seek(&mut rng);
        found.push(at);
        s.advance(at);
    }
    assert_eq!(found, [0, 1, 2, 0, 1]);
    let mut u = Seeker::new(Seek::Uniform { from: 5, to: 9 }, Variate::Nt, 100);
    assert!((0..1000).all(|_| (5..9).contains(&u.seek(&mut rng))));
    let mut tiny = Seeker::new(Seek::Uniform { from: 0, to: 9 }, Variate::Nt, 0);
    assert_eq!(tiny.seek(&mut rng), 0);
}

#[test]
fn folding_is_a_wave_between_the_ends() {
    // Twice the length is a whole wave: up, then down again.
    let wave = |v: f64, max: f64| {
        let at = v.rem_euclid(2.0 * max);
        if at > max { 2.0 * max - at } else { at }
    };
    for max in [1.0, 7.0, 1024.0] {
        for n in -60..=60 {
            let v = f64::from(n) * max / 10.0;
            assert!((fold(v, max) - wave(v, max)).abs() < 1e-9 * max, "{v} in {max}");
        }
    }
}

#[test]
fn no_place_lies_beyond_the_file_whatever_is_asked_for() {
    let mut rng = Pcg::new(11, 0);
    let far = |mean, sd| Seek::Normal(Normal { mean, sd });
    let seeks = [
        far(f64::MAX, 1.0),
        far(-1e18, 1e17),
        far(f64::NAN, 0.0),
        far(0.0, f64::INFINITY),
        Seek::Uniform { from: 90, to: 200 },
        Seek::Uniform { from: 500, to: 600 },
        Seek::Uniform { from: 7, to: 3 },
        Seek::Zipf { theta: 0.0 },
        Seek::Zipf { theta: 1.0 },
        Seek::Zipf { theta: f64::INFINITY },
    ];
    for records in [0, 1, 2, 100] {
        for seek in seeks {
            for variate in [Variate::Nt, Variate::True] {
                let mut seeker = Seeker::new(seek, variate, records);
                let beyond = (0..200).map(|_| seeker.seek(&mut rng)).find(|at| *at >= records.max(1));
                assert_eq!(beyond, None, "{seek:?} of {records}");
            }
        }
    }
}

#[test]
fn a_quantity_that_does_not_vary_draws_no_number() {
    let (mut used, mut unused) = (Pcg::new(5, 0), Pcg::new(5, 0));
    let drawn = Normal::fixed(-3.0).draw_positive(Variate::True, &mut used);
    assert!((drawn - 3.0).abs() < 1e-9, "{drawn}");
    assert_eq!(used.next_u64(), unused.next_u64());
    let narrow = Normal { mean: 0.0, sd: 1.0 };
    assert!(!narrow.is_zero() && (0..100).all(|_| narrow.draw_positive(Variate::Nt, &mut used) >= 0.0));
}

#[test]
fn each_record_of_a_range_is_drawn_and_the_end_is_not() {
    let mut rng = Pcg::new(2, 0);
    let mut seeker = Seeker::new(Seek::Uniform { from: 3, to: 6 }, Variate::True, 6);
    let found: std::collections::BTreeSet<u64> = (0..200).map(|_| seeker.seek(&mut rng)).collect();
    assert_eq!(found, [3, 4, 5].into());
    // After a seek the next read goes on from there, over the end to the first.
    seeker.advance(5);
    assert_eq!(seeker.here(), 0);
    seeker.advance(2);
    assert_eq!(seeker.here(), 3);
}
