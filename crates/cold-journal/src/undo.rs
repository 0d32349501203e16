//! Undoing one change. Every function here may run twice, and after a crash at any point: it looks at
//! what is there, recognises what is its own, and leaves everything else alone.

mod cgroup;
mod device;
mod process;
mod tree;

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use cold_sys::procfs::ProcFs;

use crate::change::{Change, Made};
use crate::error::is_gone;
use crate::file::Pending;
use crate::kernel::locate;
use crate::{Error, Result, setting, turn};

/// How long processes, mounts and devices get to let go before that is reported.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a change was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The state before the change is back.
    Restored,
    /// There was nothing to undo: the change had not been made, or its thing is gone.
    Gone,
    /// Somebody else changed it meanwhile, so it was left as it is.
    ChangedByOthers {
        /// What was found.
        found: String,
    },
    /// A newer change of the same setting will restore it.
    LeftToNewer,
    /// Another process still needs it, and will undo it.
    LeftToOthers,
    /// It was in use; it ends when its last user is gone.
    WhenUnused,
    /// The machine was restarted since.
    GoneWithReboot,
    /// It was undone before.
    AlreadyUndone,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restored => f.write_str("restored"),
            Self::Gone => f.write_str("nothing to undo"),
            Self::ChangedByOthers { found } => write!(f, "left alone, changed by others: {found}"),
            Self::LeftToNewer => f.write_str("left to a newer change of the same setting"),
            Self::LeftToOthers => f.write_str("left to another process that needs it, too"),
            Self::WhenUnused => f.write_str("in use, ends with its last user"),
            Self::GoneWithReboot => f.write_str("gone with a reboot"),
            Self::AlreadyUndone => f.write_str("already undone"),
        }
    }
}

/// A change and how undoing it went.
#[derive(Debug)]
pub struct Undone {
    /// The change, as the journal has it.
    pub change: Change,
    /// What was done, or why it could not be done (it is tried again by the next recovery).
    pub outcome: Result<Outcome>,
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Ok(outcome) => write!(f, "{}: {outcome}", self.change),
            Err(error) => write!(f, "{}: not undone: {error}", self.change),
        }
    }
}

/// The journal that a change stands in, and where the others lie.
#[derive(Clone, Copy)]
pub(crate) struct Journals<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) own: Option<&'a Path>,
}

/// Undoes one change. The caller has the turn if [`Change::takes_turn`].
pub(crate) fn undo(proc: &ProcFs, journals: Journals<'_>, pending: &Pending) -> Result<Outcome> {
    let made = pending.made.as_ref();
    let identity = match made {
        Some(Made::File(id)) => Some(*id),
        _ => None,
    };
    match &pending.change {
        Change::Setting { path, old, new, kernel } => {
            let Some(place) = locate(proc, kernel.as_ref(), path)? else { return Ok(Outcome::Gone) };
            restore(&place.path, old, new, made).map_err(|e| e.of(path))
        }
        Change::Controller { path, name, kernel } => {
            let Some(place) = locate(proc, kernel.as_ref(), path)? else { return Ok(Outcome::Gone) };
            if turn::holder(journals.dir, journals.own, &pending.change)?.is_some() {
                return Ok(Outcome::LeftToOthers);
            }
            controller(&place.path, name).map_err(|e| e.of(path))
        }
        Change::Cgroup { path, kernel } => cgroup::remove(proc, path, kernel.as_ref(), identity),
        Change::Mount { target, fs_type, source } => device::unmount(proc, target, fs_type, source),
        Change::Loop { number, backing, id } => device::detach(*number, backing, *id),
        Change::File { path, parent } => tree::remove(proc, path, *parent, identity, tree::file),
        Change::Directory { path, parent } => tree::remove(proc, path, *parent, identity, tree::directory),
        Change::Process { token, .. } => match made {
            Some(Made::Process { pid, starttime }) => process::kill(proc, *pid, *starttime, token),
            _ => process::kill_by_token(proc, token),
        },
    }
}

fn restore(path: &Path, old: &str, new: &str, made: Option<&Made>) -> Result<Outcome> {
    let found = match setting::read(path) {
        // The device or cgroup it belonged to is gone.
        Err(Error::Io { source, .. }) if is_gone(&source) => return Ok(Outcome::Gone),
        other => other?,
    };
    if found == old {
        return Ok(Outcome::Gone);
    }
    let ours = match made {
        Some(Made::Value(read_back)) => found == *read_back || found == new,
        _ => found == new,
    };
    if !ours {
        return Ok(Outcome::ChangedByOthers { found: format!("{found:?}") });
    }
    setting::write(path, old)?;
    let now = setting::read(path)?;
    if now == old {
        return Ok(Outcome::Restored);
    }
    Err(Error::refused("restore", path, format!("{old:?} was written, but it reads {now:?}")))
}

fn controller(path: &Path, name: &str) -> Result<Outcome> {
    let on = match setting::read(path) {
        Err(Error::Io { source, .. }) if is_gone(&source) => return Ok(Outcome::Gone),
        other => other?.split_whitespace().any(|c| c == name),
    };
    if !on {
        return Ok(Outcome::Gone);
    }
    // Refused (EBUSY) while a child that somebody else made uses it: then it stays in the journal.
    setting::write(path, &format!("-{name}"))?;
    Ok(Outcome::Restored)
}

/// Calls `attempt` until it gives a value or [`PATIENCE`] is over.
fn until<T>(mut attempt: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
    let deadline = Instant::now() + PATIENCE;
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(value) = attempt()? {
            return Ok(Some(value));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}
