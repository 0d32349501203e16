//! Text of foreign origin (paths, names of processes, what a recording says) in a form that a terminal shows
//! and does not obey: one line, without control characters, and without the marks that reorder a line.

use std::ffi::OsStr;
use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Text that somebody else chose.
pub trait Shown {
    /// Prints the text with everything escaped that could move the cursor, begin a new line, or reorder what
    /// stands beside it: `\n`, `\t`, `\r` and `\xNN` (a byte that is no UTF-8, or a control character below
    /// U+0100), `\u{NNNN}` for the marks of direction and the separators of lines. Everything else, a
    /// backslash too, stays as it is: this is for reading, not for parsing.
    fn shown(&self) -> Escaped<'_>;
}

/// What [`Shown::shown`] gives. Obeys width and alignment as a `str` does.
#[derive(Debug, Clone, Copy)]
pub struct Escaped<'a>(&'a [u8]);

impl Shown for [u8] {
    fn shown(&self) -> Escaped<'_> {
        Escaped(self)
    }
}

impl Shown for str {
    fn shown(&self) -> Escaped<'_> {
        Escaped(self.as_bytes())
    }
}

impl Shown for String {
    fn shown(&self) -> Escaped<'_> {
        Escaped(self.as_bytes())
    }
}

impl Shown for OsStr {
    fn shown(&self) -> Escaped<'_> {
        Escaped(self.as_bytes())
    }
}

impl Shown for Path {
    fn shown(&self) -> Escaped<'_> {
        Escaped(self.as_os_str().as_bytes())
    }
}

impl Shown for PathBuf {
    fn shown(&self) -> Escaped<'_> {
        self.as_path().shown()
    }
}

/// Whether a terminal would do something else with this character than show it.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        // Marks, embeddings, overrides and isolates of direction; separators of lines and paragraphs.
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes for element content and quoted attributes of HTML and XML. Characters that XML forbids
/// (controls such as ESC) and marks that reorder a line become U+FFFD.
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            c if is_hostile(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Writes `c` as [`Shown::shown`] does.
pub fn put(out: &mut impl Write, c: char) -> fmt::Result {
    match c {
        '\n' => out.write_str("\\n"),
        '\t' => out.write_str("\\t"),
        '\r' => out.write_str("\\r"),
        c if !is_hostile(c) => out.write_char(c),
        c if u32::from(c) < 0x100 => write!(out, "\\x{:02x}", u32::from(c)),
        c => write!(out, "\\u{{{:04x}}}", u32::from(c)),
    }
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |text: &str| !text.chars().any(is_hostile);
        if let Ok(text) = std::str::from_utf8(self.0)
            && plain(text)
        {
            return f.pad(text);
        }
        let mut escaped = String::with_capacity(self.0.len() + 16);
        for chunk in self.0.utf8_chunks() {
            chunk.valid().chars().try_for_each(|c| put(&mut escaped, c))?;
            chunk.invalid().iter().try_for_each(|b| write!(escaped, "\\x{b:02x}"))?;
        }
        f.pad(&escaped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_foreign_moves_the_cursor_or_begins_a_line() {
        for (bytes, shown) in [
            (&b"/usr/bin/x y"[..], "/usr/bin/x y"),
            ("größe→☃".as_bytes(), "größe→☃"),
            (b"a\nb\tc\rd", "a\\nb\\tc\\rd"),
            (b"\x1b[31mred\x7f\x00", "\\x1b[31mred\\x7f\\x00"),
            ("\u{9b}31m".as_bytes(), "\\x9b31m"),
            (b"\xff\xfe.so", "\\xff\\xfe.so"),
            ("txt\u{202e}exe\u{2066}".as_bytes(), "txt\\u{202e}exe\\u{2066}"),
            ("a\u{2028}b".as_bytes(), "a\\u{2028}b"),
            (b"C:\\x", "C:\\x"),
        ] {
            assert_eq!(bytes.shown().to_string(), shown);
        }
        assert_eq!(format!("{:>5}|{:<4}|", "ab".shown(), "\n".shown()), "   ab|\\n  |");
    }

    proptest::proptest! {
        #[test]
        fn whatever_the_bytes(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            let shown = bytes.shown().to_string();
            proptest::prop_assert!(!shown.chars().any(is_hostile), "{shown:?}");
        }
    }
}
