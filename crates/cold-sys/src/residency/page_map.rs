//! A set of pages of one file as a bitmap. Pure.

/// Consecutive pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageRun {
    /// First page, counted from the file's start.
    pub first: u64,
    /// Number of pages, at least 1.
    pub pages: u64,
}

impl PageRun {
    /// One past the last page.
    pub fn end(&self) -> u64 {
        self.first + self.pages
    }
}

/// Which pages of a file are in a set (resident, mapped, …): one bit per page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageMap {
    pages: u64,
    words: Vec<u64>,
}

impl PageMap {
    /// The empty set over a file of `pages` pages.
    pub fn new(pages: u64) -> Self {
        Self { pages, words: vec![0; pages.div_ceil(64) as usize] }
    }
    /// The set of `runs` over a file of `pages` pages; what lies beyond is cut off.
    pub fn from_runs(pages: u64, runs: impl IntoIterator<Item = PageRun>) -> Self {
        let mut map = Self::new(pages);
        for run in runs {
            map.insert(run);
        }
        map
    }
    /// Pages of the file.
    pub fn pages(&self) -> u64 {
        self.pages
    }
    /// Pages in the set.
    pub fn resident(&self) -> u64 {
        self.words.iter().map(|w| u64::from(w.count_ones())).sum()
    }
    /// Whether `page` is in the set; false beyond the end.
    pub fn contains(&self, page: u64) -> bool {
        page < self.pages && self.words.get((page / 64) as usize).is_some_and(|w| w >> (page % 64) & 1 == 1)
    }
    /// Adds a run; what lies beyond the end is cut off.
    pub fn insert(&mut self, run: PageRun) {
        let end = run.first.saturating_add(run.pages).min(self.pages);
        let mut page = run.first;
        while page < end {
            let bit = page % 64;
            let count = (64 - bit).min(end - page);
            let mask = if count == 64 { u64::MAX } else { ((1 << count) - 1) << bit };
            if let Some(word) = self.words.get_mut((page / 64) as usize) {
                *word |= mask;
            }
            page += count;
        }
    }
    /// Adds the pages from `first` whose byte of a mincore vector has bit 0 set (the only defined one).
    pub(crate) fn set_from_vector(&mut self, first: u64, vector: &[u8]) {
        for (page, byte) in (first..).zip(vector) {
            if byte & 1 == 1
                && let Some(word) = self.words.get_mut((page / 64) as usize)
            {
                *word |= 1 << (page % 64);
            }
        }
    }
    /// Pages in `self` but not in `other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let words = self.words.iter().enumerate();
        let words = words.map(|(i, w)| w & !other.words.get(i).copied().unwrap_or(0)).collect();
        Self { pages: self.pages, words }
    }
    /// Pages in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        self.minus(&self.minus(other))
    }
    /// Adds every page of `other` that this file has.
    pub fn unite(&mut self, other: &Self) {
        for run in other.runs() {
            self.insert(run);
        }
    }
    /// The runs of pages in the set, ascending, as long as possible each.
    pub fn runs(&self) -> impl Iterator<Item = PageRun> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let first = self.next(at, true)?;
            let end = self.next(first, false).unwrap_or(self.pages);
            at = end;
            Some(PageRun { first, pages: end - first })
        })
    }
    /// The first page from `from` that is (`wanted`) or is not in the set.
    fn next(&self, from: u64, wanted: bool) -> Option<u64> {
        let mut index = (from / 64) as usize;
        let mut keep = u64::MAX << (from % 64);
        while let Some(word) = self.words.get(index) {
            let word = if wanted { *word } else { !*word } & keep;
            if word != 0 {
                let page = index as u64 * 64 + u64::from(word.trailing_zeros());
                return (page < self.pages).then_some(page);
            }
            keep = u64::MAX;
            index += 1;
        }
        None
    }
    /// The pages in the set within `cells` equal parts of the file, as a share from 0 to 1 each: a map
    /// that fits a terminal. Fewer cells than asked for when the file has fewer pages.
    pub fn shares(&self, cells: u64) -> Vec<f64> {
        let cells = cells.min(self.pages);
        let edge = |cell: u64| (u128::from(cell) * u128::from(self.pages) / u128::from(cells)) as u64;
        let mut inside = vec![0_u64; cells as usize];
        for run in self.runs() {
            let mut page = run.first;
            while page < run.end() {
                let mut cell = (u128::from(page) * u128::from(cells) / u128::from(self.pages)) as u64;
                while edge(cell + 1) <= page {
                    cell += 1;
                }
                let end = edge(cell + 1).min(run.end());
                if let Some(n) = inside.get_mut(cell as usize) {
                    *n += end - page;
                }
                page = end;
            }
        }
        let of = |cell: u64| (edge(cell + 1) - edge(cell)) as f64;
        (0..cells).zip(inside).map(|(cell, n)| n as f64 / of(cell)).collect()
    }
}
