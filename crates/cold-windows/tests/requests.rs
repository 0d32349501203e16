//! Requests that fetch needed pages in aligned windows: counted from a page map, and made by the model of a page cache
//! that reads so.

use std::collections::BTreeSet;

use cold_sim::op::{Access, FileId, MapId, Op, OpenId, PageCache, Progress};
use cold_sim::{Cache, Paging, Placed, Policy, SimFile};
use cold_windows::pf::sample::small;
use cold_windows::pf::{PAGE, Page, Version, WINDOWS};
use proptest::prelude::*;

/// Pages of the file, more than two of the largest windows.
const PAGES: u64 = 3000;

/// Reads that touching these pages in order makes.
fn simulated(pages: &BTreeSet<u64>, window: u64) -> u64 {
    let file = SimFile { bytes: PAGES * PAGE, window_pages: 32, io_pages: 1024, large_folios: false };
    let policy = Policy::Fixed { pages: window / PAGE, placed: Placed::Aligned };
    let mut cache = Cache::new(policy, Paging::default(), &[file]);
    let (open, map) = (OpenId(0), MapId(0));
    let mut count = 0;
    let touches = pages.iter().map(|page| Op::Touch { map, page: *page, write: false });
    let begin = [
        Op::Open { open, file: FileId(0) },
        Op::Map { map, open, address: 1 << 20, first: 0, pages: PAGES, exec: false },
    ];
    for op in begin.into_iter().chain(touches) {
        let (mut progress, mut reads) = (Progress::default(), Vec::new());
        loop {
            let done = cache.access(&op, &mut progress, &mut reads) == Access::Done;
            count += reads.len() as u64;
            reads.drain(..).for_each(|read| cache.arrived(&read));
            if done {
                break;
            }
        }
    }
    count
}

proptest! {
    #[test]
    fn requests_are_those_of_a_cache_that_reads_aligned_windows(
        pages in prop::collection::btree_set(0..PAGES, 1..120),
    ) {
        let mut prefetch = small(Version::V30);
        prefetch.files.truncate(1);
        let page = prefetch.files[0].pages[0];
        prefetch.files[0].pages = pages.iter().map(|n| Page { offset: n * PAGE, ..page }).collect();
        let needs = prefetch.needs();
        prop_assert_eq!(needs.needed, pages.len() as u64);
        prop_assert_eq!(needs.requests, WINDOWS.map(|window| simulated(&pages, window)));
    }
}
