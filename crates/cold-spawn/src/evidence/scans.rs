//! Runs of lookups of one template with consecutive integers: a search for a free name, or for the last
//! taken one, from the beginning.

use std::collections::HashMap;

use cold_model::recording::{Lookup, LookupKind, Recording, StackIdx};

use super::libc_errno::{EEXIST, ENOENT};

/// Consecutive names that make a run; two numbered names in a row occur in ordinary programs (`libfoo.so.1`,
/// `libfoo.so.2`).
const LEAST: u64 = 3;
/// Runs followed at the same time per recording, so that a hostile one costs no memory.
const MOST_OPEN: usize = 65_536;
/// Digits of an integer that is compared; longer ones are no counters.
const MOST_DIGITS: usize = 18;
const O_CREAT: u32 = 0o100;
const O_EXCL: u32 = 0o200;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A free name was found, and created.
    Created,
    /// A free name was found.
    Free,
    /// The last name that was looked at was taken.
    Taken,
}

/// One run of lookups over numbered names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameScan {
    /// Directory of the names.
    pub directory: String,
    /// What stands before the integer.
    pub prefix: String,
    /// What stands behind it.
    pub suffix: String,
    /// First integer looked at.
    pub first: u64,
    /// Last integer looked at, inclusive.
    pub last: u64,
    /// Lookups, repeated ones of the same name included.
    pub lookups: u64,
    /// How it ended.
    pub end: End,
    /// Wall time of its lookups, nanoseconds.
    pub ns: u64,
    /// Its last lookup in the table.
    pub lookup: usize,
    /// The stack of the last of its lookups that has one.
    pub stack: Option<StackIdx>,
}

impl NameScan {
    /// Names looked at.
    pub fn length(&self) -> u64 {
        self.last - self.first + 1
    }
    /// `/dir/prefix{n}suffix`.
    pub fn template(&self) -> String {
        format!("{}/{}{{n}}{}", self.directory.trim_end_matches('/'), self.prefix, self.suffix)
    }
}

/// Directory and file name of an absolute path.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    let (dir, name) = path.rsplit_once('/')?;
    (!name.is_empty()).then_some((if dir.is_empty() { "/" } else { dir }, name))
}

/// Every (prefix, integer, suffix) that a name can be read as.
fn numbered(name: &str) -> impl Iterator<Item = (&str, u64, &str)> {
    let bytes = name.as_bytes();
    let starts = (0..bytes.len())
        .filter(|i| bytes[*i].is_ascii_digit() && (*i == 0 || !bytes[*i - 1].is_ascii_digit()));
    starts.filter_map(|start| {
        let digits = name[start..].bytes().take_while(u8::is_ascii_digit).count();
        if digits > MOST_DIGITS {
            return None;
        }
        let value = name[start..start + digits].parse().ok()?;
        Some((&name[..start], value, &name[start + digits..]))
    })
}

#[derive(Hash, PartialEq, Eq)]
struct Template<'a> {
    pid: u32,
    directory: &'a str,
    prefix: &'a str,
    suffix: &'a str,
}

/// All runs of at least [`LEAST`] names, in the order of their ends.
pub(super) fn find(recording: &Recording, own: &impl Fn(u32) -> bool) -> Vec<NameScan> {
    let mut open: HashMap<Template<'_>, NameScan> = HashMap::new();
    let mut found = Vec::new();
    for (index, l) in recording.lookups.iter().flatten().enumerate() {
        if !own(l.pid) || matches!(l.kind, LookupKind::List | LookupKind::Exec) {
            continue;
        }
        let (Some((directory, name)), Some(end)) = (l.path.as_deref().and_then(split), ends(l)) else {
            continue;
        };
        let ns = l.ended.saturating_sub(l.at).0;
        for (prefix, n, suffix) in numbered(name) {
            let key = Template { pid: l.pid, directory, prefix, suffix };
            let fresh = || NameScan {
                directory: directory.into(),
                prefix: prefix.into(),
                suffix: suffix.into(),
                first: n,
                last: n,
                lookups: 1,
                end,
                ns,
                lookup: index,
                stack: l.stack,
            };
            let full = open.len() >= MOST_OPEN;
            match open.get_mut(&key) {
                // The same name again: a stat before an open.
                Some(run) if n == run.last || n == run.last + 1 => {
                    (run.last, run.end, run.lookup) = (n, end, index);
                    run.lookups += 1;
                    run.ns += ns;
                    run.stack = l.stack.or(run.stack);
                }
                Some(run) => found.push(std::mem::replace(run, fresh())),
                None if !full => {
                    open.insert(key, fresh());
                }
                None => {}
            }
        }
    }
    found.extend(open.into_values());
    found.retain(|run| run.length() >= LEAST);
    found.sort_by_key(|run| run.lookup);
    found
}

/// What a lookup says of its name; none when it says nothing (permission denied, unknown).
fn ends(l: &Lookup) -> Option<End> {
    let exclusive = l.kind == LookupKind::Open && l.flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL;
    let creates = l.kind == LookupKind::Open && l.flags & O_CREAT != 0;
    match l.result {
        r if r == -i64::from(ENOENT) => Some(End::Free),
        r if r == -i64::from(EEXIST) => Some(End::Taken),
        r if r >= 0 && (exclusive || creates) => Some(End::Created),
        r if r >= 0 => Some(End::Taken),
        _ => None,
    }
}
