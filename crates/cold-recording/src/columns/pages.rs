//! Headers of the file and of its pages, looked at before the Parquet library believes them.
//!
//! The library allocates by some numbers of a file unseen (children of a schema element, entries of a
//! dictionary, unpacked bytes of a page up to 2 GiB), so a forged file of a kilobyte could take all memory, or
//! end the program where the kernel refuses it. This reads the headers first (Thrift's compact protocol)
//! and refuses what our writer never writes.

use std::fs::File;
use std::os::unix::fs::FileExt;

use cold_model::varint;
use parquet::file::metadata::ColumnChunkMetaData;

/// Largest page, unpacked. The writer's limit is 1 MiB, passed by at most one batch of values.
const MOST: i64 = 64 << 20;
/// Most values of a page.
const VALUES: i64 = 1 << 20;
/// Largest footer: room for some thousand row groups.
const FOOTER: u64 = 8 << 20;
/// Most columns of a table, and children of a schema element.
const CHILDREN: i64 = 64;
/// Most schema elements: columns, lists and the root.
const ELEMENTS: u64 = 128;
/// Most bytes of a page's header; statistics in it hold values, which our writer leaves out.
const HEADER: usize = 1 << 12;
/// Nesting that a header may have; the format has six levels.
const DEPTH: u32 = 12;
/// Encodings that the writer uses: plain, plain dictionary, RLE, delta of numbers, RLE dictionary.
const ENCODINGS: [i64; 5] = [0, 2, 3, 5, 8];

/// Checks the footer.
pub(super) fn check_footer(file: &File, file_bytes: u64) -> Result<(), String> {
    let short = || "it ends too early".to_owned();
    let mut tail = [0; 8];
    let at = file_bytes.checked_sub(8).ok_or_else(short)?;
    file.read_exact_at(&mut tail, at).map_err(|e| e.to_string())?;
    let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    let at = at.checked_sub(length).ok_or_else(short)?;
    if &tail[4..] != b"PAR1" || length > FOOTER {
        return Err("its end is not that of a Parquet file".to_owned());
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, at).map_err(|e| e.to_string())?;
    let mut thrift = Thrift { bytes: &bytes, at: 0 };
    let plain = thrift.plain_schema().ok_or("a footer that cannot be understood")?;
    if plain { Ok(()) } else { Err("a schema with too many columns".to_owned()) }
}

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
        header.check()?;
        at = at.saturating_add(header.length as u64).saturating_add(header.packed.cast_unsigned());
    }
    if at == end { Ok(()) } else { Err("a page passes the end of its column".to_owned()) }
}

/// The parts of a page's header that sizes depend on.
#[derive(Default)]
struct Header {
    unpacked: i64,
    packed: i64,
    /// Values and encoding of a page of data.
    data: Option<(i64, i64)>,
    /// Values and encoding of a dictionary.
    dictionary: Option<(i64, i64)>,
    length: usize,
}

impl Header {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut thrift = Thrift { bytes, at: 0 };
        let mut header = Self { unpacked: -1, packed: -1, ..Self::default() };
        let mut id = 0;
        while let Some((field, kind)) = thrift.field(&mut id)? {
            match (field, kind) {
                (2, I32) => header.unpacked = thrift.signed()?,
                (3, I32) => header.packed = thrift.signed()?,
                (5, STRUCT) => header.data = Some(thrift.values_and_encoding()?),
                (7, STRUCT) => header.dictionary = Some(thrift.values_and_encoding()?),
                _ => thrift.skip(kind, DEPTH)?,
            }
        }
        header.length = thrift.at;
        Some(header)
    }

    fn check(&self) -> Result<(), String> {
        if !(0..=MOST).contains(&self.unpacked) || self.packed < 0 {
            return Err(format!("a page that claims to unpack to {} bytes", self.unpacked));
        }
        // Every entry of a dictionary has its bytes, or its length in bytes.
        let (values, encoding, most) = match (self.data, self.dictionary) {
            (Some((values, encoding)), None) => (values, encoding, VALUES),
            (None, Some((values, encoding))) => (values, encoding, self.unpacked.min(VALUES)),
            _ => return Err("a page of a kind that the format does not have".to_owned()),
        };
        if !(0..=most).contains(&values) {
            return Err(format!("a page that claims {values} values"));
        }
        if !ENCODINGS.contains(&encoding) {
            return Err(format!("a page in encoding {encoding}, which the format does not have"));
        }
        Ok(())
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
        let mut rest = self.bytes.get(self.at..)?;
        let value = varint::take(&mut rest)?;
        self.at = self.bytes.len() - rest.len();
        Some(value)
    }

    fn signed(&mut self) -> Option<i64> {
        self.varint().map(varint::of_zigzag)
    }

    /// Id and kind of the next field; `Some(None)` at the end of the structure.
    #[allow(clippy::option_option)] // bad bytes and the end are two things
    fn field(&mut self, id: &mut i64) -> Option<Option<(i64, u8)>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *id = if byte >> 4 == 0 { self.signed()? } else { id.checked_add(i64::from(byte >> 4))? };
        Some(Some((*id, byte & 0xf)))
    }

    /// Fields 1 and 2 of a page's inner header.
    fn values_and_encoding(&mut self) -> Option<(i64, i64)> {
        let (mut id, mut values, mut encoding) = (0, None, None);
        while let Some((field, kind)) = self.field(&mut id)? {
            match (field, kind) {
                (1, I32) => values = Some(self.signed()?),
                (2, I32) => encoding = Some(self.signed()?),
                _ => self.skip(kind, DEPTH)?,
            }
        }
        Some((values?, encoding?))
    }

    /// Whether no schema element of the footer claims too many children.
    fn plain_schema(&mut self) -> Option<bool> {
        let (mut id, mut plain) = (0, true);
        while let Some((field, kind)) = self.field(&mut id)? {
            if (field, kind) != (2, LIST) {
                self.skip(kind, DEPTH)?;
                continue;
            }
            let (n, element) = self.list()?;
            // The library follows nested elements by recursion.
            plain &= n <= ELEMENTS;
            for _ in 0..n {
                let mut id = 0;
                if element != STRUCT {
                    return None;
                }
                while let Some((field, kind)) = self.field(&mut id)? {
                    match (field, kind) {
                        (5, I32) => plain &= (0..=CHILDREN).contains(&self.signed()?),
                        _ => self.skip(kind, DEPTH)?,
                    }
                }
            }
        }
        Some(plain)
    }

    /// Length and kind of the elements of a list.
    fn list(&mut self) -> Option<(u64, u8)> {
        let byte = self.byte()?;
        let n = if byte >> 4 == 15 { self.varint()? } else { u64::from(byte >> 4) };
        Some((n, byte & 0xf))
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
                let (n, element) = self.list()?;
                for _ in 0..n {
                    match element {
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
