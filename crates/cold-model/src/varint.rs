//! Whole numbers in as few bytes as they need (LEB128): seven bits a byte, the lowest first.

/// Appends a number: at most ten bytes.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number from the front; `None` where the bytes end in it, or it has more than 64 bits.
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        value |= bits << shift;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Numbers of either sign as such numbers: 0, -1, 1, -2 become 0, 1, 2, 3.
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The number that [`zigzag`] makes this of.
pub const fn of_zigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_bits_a_byte() {
        let bytes = |value| {
            let mut out = Vec::new();
            put(&mut out, value);
            out
        };
        assert_eq!((bytes(0), bytes(0x7f), bytes(0x80)), (vec![0], vec![0x7f], vec![0x80, 1]));
        // The example of Wikipedia's article on LEB128.
        assert_eq!((bytes(624_485), bytes(u64::MAX).len()), (vec![0xe5, 0x8e, 0x26], 10));
        for value in [0, 1, 0x7f, 0x80, 624_485, u64::MAX >> 1, u64::MAX] {
            let all = [bytes(value), vec![9]].concat();
            let mut left = all.as_slice();
            assert_eq!(take(&mut left), Some(value));
            assert_eq!(left, [9], "what is behind {value} is left");
            assert_eq!(take(&mut &all[..all.len() - 2]), None, "{value} is cut short");
        }
        let too_large = [&[0xff; 9][..], &[2]].concat();
        assert_eq!(take(&mut too_large.as_slice()), None);
    }

    #[test]
    fn small_numbers_of_either_sign_stay_small() {
        assert_eq!([0, -1, 1, -2, 2].map(zigzag), [0, 1, 2, 3, 4]);
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(of_zigzag(zigzag(value)), value);
        }
    }
}
