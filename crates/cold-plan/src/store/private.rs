//! What of the starts that taught a plan not everybody may know: of files, directories and names in private places. It
//! lies beside the plan, readable by its owner alone, and is for starts of the same user only.

use super::{Error, Result, Store};
use crate::Plan;
use crate::format::{FormatError, decode, encode};
use crate::plan::Key;

/// Begins the file, before the user's number and the plan.
const HEAD: &[u8] = b"private to user ";
/// Digits of the largest user number.
const DIGITS: usize = 10;

/// The private part of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Private {
    /// Whose starts taught it: their effective user's number.
    pub user: u32,
    /// What is read for them beside the plan of the same key. Its steps are made as those of a plan; its standing,
    /// device and trial say nothing.
    pub plan: Plan,
}

impl Private {
    pub(super) fn bytes(&self) -> std::result::Result<Vec<u8>, FormatError> {
        let mut bytes = HEAD.to_vec();
        bytes.extend(self.user.to_string().into_bytes());
        bytes.push(b'\n');
        bytes.extend(encode(&self.plan)?);
        Ok(bytes)
    }

    /// Reads such a file.
    pub(crate) fn parse(bytes: &[u8]) -> std::result::Result<Self, FormatError> {
        let why = "it does not say whose starts it is for";
        let (user, plan) =
            head(bytes).ok_or(FormatError::Invalid { section: "first line", index: 0, why })?;
        Ok(Self { user, plan: decode(plan)? })
    }
}

/// The user's number, and what comes behind the first line.
fn head(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let rest = bytes.strip_prefix(HEAD)?;
    let end = rest.iter().take(DIGITS + 1).position(|b| *b == b'\n')?;
    let (digits, rest) = rest.split_at_checked(end)?;
    let plain = digits.iter().all(u8::is_ascii_digit);
    let user = std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()?;
    Some((user, rest.get(1..)?))
}

impl Store {
    /// What not everybody may know of this key's starts; `None` when there is nothing, or it is not this user's to read.
    pub fn private(&self, key: &Key) -> Result<Option<Private>> {
        let opened = match self.open_path(&self.private_of(key)) {
            Err(Error::Io { source, .. }) if self.means_none(&source) => return Ok(None),
            other => other?,
        };
        let path = opened.path.clone();
        let private = Private::parse(&opened.bytes()?);
        let private = private.map_err(|source| Error::Format { path: path.clone(), source })?;
        let own = &private.plan.key;
        if (&own.executable, &own.script, &own.scenario) != (&key.executable, &key.script, &key.scenario) {
            return Err(Error::OtherKey { path });
        }
        Ok(Some(private))
    }
}
