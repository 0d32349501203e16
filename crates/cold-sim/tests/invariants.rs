//! What holds for every policy and every series of operations.

use std::collections::HashSet;

use cold_sim::op::{Access, FileId, MapAdvice, Op, PageCache, PageRead, Pattern, Progress};
use cold_sim::verify::Workload;
use cold_sim::{Cache, Paging, Policy, SimFile};
use proptest::prelude::*;

/// Pages that were asked for and did not come yet.
#[derive(Default)]
struct InFlight(Vec<PageRead>);

impl InFlight {
    fn has(&self, file: FileId, page: u64) -> bool {
        self.0.iter().any(|r| r.file == file && r.first <= page && page < r.first + r.pages)
    }
}

fn check(policy: Policy, files: &[SimFile], seed: u64, newest_first: bool) -> Result<(), TestCaseError> {
    let mut cache = Cache::new(policy, Paging::default(), files);
    let mut flying = InFlight::default();
    // Present or in flight, by what was read and dropped alone.
    let mut there: HashSet<(FileId, u64)> = HashSet::new();
    for op in Workload::new(seed, 0, 4096, files).by_parts().take(150) {
        let mut progress = Progress::default();
        loop {
            let mut reads = Vec::new();
            let access = cache.access(&op, &mut progress, &mut reads);
            for read in &reads {
                let end = files[read.file.0 as usize].bytes.div_ceil(4096);
                prop_assert!(read.pages > 0 && read.first + read.pages <= end, "{read:?} of {end}");
                for page in read.first..read.first + read.pages {
                    let new = there.insert((read.file, page));
                    prop_assert!(new || policy == Policy::Windows, "{op:?} reads {page} again");
                }
            }
            flying.0.append(&mut reads);
            let (file, page) = match access {
                Access::Waits { file, page } => (file, page),
                Access::GoesOn => continue,
                Access::Done => break,
            };
            prop_assert!(flying.has(file, page), "{op:?} waits for {page}, which nobody reads");
            // Only what is waited for comes, and by chance what was read last.
            let awaited = |r: &PageRead| r.file == file && r.first <= page && page < r.first + r.pages;
            let (come, stay): (Vec<_>, Vec<_>) = flying.0.iter().partition(|r| awaited(r));
            for read in &come {
                cache.arrived(read);
            }
            flying.0 = stay;
            if newest_first && let Some(read) = flying.0.pop() {
                cache.arrived(&read);
            }
        }
        if let Op::DontNeed { file, .. } = op {
            let cached = cache.cached_pages(file);
            there.retain(|(f, page)| *f != file || cached.contains(*page) || flying.has(file, *page));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn pages_are_read_once_inside_their_file_and_waited_for_while_they_come(
        seed: u64,
        policy in proptest::sample::select(Policy::ALL.to_vec()),
        window_pages in proptest::sample::select(vec![0_u64, 1, 3, 4, 8, 32, 128, 2048]),
        io_pages in proptest::sample::select(vec![1_u64, 16, 320, 1024]),
        large_folios: bool,
        newest_first: bool,
    ) {
        let sizes = [3 << 20, (700 << 10) + 1, 5, 4096];
        let files = sizes.map(|bytes| SimFile { bytes, window_pages, io_pages, large_folios });
        check(policy, &files, seed, newest_first)?;
    }
}

/// What is read of every file, when every read arrives at once; and the most pages that were there after an operation.
fn all_reads(cache: &mut Cache, files: &[SimFile], seed: u64) -> (Vec<PageRead>, u64) {
    let (mut all, mut most) = (Vec::new(), 0);
    for op in Workload::new(seed, 0, 4096, files).by_parts().take(400) {
        let (mut progress, mut reads) = (Progress::default(), Vec::new());
        while cache.access(&op, &mut progress, &mut reads) != Access::Done {
            for read in reads.drain(..) {
                cache.arrived(&read);
                all.push(read);
            }
        }
        for read in &reads {
            cache.arrived(read);
        }
        all.append(&mut reads);
        most = most.max((0..files.len() as u32).map(|n| cache.cached_pages(FileId(n)).pages()).sum());
    }
    (all, most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn room_for_everything_changes_nothing_and_less_is_kept_to(
        seed: u64,
        policy in proptest::sample::select(Policy::ALL.to_vec()),
        room in 1_u64..900,
        large_folios: bool,
    ) {
        let sizes = [3 << 20, (700 << 10) + 1, 5, 4096];
        let files = sizes.map(|bytes| SimFile { bytes, window_pages: 32, io_pages: 320, large_folios });
        let new = || Cache::new(policy, Paging::default(), &files);
        let (reads, most) = all_reads(&mut new(), &files, seed);
        let (same, _) = all_reads(&mut new().with_room(1 << 20), &files, seed);
        prop_assert_eq!(&reads, &same);
        let (more, kept) = all_reads(&mut new().with_room(room), &files, seed);
        // What one operation reads is there until the next one; Linux reads 2048 pages at once, others a whole file.
        prop_assert!(kept <= room.max(1) + 2048, "{} of {}", kept, room);
        prop_assert!(kept <= most || policy == Policy::Windows);
        let pages = |reads: &[PageRead]| reads.iter().map(|r| r.pages).sum::<u64>();
        prop_assert!(room < most || pages(&more) == pages(&reads));
    }
}

#[test]
fn numbers_at_their_limits_are_no_accident() {
    let file = SimFile { bytes: u64::MAX, window_pages: u64::MAX, io_pages: 64, large_folios: true };
    let small = SimFile { bytes: 0, window_pages: 32, io_pages: 0, large_folios: false };
    for policy in Policy::ALL.into_iter().filter(|p| *p != Policy::Whole) {
        let mut cache = Cache::new(policy, Paging::default(), &[file, small]).with_room(1);
        let (open, map) = (cold_sim::op::OpenId(0), cold_sim::op::MapId(0));
        let last = u64::MAX / 4096;
        let ops = [
            Op::Open { open, file: FileId(0) },
            Op::Open { open: cold_sim::op::OpenId(1), file: FileId(7) },
            Op::Map { map, open, address: u64::MAX, first: last - 3, pages: u64::MAX, exec: true },
            Op::Touch { map, page: last, write: false },
            Op::Touch { map, page: u64::MAX, write: false },
            Op::Read { open, offset: u64::MAX - 1, bytes: u64::MAX },
            Op::WillNeed { open, first: last - 1, pages: 64 },
            Op::AdviseMap { map, first: last, pages: u64::MAX, advice: MapAdvice::Pattern(Pattern::Random) },
            Op::Populate { map, first: 0, pages: u64::MAX },
            Op::Forget { map, first: 0, pages: u64::MAX },
            Op::DontNeed { file: FileId(0), first: last, pages: u64::MAX },
            Op::Unmap { map },
        ];
        for op in ops {
            let (mut progress, mut reads) = (Progress::default(), Vec::new());
            for _ in 0..100 {
                if cache.access(&op, &mut progress, &mut reads) == Access::Done {
                    break;
                }
                reads.drain(..).for_each(|read| cache.arrived(&read));
            }
        }
    }
}
