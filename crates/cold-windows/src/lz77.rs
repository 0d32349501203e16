//! Plain LZXPRESS, an LZ77 with byte-aligned matches: [MS-XCA] sections 2.3 (compression) and 2.4 (decompression).

use crate::bytes::Input;
use crate::{Error, Result};

const DATA: &str = "LZ77 data";
/// A match copies at least this much.
const SHORTEST: usize = 3;

fn damaged(at: u64, why: &'static str) -> Error {
    Error::Damaged { what: DATA, at, why }
}

/// Expands `data` to exactly `size` bytes. Memory grows with what is written, never before.
///
/// # Errors
/// [`Error::Short`] where the input ends too early, [`Error::Damaged`] where a match reaches before the start or
/// beyond `size`.
pub fn expand(data: &[u8], size: usize) -> Result<Vec<u8>> {
    let input = Input::new(data);
    let mut out = Vec::new();
    let mut at = 0;
    let (mut flags, mut left) = (0_u32, 0_u32);
    // Two long matches share one byte of length: where the first of them put it.
    let mut shared: Option<u64> = None;
    while out.len() < size {
        if left == 0 {
            flags = input.u32(at, DATA)?;
            at += 4;
            left = 32;
        }
        left -= 1;
        if flags >> left & 1 == 0 {
            out.push(input.u8(at, DATA)?);
            at += 1;
            continue;
        }
        let pair = input.u16(at, DATA)?;
        let begins = at;
        at += 2;
        let back = usize::from(pair >> 3) + 1;
        let mut length = usize::from(pair & 7);
        if length == 7 {
            length += if let Some(half) = shared.take() {
                usize::from(input.u8(half, DATA)? >> 4)
            } else {
                shared = Some(at);
                at += 1;
                usize::from(input.u8(at - 1, DATA)? & 15)
            };
            if length == 7 + 15 {
                length = long_length(input, &mut at)?;
            }
        }
        let length = length + SHORTEST;
        if back > out.len() {
            return Err(damaged(begins, "it repeats what lies before its start"));
        }
        if length > size - out.len() {
            return Err(damaged(begins, "it expands to more than its header says"));
        }
        for from in out.len() - back..out.len() - back + length {
            out.push(out[from]);
        }
    }
    Ok(out)
}

/// The length of a match behind its half byte, less [`SHORTEST`].
fn long_length(input: Input<'_>, at: &mut u64) -> Result<usize> {
    let begins = *at;
    let byte = input.u8(*at, DATA)?;
    *at += 1;
    if byte < 255 {
        return Ok(7 + 15 + usize::from(byte));
    }
    let mut length = u32::from(input.u16(*at, DATA)?);
    *at += 2;
    if length == 0 {
        length = input.u32(*at, DATA)?;
        *at += 4;
    }
    if length < 7 + 15 {
        return Err(damaged(begins, "a long length that is short"));
    }
    Ok(length as usize)
}

/// Compresses, simply: the latest place with the same three bytes is the only one that is tried. For fixtures.
#[cfg(any(test, feature = "sample"))]
pub fn compress(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut latest = std::collections::HashMap::new();
    let (mut flags_at, mut flags, mut used) = (0, 0_u32, 32);
    let mut shared: Option<usize> = None;
    let mut at = 0;
    while at < data.len() {
        if used == 32 {
            put_flags(&mut out, flags_at, flags);
            flags_at = out.len();
            out.extend([0; 4]);
            (flags, used) = (0, 0);
        }
        used += 1;
        let key = data.get(at..at + SHORTEST);
        let before = key.and_then(|k| latest.insert(k, at)).filter(|p| at - p <= 1 << 13);
        let Some(before) = before else {
            flags <<= 1;
            out.push(data[at]);
            at += 1;
            continue;
        };
        flags = flags << 1 | 1;
        let same = data[before..].iter().zip(&data[at..]).take_while(|(a, b)| a == b).count();
        put_match(&mut out, &mut shared, at - before, same - SHORTEST);
        at += same;
    }
    // What follows the last item counts as matches ([MS-XCA] 2.3), so that a decoder sees the end.
    let rest = 32 - used;
    flags = flags.checked_shl(rest).unwrap_or(0) | 1_u32.checked_shl(rest).map_or(u32::MAX, |b| b - 1);
    put_flags(&mut out, flags_at, flags);
    out
}

#[cfg(any(test, feature = "sample"))]
fn put_flags(out: &mut [u8], at: usize, flags: u32) {
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&flags.to_le_bytes());
    }
}

#[cfg(any(test, feature = "sample"))]
fn put_match(out: &mut Vec<u8>, shared: &mut Option<usize>, back: usize, length: usize) {
    let pair = ((back - 1) as u16) << 3 | length.min(7) as u16;
    out.extend(pair.to_le_bytes());
    let Some(over) = length.checked_sub(7) else { return };
    let nibble = over.min(15) as u8;
    if let Some(half) = shared.take() {
        out[half] |= nibble << 4;
    } else {
        *shared = Some(out.len());
        out.push(nibble);
    }
    match over.checked_sub(15) {
        None => {}
        Some(byte) if byte < 255 => out.push(byte as u8),
        Some(_) => {
            out.push(255);
            if let Ok(length) = u16::try_from(length) {
                out.extend(length.to_le_bytes());
            } else {
                out.extend([0; 2]);
                out.extend((length as u32).to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        // [MS-XCA] section 3.2.
        let abc: Vec<u8> = (b'a'..=b'z').collect();
        let packed = [&[0x3f, 0, 0, 0][..], &abc].concat();
        assert_eq!(expand(&packed, 26).unwrap(), abc);
        assert_eq!(compress(&abc), packed);
        let packed = [0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0x00, 0x0f, 0xff, 0x26, 0x01];
        assert_eq!(expand(&packed, 300).unwrap(), b"abc".repeat(100));
        assert_eq!(compress(&b"abc".repeat(100)), packed);
    }

    #[test]
    fn what_reaches_out_of_the_data_is_an_error() {
        let packed = compress(&b"abc".repeat(100));
        assert!(matches!(expand(&packed, 299), Err(Error::Damaged { .. })));
        assert!(expand(&packed, 301).is_err());
        for cut in 0..packed.len() {
            assert!(expand(&packed[..cut], 300).is_err(), "cut at {cut}");
        }
        let before = [0xff, 0xff, 0xff, 0xff, 0x00, 0x00];
        assert!(matches!(expand(&before, 8), Err(Error::Damaged { .. })));
    }

    proptest::proptest! {
        #[test]
        fn comes_back_whole(runs in proptest::collection::vec((0_u8..4, 1_usize..700), 0..60), n in 0_usize..70_000) {
            let mut data: Vec<u8> = runs.iter().flat_map(|(b, n)| std::iter::repeat_n(*b, *n)).collect();
            data.extend(std::iter::repeat_n(7, n));
            assert_eq!(expand(&compress(&data), data.len()).unwrap(), data);
        }

        #[test]
        fn random_input_gives_the_size_or_an_error(data: Vec<u8>, size in 0_usize..5000) {
            if let Ok(out) = expand(&data, size) {
                assert_eq!(out.len(), size);
            }
        }
    }
}
