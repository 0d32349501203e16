//! LZNT1: [MS-XCA] section 2.5. Chunks of at most 4096 bytes of output, each with a header of two bytes.

use crate::bytes::Input;
use crate::{Error, Result};

const DATA: &str = "LZNT1 data";
/// Bytes that a chunk expands to at most.
const CHUNK: usize = 4096;

/// Expands `data` to exactly `size` bytes.
///
/// # Errors
/// [`Error::Short`] where the input ends too early, [`Error::Damaged`] where a chunk breaks the format or the
/// chunks come to another size.
pub fn expand(data: &[u8], size: usize) -> Result<Vec<u8>> {
    let input = Input::new(data);
    let mut out = Vec::new();
    let mut at = 0;
    let damaged = |at, why| Err(Error::Damaged { what: DATA, at, why });
    while out.len() < size {
        let header = input.u16(at, DATA)?;
        if header >> 12 & 7 != 3 {
            return damaged(at, "a chunk without the signature 3");
        }
        let chunk = input.part(at + 2, u64::from(header & 0xfff) + 1, DATA)?;
        let begins = out.len();
        if header >> 15 == 0 {
            out.extend_from_slice(chunk.all());
        } else {
            expand_chunk(chunk, at + 2, &mut out)?;
        }
        if out.len() - begins > CHUNK || out.len() > size {
            return damaged(at, "it expands to more than its header says");
        }
        at += 2 + chunk.len() as u64;
    }
    Ok(out)
}

fn expand_chunk(chunk: Input<'_>, base: u64, out: &mut Vec<u8>) -> Result<()> {
    let begins = out.len();
    let mut at = 0;
    while at < chunk.len() as u64 {
        let flags = chunk.u8(at, DATA)?;
        at += 1;
        for bit in 0..8 {
            if at >= chunk.len() as u64 {
                break;
            }
            if flags >> bit & 1 == 0 {
                out.push(chunk.u8(at, DATA)?);
                at += 1;
                continue;
            }
            let pair = chunk.u16(at, DATA)?;
            let done = out.len() - begins;
            // The further into the chunk, the more of the 16 bits are distance: at least 4, at most 12.
            let distance_bits = (usize::BITS - done.saturating_sub(1).leading_zeros()).clamp(4, 12);
            let length_bits = 16 - distance_bits;
            let back = usize::from(pair >> length_bits) + 1;
            let length = usize::from(pair & ((1 << length_bits) - 1)) + 3;
            if back > done || done + length > CHUNK {
                let why = "a match that reaches out of its chunk";
                return Err(Error::Damaged { what: DATA, at: base + at, why });
            }
            for from in out.len() - back..out.len() - back + length {
                out.push(out[from]);
            }
            at += 2;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification() {
        // [MS-XCA] section 3.3.
        let packed = [
            0x38, 0xb0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xa2, 0x47, 0x01,
            0xa0, 0x45, 0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xc0, 0x45, 0x20, 0x05, 0x24,
            0x13, 0x88, 0x05, 0xb4, 0x02, 0x4a, 0x44, 0xef, 0x03, 0x58, 0x02, 0x8c, 0x09, 0x16, 0x01, 0x48,
            0x45, 0x00, 0xbe, 0x00, 0x9e, 0x00, 0x04, 0x01, 0x18, 0x90, 0x00,
        ];
        let text = "F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D E F# G F# D E \
                    F# G F# E D E A F# F# G A A G F# E D D E F# E D D\0";
        assert_eq!(expand(&packed, text.len()).unwrap(), text.as_bytes());
        assert!(expand(&packed, text.len() - 1).is_err());
        assert!(expand(&packed[..30], text.len()).is_err());
    }

    proptest::proptest! {
        #[test]
        fn random_input_gives_the_size_or_an_error(mut data: Vec<u8>, size in 0_usize..9000) {
            if data.len() > 2 {
                let header = 0xb000 | (data.len() - 3).min(4095) as u16;
                data[..2].copy_from_slice(&header.to_le_bytes());
            }
            if let Ok(out) = expand(&data, size) {
                assert_eq!(out.len(), size);
            }
        }
    }
}
