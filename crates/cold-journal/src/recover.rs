//! What processes that died without undoing their changes left behind.

use std::path::{Path, PathBuf};

use cold_sys::procfs::ProcFs;

use crate::change::Change;
use crate::file::{JournalFile, Pending, SUFFIX};
use crate::record::{Owner, Record, boot_id};
use crate::undo::{Journals, Outcome, Undone, undo};
use crate::{Error, Result, place, turn};

/// The journal of a dead process. While it is held no other process can repair it.
#[derive(Debug)]
pub struct Leftover {
    path: PathBuf,
    file: JournalFile,
    owner: Option<Owner>,
    pending: Vec<Pending>,
    damaged: usize,
    same_boot: bool,
}

/// The journals in `dir` that nobody holds, oldest owner first: those of living processes and
/// those which another process is repairing are left out. A missing directory holds none; a directory
/// or journal that others may write is an error, with which nothing is undone.
pub fn leftovers(dir: &Path) -> Result<Vec<Leftover>> {
    let meta = match dir.metadata() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(|e| Error::io("stat", dir, e))?,
    };
    place::trusted(dir, &meta)?;
    let boot = boot_id(&ProcFs::default())?;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(|e| Error::io("list", dir, e))? {
        let path = entry.map_err(|e| Error::io("list", dir, e))?.path();
        if path.extension().is_some_and(|e| e == SUFFIX)
            && let Some(leftover) = Leftover::open(path, &boot)?
        {
            found.push(leftover);
        }
    }
    found.sort_by_key(|l| l.owner.as_ref().map(|o| o.starttime));
    Ok(found)
}

/// Undoes all leftovers in `dir`: newest process first, within it newest change first, so that changes
/// of the same setting nest. Call it at every start.
pub fn recover(dir: &Path) -> Result<Vec<Undone>> {
    let mut undone = Vec::new();
    for leftover in leftovers(dir)?.into_iter().rev() {
        undone.extend(leftover.repair()?);
    }
    Ok(undone)
}

impl Leftover {
    /// The journal `path` if its owner is dead.
    pub(crate) fn find(path: &Path, proc: &ProcFs) -> Result<Option<Self>> {
        Self::open(path.to_owned(), &boot_id(proc)?)
    }

    fn open(path: PathBuf, boot: &str) -> Result<Option<Self>> {
        // The lock of its owner tells whether that lives, and nothing else does: its pid may be that of another
        // process, or of none, in this pid namespace (a container that shares the state directory).
        let (file, content) = match JournalFile::open(&path) {
            Ok(Some(opened)) => opened,
            Ok(None) => return Ok(None),
            // Repaired by another process since it was listed.
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        let same_boot = content.owner.as_ref().is_none_or(|o| o.boot_id == boot);
        let owner = content.owner.or_else(|| owner_by_name(&path, boot));
        let leftover =
            Self { path, file, owner, pending: content.pending, damaged: content.damaged, same_boot };
        Ok(Some(leftover))
    }

    /// The journal's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who made the changes, where known.
    pub fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    /// What is not known to be undone, in the order it was made. Print with `Display`.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.pending.iter().map(|p| &p.change)
    }

    /// Lines that could not be read. One is usual for a killed process (its change was not made); the
    /// changes in further ones, if any, are not known.
    pub fn damaged_lines(&self) -> usize {
        self.damaged
    }

    /// Undoes the changes, newest first. What fails stays in the journal for the next attempt; the
    /// error is in the [`Undone`]. An `Err` of this function means the journal itself failed.
    pub fn repair(mut self) -> Result<Vec<Undone>> {
        let proc = ProcFs::default();
        let mut report = Vec::new();
        let mut failed = false;
        while let Some(pending) = self.pending.pop() {
            let outcome = if !self.same_boot && pending.change.ends_with_boot() {
                Ok(Outcome::GoneWithReboot)
            } else {
                let dir = self.path.parent().unwrap_or(Path::new("."));
                let _turn = pending.change.takes_turn().then(|| turn::take(dir)).transpose()?;
                undo(&proc, Journals { dir, own: Some(&self.path) }, &pending)
            };
            match &outcome {
                Ok(o) => self.file.append(&Record::Done { id: pending.id, outcome: o.to_string() })?,
                Err(_) => failed = true,
            }
            report.push(Undone { change: pending.change, outcome });
        }
        if !failed {
            self.file.remove()?;
        }
        Ok(report)
    }
}

/// `PID-STARTTIME-N.journal`; needed where the header is damaged or not yet written.
fn owner_by_name(path: &Path, boot: &str) -> Option<Owner> {
    let mut parts = path.file_stem()?.to_str()?.split('-');
    let pid = parts.next()?.parse().ok()?;
    let starttime = parts.next()?.parse().ok()?;
    Some(Owner { pid, starttime, boot_id: boot.to_owned(), comm: "unknown".to_owned() })
}
