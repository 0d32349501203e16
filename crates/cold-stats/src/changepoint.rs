//! Where does a series change its level? Binary segmentation with a rank statistic and a permutation test.
//!
//! A split at k is scored with the Mann–Whitney statistic between both sides, scaled so that all k are
//! comparable; the largest score is judged against those of 1,999 seeded permutations of the segment.
//! Ranks, so that a few slow runs are no change; a permutation test, so that no distribution is assumed.

use serde::Serialize;

use crate::{Pcg, median, sorted};

/// Values needed in a segment before it is searched.
pub const LEAST: usize = 8;
/// Values each side of a change must have: fewer are outliers, not a level.
const LEAST_SIDE: usize = 3;
/// A change is reported when fewer than this share of permutations score as high. Strict, since every
/// series of every report is searched.
pub const ALPHA: f64 = 0.01;
const PERMUTATIONS: u32 = 1999;

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// Index of the first value of the new level.
    pub at: usize,
    /// Median before it, back to the change before.
    pub before: f64,
    /// Median from it, up to the next change.
    pub after: f64,
    /// p-value of the permutation test: how often chance alone does as much.
    pub p: f64,
}

/// All changes in order; empty below [`LEAST`] values.
pub fn changes(values: &[f64], seed: u64) -> Vec<Change> {
    let mut found = Vec::new();
    search(values, 0, &mut Pcg::new(seed, 3), &mut found);
    found.sort_unstable_by_key(|(at, _)| *at);
    let bounds: Vec<usize> =
        std::iter::once(0).chain(found.iter().map(|(at, _)| *at)).chain([values.len()]).collect();
    found
        .iter()
        .zip(bounds.windows(3))
        .filter_map(|((at, p), w)| {
            let (before, after) = (median(&values[w[0]..w[1]])?, median(&values[w[1]..w[2]])?);
            Some(Change { at: *at, before, after, p: *p })
        })
        .collect()
}

fn search(values: &[f64], offset: usize, rng: &mut Pcg, found: &mut Vec<(usize, f64)>) {
    if values.len() < LEAST {
        return;
    }
    let mut ranks = mid_ranks(values);
    let (at, score) = best_split(&ranks);
    if score <= 0.0 {
        return;
    }
    let mut as_high = 0;
    for _ in 0..PERMUTATIONS {
        rng.shuffle(&mut ranks);
        // Equal scores must count although sums of half ranks round differently.
        if best_split(&ranks).1 >= score * (1.0 - 1e-12) {
            as_high += 1;
        }
    }
    let p = f64::from(as_high + 1) / f64::from(PERMUTATIONS + 1);
    if p < ALPHA {
        found.push((offset + at, p));
        search(&values[..at], offset, rng, found);
        search(&values[at..], offset + at, rng, found);
    }
}

/// Ranks from 1, ties share their mean rank.
fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let s = sorted(values);
    values
        .iter()
        .map(|v| {
            let below = s.partition_point(|x| x < v);
            let not_above = s.partition_point(|x| x <= v);
            f64::midpoint((below + 1) as f64, not_above as f64)
        })
        .collect()
}

/// The best split (index of the first value after it) and its score.
fn best_split(ranks: &[f64]) -> (usize, f64) {
    let n = ranks.len();
    let middle = (n + 1) as f64 / 2.0;
    let mut sum = 0.0;
    let mut best = (0, 0.0);
    for (i, r) in ranks.iter().enumerate() {
        sum += r - middle;
        let k = i + 1;
        if k >= LEAST_SIDE && n - k >= LEAST_SIDE {
            let score = sum.abs() / ((k * (n - k)) as f64).sqrt();
            if score > best.1 {
                best = (k, score);
            }
        }
    }
    best
}
