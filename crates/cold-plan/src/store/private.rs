//! What of the starts that taught a plan not everybody may know: of files, directories and names in private places. It
//! lies beside the plan, readable by its owner alone, in parts that are for starts of one user each.

use super::{Error, Result, Store};
use crate::Plan;
use crate::format::{FormatError, MAX_BYTES, decode, encode};
use crate::plan::Key;

/// Users whose parts are kept beside one plan; the one who was taught longest ago goes first.
pub const MOST_USERS: usize = 8;

/// Begins a part, before the user's number and the length of the plan.
const HEAD: &[u8] = b"private to user ";
/// Between these two, and
const OF: u8 = b':';
/// behind them.
const END: u8 = b'\n';
/// Digits of the largest number there.
const DIGITS: usize = 10;

/// What is for starts of one user alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Private {
    /// Whose starts taught it: their effective user's number.
    pub user: u32,
    /// What is read for them beside the plan of the same key, perhaps nothing. Its steps are made as those of a plan; its
    /// standing, device and trial say nothing.
    pub plan: Plan,
}

/// The file's bytes: as many of the parts, from the first on, as it may hold.
pub(crate) fn bytes(parts: &[Private]) -> std::result::Result<Vec<u8>, FormatError> {
    let mut bytes = Vec::new();
    for part in parts.iter().take(MOST_USERS) {
        let plan = encode(&part.plan)?;
        let head = [HEAD, format!("{}:{}\n", part.user, plan.len()).as_bytes()].concat();
        if !bytes.is_empty() && (bytes.len() + head.len() + plan.len()) as u64 > MAX_BYTES {
            break;
        }
        bytes.extend(head);
        bytes.extend(plan);
    }
    Ok(bytes)
}

/// Reads such a file: one part or more, all of the same key.
pub(crate) fn parse(mut bytes: &[u8]) -> std::result::Result<Vec<Private>, FormatError> {
    let mut parts: Vec<Private> = Vec::new();
    loop {
        let invalid = |why| FormatError::Invalid { section: "private parts", index: parts.len() as u64, why };
        let (user, plan, rest) = first(bytes).ok_or(invalid("it does not say whose starts it is for"))?;
        let plan = decode(plan)?;
        if parts.len() >= MOST_USERS || parts.iter().any(|p| p.user == user) {
            return Err(invalid("there are too many, or two of one user"));
        }
        if parts.iter().any(|p| !p.plan.key.is_of_same_starts(&plan.key)) {
            return Err(invalid("it is beside another plan"));
        }
        parts.push(Private { user, plan });
        if rest.is_empty() {
            return Ok(parts);
        }
        bytes = rest;
    }
}

/// The first part's user, the bytes of its plan, and what comes behind it.
fn first(bytes: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let (user, rest) = number(bytes.strip_prefix(HEAD)?, OF)?;
    let (length, rest) = number(rest, END)?;
    let (plan, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    Some((user, plan, rest))
}

/// The number that stands before this byte, and what comes behind that.
fn number(bytes: &[u8], until: u8) -> Option<(u32, &[u8])> {
    let end = bytes.iter().take(DIGITS + 1).position(|b| *b == until)?;
    let (digits, rest) = bytes.split_at_checked(end)?;
    let plain = digits.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()?;
    Some((number, rest.get(1..)?))
}

impl Store {
    /// What not everybody may know of this key's starts, of the user who was taught last first. Empty when there is
    /// nothing, or it is not this user's to read.
    pub fn private(&self, key: &Key) -> Result<Vec<Private>> {
        let opened = match self.open_path(&self.private_of(key)) {
            Err(Error::Io { source, .. }) if self.means_none(&source) => return Ok(Vec::new()),
            other => other?,
        };
        let path = opened.path.clone();
        let parts = parse(&opened.bytes()?);
        let parts = parts.map_err(|source| Error::Format { path: path.clone(), source })?;
        if parts.iter().any(|part| !part.plan.key.is_of_same_starts(key)) {
            return Err(Error::OtherKey { path });
        }
        Ok(parts)
    }
}
