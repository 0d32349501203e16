//! A set of pages of one file. Pure.

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

/// Which pages of a file are in a set (resident, mapped, …). Takes memory by its runs, not by the file's size: a
/// sparse file may have 2^51 pages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageMap {
    pages: u64,
    /// Ascending; between two of them lies at least one page.
    runs: Vec<PageRun>,
}

impl PageMap {
    /// The empty set over a file of `pages` pages.
    pub fn new(pages: u64) -> Self {
        Self { pages, runs: Vec::new() }
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
        self.runs.iter().map(|r| r.pages).sum()
    }
    /// Whether `page` is in the set; false beyond the end.
    pub fn contains(&self, page: u64) -> bool {
        let at = self.runs.partition_point(|r| r.end() <= page);
        self.runs.get(at).is_some_and(|r| r.first <= page)
    }
    /// Adds a run; what lies beyond the end is cut off.
    pub fn insert(&mut self, run: PageRun) {
        let (mut first, mut end) = (run.first, run.first.saturating_add(run.pages).min(self.pages));
        if first >= end {
            return;
        }
        // Those that it overlaps or touches become one with it.
        let from = self.runs.partition_point(|r| r.end() < first);
        let to = from + self.runs.get(from..).unwrap_or_default().partition_point(|r| r.first <= end);
        for met in self.runs.drain(from..to) {
            (first, end) = (first.min(met.first), end.max(met.end()));
        }
        self.runs.insert(from, PageRun { first, pages: end - first });
    }
    /// Adds the pages from `first` whose byte of a mincore vector has bit 0 set (the only defined one).
    pub(crate) fn set_from_vector(&mut self, first: u64, vector: &[u8]) {
        let mut at = 0;
        for same in vector.chunk_by(|a, b| a & 1 == b & 1) {
            let pages = same.len() as u64;
            if same.first().is_some_and(|byte| byte & 1 == 1) {
                self.insert(PageRun { first: first + at, pages });
            }
            at += pages;
        }
    }
    /// Pages in `self` but not in `other`.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let mut left = Self::new(self.pages);
        let mut others = other.runs.as_slice();
        for run in &self.runs {
            let mut at = run.first;
            others = others.get(others.partition_point(|o| o.end() <= at)..).unwrap_or_default();
            for o in others.iter().take_while(|o| o.first < run.end()) {
                if o.first > at {
                    left.runs.push(PageRun { first: at, pages: o.first - at });
                }
                at = o.end();
            }
            if at < run.end() {
                left.runs.push(PageRun { first: at, pages: run.end() - at });
            }
        }
        left
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
        self.runs.iter().copied()
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
