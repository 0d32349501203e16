//! Which pages of each file a simulated start read, and which of them more than once.

use std::collections::BTreeMap;

use cold_model::Bytes;
use cold_model::pages::{Range, Runs};
use cold_sim::engine::Filled;
use cold_sim::op::FileId;

/// What was read of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileRead {
    /// Pages of the file that entered the cache, each once.
    pub pages: Runs,
    /// Those that were read more than once: given up, or evicted, and needed again.
    pub again: Runs,
    /// All pages, each as often as it was read.
    pub all: u64,
}

impl FileRead {
    /// Pages read a second time and later, each time counted.
    pub fn reread(&self) -> u64 {
        self.all.saturating_sub(self.pages.pages())
    }

    fn of(runs: Vec<Range>) -> Self {
        let all = runs.iter().map(|run| run.end - run.start).fold(0, u64::saturating_add);
        let mut edges: Vec<(u64, i8)> = runs.iter().flat_map(|run| [(run.start, 1), (run.end, -1)]).collect();
        // Of one page ends come first: what only touches does not overlap.
        edges.sort_unstable();
        let (mut depth, mut began, mut again) = (0_i64, 0, Vec::new());
        for (page, step) in edges {
            let before = depth;
            depth += i64::from(step);
            if (before, depth) == (1, 2) {
                began = page;
            } else if (before, depth) == (2, 1) {
                again.push(began..page);
            }
        }
        Self { pages: Runs::of(runs), again: Runs::of(again), all }
    }
}

/// Pages that a start read more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Again {
    /// So many pages.
    pub pages: u64,
    /// Bytes that were read a second time and later.
    pub bytes: Bytes,
}

impl Again {
    pub(super) fn of(read: &BTreeMap<FileId, FileRead>, page_bytes: u64) -> Self {
        let sum = |pages: fn(&FileRead) -> u64| read.values().map(pages).fold(0, u64::saturating_add);
        let bytes = sum(FileRead::reread).saturating_mul(page_bytes);
        Self { pages: sum(|read| read.again.pages()), bytes: Bytes(bytes) }
    }
}

/// Of all files that were read.
pub(super) fn by_file(filled: &[Filled]) -> BTreeMap<FileId, FileRead> {
    let mut runs: BTreeMap<FileId, Vec<Range>> = BTreeMap::new();
    for read in filled.iter().map(|f| f.read) {
        runs.entry(read.file).or_default().push(read.first..read.first.saturating_add(read.pages));
    }
    runs.into_iter().map(|(file, runs)| (file, FileRead::of(runs))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_read_twice_and_more_often_are_told() {
        let read = FileRead::of(vec![0..10, 20..30, 5..8, 10..12, 7..25, 6..7]);
        assert_eq!(read.pages, Runs::one(0..30));
        assert_eq!(read.again, Runs::of(vec![5..12, 20..25]));
        // 5 and 9 to 11 and 20 to 24 once more, 6 and 7 twice.
        assert_eq!((read.all, read.reread()), (44, 14));
        assert_eq!(FileRead::of(Vec::new()), FileRead::default());
    }
}
