//! One buffer: its header, and its events, expanded where they are compressed.

use crate::bytes::Input;
use crate::{Error, Result, lz77, lznt1};

/// Bytes of a buffer's header.
pub const HEADER: u64 = 72;
/// A buffer of Windows holds at most 16 MiB; more is damage, and would be allocated.
const LARGEST: u32 = 16 << 20;
/// How often its size a compressed buffer may expand to. Those of three real traces expand to 13.4 times at most; an
/// event differs from the one before in its time, so none shrinks much further, and a small file cannot ask for much.
const EXPANDS_BY: u32 = 64;
const COMPRESSED: u16 = 0x40;
const WHAT: &str = "a buffer's header";

/// Header of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// Where it begins in the file, bytes.
    pub at: u64,
    /// Bytes that it takes in the file, header included.
    pub size: u32,
    /// Bytes of header and events, expanded.
    pub filled: u32,
    /// Processor that wrote it.
    pub processor: u16,
    /// Events of this buffer, or buffers before it, were lost.
    pub lost: bool,
    /// Its events are compressed.
    pub compressed: bool,
}

impl Buffer {
    /// Reads the header of the buffer at `at` of a file from its [`HEADER`] bytes.
    ///
    /// # Errors
    /// [`Error::Damaged`] for sizes that no buffer has, [`Error::Short`] for less than a header.
    pub fn read(bytes: &[u8], at: u64) -> Result<Self> {
        let b = Input::new(bytes);
        let size = b.u32(0, WHAT)?;
        let saved = b.u32(4, WHAT)?;
        let offset = b.u32(48, WHAT)?;
        let flags = b.u16(52, WHAT)?;
        let compressed = flags & COMPRESSED != 0;
        // What is appended when a file is merged counts in the second only; compressed data expands to the first.
        let filled = if offset == 0 || compressed && saved != 0 { saved } else { offset };
        let damaged = |why| Err(Error::Damaged { what: WHAT, at, why });
        if u64::from(size) < HEADER || size > LARGEST {
            return damaged("its size is impossible");
        }
        if filled > LARGEST || !compressed && filled > size {
            return damaged("it holds more than fits");
        }
        if compressed && filled > size.saturating_mul(EXPANDS_BY) {
            return damaged("it expands to more than any buffer does");
        }
        // Windows 7 and later put the processor's index into 16 bits; before, its number is in the first 8.
        let wide = b.u16(40, WHAT)?;
        let processor = if flags & 0x20 == 0 { wide & 0xff } else { wide };
        Ok(Self { at, size, filled, processor, lost: flags & 6 != 0, compressed })
    }

    /// Its events from the bytes of the buffer behind the header.
    ///
    /// # Errors
    /// [`Error::Short`] where fewer are there than it says; that of the first codec, where none of the two gives the
    /// promised size.
    pub fn events(&self, mut body: Vec<u8>) -> Result<Vec<u8>> {
        let size = u64::from(self.filled).saturating_sub(HEADER) as usize;
        if !self.compressed {
            Input::new(&body).part(0, size as u64, "a buffer")?;
            body.truncate(size);
            return Ok(body);
        }
        lz77::expand(&body, size).or_else(|first| lznt1::expand(&body, size).map_err(|_| first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_cannot_ask_for_much_memory() {
        let header = |size: u32, filled: u32, flags: u16| {
            let mut b = [0; HEADER as usize];
            b[..4].copy_from_slice(&size.to_le_bytes());
            b[4..8].copy_from_slice(&filled.to_le_bytes());
            b[52..54].copy_from_slice(&flags.to_le_bytes());
            Buffer::read(&b, 0)
        };
        assert!(header(100, 6400, COMPRESSED).is_ok_and(|b| b.compressed && b.filled == 6400));
        assert!(header(100, 6401, COMPRESSED).is_err());
        assert!(header(6400, 6400, 0).is_ok());
        assert!(header(100, 101, 0).is_err());
        assert!(header(71, 0, 0).is_err());
        assert!(header(LARGEST + 1, 72, 0).is_err());
    }
}
