//! When pages came and went. Pure.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use cold_model::Nanos;
use cold_model::recording::{FileIdx, Touch};

/// Most pages of all fills together that are told apart when windows are cut to what was cached; 64 Mi
/// pages are 256 GiB.
const MAX_HISTORY: u64 = 64 << 20;

/// A folio of a file came into the cache or left it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) at: Nanos,
    pub(super) file: FileIdx,
    pub(super) first_page: u64,
    pub(super) pages: u32,
    /// It came; false: it went.
    pub(super) came: bool,
}

impl Change {
    pub(super) fn pages(&self) -> Range<u64> {
        self.first_page..self.first_page.saturating_add(self.pages.into())
    }
}

/// When each page of the files of interest came and went.
#[derive(Debug)]
pub(super) struct History<'a> {
    changes: &'a [Change],
    /// Places in `changes`, in order of time.
    of: HashMap<(FileIdx, u64), Vec<u32>>,
}

impl<'a> History<'a> {
    pub(super) fn new(changes: &'a [Change], files: &BTreeSet<FileIdx>) -> Self {
        let numbered = (0_u32..).zip(changes);
        let of_interest = || numbered.clone().filter(|(_, c)| files.contains(&c.file));
        let mut of = HashMap::new();
        if of_interest().map(|(_, c)| u64::from(c.pages)).sum::<u64>() <= MAX_HISTORY {
            for (place, change) in of_interest() {
                for page in change.pages() {
                    of.entry((change.file, page)).or_insert_with(Vec::new).push(place);
                }
            }
        }
        Self { changes, of }
    }

    /// Changes of a page up to the time of a touch, and after it.
    fn around(
        &self,
        touch: &Touch,
        page: u64,
    ) -> (impl DoubleEndedIterator<Item = &'a Change>, impl Iterator<Item = &'a Change>) {
        let changes = self.changes;
        let places = self.of.get(&(touch.file, page)).map_or(&[][..], Vec::as_slice);
        let change = move |place: &u32| changes.get(*place as usize);
        let next = places.partition_point(|place| change(place).is_some_and(|c| c.at <= touch.at));
        let (before, after) = places.split_at(next);
        (before.iter().filter_map(change), after.iter().filter_map(change))
    }

    /// Whether a page was cached at the time of a touch, as far as is known: what came later was not; what never
    /// came and is not there in the end was not either.
    pub(super) fn cached(&self, touch: &Touch, page: u64, after: Option<&Vec<(u64, u64)>>) -> bool {
        let (mut before, mut later) = self.around(touch, page);
        match (before.next_back(), later.next()) {
            (Some(change), _) => change.came,
            // Nothing before: it was there if it leaves next.
            (None, Some(change)) => !change.came,
            (None, None) => after.is_none_or(|runs| holds(runs, page)),
        }
    }

    /// The folio that held a page when it was touched, or that came for it, and when it came; `None`: the page was
    /// cached before, or nothing is known.
    pub(super) fn folio(&self, touch: &Touch, page: u64) -> Option<(Range<u64>, Nanos)> {
        let (mut before, mut later) = self.around(touch, page);
        let there = before.next_back().filter(|change| change.came);
        let came = there.or_else(|| later.find(|change| change.came))?;
        Some((came.pages(), came.at))
    }

    /// When a page came that was not cached at the time of the touch, if that was before `until`.
    pub(super) fn came(&self, touch: &Touch, page: u64, until: Nanos) -> Option<Nanos> {
        let (mut before, mut later) = self.around(touch, page);
        if before.next_back().is_some_and(|change| change.came) {
            return None;
        }
        later.find(|change| change.came).map(|change| change.at).filter(|at| *at < until)
    }
}

/// Whether sorted runs (first, pages) hold a page.
pub(super) fn holds(runs: &[(u64, u64)], page: u64) -> bool {
    let i = runs.partition_point(|r| r.0 <= page);
    i.checked_sub(1).and_then(|i| runs.get(i)).is_some_and(|r| page - r.0 < r.1)
}
