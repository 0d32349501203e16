//! One hash for names and checksums that stay the same on every machine and in every version.

/// FNV-1a, 64 bit, of all `parts` in a row (Fowler, Noll, Vo; offset basis and prime of the authors'
/// reference). For accidents, not against an adversary.
pub fn fnv1a64(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|p| p.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::fnv1a64;

    /// The authors' own test vectors.
    #[test]
    fn the_published_vectors() {
        assert_eq!(fnv1a64(&[]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64(&[b"a"]), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a64(&[b"foobar"]), 0x8594_4171_f739_67e8);
        assert_eq!(fnv1a64(&[b"foo", b"", b"bar"]), fnv1a64(&[b"foobar"]));
    }
}
