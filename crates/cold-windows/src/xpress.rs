//! XPRESS with Huffman codes, the compression of prefetch files since Windows 10: [MS-XCA] sections 2.1 and 2.2.

use crate::bytes::Input;
use crate::{Error, Result};

const DATA: &str = "XPRESS data";
/// Symbols: 256 literals, then 16 lengths for each of 16 numbers of offset bits.
const SYMBOLS: usize = 512;
/// Bits of the longest code.
const LONGEST: u32 = 15;
/// Output bytes for which one table of codes holds.
const CHUNK: usize = 1 << 16;
/// A match copies at least this much.
const SHORTEST: usize = 3;
/// Words of 16 bits that the decoder holds before it needs them: this many may be missing behind the last one.
const AHEAD: u8 = 2;

fn damaged(at: u64, why: &'static str) -> Error {
    Error::Damaged { what: DATA, at, why }
}

/// Symbol and length of the code that each 15 bits begin with.
struct Codes(Vec<(u16, u8)>);

impl Codes {
    /// Reads the table at `at`: 256 bytes, a length of 4 bits for each symbol, lower half first.
    fn read(input: Input<'_>, at: u64) -> Result<Self> {
        let table = input.part(at, SYMBOLS as u64 / 2, "a table of codes")?.all();
        let length = |symbol: usize| u32::from(table[symbol / 2] >> (symbol % 2 * 4) & 15);
        let mut by_bits = Vec::with_capacity(1 << LONGEST);
        for bits in 1..=LONGEST {
            for symbol in (0..SYMBOLS).filter(|s| length(*s) == bits) {
                let room = 1 << (LONGEST - bits);
                if by_bits.len() + room > 1 << LONGEST {
                    return Err(damaged(at, "its codes are more than there is room for"));
                }
                by_bits.resize(by_bits.len() + room, (symbol as u16, bits as u8));
            }
        }
        if by_bits.len() != 1 << LONGEST {
            return Err(damaged(at, "its codes leave room"));
        }
        Ok(Self(by_bits))
    }
}

/// The bits of the input: words of 16 bits, between which lengths stand as bytes.
struct Bits<'a> {
    input: Input<'a>,
    at: u64,
    /// The next bits, the first one highest.
    next: u32,
    /// Bits of `next` beyond 16 that are there.
    spare: i32,
    /// Words that were not there any more.
    missing: u8,
}

impl Bits<'_> {
    fn word(&mut self) -> Result<u32> {
        match self.input.u16(self.at, DATA) {
            Ok(word) => {
                self.at += 2;
                Ok(word.into())
            }
            // What is held already encodes up to three more bytes.
            Err(_) if self.missing < AHEAD => {
                self.missing += 1;
                Ok(0)
            }
            Err(e) => Err(e),
        }
    }

    /// Begins a chunk: what is held of the one before is passed.
    fn begin(&mut self) -> Result<()> {
        self.next = self.word()? << 16;
        self.next |= self.word()?;
        self.spare = 16;
        Ok(())
    }

    /// Passes `n` bits, at most 15.
    fn pass(&mut self, n: u32) -> Result<()> {
        self.next <<= n;
        self.spare -= n.cast_signed();
        if self.spare < 0 {
            self.next |= self.word()? << -self.spare;
            self.spare += 16;
        }
        Ok(())
    }

    fn symbol(&mut self, codes: &Codes) -> Result<usize> {
        let (symbol, bits) = codes.0[(self.next >> (32 - LONGEST)) as usize];
        self.pass(bits.into())?;
        Ok(symbol.into())
    }

    fn number(&mut self, bits: u32) -> Result<usize> {
        let value = self.next.checked_shr(32 - bits).unwrap_or(0);
        self.pass(bits)?;
        Ok(value as usize)
    }

    /// What is added to the shortest match: 15 says that a byte follows, 255 two, 0 four.
    fn length(&mut self, code: usize) -> Result<usize> {
        if code < 15 {
            return Ok(code);
        }
        let byte = self.input.u8(self.at, DATA)?;
        self.at += 1;
        if byte < 255 {
            return Ok(15 + usize::from(byte));
        }
        let mut length = u32::from(self.input.u16(self.at, DATA)?);
        self.at += 2;
        if length == 0 {
            length = self.input.u32(self.at, DATA)?;
            self.at += 4;
        }
        if length < 15 {
            Err(damaged(self.at, "a length that has a shorter form"))
        } else {
            Ok(length as usize)
        }
    }
}

/// Expands `data` to exactly `size` bytes: the size ends it, never the input, whose last words hold more bytes than it
/// seems. Memory grows with what is written.
///
/// # Errors
/// [`Error::Short`] where the input ends too early, [`Error::Damaged`] for codes that do not fill their room exactly and
/// matches before the start or beyond `size`.
pub fn expand(data: &[u8], size: usize) -> Result<Vec<u8>> {
    let mut bits = Bits { input: Input::new(data), at: 0, next: 0, spare: 0, missing: 0 };
    let mut out = Vec::new();
    while out.len() < size {
        let codes = Codes::read(bits.input, bits.at)?;
        bits.at += SYMBOLS as u64 / 2;
        bits.begin()?;
        let end = size.min(out.len() + CHUNK);
        while out.len() < end {
            let symbol = bits.symbol(&codes)?;
            let Some(matched) = symbol.checked_sub(256) else {
                out.push(symbol as u8);
                continue;
            };
            let length = bits.length(matched & 15)? + SHORTEST;
            let offset_bits = (matched >> 4) as u32;
            let back = bits.number(offset_bits)? | 1 << offset_bits;
            let at = bits.at;
            let from = out.len().checked_sub(back).ok_or_else(|| damaged(at, "a match before the start"))?;
            if length > size - out.len() {
                return Err(damaged(at, "a match beyond the end"));
            }
            for n in from..from + length {
                out.push(out[n]);
            }
        }
    }
    Ok(out)
}

#[cfg(any(test, feature = "sample"))]
pub mod sample {
    //! A compressor whose codes all have nine bits: what it writes has every form, and saves little. Not part of a
    //! release.

    use super::{CHUNK, SHORTEST, SYMBOLS};

    struct Writer {
        out: Vec<u8>,
        /// Where the next two words go.
        slots: [usize; 2],
        word: u32,
        free: u32,
    }

    impl Writer {
        fn slot(&mut self) -> usize {
            self.out.extend([0, 0]);
            self.out.len() - 2
        }

        fn put(&mut self, at: usize, word: u32) {
            self.out[at..at + 2].copy_from_slice(&(word as u16).to_le_bytes());
        }

        fn bits(&mut self, value: u32, n: u32) {
            if self.free >= n {
                self.free -= n;
                self.word = self.word << n | value;
                return;
            }
            let over = n - self.free;
            let word = self.word << self.free | value >> over;
            self.put(self.slots[0], word);
            let slot = self.slot();
            self.slots = [self.slots[1], slot];
            self.free += 16 - n;
            self.word = value & ((1 << over) - 1);
        }

        fn chunk(&mut self, data: &[u8], begin: usize, end: usize, last: bool) {
            self.out.resize(self.out.len() + SYMBOLS / 2, 0x99);
            self.slots = [self.slot(), self.slot()];
            (self.word, self.free) = (0, 16);
            let mut at = begin;
            while at < end {
                if let Some((back, length)) = longest(data, at, end) {
                    self.matched(back, length);
                    at += length;
                } else {
                    self.bits(data[at].into(), 9);
                    at += 1;
                }
            }
            if last {
                self.bits(256, 9);
            }
            let word = self.word << self.free;
            self.put(self.slots[0], word);
        }

        fn matched(&mut self, back: usize, length: usize) {
            let offset_bits = back.ilog2();
            let extra = length - SHORTEST;
            let code = extra.min(15) as u32;
            self.bits(256 + (offset_bits << 4 | code), 9);
            if code == 15 {
                match extra - 15 {
                    byte @ 0..255 => self.out.push(byte as u8),
                    _ if extra < 1 << 16 => {
                        self.out.push(255);
                        self.out.extend((extra as u16).to_le_bytes());
                    }
                    _ => {
                        self.out.extend([255, 0, 0]);
                        self.out.extend((extra as u32).to_le_bytes());
                    }
                }
            }
            self.bits((back - (1 << offset_bits)) as u32, offset_bits);
        }
    }

    /// The longest match among a few offsets: the last byte's, and powers of two back.
    fn longest(data: &[u8], at: usize, end: usize) -> Option<(usize, usize)> {
        let backs = (0..16).map(|n| 1 << n).filter(|back| *back <= at);
        let length = |back: usize| (at..end).take_while(|i| data[*i] == data[i - back]).count();
        backs.map(|back| (back, length(back))).max_by_key(|(_, n)| *n).filter(|(_, n)| *n >= SHORTEST)
    }

    /// Compresses `data`; [`super::expand`] undoes it.
    pub fn compress(data: &[u8]) -> Vec<u8> {
        let mut w = Writer { out: Vec::new(), slots: [0; 2], word: 0, free: 16 };
        let mut begin = 0;
        while begin < data.len() {
            let end = data.len().min(begin + CHUNK);
            w.chunk(data, begin, end, end == data.len());
            begin = end;
        }
        w.out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_compressed_comes_back(
            parts in prop::collection::vec((prop::collection::vec(0_u8..4, 1..40), 1..3000_usize), 0..12),
        ) {
            let data: Vec<u8> =
                parts.iter().flat_map(|(part, n)| part.iter().cycle().take(*n)).copied().collect();
            prop_assert_eq!(expand(&sample::compress(&data), data.len()), Ok(data));
        }

        #[test]
        fn damage_is_an_error_and_never_more_than_was_asked_for(
            mut data in prop::collection::vec(any::<u8>(), 0..600), size in 0..9000_usize, sound in any::<bool>(),
        ) {
            if sound {
                data.splice(0..0, [0x99; 256]);
            }
            if let Ok(out) = expand(&data, size) {
                prop_assert_eq!(out.len(), size);
            }
        }
    }

    #[test]
    fn chunks_end_at_64_kib_and_matches_of_every_form_reach_over_them() {
        for size in [1, 65_535, 65_536, 65_537, 131_072, 200_000] {
            let mixed: Vec<u8> = (0..size).map(|n: usize| (n / 300 % 251) as u8 ^ (n % 7) as u8).collect();
            let same = vec![7; size];
            for data in [mixed, same] {
                let packed = sample::compress(&data);
                assert_eq!(expand(&packed, size).as_ref(), Ok(&data), "{size}");
                let cut = expand(&packed[..packed.len() / 2], size);
                assert!(cut.is_err(), "{size}");
            }
        }
    }

    #[test]
    fn the_size_ends_it_where_the_last_words_hold_more() {
        // Symbol 0 has one bit, all others are longer: two words of zeros are 32 of it, and what follows is not there.
        let mut data = vec![0; 260];
        for (n, byte) in [0x21_u8, 0x43, 0x65, 0x87, 0xa9, 0xcb, 0xed, 0xff].into_iter().enumerate() {
            data[n] = byte;
        }
        assert_eq!(expand(&data, 32), Ok(vec![0; 32]));
        assert!(matches!(expand(&data, 65), Err(Error::Short { .. })), "more than the words can hold");
        // 14 lengths from 1 to 14, and two of 15: exactly full. One less is not.
        data[7] = 0x0f;
        assert!(matches!(expand(&data, 1), Err(Error::Damaged { .. })));
    }
}
