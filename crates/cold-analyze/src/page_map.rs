//! The pages of one file: which were needed and read, and when each was first needed.

use std::collections::BTreeMap;

use cold_model::Nanos;
use cold_model::pages::Runs;
use cold_model::recording::Recording;

use crate::model::FileUse;
use crate::usage::Usage;

/// Pages that are looked at, of a file that claims to be larger (4 TiB of pages of 4 KiB).
const MOST_PAGES: u64 = 1 << 30;

/// Pages of one file by what happened to them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageMap {
    /// How many pages the file has; as far as any was seen, where its size is unknown.
    pub count: u64,
    /// Those that the start needed, by the rule of the figures.
    pub needed: Runs,
    /// Those that came into the cache, whoever read or wrote them.
    pub read: Runs,
    /// When each needed page was first touched, from the start.
    first: BTreeMap<u64, Nanos>,
}

/// The best that can be said of some pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell {
    /// Some were needed, and some were read.
    NeededAndRead,
    /// Some were needed, none were read: they were cached before.
    NeededAndCached,
    /// Some were read, none were needed.
    ReadInVain,
    /// Nothing happened to them.
    Neither,
}

impl PageMap {
    /// Of a file of `recording`, which `usage` and `file` tell of.
    pub fn of(recording: &Recording, usage: Option<&Usage>, file: &FileUse) -> Self {
        let needed = usage.map(|u| u.needed.clone()).unwrap_or_default();
        let read = usage.map(|u| u.read.or(&u.by_others).or(&u.written)).unwrap_or_default();
        let last = [&needed, &read].into_iter().filter_map(|set| Some(set.runs().last()?.end)).max();
        let size = file.size.map(|bytes| bytes.0.div_ceil(recording.page_bytes()));
        let count = size.or(last).unwrap_or(0).min(MOST_PAGES);
        let mut first = BTreeMap::new();
        for t in recording.touches.iter().flatten().filter(|t| t.file == file.file) {
            let at = t.at.saturating_sub(recording.manifest.start);
            let touched = t.first_page..t.first_page.saturating_add(t.pages.into());
            for page in needed.within(&touched).flatten() {
                first.entry(page).and_modify(|first: &mut Nanos| *first = (*first).min(at)).or_insert(at);
            }
        }
        let there = Runs::one(0..count);
        Self { count, needed: needed.and(&there), read: read.and(&there), first }
    }

    /// What happened to the pages of a range.
    pub fn cell(&self, pages: std::ops::Range<u64>) -> Cell {
        let any = |set: &Runs| set.within(&pages).next().is_some();
        match (any(&self.needed), any(&self.read)) {
            (true, true) => Cell::NeededAndRead,
            (true, false) => Cell::NeededAndCached,
            (false, true) => Cell::ReadInVain,
            (false, false) => Cell::Neither,
        }
    }

    /// When the first page of a range was first needed, from the start; `None`: none was touched.
    pub fn first_use(&self, pages: std::ops::Range<u64>) -> Option<Nanos> {
        self.first.range(pages).map(|(_, at)| *at).min()
    }
}

#[cfg(test)]
mod tests {
    use cold_model::layout::Layouts;
    use cold_model::sample::{PAGE, empty};

    use super::*;

    #[test]
    fn pages_have_the_figures_rule_and_the_first_time_of_each_touch() {
        let mut r = empty();
        let f = r.file("/bin/prog", 64 * PAGE);
        // At 20 ms page 5 with 4 to 7 read for it, at 40 ms page 5 again and page 40 alone.
        r.fault(20, 1, f, 5, 4..8);
        r.fault(40, 1, f, 40, 40..41);
        let analysis = crate::analyze(&r, &Layouts::default());
        let file = analysis.files.iter().find(|x| x.file == f).expect("used");
        let map = PageMap::of(&r, analysis.usage.get(f as usize), file);
        assert_eq!(map.count, 64);
        assert_eq!(map.needed, analysis.usage[f as usize].needed);
        assert_eq!(
            [map.cell(5..6), map.cell(4..5), map.cell(8..40)],
            [Cell::NeededAndRead, Cell::ReadInVain, Cell::Neither]
        );
        let (early, late) = (map.first_use(0..8).expect("needed"), map.first_use(40..41).expect("needed"));
        assert!(early < late && map.first_use(8..40).is_none(), "{early} {late}");
        assert_eq!(map.first_use(0..64), Some(early));
    }
}
