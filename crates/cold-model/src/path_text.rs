//! Names of files as text, without loss: what recordings, JSON, CSV and Parquet hold. [`decode`] undoes
//! [`encode`] for every sequence of bytes.
//!
//! A byte that is no UTF-8 is `\xNN`, with two lower-case hexadecimal digits of 80 or above. A backslash that
//! stands in the name itself is written as it is, unless what follows would then read as such a byte: there it
//! is `\x5c`. So a name without such bytes looks as it is, systemd's `\x2d` too, and only names that hold the
//! four characters of an escape look different.
//!
//! This is for machines. What a terminal shows is [`crate::Shown`].

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name as text.
pub fn encode<T: AsRef<OsStr> + ?Sized>(name: &T) -> String {
    encode_bytes(name.as_ref().as_bytes()).into_owned()
}

/// The same of bytes, as the kernel hands them out.
pub fn encode_bytes(name: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(name)
        && !holds_escape(text.as_bytes())
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(name.len() + 16);
    for chunk in name.utf8_chunks() {
        // An escape is ASCII, so it begins and ends within a chunk.
        let mut rest = chunk.valid();
        while let Some(at) = rest.find('\\') {
            let (before, tail) = rest.split_at(at);
            text.push_str(before);
            text.push_str(if escaped(tail.as_bytes()).is_some() { "\\x5c" } else { "\\" });
            rest = tail.get(1..).unwrap_or_default();
        }
        text.push_str(rest);
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}"); // to a String: cannot fail
        }
    }
    Cow::Owned(text)
}

/// The name that [`encode`] made this text of.
pub fn decode(text: &str) -> PathBuf {
    OsString::from_vec(decode_bytes(text).into_owned()).into()
}

/// The same as bytes.
pub fn decode_bytes(text: &str) -> Cow<'_, [u8]> {
    if !holds_escape(text.as_bytes()) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let byte = escaped(rest);
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { rest.get(4..).unwrap_or_default() } else { tail };
    }
    Cow::Owned(bytes)
}

/// The last part of a path; all of it where it has no other.
pub fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A shared object by its name: `libx.so`, `libx.so.1.2`, `x.cpython-311-x86_64-linux-gnu.so`; the loader's cache of
/// them (`ld.so.cache`) is none.
pub fn is_library(path: &str) -> bool {
    let name = base(path);
    let version = |n: &str| n.starts_with(|c: char| c.is_ascii_digit());
    name.strip_suffix(".so").is_some() || name.split(".so.").skip(1).any(version)
}

/// The kernel's name of a file without the mark that it puts behind that of a removed one, and whether it was there.
pub fn without_mark(name: &str) -> (&str, bool) {
    name.strip_suffix(" (deleted)").map_or((name, false), |name| (name, true))
}

fn holds_escape(text: &[u8]) -> bool {
    text.windows(4).any(|four| escaped(four).is_some())
}

/// The byte that the escape at the beginning of `text` stands for, if there is one.
fn escaped(text: &[u8]) -> Option<u8> {
    let [b'\\', b'x', high, low, ..] = text else { return None };
    let digit = |c: &u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    let byte = digit(high)? << 4 | digit(low)?;
    (byte >= 0x80 || byte == b'\\').then_some(byte)
}

/// What documents hold. Before there was this text, names that are not UTF-8 were arrays of bytes.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Text(String),
    Bytes(Vec<u8>),
}

impl Text {
    fn name(self) -> OsString {
        match self {
            Self::Text(text) => decode(&text).into_os_string(),
            Self::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
    fn word(self) -> OsString {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

/// For `#[serde(with)]` on a `PathBuf` or `OsString`.
pub fn serialize<S: Serializer, T: AsRef<OsStr>>(path: &T, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&encode_bytes(path.as_ref().as_bytes()))
}
/// For `#[serde(with)]` on a `PathBuf` or `OsString`.
pub fn deserialize<'de, D: Deserializer<'de>, T: From<OsString>>(d: D) -> Result<T, D::Error> {
    Ok(Text::deserialize(d)?.name().into())
}

/// The same for a list.
pub mod list {
    use super::{Deserialize, Deserializer, OsStr, OsStrExt, OsString, Serializer, Text};

    /// For `#[serde(with)]` on a `Vec` of `PathBuf`.
    pub fn serialize<S: Serializer, T: AsRef<OsStr>>(list: &[T], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(list.iter().map(|p| super::encode_bytes(p.as_ref().as_bytes())))
    }
    /// For `#[serde(with)]` on a `Vec` of `PathBuf`.
    pub fn deserialize<'de, D: Deserializer<'de>, T: From<OsString>>(d: D) -> Result<Vec<T>, D::Error> {
        Ok(Vec::<Text>::deserialize(d)?.into_iter().map(|t| t.name().into()).collect())
    }
}

/// Words of a command line: `printf '\xff'` is said as it was typed, so a word is a string exactly where it is
/// UTF-8, else an array of bytes.
pub mod words {
    use super::{Deserialize, Deserializer, OsStr, OsStrExt, OsString, Serialize, Serializer, Text};

    #[derive(Serialize)]
    #[serde(untagged)]
    enum Word<'a> {
        Text(&'a str),
        Bytes(&'a [u8]),
    }

    /// For `#[serde(with)]` on a `Vec` of `OsString`.
    pub fn serialize<S: Serializer, T: AsRef<OsStr>>(list: &[T], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(list.iter().map(|word| {
            let word = word.as_ref();
            word.to_str().map_or_else(|| Word::Bytes(word.as_bytes()), Word::Text)
        }))
    }
    /// For `#[serde(with)]` on a `Vec` of `OsString`.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<OsString>, D::Error> {
        Ok(Vec::<Text>::deserialize(d)?.into_iter().map(Text::word).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct One {
        #[serde(with = "super")]
        path: PathBuf,
        #[serde(with = "super::words")]
        words: Vec<OsString>,
    }

    #[test]
    fn libraries_are_known_by_their_names() {
        for (path, library) in [
            ("/l/libc.so.6", true),
            ("/l/x.so", true),
            ("/l/x.cpython-311-x86_64-linux-gnu.so", true),
            ("/l/liby.so.1.2", true),
            ("/l/also", false),
            ("/l/a.socket", false),
            ("/etc/ld.so.cache", false),
            ("/l.so.1/x", false),
        ] {
            assert_eq!(is_library(path), library, "{path}");
        }
    }

    #[test]
    fn only_names_with_an_escape_look_different() {
        for (bytes, text) in [
            (&b"/usr/lib/x y"[..], "/usr/lib/x y"),
            ("größe\n".as_bytes(), "größe\n"),
            (b"dev-disk-by\\x2dlabel", "dev-disk-by\\x2dlabel"),
            (b"caf\xe9", "caf\\xe9"),
            (b"caf\\xe9", "caf\\x5cxe9"),
            (b"caf\\xE9", "caf\\xE9"),
            (b"caf\\x5cxe9", "caf\\x5cx5cxe9"),
            (b"\\x\xff\\xf\xff\\", "\\x\\xff\\xf\\xff\\"),
        ] {
            assert_eq!(encode_bytes(bytes), text);
            assert_eq!(decode_bytes(&encode_bytes(bytes)), bytes);
        }
    }

    #[test]
    fn older_recordings_and_arrays_of_bytes_are_read() {
        assert_eq!(decode("/a/caf\\xe9").as_os_str().as_bytes(), b"/a/caf\xe9");
        assert_eq!(decode("/a/\\x41\\x").as_os_str().as_bytes(), b"/a/\\x41\\x");
        assert_eq!(decode("/a/\\xé").as_os_str().as_bytes(), "/a/\\xé".as_bytes());
        let old: One = serde_json::from_str(r#"{"path":[47,255],"words":["\\xff",[255]]}"#).unwrap();
        assert_eq!(old.path.as_os_str().as_bytes(), b"/\xff");
        assert_eq!(serde_json::to_string(&old).unwrap(), r#"{"path":"/\\xff","words":["\\xff",[255]]}"#);
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_back(bytes in proptest::collection::vec(
            proptest::prop_oneof![
                proptest::num::u8::ANY,
                proptest::sample::select(&b"\\\\\\xxx05cef8\xc3\xa9\xff"[..]),
            ],
            0..40,
        )) {
            let text = encode_bytes(&bytes);
            let back = decode_bytes(&text);
            proptest::prop_assert_eq!(back.as_ref(), &bytes[..]);
        }
    }
}
