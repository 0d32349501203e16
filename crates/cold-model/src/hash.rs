//! One hash for names and checksums that stay the same on every machine and in every version, and how digests and
//! build-ids are written.

/// FNV-1a, 64 bit, of all `parts` in a row (Fowler, Noll, Vo; offset basis and prime of the authors'
/// reference). For accidents, not against an adversary.
pub fn fnv1a64(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|p| p.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// Bytes in hexadecimal, two lower-case digits each, the first byte first.
pub fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |n: u8| char::from_digit(u32::from(n), 16).unwrap_or_default();
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::{fnv1a64, hexadecimal};

    #[test]
    fn bytes_have_two_digits_each() {
        assert_eq!(hexadecimal(&[0, 0x0a, 0xff]), "000aff");
        assert_eq!(hexadecimal(&[]), "");
    }

    /// The authors' own test vectors.
    #[test]
    fn the_published_vectors() {
        assert_eq!(fnv1a64(&[]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64(&[b"a"]), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a64(&[b"foobar"]), 0x8594_4171_f739_67e8);
        assert_eq!(fnv1a64(&[b"foo", b"", b"bar"]), fnv1a64(&[b"foobar"]));
    }
}
