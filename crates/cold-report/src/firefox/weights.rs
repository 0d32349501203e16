//! Weights of samples in fractions of milliseconds.
//!
//! The format wants milliseconds and allows fractions, but fxprof-processed-profile takes integers only:
//! a start with a thousand waits of 0.3 ms would show none of them. So weights are given to it in
//! microseconds, and this writer divides them on their way out.

use std::io::{self, Write};

/// Begins the column of weights. Within a string the quotes would be escaped.
const KEY: &[u8] = b"\"weight\":[";

/// Passes JSON on and divides each number in a column of weights by 1000.
pub(super) struct Weights<W: Write> {
    out: W,
    /// How many bytes of [`KEY`] the last bytes match.
    matched: usize,
    /// The last byte before the match was a backslash, so its quote is part of a string.
    escaped: bool,
    before: u8,
    inside: bool,
    number: String,
}

impl<W: Write> Weights<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, matched: 0, escaped: false, before: 0, inside: false, number: String::new() }
    }

    fn watch(&mut self, byte: u8) {
        if KEY.get(self.matched) == Some(&byte) {
            if self.matched == 0 {
                self.escaped = self.before == b'\\';
            }
            self.matched += 1;
        } else {
            self.matched = usize::from(byte == b'"');
            self.escaped = self.before == b'\\';
        }
        if self.matched == KEY.len() {
            self.inside = !self.escaped;
            self.matched = 0;
        }
        self.before = byte;
    }

    fn divide(&mut self, end: u8) -> io::Result<()> {
        match self.number.parse::<i64>() {
            Ok(micros) if micros % 1000 == 0 => write!(self.out, "{}", micros / 1000)?,
            Ok(micros) => write!(self.out, "{}", micros as f64 / 1000.0)?,
            Err(_) => self.out.write_all(self.number.as_bytes())?,
        }
        self.number.clear();
        self.inside = end != b']';
        self.out.write_all(&[end])
    }
}

impl<W: Write> Write for Weights<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut plain = 0;
        for (n, byte) in bytes.iter().enumerate() {
            if self.inside {
                match byte {
                    b',' | b']' => self.divide(*byte)?,
                    _ => self.number.push(char::from(*byte)),
                }
                plain = n + 1;
                continue;
            }
            self.watch(*byte);
            if self.inside {
                self.out.write_all(bytes.get(plain..=n).unwrap_or_default())?;
                plain = n + 1;
            }
        }
        self.out.write_all(bytes.get(plain..).unwrap_or_default())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_columns_of_weights_are_divided() {
        let input = serde_json::json!({
            "name": "a \"weight\":[1000,2000] b", "weights": [1000], "samples": {"weight": [1, 1500, 0, -2000, 3]},
            "more": {"weight": [], "x": [5000]}, "weight": "\"", "last": {"weight": [7000]}, "weight\"": [1000],
        });
        let text = serde_json::to_string(&input).unwrap();
        for piece in [1, 3, 7, 1000] {
            let mut out = Vec::new();
            let mut writer = Weights::new(&mut out);
            text.as_bytes().chunks(piece).for_each(|part| writer.write_all(part).unwrap());
            let output: serde_json::Value = serde_json::from_slice(&out).unwrap();
            let mut expected = input.clone();
            expected["samples"]["weight"] = serde_json::json!([0.001, 1.5, 0, -2, 0.003]);
            expected["last"]["weight"] = serde_json::json!([7]);
            assert_eq!(output, expected, "in pieces of {piece}");
        }
    }
}
