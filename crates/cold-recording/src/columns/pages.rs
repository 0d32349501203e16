//! Page headers, looked at before the Parquet library unpacks the pages.
//!
//! The library trusts the unpacked size of a page, up to 2 GiB; a forged page of a few kilobytes could take
//! as much memory. Our own pages unpack to about 1 MiB, so this reads the headers first (Thrift's compact
//! protocol) and refuses larger ones.

use std::fs::File;
use std::os::unix::fs::FileExt;

use parquet::file::metadata::ColumnChunkMetaData;

/// Largest page, unpacked. The writer's limit is 1 MiB, passed by at most one batch of values.
const MOST: i64 = 64 << 20;
/// Most bytes of a header; statistics in it hold values, which our writer leaves out.
const HEADER: usize = 1 << 12;
/// Nesting that a header may have; the format has three levels.
const DEPTH: u32 = 8;

/// Checks every page of a column chunk.
pub(super) fn check(file: &File, chunk: &ColumnChunkMetaData, file_bytes: u64) -> Result<(), String> {
    let wrong = || "a column lies outside the file".to_owned();
    let first = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
    let mut at = u64::try_from(first).map_err(|_| wrong())?;
    let length = u64::try_from(chunk.compressed_size()).map_err(|_| wrong())?;
    let end = at.checked_add(length).filter(|end| *end <= file_bytes).ok_or_else(wrong)?;
    let mut buffer = [0; HEADER];
    while at < end {
        let most = usize::try_from(end - at).unwrap_or(HEADER).min(HEADER);
        let bytes = &mut buffer[..most];
        file.read_exact_at(bytes, at).map_err(|e| e.to_string())?;
        let header = Header::read(bytes).ok_or("a page header that cannot be understood")?;
        if !(0..=MOST).contains(&header.unpacked) || header.packed < 0 {
            return Err(format!("a page that claims to unpack to {} bytes", header.unpacked));
        }
        at = at.saturating_add(header.length as u64).saturating_add(header.packed.cast_unsigned());
    }
    if at == end { Ok(()) } else { Err("a page passes the end of its column".to_owned()) }
}

struct Header {
    unpacked: i64,
    packed: i64,
    length: usize,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut thrift = Thrift { bytes, at: 0 };
        let (mut unpacked, mut packed, mut id) = (None, None, 0i64);
        while let Some((field, kind)) = thrift.field(&mut id)? {
            match (field, kind) {
                (2, I32) => unpacked = Some(thrift.signed()?),
                (3, I32) => packed = Some(thrift.signed()?),
                _ => thrift.skip(kind, DEPTH)?,
            }
        }
        Some(Self { unpacked: unpacked?, packed: packed?, length: thrift.at })
    }
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// A reader of Thrift's compact protocol; `None` where the bytes end or make no sense.
struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Thrift<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let v = self.varint()?;
        Some((v >> 1).cast_signed() ^ -(v & 1).cast_signed())
    }

    /// Id and kind of the next field; `Some(None)` at the end of the structure.
    fn field(&mut self, id: &mut i64) -> Option<Option<(i64, u8)>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *id = if byte >> 4 == 0 { self.signed()? } else { id.checked_add(i64::from(byte >> 4))? };
        Some(Some((*id, byte & 0xf)))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => {}
            BYTE => drop(self.byte()?),
            I16 | I32 | I64 => drop(self.varint()?),
            DOUBLE => self.advance(8)?,
            BINARY => {
                let n = usize::try_from(self.varint()?).ok()?;
                self.advance(n)?;
            }
            LIST | SET => {
                let byte = self.byte()?;
                let n = if byte >> 4 == 15 { self.varint()? } else { u64::from(byte >> 4) };
                for _ in 0..n {
                    match byte & 0xf {
                        // In a list each truth value is a byte of its own.
                        TRUE | FALSE => self.advance(1)?,
                        kind => self.skip(kind, depth)?,
                    }
                }
            }
            STRUCT => {
                let mut id = 0;
                while let Some((_, kind)) = self.field(&mut id)? {
                    self.skip(kind, depth)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn advance(&mut self, n: usize) -> Option<()> {
        self.at = self.at.checked_add(n).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }
}
