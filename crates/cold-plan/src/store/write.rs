//! Changing a store: one process at a time, each plan whole or not at all.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cold_sys::whole::Ownership;

use super::own::Part;
use super::{Error, Private, Replay, Result, Store, lock, private, trusted};
use crate::Plan;
use crate::format::{View, encode};
use crate::plan::{Key, Standing};

/// A store that only this process changes, until this is dropped. Held while a plan is loaded, changed
/// and saved, not while starts are recorded.
#[derive(Debug)]
pub struct Locked<'a> {
    pub(super) store: &'a Store,
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
    /// Creates the store where it is missing and waits until no other process changes it. A directory that is none
    /// is refused ([`Store::recognise`]).
    pub fn lock(&self) -> Result<Locked<'_>> {
        self.prepare()?;
        Ok(Locked { store: self, _lock: lock::take(&self.dir.join(lock::NAME))? })
    }

    /// [`Locked::save`] under a lock of its own.
    pub fn save(&self, plan: &Plan) -> Result<PathBuf> {
        self.lock()?.save(plan)
    }

    /// Saves `new` where the plan there still is `old`; whether it was.
    pub fn replace(&self, old: &Plan, new: &Plan) -> Result<bool> {
        let locked = self.lock()?;
        if self.load(&old.key)?.as_ref() != Some(old) {
            return Ok(false);
        }
        locked.save(new).map(|_| true)
    }

    /// Switches the plan of this key off, when it still is the save with this number ([`View::id`]); whether it
    /// was.
    pub fn switch_off(&self, key: &Key, id: u64, why: String) -> Result<bool> {
        let locked = self.lock()?;
        let Some(opened) = self.open(key)? else { return Ok(false) };
        let path = opened.path.clone();
        let bytes = opened.bytes()?;
        let fault = |source| Error::Format { path: path.clone(), source };
        let view = View::parse(&bytes).map_err(fault)?;
        if view.id() != id || !view.is_for(key) {
            return Ok(false);
        }
        let plan = Plan { standing: Standing::Off(why), ..view.to_plan().map_err(fault)? };
        locked.save(&plan).map(|_| true)
    }

    /// Keeps beside the plan of this key what became of it in a recorded start. Removed with the plan.
    pub fn save_replay(&self, key: &Key, replay: &Replay<'_>) -> Result<()> {
        self.lock()?.put(&self.replay_of(key), replay.text().as_bytes())
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
        let mode = if self.is_system() { 0o755 } else { 0o700 };
        cold_sys::place::create_directory(&self.dir, mode).map_err(|e| Error::io("create", &self.dir, e))?;
        let meta = self.dir.metadata().map_err(|e| Error::io("stat", &self.dir, e))?;
        let owner = if self.is_system() { 0 } else { rustix::process::geteuid().as_raw() };
        trusted(&self.dir, &meta, &[owner])?;
        self.recognise()?;
        if self.is_system() {
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
        let dir = &self.store.dir;
        // Who may list the plans may read them: the system's by everybody, a user's own by nobody else.
        let readers = dir.metadata().map_err(|e| Error::io("stat", dir, e))?.mode() & 0o044;
        write_whole(path, 0o600 | readers, bytes)
    }

    /// Writes what not everybody may know beside the plan of its key, for its owner alone. What was kept of this user goes,
    /// of the others it stays: as many as may be kept ([`super::MOST_USERS`]), who were taught last. Removed with the plan.
    pub fn save_private(&self, private: Private) -> Result<()> {
        let path = self.store.private_of(&private.plan.key);
        let mut parts = self.store.private(&private.plan.key)?;
        parts.retain(|part| part.user != private.user);
        parts.insert(0, private);
        let bytes = private::bytes(&parts).map_err(|source| Error::Format { path: path.clone(), source })?;
        write_whole(&path, 0o600, &bytes)
    }

    /// Makes new and removed names survive a power cut.
    fn sync(&self) -> Result<()> {
        let dir = &self.store.dir;
        cold_sys::whole::sync_names(dir).map_err(|e| Error::io("sync", dir, e))
    }

    /// Removes a plan and its history; false when there was no plan. What only has their names stays.
    pub fn remove(&self, key: &Key) -> Result<bool> {
        let mut was_there = false;
        // The plan last: by then this says whether there was one.
        for part in Part::ALL {
            let path = self.store.part_of(key, part);
            was_there = self.store.is_own(&path, part) && discard(&path)?;
        }
        self.forget_calls()?;
        self.sync()?;
        Ok(was_there)
    }

    /// Removes plans, with their histories, that were neither saved nor used for too long, and the least
    /// recently used of the others until the rest is small enough. Gives the removed plans and
    /// histories without plan. Only what a store wrote counts and goes, by name and content.
    pub fn prune(&self, keep: Keep, now: SystemTime) -> Result<Vec<PathBuf>> {
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
        self.forget_calls()?;
        self.sync()?;
        removed.sort();
        Ok(removed)
    }

    /// Plans with their histories, by their common name.
    fn groups(&self) -> Result<BTreeMap<PathBuf, Group>> {
        let mut groups = BTreeMap::<PathBuf, Group>::new();
        for part in Part::ALL {
            for path in self.store.files(part)?.into_iter().filter(|p| self.store.is_own(p, part)) {
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
}

fn write_whole(path: &Path, mode: u32, bytes: &[u8]) -> Result<()> {
    cold_sys::whole::write(path, Ownership::Own(mode), bytes).map_err(|e| Error::io("write", path, e))
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
#[allow(clippy::disallowed_methods, reason = "only what its callers have recognised")]
pub(super) fn discard(path: &Path) -> Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io("remove", path, e)),
    }
}
