//! What of a command's arguments decides which pages it needs, as a short name.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use cold_model::hash::fnv1a64;

use super::MAX_NAME;
use super::interpreters::Runs;

/// The name of a start without arguments.
const EMPTY: &[u8] = b"default";
/// Longest word that is taken for a subcommand.
const MAX_WORD: usize = 32;
/// Longest file name extension.
const MAX_EXTENSION: usize = 8;

/// What is known beside the arguments.
#[derive(Debug, Default)]
pub(super) struct Shape {
    head: Vec<Vec<u8>>,
}

impl Shape {
    /// A program called by another name than its own may behave as another program (busybox, rustup,
    /// snap), so the name counts. `python3` for `python3.11` is no other name.
    pub(super) fn called(&mut self, called: &OsStr, path: &Path) {
        let (called, own) = (called.as_bytes(), path.file_name().unwrap_or_default().as_bytes());
        if !own.starts_with(called) && !called.starts_with(own) {
            self.head.push([b"as=", called].concat());
        }
    }

    /// What an interpreter runs, where it is no file.
    pub(super) fn runs(&mut self, runs: &Runs<'_>) {
        self.head.push(match runs {
            Runs::Code(code) => {
                let hash = fnv1a64(&[code]);
                // The authors of FNV fold it so to fewer bits.
                format!("c={:08x}", (hash >> 32) as u32 ^ hash as u32).into_bytes()
            }
            Runs::Module(name) => [b"m=", *name].concat(),
            Runs::Main { class, .. } => [b"main=", *class].concat(),
            Runs::Script(_) | Runs::Nothing => return,
        });
    }

    /// The scenario's name: what is known already, the subcommand, the options' names in alphabetic
    /// order, the kinds of the operands in the order of their first.
    pub(super) fn name(self, arguments: &[OsString]) -> String {
        let mut parts = self.head;
        let arguments = Arguments::read(arguments);
        parts.extend(arguments.subcommand.map(<[u8]>::to_vec));
        parts.extend(arguments.options);
        parts.extend(arguments.kinds);
        let whole = parts.join(&b'+');
        let whole = if whole.is_empty() { EMPTY.to_vec() } else { whole };
        bounded(&whole)
    }
}

/// A byte that stands for itself in a scenario's name.
pub(super) fn plain(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+' | b'=')
}

/// `whole` if it is short and plain; otherwise its beginning, a tilde, its hash.
fn bounded(whole: &[u8]) -> String {
    let mut name: String = whole.iter().map(|b| if plain(*b) { char::from(*b) } else { '_' }).collect();
    if name.len() > MAX_NAME || name.as_bytes() != whole {
        name.truncate(MAX_NAME - 17);
        // Writing into a string does not fail.
        let _ = write!(name, "~{:016x}", fnv1a64(&[whole]));
    }
    name
}

/// Arguments by their parts.
#[derive(Debug, Default)]
struct Arguments<'a> {
    subcommand: Option<&'a [u8]>,
    options: Vec<Vec<u8>>,
    kinds: Vec<Vec<u8>>,
}

impl<'a> Arguments<'a> {
    fn read(arguments: &'a [OsString]) -> Self {
        let words: Vec<&[u8]> = arguments.iter().map(|a| a.as_bytes()).collect();
        let end = words.iter().position(|w| *w == b"--").unwrap_or(words.len());
        let (before, behind) = words.split_at(end);
        let subcommand = subcommand(before);
        let mut this =
            Self { subcommand: subcommand.and_then(|i| before.get(i).copied()), ..Self::default() };
        for (i, word) in before.iter().enumerate() {
            if is_option(word) {
                this.options.push(option(word));
            } else if let Some(name) = assigned(word) {
                this.options.push(name);
            } else if Some(i) != subcommand {
                this.operand(word);
            }
        }
        behind.iter().skip(1).for_each(|word| this.operand(word));
        this.options.sort();
        this.options.dedup();
        this
    }

    fn operand(&mut self, word: &[u8]) {
        let kind = kind(word);
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
    }
}

/// Which argument is the subcommand: the first plain word that does not stand directly behind an option
/// (there it may be its value); if there is none, the first one that does.
fn subcommand(words: &[&[u8]]) -> Option<usize> {
    let behind_option =
        |i: &usize| *i > 0 && words.get(i - 1).is_some_and(|w| is_option(w) && !w.contains(&b'='));
    let plain = || (0..words.len()).filter(|i| words.get(*i).is_some_and(|w| is_word(w)));
    plain().find(|i| !behind_option(i)).or_else(|| plain().next())
}

fn is_option(word: &[u8]) -> bool {
    word.len() > 1 && word.starts_with(b"-")
}

fn is_word(word: &[u8]) -> bool {
    word.len() <= MAX_WORD
        && word.first().is_some_and(u8::is_ascii_lowercase)
        && word.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
}

/// An option's name: without a value behind `=`, and of short options without one that is attached as
/// a path, a number or behind a colon.
fn option(word: &[u8]) -> Vec<u8> {
    let until = |stops: &[u8]| word.split(|b| stops.contains(b)).next().unwrap_or_default().to_vec();
    if word.starts_with(b"--") {
        return until(b"=");
    }
    if word.get(1).is_some_and(u8::is_ascii_digit) {
        return b"-N".to_vec();
    }
    let mut name = until(b"=/:");
    while name.len() > 2 && name.last().is_some_and(u8::is_ascii_digit) {
        name.pop();
    }
    name
}

/// `NAME=` of an operand `NAME=value` (make, dd).
fn assigned(word: &[u8]) -> Option<Vec<u8>> {
    let end = word.iter().position(|b| *b == b'=')?;
    let name = word.get(..end)?;
    let is_name = name.first().is_some_and(u8::is_ascii_alphabetic)
        && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    is_name.then(|| [name, b"="].concat())
}

/// The kind of an operand, by its letters alone. Kinds are upper case or begin with a dot, so that no
/// subcommand looks like one.
fn kind(word: &[u8]) -> Vec<u8> {
    let named: &[u8] = if word == b"-" {
        b"STDIN"
    } else if std::str::from_utf8(word).is_ok_and(|t| t.parse::<f64>().is_ok()) && !is_word(word) {
        b"N"
    } else if is_url(word) {
        b"URL"
    } else if word.ends_with(b"/") || matches!(last(word), b"." | b"..") {
        b"DIR"
    } else if let Some(extension) = extension(word) {
        return [b".", extension.to_ascii_lowercase().as_slice()].concat();
    } else if word.contains(&b'/') {
        b"PATH"
    } else if is_word(word) {
        b"WORD"
    } else {
        b"ARG"
    };
    named.to_vec()
}

fn is_url(word: &[u8]) -> bool {
    let scheme_end = word.windows(3).position(|w| w == b"://");
    let scheme = scheme_end.and_then(|end| word.get(..end));
    let is_scheme = |s: &[u8]| {
        s.first().is_some_and(u8::is_ascii_alphabetic)
            && s.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
    };
    scheme.is_some_and(is_scheme)
        || [&b"about:"[..], b"data:", b"mailto:"].iter().any(|s| word.starts_with(s))
}

/// The last component of a path.
fn last(word: &[u8]) -> &[u8] {
    word.rsplit(|b| *b == b'/').next().unwrap_or_default()
}

/// A file name's extension: letters and digits, not only digits, behind a dot that is not the first.
fn extension(word: &[u8]) -> Option<&[u8]> {
    let name = last(word);
    let dot = name.iter().rposition(|b| *b == b'.').filter(|i| *i > 0)?;
    let extension = name.get(dot + 1..)?;
    let fits = (1..=MAX_EXTENSION).contains(&extension.len())
        && extension.iter().all(u8::is_ascii_alphanumeric)
        && extension.iter().any(u8::is_ascii_alphabetic);
    fits.then_some(extension)
}
