//! A set of pages of one file. Pure.

use cold_model::pages::Runs;

/// Consecutive pages of one file; never empty.
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
    set: Runs,
}

impl PageMap {
    /// The empty set over a file of `pages` pages.
    pub fn new(pages: u64) -> Self {
        Self { pages, set: Runs::default() }
    }
    /// The set of `runs` over a file of `pages` pages; what lies beyond is cut off.
    pub fn from_runs(pages: u64, runs: impl IntoIterator<Item = PageRun>) -> Self {
        let cut = |run: PageRun| run.first..run.first.saturating_add(run.pages).min(pages);
        Self { pages, set: Runs::of(runs.into_iter().map(cut).collect()) }
    }
    /// Pages of the file.
    pub fn pages(&self) -> u64 {
        self.pages
    }
    /// Pages in the set.
    pub fn resident(&self) -> u64 {
        self.set.pages()
    }
    /// Whether `page` is in the set; false beyond the end.
    pub fn contains(&self, page: u64) -> bool {
        self.set.contains(page)
    }
    /// Adds a run; what lies beyond the end is cut off.
    pub fn insert(&mut self, run: PageRun) {
        self.set.insert(&(run.first..run.first.saturating_add(run.pages).min(self.pages)));
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
        Self { pages: self.pages, set: self.set.minus(&other.set) }
    }
    /// Pages in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self { pages: self.pages, set: self.set.and(&other.set) }
    }
    /// Adds every page of `other` that this file has.
    pub fn unite(&mut self, other: &Self) {
        for run in other.runs() {
            self.insert(run);
        }
    }
    /// The runs of pages in the set, ascending, as long as possible each.
    pub fn runs(&self) -> impl Iterator<Item = PageRun> + '_ {
        self.set.runs().iter().map(|r| PageRun { first: r.start, pages: r.end - r.start })
    }
    /// The pages in the set within `cells` equal parts of the file, as a share from 0 to 1 each: a map
    /// that fits a terminal. Fewer cells than asked for when the file has fewer pages.
    pub fn shares(&self, cells: u64) -> Vec<f64> {
        let cells = cells.min(self.pages);
        if cells == 0 {
            return Vec::new();
        }
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
