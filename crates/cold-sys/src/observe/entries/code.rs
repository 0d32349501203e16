//! A file's functions as places for breakpoints.

use std::cell::Cell;

use cold_model::order::{Exclude, TracedFile};

use super::arch::{BREAKPOINT, Word};

#[derive(Debug)]
pub(super) struct Place {
    /// Where it lies in the file, in bytes.
    pub(super) offset: u64,
    /// Index of the function among those of the file.
    pub(super) function: u32,
    /// What stands there; not known before it was first set.
    original: Cell<Option<Word>>,
    /// Some thread has been there.
    seen: Cell<bool>,
}

impl Place {
    /// Whether a breakpoint may be put over `word`: what stands there is what stood there before, and is none itself.
    pub(super) fn may_replace(&self, word: Word) -> bool {
        if word == BREAKPOINT {
            return false;
        }
        let original = self.original.get().unwrap_or(word);
        self.original.set(Some(original));
        original == word
    }

    pub(super) fn original(&self) -> Option<Word> {
        self.original.get()
    }

    pub(super) fn is_seen(&self) -> bool {
        self.seen.get()
    }

    /// Whether this is the first time.
    pub(super) fn see(&self) -> bool {
        !self.seen.replace(true)
    }
}

#[derive(Debug)]
pub(super) struct Code {
    /// Its index in the result.
    pub(super) file: u32,
    /// Places of breakpoints, sorted by their offset in the file.
    pub(super) places: Vec<Place>,
}

impl Code {
    /// All functions of `file` that may be traced.
    pub(super) fn new(index: u32, file: &TracedFile, exclude: &[Exclude]) -> Self {
        let wanted = file.functions.iter().zip(0..);
        let wanted = wanted.filter(|(f, _)| !exclude.iter().any(|e| e.means(&file.path, f)));
        let place =
            |offset, function| Place { offset, function, original: Cell::default(), seen: Cell::default() };
        let mut places: Vec<Place> =
            wanted.filter_map(|(f, n)| Some(place(file.offset_of(f.address)?, n))).collect();
        places.sort_by_key(|p| p.offset);
        places.dedup_by_key(|p| p.offset);
        // Words that overlap would be restored over each other.
        let word = BREAKPOINT.len() as u64;
        places.dedup_by(|later, kept| later.offset - kept.offset < word);
        Self { file: index, places }
    }

    /// The places in these bytes of the file, by index.
    pub(super) fn within(&self, offset: u64, bytes: u64) -> std::ops::Range<usize> {
        let first = self.places.partition_point(|p| p.offset < offset);
        // A word that the mapping's end cuts is left alone.
        let end = offset.saturating_add(bytes).saturating_sub(BREAKPOINT.len() as u64 - 1);
        first..self.places.partition_point(|p| p.offset < end).max(first)
    }
}
