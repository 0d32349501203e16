//! What a store writes, and how it knows that again: by name *and* content. Nothing else is ever removed.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use cold_model::Shown as _;

use super::{Error, Result, Store, called, lock, private};
use crate::format::decode;
use crate::history;

/// How many hexadecimal digits a hash or a random number has in a name.
const DIGITS: usize = 16;

/// A file that belongs to a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// What a launcher reads.
    Plan,
    /// The starts made by it, a record each.
    History,
    /// What became of it in its last recorded start, as whoever recorded it writes it.
    Replay,
    /// What of the starts that taught it not everybody may know.
    Private,
}

impl Part {
    /// The plan last: by it a group is called, where there is one.
    pub(super) const ALL: [Self; 4] = [Self::History, Self::Replay, Self::Private, Self::Plan];

    /// How its name ends.
    pub(super) const fn extension(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::History => "log",
            Self::Replay => "replay",
            Self::Private => "private",
        }
    }

    /// Which part has such a name: `EXECUTABLE-HASH.EXTENSION`.
    pub(super) fn of(name: &OsStr) -> Option<Self> {
        let (stem, extension) = name.to_str()?.rsplit_once('.')?;
        let (executable, hash) = stem.rsplit_once('-')?;
        let part = Self::ALL.into_iter().find(|p| p.extension() == extension)?;
        let plain = executable.len() <= super::MAX_EXECUTABLE && executable.bytes().all(super::plain);
        (plain && is_hexadecimal(hash)).then_some(part)
    }
}

pub(super) fn is_hexadecimal(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Names that a directory has which `cold` has only ever used as a store: parts of plans, links to them, measured
/// devices, trials under way, and what a killed process of this or an earlier version was writing.
fn is_usual(name: &OsStr) -> bool {
    let text = name.to_str().unwrap_or_default();
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let trial = |rest: &str| rest.split_once('-').is_some_and(|(pid, n)| number(pid) && is_hexadecimal(n));
    Part::of(name).is_some()
        || called::is_name(name)
        || text == "devices"
        || text.strip_prefix(".cold-").is_some_and(is_hexadecimal)
        || text.strip_prefix(".tmp-").is_some_and(|rest| number(rest.strip_suffix("-log").unwrap_or(rest)))
        || text.strip_prefix("trial-").is_some_and(trial)
}

impl Store {
    /// Refuses a directory that is there and no store: not marked as one, and with something in it that no store
    /// has. So nothing is written into, say, a home directory. Makes and changes nothing.
    pub fn recognise(&self) -> Result<()> {
        if !self.is_named() {
            return Ok(());
        }
        let dir = self.directory();
        let lock = dir.join(lock::NAME);
        if lock::read(&lock)? == Some(lock::Mark::Ours) {
            return Ok(());
        }
        let entries = match std::fs::read_dir(dir) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(|e| Error::io("list", dir, e))?,
        };
        for entry in entries {
            let name = entry.map_err(|e| Error::io("list", dir, e))?.file_name();
            let usual = if name == lock::NAME {
                // Read again: another process may just have made it, or marked it.
                match lock::read(&lock)? {
                    Some(lock::Mark::Ours) => return Ok(()),
                    // Earlier versions left it empty.
                    Some(lock::Mark::None) => true,
                    Some(lock::Mark::Others) | None => false,
                }
            } else {
                is_usual(&name)
            };
            if !usual {
                return Err(Error::NoStore { path: dir.to_owned(), holds: name.shown().to_string() });
            }
        }
        Ok(())
    }

    /// Whether this file is what its name says: a plan whose key has this name, records of starts, a replay. What
    /// cannot be believed or read is not.
    pub(super) fn is_own(&self, path: &Path, part: Part) -> bool {
        let Ok(bytes) = self.open_path(path).and_then(|opened| opened.bytes()) else { return false };
        match part {
            Part::Plan => decode(&bytes).is_ok_and(|plan| self.path_of(&plan.key) == path),
            Part::History => history::is_one(&bytes),
            Part::Replay => is_replay(&bytes),
            Part::Private => private::parse(&bytes)
                .is_ok_and(|parts| parts.iter().all(|part| self.private_of(&part.plan.key) == path)),
        }
    }
}

/// What became of a plan in a recorded start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay<'a> {
    /// When, seconds since 1970.
    pub at: u64,
    /// By which steps: the same number for the same steps only.
    pub steps: u64,
    /// A JSON object.
    pub document: &'a str,
}

impl Replay<'_> {
    /// Its file: JSON, in a form that is known again without a parser.
    pub(super) fn text(&self) -> String {
        format!("{{\"at\":{},\"steps\":\"{:016x}\",\"replay\":{}}}", self.at, self.steps, self.document)
    }
}

fn is_replay(bytes: &[u8]) -> bool {
    let document = || {
        let rest = bytes.strip_prefix(b"{\"at\":")?;
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        let rest = rest.get(digits..)?.strip_prefix(b",\"steps\":\"").filter(|_| digits > 0)?;
        let (hash, rest) = rest.split_at_checked(DIGITS)?;
        let hash = std::str::from_utf8(hash).is_ok_and(is_hexadecimal);
        rest.strip_prefix(b"\",\"replay\":{")?.strip_suffix(b"}}").filter(|_| hash)
    };
    document().is_some()
}

/// At most so much of a small file.
pub(super) fn beginning(path: &Path, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    let Ok((file, _)) = cold_sys::open::regular(path, false) else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_store_are_its_own() {
        let part = |name: &str| Part::of(OsStr::new(name));
        assert_eq!(part("python3.11-0123456789abcdef.plan"), Some(Part::Plan));
        assert_eq!(part("-0123456789abcdef.log"), Some(Part::History));
        assert_eq!(part("a-b-0123456789abcdef.replay"), Some(Part::Replay));
        assert_eq!(part("a-0123456789abcdef.private"), Some(Part::Private));
        for no in ["a-0123456789abcde.plan", "a-0123456789ABCDEF.plan", "a b-0123456789abcdef.plan", "a.log"]
        {
            assert_eq!(part(no), None, "{no}");
        }
        let bytes = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff-0123456789abcdef.plan");
        assert_eq!(Part::of(bytes), None);
        for usual in ["devices", ".tmp-7", ".tmp-7-log", ".cold-0123456789abcdef", "trial-7-0123456789abcdef"]
        {
            assert!(is_usual(OsStr::new(usual)), "{usual}");
        }
        for not in [".tmp-", ".tmp-x", "trial-2024-results", "trial-7", ".cold-1", "lock.txt", ".bashrc"] {
            assert!(!is_usual(OsStr::new(not)), "{not}");
        }
    }

    #[test]
    fn a_replay_is_known_by_its_form() {
        let text = Replay { at: 17, steps: 0xab, document: "{\"total\":{}}" }.text();
        assert_eq!(text, r#"{"at":17,"steps":"00000000000000ab","replay":{"total":{}}}"#);
        assert!(is_replay(text.as_bytes()));
        for no in ["", "{}", r#"{"at":,"steps":"00000000000000ab","replay":{}}"#, &text[1..], &text[..30]] {
            assert!(!is_replay(no.as_bytes()), "{no}");
        }
    }
}
