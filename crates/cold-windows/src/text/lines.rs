//! Lines of a text in UTF-8 or UTF-16, with or without a mark at its beginning, read piece by piece.

use crate::etl::Source;
use crate::{Error, Result};

/// Bytes read at once.
const PIECE: u64 = 1 << 20;
/// Bytes of the longest line; what is longer is no text.
const LONGEST: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Utf8,
    Utf16Little,
    Utf16Big,
}

/// Hands out lines, without their ends. Bytes that are no text of the encoding become U+FFFD.
#[derive(Debug)]
pub struct Lines<S> {
    source: S,
    encoding: Encoding,
    /// Next byte to be read.
    at: u64,
    /// Read and not handed out.
    held: Vec<u8>,
    /// Lines handed out.
    number: u64,
    begun: bool,
}

impl<S: Source> Lines<S> {
    /// Of a whole file.
    pub const fn new(source: S) -> Self {
        Self { source, encoding: Encoding::Utf8, at: 0, held: Vec::new(), number: 0, begun: false }
    }

    /// Lines handed out so far.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Source`] where the source fails, [`Error::Damaged`] for a line longer than 1 MiB.
    pub fn next_line(&mut self) -> Result<Option<String>> {
        if !self.begun {
            self.begun = true;
            self.fill()?;
            self.begin();
        }
        let mut searched = 0;
        loop {
            if let Some((end, next)) = self.end(searched) {
                let line = self.decode(end);
                self.held.drain(..next);
                self.number += 1;
                return Ok(Some(line));
            }
            searched = self.held.len() & !1;
            if searched > LONGEST {
                let why = "a line longer than 1 MiB";
                return Err(Error::Damaged { what: "a trace in text", at: self.at, why });
            }
            if !self.fill()? {
                if self.held.is_empty() {
                    return Ok(None);
                }
                let line = self.decode(self.held.len());
                self.held.clear();
                self.number += 1;
                return Ok(Some(line));
            }
        }
    }

    /// Reads a piece more; false at the end.
    fn fill(&mut self) -> Result<bool> {
        let len = PIECE.min(self.source.size().saturating_sub(self.at));
        if len == 0 {
            return Ok(false);
        }
        let begin = self.held.len();
        self.held.resize(begin + len as usize, 0);
        let at = self.at;
        self.source.read(at, &mut self.held[begin..]).map_err(|why| Error::Source { at, len, why })?;
        self.at += len;
        Ok(true)
    }

    /// Finds the encoding by its mark, or by the zeros of Latin letters in UTF-16.
    fn begin(&mut self) {
        let (encoding, mark) = match self.held.as_slice() {
            [0xef, 0xbb, 0xbf, ..] => (Encoding::Utf8, 3),
            [0xff, 0xfe, ..] => (Encoding::Utf16Little, 2),
            [0xfe, 0xff, ..] => (Encoding::Utf16Big, 2),
            [first, 0, ..] if *first != 0 => (Encoding::Utf16Little, 0),
            [0, second, ..] if *second != 0 => (Encoding::Utf16Big, 0),
            _ => (Encoding::Utf8, 0),
        };
        self.encoding = encoding;
        self.held.drain(..mark);
    }

    /// Where the first line ends, and where the next begins.
    fn end(&self, searched: usize) -> Option<(usize, usize)> {
        let rest = self.held.get(searched..)?;
        match self.encoding {
            Encoding::Utf8 => rest.iter().position(|b| *b == b'\n').map(|n| (searched + n, searched + n + 1)),
            Encoding::Utf16Little | Encoding::Utf16Big => {
                let feed = if self.encoding == Encoding::Utf16Little { [b'\n', 0] } else { [0, b'\n'] };
                let n = rest.chunks_exact(2).position(|unit| unit == feed)? * 2 + searched;
                Some((n, n + 2))
            }
        }
    }

    fn decode(&self, end: usize) -> String {
        let bytes = &self.held[..end];
        let units = |from: fn([u8; 2]) -> u16| {
            let units = bytes.chunks_exact(2).map(move |c| from([c[0], c[1]]));
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        };
        let mut line: String = match self.encoding {
            Encoding::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            Encoding::Utf16Little => units(u16::from_le_bytes),
            Encoding::Utf16Big => units(u16::from_be_bytes),
        };
        if line.ends_with('\r') {
            line.pop();
        }
        line
    }
}
