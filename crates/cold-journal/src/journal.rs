//! The journal of the running process, and the guards it hands out.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cold_sys::procfs::ProcFs;

use crate::change::{Change, Made};
use crate::file::{JournalFile, Pending};
use crate::record::{Owner, Record};
use crate::turn::{self, Turn};
use crate::undo::{Journals, Outcome, Undone, undo};
use crate::{Error, Result, place};

/// A point at which a process may be killed; see [`Journal::observe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing was written yet.
    BeforeRecord,
    /// The change stands in the journal and was not made.
    Recorded,
    /// It was made.
    Made,
    /// That it was made stands in the journal.
    Confirmed,
    /// It is about to be undone.
    BeforeUndo,
    /// It was undone.
    Undone,
    /// That it was undone stands in the journal.
    Closed,
}

type Observer = Arc<dyn Fn(Step) + Send + Sync>;

/// The journal of this process. Cheap to clone; all clones are the same journal. Its file is created
/// with the first change and removed when the last one is undone.
#[derive(Clone)]
pub struct Journal {
    shared: Arc<Shared>,
}

struct Shared {
    dir: PathBuf,
    proc: ProcFs,
    observer: Option<Observer>,
    state: Mutex<JournalState>,
}

#[derive(Default)]
struct JournalState {
    file: Option<JournalFile>,
    pending: Vec<Pending>,
    next_id: u64,
    closed: bool,
}

/// Undoes one change when it is dropped. A change that could not be undone then stays in the journal
/// and is tried again by [`crate::recover`]; call [`Guard::undo`] to learn of it at once.
#[must_use = "the change is undone when the guard is dropped"]
#[derive(Debug)]
pub struct Guard {
    journal: Journal,
    id: u64,
}

/// A change that was not made.
pub(crate) struct Failed {
    error: Error,
    /// Something of it may have been made.
    in_part: bool,
}

impl Failed {
    /// Nothing was made.
    pub(crate) fn at_once(error: impl Into<Error>) -> Self {
        Self { error: error.into(), in_part: false }
    }
}

impl<E: Into<Error>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self { error: error.into(), in_part: true }
    }
}

impl Journal {
    /// A journal in [`crate::default_directory`].
    pub fn open() -> Result<Self> {
        Ok(Self::open_in(place::default_directory()?))
    }

    /// A journal in `dir`, which is created with the first change.
    pub fn open_in(dir: impl Into<PathBuf>) -> Self {
        Self::with(dir.into(), None)
    }

    /// As [`Journal::open_in`], and calls `observer` at every step of every change. For tests that kill
    /// the process at each of them; the observer must not use the journal.
    pub fn observe(dir: impl Into<PathBuf>, observer: impl Fn(Step) + Send + Sync + 'static) -> Self {
        Self::with(dir.into(), Some(Arc::new(observer)))
    }

    fn with(dir: PathBuf, observer: Option<Observer>) -> Self {
        let shared = Shared { dir, proc: ProcFs::default(), observer, state: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// The directory the journal lies in.
    pub fn directory(&self) -> &Path {
        &self.shared.dir
    }

    /// Undoes everything that is left, newest first, and closes the journal: later changes are refused
    /// with [`Error::Closed`], so that a thread that goes on while a signal is handled leaves nothing.
    pub fn undo_all(&self) -> Vec<Undone> {
        let _turn = self.turn_to_undo(|_| true);
        let mut state = self.lock();
        state.closed = true;
        let ids: Vec<u64> = state.pending.iter().rev().map(|p| p.id).collect();
        ids.into_iter().filter_map(|id| self.undo_locked(&mut state, id)).collect()
    }

    /// Records `change`, makes it with `make` and confirms it. `make` must not use this journal.
    pub(crate) fn change<T>(
        &self,
        change: Change,
        make: impl FnOnce() -> std::result::Result<(T, Made), Failed>,
    ) -> Result<(T, Guard)> {
        let mut state = self.lock();
        if state.closed {
            return Err(Error::Closed);
        }
        self.step(Step::BeforeRecord);
        let id = state.next_id;
        self.file(&mut state)?.append(&Record::Change { id, change: change.clone() })?;
        state.next_id += 1;
        state.pending.push(Pending { id, change, made: None });
        self.step(Step::Recorded);
        let (value, made) = match make() {
            Ok(done) => done,
            Err(failed) => {
                if failed.in_part {
                    self.undo_locked(&mut state, id);
                } else {
                    // What has its name or value now is somebody else's. Should this fail, it stays in the
                    // journal as not confirmed.
                    let _ = self.finish(&mut state, id, "never made");
                }
                return Err(failed.error);
            }
        };
        self.step(Step::Made);
        let confirmed = self.file(&mut state)?.append(&Record::Made { id, made: made.clone() });
        if let Some(p) = state.pending.iter_mut().find(|p| p.id == id) {
            p.made = Some(made);
        }
        if let Err(e) = confirmed {
            self.undo_locked(&mut state, id);
            return Err(e);
        }
        self.step(Step::Confirmed);
        drop(state);
        Ok((value, Guard { journal: self.clone(), id }))
    }

    /// The path of its file, once there is one.
    pub(crate) fn own_file(&self) -> Option<PathBuf> {
        self.lock().file.as_ref().map(|file| file.path().to_owned())
    }

    pub(crate) fn proc(&self) -> &ProcFs {
        &self.shared.proc
    }

    /// Undoes one change; `None` if that was done before.
    pub(crate) fn undo_one(&self, id: u64) -> Option<Undone> {
        let _turn = self.turn_to_undo(|p| p.id == id);
        let mut state = self.lock();
        self.undo_locked(&mut state, id)
    }

    /// The turn, where undoing one of these changes takes it. Always taken before the state is locked: a thread
    /// that has it waits for the state. Without it (the directory is gone) undoing is better than not.
    fn turn_to_undo(&self, which: impl Fn(&Pending) -> bool) -> Option<Turn> {
        let takes = self.lock().pending.iter().any(|p| which(p) && p.change.takes_turn());
        takes.then(|| turn::take(&self.shared.dir).ok()).flatten()
    }

    /// Forgets a change without undoing it.
    fn release(&self, id: u64) -> Result<()> {
        let mut state = self.lock();
        self.finish(&mut state, id, "released")
    }

    fn undo_locked(&self, state: &mut JournalState, id: u64) -> Option<Undone> {
        let at = state.pending.iter().position(|p| p.id == id)?;
        let pending = state.pending.get(at)?.clone();
        self.step(Step::BeforeUndo);
        let outcome = match self.rebase(state, at) {
            Ok(Some(outcome)) => Ok(outcome),
            Ok(None) => {
                let own = state.file.as_ref().map(JournalFile::path);
                undo(&self.shared.proc, Journals { dir: &self.shared.dir, own }, &pending)
            }
            Err(e) => Err(e),
        };
        self.step(Step::Undone);
        let outcome = outcome.and_then(|o| self.finish(state, id, &o.to_string()).map(|()| o));
        self.step(Step::Closed);
        Some(Undone { change: pending.change, outcome })
    }

    /// Undoing a setting below a newer change of the same setting must not touch the value: the newer
    /// change takes over the old value to go back to.
    fn rebase(&self, state: &mut JournalState, at: usize) -> Result<Option<Outcome>> {
        let Some(Pending { change, .. }) = state.pending.get(at).cloned() else { return Ok(None) };
        let Change::Setting { old, .. } = &change else { return Ok(None) };
        let old = old.clone();
        let same = state.pending.iter_mut().skip(at + 1).filter(|p| p.change.shares(&change));
        let newer = same.into_iter().find_map(|p| match &mut p.change {
            Change::Setting { old: its_old, .. } => Some((p.id, its_old)),
            _ => None,
        });
        let Some((id, its_old)) = newer else { return Ok(None) };
        its_old.clone_from(&old);
        self.file(state)?.append(&Record::Rebased { id, old })?;
        Ok(Some(Outcome::LeftToNewer))
    }

    fn finish(&self, state: &mut JournalState, id: u64, outcome: &str) -> Result<()> {
        if !state.pending.iter().any(|p| p.id == id) {
            return Ok(());
        }
        self.file(state)?.append(&Record::Done { id, outcome: outcome.to_owned() })?;
        state.pending.retain(|p| p.id != id);
        if state.pending.is_empty()
            && let Some(file) = state.file.take()
        {
            file.remove()?;
        }
        Ok(())
    }

    fn file<'s>(&self, state: &'s mut JournalState) -> Result<&'s mut JournalFile> {
        let file = if let Some(file) = state.file.take() {
            file
        } else {
            place::prepare(&self.shared.dir)?;
            JournalFile::create(&self.shared.dir, &Owner::me(&self.shared.proc)?)?
        };
        Ok(state.file.insert(file))
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        // A panic elsewhere must not keep us from undoing.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, step: Step) {
        if let Some(observer) = &self.shared.observer {
            observer(step);
        }
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("dir", &self.shared.dir).finish_non_exhaustive()
    }
}

impl Guard {
    /// Undoes the change now and says how it went. [`Outcome::AlreadyUndone`] after
    /// [`Journal::undo_all`].
    pub fn undo(self) -> Result<Outcome> {
        self.journal.undo_one(self.id).map_or(Ok(Outcome::AlreadyUndone), |u| u.outcome)
        // Drop finds it done; or, after a failure, tries once more.
    }

    /// Lets the change stand: a process that ended by itself, a file that is to stay.
    pub fn release(self) -> Result<()> {
        self.journal.release(self.id)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // A failure leaves the record in the journal, where recovery finds it.
        let _ = self.journal.undo_one(self.id);
    }
}
