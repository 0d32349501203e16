//! Changing a store: one process at a time, each plan whole or not at all.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use super::{Error, HISTORY, PLAN, REPLAY, Result, Store, TEMPORARY, read};
use crate::Plan;
use crate::format::{View, encode};
use crate::plan::{Key, Standing};

/// The file whose lock a changing process holds.
const LOCK: &str = "lock";

/// A store that only this process changes, until this is dropped. Held while a plan is loaded, changed
/// and saved, not while starts are recorded.
#[derive(Debug)]
pub struct Locked<'a> {
    store: &'a Store,
    /// Closing it ends the lock.
    _lock: File,
}

/// What [`Locked::prune`] leaves; `None`: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keep {
    /// Plans saved or used within this time.
    pub max_age: Option<Duration>,
    /// So many bytes of plans and histories, the last used first.
    pub max_bytes: Option<u64>,
}

impl Store {
    /// Creates the store where it is missing and waits until no other process changes it.
    pub fn lock(&self) -> Result<Locked<'_>> {
        self.prepare()?;
        let path = self.dir.join(LOCK);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(&path)
            .map_err(|e| Error::io("open", &path, e))?;
        file.lock().map_err(|e| Error::io("lock", &path, e))?;
        Ok(Locked { store: self, _lock: file })
    }

    /// [`Locked::save`] under a lock of its own.
    pub fn save(&self, plan: &Plan) -> Result<PathBuf> {
        self.lock()?.save(plan)
    }

    /// Switches the plan of this key off, when it still is the save with this number ([`View::id`]); whether it
    /// was.
    pub fn switch_off(&self, key: &Key, id: u64, why: String) -> Result<bool> {
        let locked = self.lock()?;
        let Some(opened) = self.open(key)? else { return Ok(false) };
        let path = opened.path.clone();
        let bytes = read(opened)?;
        let fault = |source| Error::Format { path: path.clone(), source };
        let view = View::parse(&bytes).map_err(fault)?;
        if view.id() != id || !view.is_for(key) {
            return Ok(false);
        }
        let plan = Plan { standing: Standing::Off(why), ..view.to_plan().map_err(fault)? };
        locked.save(&plan).map(|_| true)
    }

    /// Keeps beside the plan of this key what became of it in a recorded start. Removed with the plan.
    pub fn save_replay(&self, key: &Key, bytes: &[u8]) -> Result<()> {
        self.lock()?.put(&self.replay_of(key), bytes)
    }

    /// [`Locked::remove`] under a lock of its own.
    pub fn remove(&self, key: &Key) -> Result<bool> {
        if !self.dir.exists() {
            return Ok(false);
        }
        self.lock()?.remove(key)
    }

    /// [`Locked::prune`] under a lock of its own.
    pub fn prune(&self, keep: Keep, now: SystemTime) -> Result<Vec<PathBuf>> {
        if !self.dir.exists() {
            return Ok(Vec::new());
        }
        self.lock()?.prune(keep, now)
    }

    /// Creates the directory and checks it.
    fn prepare(&self) -> Result<()> {
        let mode = if self.system { 0o755 } else { 0o700 };
        cold_sys::place::create_directory(&self.dir, mode).map_err(|e| Error::io("create", &self.dir, e))?;
        let meta = self.dir.metadata().map_err(|e| Error::io("stat", &self.dir, e))?;
        self.trusted(&self.dir, &meta)?;
        if self.system {
            // The directory above may have been made for root alone (the journal's is 0700), and
            // creating obeys the umask: users must be able to reach the plans.
            for dir in self.dir.ancestors().take(2) {
                open_to_all(dir)?;
            }
        }
        Ok(())
    }
}

fn open_to_all(dir: &Path) -> Result<()> {
    let mode = dir.metadata().map_err(|e| Error::io("stat", dir, e))?.mode() & 0o7777;
    if mode & 0o055 == 0o055 {
        return Ok(());
    }
    std::fs::set_permissions(dir, Permissions::from_mode(mode | 0o055))
        .map_err(|e| Error::io("change the mode of", dir, e))
}

impl Locked<'_> {
    /// Writes the plan under its name, complete or not at all, also after a power cut.
    pub fn save(&self, plan: &Plan) -> Result<PathBuf> {
        let path = self.store.path_of(&plan.key);
        let bytes = encode(plan).map_err(|source| Error::Format { path: path.clone(), source })?;
        self.put(&path, &bytes)?;
        Ok(path)
    }

    fn put(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        // Alone under the lock: a file of this name is a killed process's.
        let temporary = self.store.dir.join(format!("{TEMPORARY}{}", std::process::id()));
        discard(&temporary)?;
        let written = self.write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
        written.map_err(|e| {
            // Whatever was written is of no use to anybody; the first error is the one to tell.
            let _ = std::fs::remove_file(&temporary);
            Error::io("write", path, e)
        })?;
        self.sync()
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let mode = if self.store.system { 0o644 } else { 0o600 };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Makes new and removed names survive a power cut.
    fn sync(&self) -> Result<()> {
        let dir = &self.store.dir;
        File::open(dir).and_then(|d| d.sync_all()).map_err(|e| Error::io("sync", dir, e))
    }

    /// Removes a plan and its history; false when there was no plan.
    pub fn remove(&self, key: &Key) -> Result<bool> {
        self.remove_path(&self.store.path_of(key))
    }

    /// Removes a plan's file, whatever is in it, and its history; false when there was none.
    pub fn remove_path(&self, path: &Path) -> Result<bool> {
        let store = &self.store.dir;
        if path.parent() != Some(store) || path.extension().is_none_or(|e| e != PLAN) {
            return Err(Error::NotInStore { path: path.to_owned(), store: store.clone() });
        }
        discard(&path.with_extension(HISTORY))?;
        discard(&path.with_extension(REPLAY))?;
        let was_there = discard(path)?;
        self.sync()?;
        Ok(was_there)
    }

    /// Removes plans, with their histories, that were neither saved nor used for too long, and the least
    /// recently used of the others until the rest is small enough. Gives the removed plans and
    /// histories without plan.
    pub fn prune(&self, keep: Keep, now: SystemTime) -> Result<Vec<PathBuf>> {
        self.discard_temporaries()?;
        let mut groups: Vec<Group> = self.groups()?.into_values().collect();
        // The last used first; equally old ones by name, so that the same ones go each time.
        groups.sort_by(|a, b| b.used.cmp(&a.used).then_with(|| a.files.cmp(&b.files)));
        let mut kept = 0_u64;
        let mut removed = Vec::new();
        for group in groups {
            let age = now.duration_since(group.used).unwrap_or_default();
            let bytes = kept.saturating_add(group.bytes);
            if keep.max_age.is_some_and(|most| age > most) || keep.max_bytes.is_some_and(|most| bytes > most)
            {
                for file in &group.files {
                    discard(file)?;
                }
                removed.extend(group.files.into_iter().next_back());
            } else {
                kept = bytes;
            }
        }
        self.sync()?;
        removed.sort();
        Ok(removed)
    }

    /// Plans with their histories, by their common name.
    fn groups(&self) -> Result<BTreeMap<PathBuf, Group>> {
        let mut groups = BTreeMap::<PathBuf, Group>::new();
        // The plan last: it is what the group is called by, where there is one.
        for extension in [HISTORY, REPLAY, PLAN] {
            for path in self.store.files(extension)? {
                let meta = match path.symlink_metadata() {
                    Err(e) if e.kind() == ErrorKind::NotFound => continue,
                    other => other.map_err(|e| Error::io("stat", &path, e))?,
                };
                let used = meta.modified().map_err(|e| Error::io("stat", &path, e))?;
                let group = groups.entry(path.with_extension("")).or_insert(Group::new());
                group.used = group.used.max(used);
                group.bytes += meta.len();
                group.files.push(path);
            }
        }
        Ok(groups)
    }

    fn discard_temporaries(&self) -> Result<()> {
        let dir = &self.store.dir;
        for entry in std::fs::read_dir(dir).map_err(|e| Error::io("list", dir, e))? {
            let path = entry.map_err(|e| Error::io("list", dir, e))?.path();
            if path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(TEMPORARY.as_bytes())) {
                discard(&path)?;
            }
        }
        Ok(())
    }
}

/// A plan with its history.
struct Group {
    files: Vec<PathBuf>,
    bytes: u64,
    used: SystemTime,
}

impl Group {
    fn new() -> Self {
        Self { files: Vec::new(), bytes: 0, used: SystemTime::UNIX_EPOCH }
    }
}

/// Removes a file; false when there was none.
fn discard(path: &Path) -> Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io("remove", path, e)),
    }
}
