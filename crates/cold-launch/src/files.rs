//! The plan's files, opened when first needed, checked against what the plan says of them, and closed
//! again when too many are open.

use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cold_plan::Match;
use cold_plan::format::{FileView, View};
use cold_plan::plan::FileKind;

use crate::places::Places;

enum Slot {
    Untouched,
    Open(Arc<File>, bool),
    /// By another process, which may open what this one may not; stays open.
    Given(Arc<File>),
    Closed,
    /// Missing, changed, or not what it should be: never tried again.
    Gone,
}

struct Slots {
    by_file: Vec<Slot>,
    /// Indices of open ones; the hand goes round and closes those not used since it last passed.
    open: Vec<u32>,
    hand: usize,
}

/// Opened files of one replay, shared by its threads.
pub(crate) struct Files<'a> {
    view: View<'a>,
    places: &'a Places,
    most: usize,
    root: bool,
    slots: Mutex<Slots>,
    opened: AtomicU32,
    gone: AtomicU32,
}

impl<'a> Files<'a> {
    /// At most `most` open at a time, beside those that callers still hold.
    pub(crate) fn new(view: View<'a>, places: &'a Places, most: usize) -> Self {
        let by_file = (0..view.files().len()).map(|_| Slot::Untouched).collect();
        let slots = Mutex::new(Slots { by_file, open: Vec::with_capacity(most), hand: 0 });
        let root = cold_sys::caps::is_root();
        Self { view, places, most: most.max(1), root, slots, opened: 0.into(), gone: 0.into() }
    }

    /// Files found as the plan says, and files that were not.
    pub(crate) fn counts(&self) -> (u32, u32) {
        (self.opened.load(Ordering::Relaxed), self.gone.load(Ordering::Relaxed))
    }

    /// File `index`, opened; `None` when it is not there or not the one the plan was learnt with.
    pub(crate) fn get(&self, index: u32) -> Option<Arc<File>> {
        match self.lock().by_file.get_mut(index as usize)? {
            Slot::Open(file, used) => {
                *used = true;
                return Some(Arc::clone(file));
            }
            Slot::Given(file) => return Some(Arc::clone(file)),
            Slot::Gone => return None,
            Slot::Untouched | Slot::Closed => {}
        }
        // Without the lock: others need not wait for this file's directory and inode.
        let opened = self.open(self.view.file(index)?);
        let mut slots = self.lock();
        let slot = slots.by_file.get_mut(index as usize)?;
        let first = matches!(slot, Slot::Untouched);
        let Some(file) = opened else {
            if first {
                self.gone.fetch_add(1, Ordering::Relaxed);
            }
            *slot = Slot::Gone;
            return None;
        };
        if let Slot::Open(other, _) = slot {
            return Some(Arc::clone(other)); // another thread was faster
        }
        if first {
            self.opened.fetch_add(1, Ordering::Relaxed);
        }
        let file = Arc::new(file);
        *slot = Slot::Open(Arc::clone(&file), false);
        slots.remember(index, self.most);
        Some(file)
    }

    /// Has file `index` opened already.
    pub(crate) fn give(&self, index: u32, file: File) {
        if let Some(slot) = self.lock().by_file.get_mut(index as usize) {
            *slot = Slot::Given(Arc::new(file));
        }
    }

    fn open(&self, file: FileView<'_>) -> Option<File> {
        match file.kind() {
            FileKind::Regular => {
                let (root, rel) = self.places.of(file.path())?;
                let (opened, meta) = root.regular(rel).ok()?;
                // One that was only touched would have to be read for its build-id: it counts as changed.
                (file.identity().matches(&meta) == Match::Same).then_some(opened)
            }
            FileKind::BlockDevice if self.root => {
                let (root, rel) = self.places.device(file.path())?;
                root.block_device(rel, |rdev| self.places.is_mounted_device(rdev)).ok().map(|(f, _)| f)
            }
            _ => None,
        }
    }

    /// Looks the name up.
    pub(crate) fn look_up(&self, index: u32) {
        if let Some(file) = self.view.file(index)
            && let Some((root, rel)) = self.places.of(file.path())
        {
            // A name that is gone is no loss: the program will be told the same.
            let _ = root.look_up(rel);
        }
    }

    /// Lists the directory.
    pub(crate) fn list(&self, index: u32) {
        /// A directory of more entries is not listed for its few.
        const MOST: usize = 100_000;
        if let Some(file) = self.view.file(index)
            && let Some((root, rel)) = self.places.of(file.path())
        {
            let _ = root.list(rel, MOST);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    /// Enters an opened file, closing another one where there are `most`.
    fn remember(&mut self, index: u32, most: usize) {
        if self.open.len() < most {
            self.open.push(index);
            return;
        }
        // Twice round at most: the first time takes the marks off.
        for _ in 0..2 * most {
            let hand = self.hand % most;
            self.hand = hand + 1;
            let Some(place) = self.open.get_mut(hand) else { continue };
            let Some(slot) = self.by_file.get_mut(*place as usize) else { continue };
            if let Slot::Open(_, used @ true) = slot {
                *used = false;
                continue;
            }
            if matches!(slot, Slot::Open(..)) {
                *slot = Slot::Closed;
            }
            *place = index;
            return;
        }
    }
}
