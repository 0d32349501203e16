//! Where plans lie, who may have written them, and which are there.
//!
//! A user has an own store; root's is the system's, which every user may read. A plan that somebody else
//! could have written is refused: replaying it would read files with our rights. Any other directory can be named
//! as a store, where it is a new or an empty one, or was one before.

mod called;
mod error;
mod lock;
mod own;
pub(crate) mod private;
mod write;

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use own::Part;
use rustix::fs::OFlags;

pub use error::{Error, Result};
pub use own::Replay;
pub use private::{MOST_USERS, Private};
pub use write::{Keep, Locked};

use crate::Plan;
use crate::format::{MAX_BYTES, View};
use crate::plan::Key;
use crate::scenario::key_hash;

/// The usual store's directory in a state directory.
const PLANS: &str = "plans";
/// How the paths of usual stores end, a user's and the system's.
pub(crate) const USUAL: &str = "coldstart/plans";
/// Longest part of a file name that the executable gives.
const MAX_EXECUTABLE: usize = 64;

/// A directory of plans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    dir: PathBuf,
    kind: StoreKind,
}

/// Whose store it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreKind {
    /// The user's own.
    Own,
    /// Written by root, read by all.
    System,
    /// A directory that was named; what root or the user wrote there is believed.
    Named,
}

/// A plan's file, opened and found trustworthy; its content not yet looked at.
#[derive(Debug)]
pub struct Opened {
    /// At its beginning. Never written in place, so it may be mapped.
    pub file: File,
    /// Length in bytes when it was opened; at most [`MAX_BYTES`].
    pub len: u64,
    /// Where it lies.
    pub path: PathBuf,
}

/// A plan in a store.
#[derive(Debug)]
pub struct Listed {
    /// Where it lies.
    pub path: PathBuf,
    /// Bytes of its file.
    pub bytes: u64,
    /// When it was saved.
    pub saved: SystemTime,
    /// What the file holds; its key is the one that the file's name stands for.
    pub plan: Plan,
}

/// What is in a store.
#[derive(Debug, Default)]
pub struct Listing {
    /// Plans that can be used, sorted by path.
    pub plans: Vec<Listed>,
    /// Files that look like plans and cannot be used, with the reason.
    pub refused: Vec<(PathBuf, Error)>,
}

impl Store {
    /// The store that this user writes; root's is [`Store::system`]. `variable` reads the environment.
    pub fn user(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let kind = if cold_sys::caps::is_root() { StoreKind::System } else { StoreKind::Own };
        let state = cold_sys::place::state_directory(variable).ok_or(Error::NoDirectory)?;
        Ok(Self { dir: state.join(PLANS), kind })
    }

    /// The plans that root learnt for everybody.
    pub fn system() -> Self {
        Self { dir: Path::new(cold_sys::place::SYSTEM_STATE).join(PLANS), kind: StoreKind::System }
    }

    /// Another directory, as a store of this user; see [`Store::recognise`].
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), kind: StoreKind::Named }
    }

    /// The stores that a start of this user looks into, in order: the own one, then the system's.
    pub fn lookup(variable: impl Fn(&str) -> Option<OsString>) -> Vec<Self> {
        let own = Self::user(variable).ok().filter(|own| !own.is_system());
        own.into_iter().chain([Self::system()]).collect()
    }

    /// Its directory; it may not exist yet.
    pub fn directory(&self) -> &Path {
        &self.dir
    }

    /// It is the system's.
    pub fn is_system(&self) -> bool {
        self.kind == StoreKind::System
    }

    /// It is neither the user's own nor the system's.
    fn is_named(&self) -> bool {
        self.kind == StoreKind::Named
    }

    /// Where the plan of this key lies or would lie: `EXECUTABLE-HASH.plan`, [`key_hash`] as 16
    /// hexadecimal digits.
    pub fn path_of(&self, key: &Key) -> PathBuf {
        self.part_of(key, Part::Plan)
    }

    /// Where the history of this key's starts lies: beside the plan, for the system's plans in the
    /// user's own store.
    pub fn history_of(&self, key: &Key) -> PathBuf {
        self.part_of(key, Part::History)
    }

    /// Where what became of this key's plan in its last recorded start is kept.
    pub fn replay_of(&self, key: &Key) -> PathBuf {
        self.part_of(key, Part::Replay)
    }

    /// Where what not everybody may know of this key's starts lies.
    pub fn private_of(&self, key: &Key) -> PathBuf {
        self.part_of(key, Part::Private)
    }

    fn part_of(&self, key: &Key, part: Part) -> PathBuf {
        self.dir.join(format!("{}.{}", stem(key), part.extension()))
    }

    /// What [`Store::save_replay`] has kept; `None` when there is nothing.
    pub fn replay(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        match self.open_path(&self.replay_of(key)) {
            Err(Error::Io { source, .. }) if self.means_none(&source) => Ok(None),
            other => other.and_then(|opened| opened.bytes()).map(Some),
        }
    }

    /// Opens the plan of this key for a launcher; `None` when there is none.
    pub fn open(&self, key: &Key) -> Result<Option<Opened>> {
        let path = self.path_of(key);
        match self.open_path(&path) {
            Err(Error::Io { source, .. }) if self.means_none(&source) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Loads the plan of this key; `None` when there is none.
    pub fn load(&self, key: &Key) -> Result<Option<Plan>> {
        let Some(opened) = self.open(key)? else { return Ok(None) };
        let path = opened.path.clone();
        let bytes = opened.bytes()?;
        let fault = |source| Error::Format { path: path.clone(), source };
        let view = View::parse(&bytes).map_err(fault)?;
        if !view.is_for(key) {
            return Err(Error::OtherKey { path });
        }
        view.to_plan().map(Some).map_err(fault)
    }

    /// Every plan there is, and what cannot be one. A store that does not exist is empty.
    pub fn list(&self) -> Result<Listing> {
        let mut listing = Listing::default();
        for path in self.files(Part::Plan)? {
            match self.listed(&path) {
                Ok(listed) => listing.plans.push(listed),
                Err(e) => listing.refused.push((path, e)),
            }
        }
        Ok(listing)
    }

    fn listed(&self, path: &Path) -> Result<Listed> {
        let opened = self.open_path(path)?;
        let meta = opened.file.metadata().map_err(|e| Error::io("stat", path, e))?;
        let saved = meta.modified().map_err(|e| Error::io("stat", path, e))?;
        let bytes = opened.len;
        let plan = crate::format::decode(&opened.bytes()?);
        let plan = plan.map_err(|source| Error::Format { path: path.to_owned(), source })?;
        if self.path_of(&plan.key) != path {
            return Err(Error::OtherKey { path: path.to_owned() });
        }
        Ok(Listed { path: path.to_owned(), bytes, saved, plan })
    }

    /// There is nothing for this user: not there, or a system whose root keeps its plans to itself.
    fn means_none(&self, error: &std::io::Error) -> bool {
        let kind = error.kind();
        kind == ErrorKind::NotFound || (self.is_system() && kind == ErrorKind::PermissionDenied)
    }

    /// Files with such names, sorted.
    fn files(&self, part: Part) -> Result<Vec<PathBuf>> {
        let entries = match std::fs::read_dir(&self.dir) {
            Err(e) if self.means_none(&e) => return Ok(Vec::new()),
            other => other.map_err(|e| Error::io("list", &self.dir, e))?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| Error::io("list", &self.dir, e))?;
            if Part::of(&entry.file_name()) == Some(part) {
                files.push(entry.path());
            }
        }
        files.sort();
        Ok(files)
    }

    /// Opens without side effects and looks whether it may be believed.
    fn open_path(&self, path: &Path) -> Result<Opened> {
        // NOFOLLOW and NONBLOCK: a link or FIFO put there must neither lead astray nor block.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits().cast_signed())
            .open(path)
            .map_err(|e| Error::io("open", path, e))?;
        let meta = file.metadata().map_err(|e| Error::io("stat", path, e))?;
        if !meta.is_file() {
            return Err(Error::untrusted(path, "it is no regular file".to_owned()));
        }
        let me = rustix::process::geteuid().as_raw();
        let owners: &[u32] = match self.kind {
            StoreKind::System => &[0],
            StoreKind::Own => &[me],
            StoreKind::Named if me == 0 => &[0],
            StoreKind::Named => &[me, 0],
        };
        trusted(path, &meta, owners)?;
        if meta.len() > MAX_BYTES {
            return Err(too_large(path));
        }
        Ok(Opened { file, len: meta.len(), path: path.to_owned() })
    }
}

/// Refuses what belongs to none of `owners` or can be written by others: who can write a plan says which files
/// this process opens.
pub fn trusted(path: &Path, meta: &Metadata, owners: &[u32]) -> Result<()> {
    match cold_sys::place::distrust(meta, owners) {
        None => Ok(()),
        Some(why) if owners.contains(&meta.uid()) => Err(Error::untrusted(path, why)),
        Some(why) => Err(Error::Others { path: path.to_owned(), why }),
    }
}

impl Opened {
    /// All of it: not yet checked.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let bytes = cold_sys::open::content(&self.file, MAX_BYTES);
        bytes.map_err(|e| Error::io("read", &self.path, e))?.ok_or_else(|| too_large(&self.path))
    }
}

fn too_large(path: &Path) -> Error {
    Error::untrusted(path, format!("it is larger than {MAX_BYTES} bytes"))
}

/// The part of the file name that plan and history share.
fn stem(key: &Key) -> String {
    let name = key.executable.file_name().unwrap_or_default().as_bytes();
    let name: String =
        name.iter().take(MAX_EXECUTABLE).map(|b| if plain(*b) { char::from(*b) } else { '_' }).collect();
    format!("{name}-{:016x}", key_hash(key))
}

/// What of an executable's name stands in a file's name as it is.
fn plain(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'+' | b'-')
}

#[cfg(test)]
mod tests;
