//! Random numbers that are the same for the same seed: `SplitMix64` (Steele et al. 2014).

/// The next of 2^64.
pub fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The next in [0, 1).
pub fn unit(state: &mut u64) -> f64 {
    (next(state) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    /// Of the authors' program with the seed 1234567.
    #[test]
    fn the_published_numbers() {
        let mut state = 1_234_567;
        assert_eq!(super::next(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(super::next(&mut state), 3_203_168_211_198_807_973);
        assert!((0.0..1.0).contains(&super::unit(&mut state)));
    }
}
