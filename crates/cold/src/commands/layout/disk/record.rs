//! What was arranged, written down and synced before the first block moves: enough to go on and to undo it.

use std::fs::File;
use std::path::{Path, PathBuf};

use cold_layout::blocks::{Move, Piece, Run};
use cold_model::{FileId, Shown as _, path_text};
use cold_sys::blocks::Way;
use cold_sys::remove::Entry;
use cold_sys::whole::{self, Ownership};
use cold_sys::{open, place};
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

type Result<T> = std::result::Result<T, Failure>;

/// Beside the plans' devices.
const NAME: &str = "arranged";
const SCHEMA: &str = "coldstart.arranged/1";
/// No record of a plan is longer: 100 bytes per move, and plans have some thousand.
const MOST_BYTES: u64 = 64 << 20;

/// One plan's arrangement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    schema: String,
    /// Name of the plan.
    pub(super) plan: String,
    /// Blocks are shared, not exchanged (XFS, btrfs).
    shares: bool,
    /// Every move was made that could be.
    pub(super) complete: bool,
    /// The file with the places that are given.
    pub(super) donor: Hidden,
    /// The file that keeps the places of before, where that is another one.
    pub(super) old: Option<Hidden>,
    /// The files, in the numbers of the moves.
    pub(super) files: Vec<Named>,
    /// The moves, in order of need.
    pub(super) moves: Vec<Planned>,
}

/// A file of our own, known by its inode.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Hidden {
    path: String,
    id: FileId,
}

/// A file of the plan.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Named {
    path: String,
    inode: u64,
}

/// A move: bytes of a file, and where they lie before and after.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Planned {
    file: usize,
    offset: u64,
    bytes: u64,
    donor: u64,
    before: Vec<(u64, u64)>,
    after: Vec<(u64, u64)>,
}

impl Planned {
    pub(super) fn of(m: &Move, before: &[Run], after: &[Run]) -> Self {
        let pairs = |runs: &[Run]| runs.iter().map(|r| (r.physical, r.bytes)).collect();
        let Piece { file, offset, bytes } = m.piece;
        Self { file, offset, bytes, donor: m.donor, before: pairs(before), after: pairs(after) }
    }

    pub(super) fn step(&self) -> Move {
        let piece = Piece { file: self.file, offset: self.offset, bytes: self.bytes };
        Move { piece, donor: self.donor }
    }

    /// Where the bytes were.
    pub(super) fn before(&self) -> Vec<Run> {
        runs(&self.before)
    }

    /// Where they go.
    pub(super) fn after(&self) -> Vec<Run> {
        runs(&self.after)
    }
}

fn runs(pairs: &[(u64, u64)]) -> Vec<Run> {
    pairs.iter().map(|&(physical, bytes)| Run { physical, bytes }).collect()
}

impl Hidden {
    pub(super) fn of(path: &Path, file: &File) -> Result<Self> {
        Ok(Self { path: path_text::encode(path), id: FileId::of(&file.metadata()?) })
    }

    fn path(&self) -> PathBuf {
        path_text::decode(&self.path)
    }

    /// Opens it for reading and writing; an error where it is another file, or gone.
    pub(super) fn open(&self) -> Result<File> {
        let path = self.path();
        let (file, meta) = open::regular(&path, false)?;
        if meta.is_file() && FileId::of(&meta).ino == self.id.ino {
            return Ok(cold_sys::blocks::for_writing(&file)?);
        }
        Err(anyhow::anyhow!("{} is another file than was made here; nothing is done with it", path.shown())
            .into())
    }

    /// Removes it, if it still is the file that was made.
    pub(super) fn remove(&self) -> Result<()> {
        let path = self.path();
        let fail = |e: std::io::Error| anyhow::anyhow!("cannot remove {}: {e}", path.shown());
        match Entry::find(&path).map_err(fail)? {
            Some(entry) if entry.id().ino == self.id.ino && entry.meta().is_file() => {
                entry.unlink().map_err(fail)?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Named {
    pub(super) fn of(path: &Path, inode: u64) -> Self {
        Self { path: path_text::encode(path), inode }
    }

    pub(super) fn path(&self) -> PathBuf {
        path_text::decode(&self.path)
    }

    /// Opens it for reading, if it still is that file.
    pub(super) fn open(&self) -> Option<File> {
        let (file, meta) = open::regular(&self.path(), true).ok()?;
        (std::os::unix::fs::MetadataExt::ino(&meta) == self.inode).then_some(file)
    }
}

impl Record {
    pub(super) fn new(plan: &str, way: Way, donor: Hidden, old: Option<Hidden>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            plan: plan.to_owned(),
            shares: way == Way::Share,
            complete: false,
            donor,
            old,
            files: Vec::new(),
            moves: Vec::new(),
        }
    }

    /// A hidden file is gone.
    fn lacks_places(&self) -> Result<bool> {
        for hidden in [Some(&self.donor), self.old.as_ref()].into_iter().flatten() {
            let path = hidden.path();
            let found =
                Entry::find(&path).map_err(|e| anyhow::anyhow!("cannot look at {}: {e}", path.shown()))?;
            if found.is_none() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub(super) fn way(&self) -> Way {
        if self.shares { Way::Share } else { Way::Exchange }
    }
}

/// The records of this machine. Held by one process at a time.
pub(super) struct Records {
    dir: PathBuf,
    _lock: File,
}

impl Records {
    /// Those below `state`. Waits until no other process arranges.
    pub(super) fn open(state: &Path) -> Result<Self> {
        let dir = state.join(NAME);
        let fail = |e: std::io::Error| anyhow::anyhow!("cannot use {}: {e}", dir.shown());
        place::create_directory(&dir, 0o700).map_err(fail)?;
        let meta = dir.symlink_metadata().map_err(fail)?;
        if let Some(why) = place::distrust(&meta, &[0]) {
            return Err(anyhow::anyhow!("{} cannot be believed: {why}", dir.shown()).into());
        }
        let lock = File::open(&dir).map_err(fail)?;
        lock.lock().map_err(fail)?;
        Ok(Self { dir, _lock: lock })
    }

    fn path(&self, plan: &str) -> PathBuf {
        self.dir.join(format!("{plan}.json"))
    }

    /// That of a plan, if it was arranged. Blocks move only when the hidden files are the record's alone: of a run that
    /// was killed before that they are undone with its journal, so nothing has moved, and its record is forgotten.
    pub(super) fn find(&self, plan: &str) -> Result<Option<Record>> {
        match Self::read(&self.path(plan))? {
            Some(record) if !record.complete && record.lacks_places()? => {
                self.remove(&record)?;
                Ok(None)
            }
            found => Ok(found),
        }
    }

    fn read(path: &Path) -> Result<Option<Record>> {
        let (file, meta) = match open::regular(path, false) {
            Err(e) if e.errno() == Some(rustix::io::Errno::NOENT.raw_os_error()) => return Ok(None),
            opened => opened?,
        };
        let damaged = |why: String| anyhow::anyhow!("{} cannot be used: {why}", path.shown());
        if let Some(why) = place::distrust(&meta, &[0]) {
            return Err(damaged(why).into());
        }
        let bytes = open::content(&file, MOST_BYTES).map_err(|e| damaged(e.to_string()))?;
        let bytes = bytes.ok_or_else(|| damaged(format!("it is larger than {MOST_BYTES} bytes")))?;
        let record: Record = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
        if record.schema != SCHEMA {
            return Err(damaged("another version of cold wrote it".to_owned()).into());
        }
        Ok(Some(record))
    }

    /// All of them.
    pub(super) fn all(&self) -> Result<Vec<Record>> {
        let entries = std::fs::read_dir(&self.dir)?.collect::<std::io::Result<Vec<_>>>()?;
        let names = entries.iter().map(std::fs::DirEntry::path);
        let records = names.filter(|p| p.extension().is_some_and(|e| e == "json"));
        records.filter_map(|p| Self::read(&p).transpose()).collect()
    }

    /// Puts it on the disk.
    pub(super) fn save(&self, record: &Record) -> Result<()> {
        let path = self.path(&record.plan);
        let text = serde_json::to_vec(record)?;
        let written = whole::write(&path, Ownership::Own(0o600), &text);
        Ok(written.map_err(|e| anyhow::anyhow!("cannot write {}: {e}", path.shown()))?)
    }

    /// Forgets it, with its hidden files.
    pub(super) fn remove(&self, record: &Record) -> Result<()> {
        record.donor.remove()?;
        if let Some(old) = &record.old {
            old.remove()?;
        }
        let path = self.path(&record.plan);
        let fail = |e: std::io::Error| anyhow::anyhow!("cannot remove {}: {e}", path.shown());
        if let Some(entry) = Entry::find(&path).map_err(fail)? {
            entry.unlink().map_err(fail)?;
        }
        Ok(())
    }
}
