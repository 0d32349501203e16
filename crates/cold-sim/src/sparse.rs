//! A value per page, in memory that grows with the pages that were used and not with the length of a file.

use std::collections::BTreeMap;

use cold_model::pages::{Range, Runs};

/// Pages that lie together: as many as a page table of 4 KiB pages has entries.
const CHUNK: u64 = 512;

/// A value for each page number; the default where none was set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sparse {
    chunks: BTreeMap<u64, Box<[u8; CHUNK as usize]>>,
}

impl Sparse {
    /// The value of a page; 0 where none was set.
    #[inline]
    pub(crate) fn get(&self, page: u64) -> u8 {
        self.chunks.get(&(page / CHUNK)).map_or(0, |chunk| chunk[(page % CHUNK) as usize])
    }

    /// Sets the value of a page.
    pub(crate) fn set(&mut self, page: u64, value: u8) {
        let key = page / CHUNK;
        if value == 0 {
            if let Some(chunk) = self.chunks.get_mut(&key) {
                chunk[(page % CHUNK) as usize] = 0;
            }
            return;
        }
        let chunk = self.chunks.entry(key).or_insert_with(|| Box::new([0; CHUNK as usize]));
        chunk[(page % CHUNK) as usize] = value;
    }

    /// The pages whose value is wanted.
    pub(crate) fn runs(&self, wanted: impl Fn(u8) -> bool) -> Runs {
        let mut runs: Vec<Range> = Vec::new();
        for (key, chunk) in &self.chunks {
            for (page, _) in (key * CHUNK..).zip(chunk.iter()).filter(|(_, value)| wanted(**value)) {
                match runs.last_mut() {
                    Some(last) if last.end == page => last.end += 1,
                    _ => runs.push(page..page + 1),
                }
            }
        }
        Runs::of(runs)
    }

    /// The first page of `from..to` whose value is not 0.
    pub(crate) fn first_set(&self, from: u64, to: u64) -> Option<u64> {
        let mut at = from;
        while at < to {
            let (key, chunk) = self.chunks.range(at / CHUNK..).next()?;
            at = at.max(key * CHUNK);
            let end = to.min((key + 1) * CHUNK);
            while at < end {
                if chunk[(at % CHUNK) as usize] != 0 {
                    return Some(at);
                }
                at += 1;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_again_far_apart_and_gone_when_cleared() {
        let mut sparse = Sparse::default();
        for page in [0, 511, 512, 1 << 50] {
            sparse.set(page, 7);
        }
        assert_eq!(
            (sparse.get(511), sparse.get(513), sparse.get(1 << 50), sparse.get(u64::MAX)),
            (7, 0, 7, 0)
        );
        assert_eq!(sparse.first_set(1, 1 << 51), Some(511));
        assert_eq!(sparse.first_set(513, 1 << 51), Some(1 << 50));
        assert_eq!(sparse.first_set(513, 1 << 50), None);
        sparse.set(512, 0);
        sparse.set(99_999, 0);
        assert_eq!((sparse.get(512), sparse.chunks.len()), (0, 3));
    }
}
