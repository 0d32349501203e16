//! Whole numbers in as few bytes as they need (LEB128): seven bits a byte, the lowest first.

/// Appends a number: at most ten bytes.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
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
    }
}
