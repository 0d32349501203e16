//! Is one way of starting faster than another? A test on pairs that may be looked at after every pair.
//!
//! For each pair d = ln(a/b). When both ways are the same, the two of a pair are exchangeable, so d is symmetric
//! about 0 whatever the noise, and for every λ the product of 1 + tanh(λ·(m − d)) over the pairs is a
//! martingale that begins at 1 (for m = 0; for a true centre above m it falls). By Ville's inequality it
//! ever exceeds 40 with a probability of at most 1/40, however often and whenever one looks: the mean over a few
//! λ (for effects from 0.3% to 30%) keeps that. So stopping as soon as it is reached is no cheating, as
//! it would be with a test for a fixed number of pairs. The interval is the set of centres that neither side
//! rejects; it holds the true one with 95% at all times at once. The least number of pairs that can
//! decide is 6, as with Wilcoxon's test.

use crate::compare::{Comparison, Design, walsh};
use crate::interval::{Interval, LEVEL};
use crate::quantile_sorted;

/// Inverse scales of effects that are looked for.
const LAMBDAS: [f64; 5] = [3.0, 10.0, 30.0, 100.0, 300.0];
/// One side of 95%.
const REJECTED: f64 = 40.0;
/// Ratios beyond e^±FAR are not told apart.
const FAR: f64 = 5.0;

/// Compares pairs (a, b) of times; values that are not positive are left out. None without pairs. An end that the
/// pairs do not bound is 0 or infinite.
pub fn sequential(pairs: &[(f64, f64)]) -> Option<Comparison> {
    let d: Vec<f64> = pairs.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0).map(|(a, b)| (a / b).ln()).collect();
    let ratio = quantile_sorted(&walsh(&d), 0.5)?.exp();
    let negated: Vec<f64> = d.iter().map(|x| -x).collect();
    let interval = Interval { low: (-upper(&negated)).exp(), high: upper(&d).exp(), level: LEVEL };
    Some(Comparison { ratio, interval, n: d.len(), design: Design::Sequential })
}

/// The least centre that the pairs reject from above.
fn upper(d: &[f64]) -> f64 {
    if capital(d, FAR) < REJECTED {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (-FAR, FAR);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if capital(d, middle) >= REJECTED { high = middle } else { low = middle }
    }
    high
}

/// The mean over λ of the products, for "the centre is at least m".
fn capital(d: &[f64], m: f64) -> f64 {
    let one = |lambda: f64| d.iter().map(|x| (lambda * (m - x)).tanh().ln_1p()).sum::<f64>().exp();
    LAMBDAS.iter().map(|l| one(*l)).sum::<f64>() / LAMBDAS.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::held_up;
    use crate::{Pcg, Verdict, median};

    #[test]
    fn six_equal_pairs_decide_and_five_do_not() {
        for faster in [0.9, 0.5, 0.1] {
            let six = sequential(&[(faster, 1.0); 6]).expect("pairs");
            assert!(six.verdict(0.0) == Verdict::Faster && six.interval.low.is_finite(), "{six:?}");
            assert!((six.ratio - faster).abs() < 1e-9);
            let five = sequential(&[(faster, 1.0); 5]).expect("pairs").verdict(0.0);
            assert!(matches!(five, Verdict::Inconclusive { .. }), "{five:?}");
        }
        assert_eq!(sequential(&[(1.25, 1.0); 6]).expect("pairs").verdict(0.0), Verdict::Slower);
        assert_eq!(sequential(&[(0.0, 1.0)]), None);
    }

    const RUNS: usize = 1000;

    #[test]
    fn identical_ways_are_rarely_called_different_however_often_one_looks() {
        // Skewed noise with outliers and a drift over the pairs; a look after each of 40 pairs.
        let mut noise = Pcg::new(5, 1);
        let (mut faster, mut slower) = (0, 0);
        for _ in 0..RUNS {
            let spread = [0.01, 0.05, 0.3][noise.below(3) as usize];
            let mut pairs = Vec::new();
            for n in 0..40 {
                let drift = 1.0 + f64::from(n) * 0.02;
                pairs.push(drift * held_up(&mut noise, spread) / (drift * held_up(&mut noise, spread)));
                let d: Vec<f64> = pairs.iter().map(|r: &f64| r.ln()).collect();
                let negated: Vec<f64> = d.iter().map(|x| -x).collect();
                // What the ends of the interval are found by.
                let (below, above) = (capital(&d, 0.0) >= REJECTED, capital(&negated, 0.0) >= REJECTED);
                if below || above {
                    let e = sequential(&pairs.iter().map(|r| (*r, 1.0)).collect::<Vec<_>>()).expect("pairs");
                    let Interval { low, high, .. } = e.interval;
                    assert_eq!((high < 1.0 + 1e-9, low > 1.0 - 1e-9), (below, above));
                    if below {
                        faster += 1;
                    } else {
                        slower += 1;
                    }
                    break;
                }
            }
        }
        assert!(faster * 100 <= RUNS * 3 && slower * 100 <= RUNS * 3, "{faster} {slower} of {RUNS}");
    }

    #[test]
    fn a_real_gain_is_found_soon() {
        let mut noise = Pcg::new(6, 1);
        let needed: Vec<f64> = (0..200)
            .map(|_| {
                let mut pairs = Vec::new();
                while pairs.len() < 100 {
                    pairs.push((0.9 * held_up(&mut noise, 0.03), held_up(&mut noise, 0.03)));
                    if sequential(&pairs).is_some_and(|e| e.interval.high < 1.0) {
                        break;
                    }
                }
                pairs.len() as f64
            })
            .collect();
        let middle = median(&needed);
        assert!(middle.is_some_and(|m| m <= 10.0), "{middle:?}");
    }
}
