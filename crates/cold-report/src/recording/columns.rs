//! Columns of integers as bytes: zig-zag differences as LEB128 varints, which `deflate` then halves.

use cold_model::varint::{self, zigzag};
use serde_json::{Value, json};

/// How a column's bytes give its values. `web/data.js` has the inverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// Each value as it is; for small numbers without order.
    Plain,
    /// The difference to the row before, the first to 0.
    Delta,
    /// The difference to where the same file's last row ended, by the columns `file` and `pages`.
    Page,
}

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Delta => "delta",
            Self::Page => "page",
        }
    }
}

/// Tables of columns, being written.
#[derive(Debug, Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// All columns' bytes, one after the other.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Adds a column and returns its description.
    pub(super) fn column(
        &mut self,
        name: &str,
        coding: Coding,
        values: impl IntoIterator<Item = i64>,
    ) -> Value {
        let from = self.bytes.len();
        let mut last = 0_i64;
        for value in values {
            match coding {
                Coding::Delta => {
                    varint::put(&mut self.bytes, zigzag(value.wrapping_sub(last)));
                    last = value;
                }
                Coding::Plain | Coding::Page => varint::put(&mut self.bytes, zigzag(value)),
            }
        }
        json!({ "name": name, "coding": coding.name(), "bytes": self.bytes.len() - from })
    }
}

#[cfg(test)]
pub(super) mod decode {
    //! The inverse, as the page does it; for tests.

    use cold_model::varint;

    /// Reads `rows` values.
    pub(crate) fn varints(bytes: &[u8], rows: usize) -> Vec<i64> {
        let mut bytes = bytes;
        (0..rows).filter_map(|_| varint::take(&mut bytes)).map(varint::of_zigzag).collect()
    }
}
