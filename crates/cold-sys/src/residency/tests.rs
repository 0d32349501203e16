use std::io::Write;

use super::*;

fn run(first: u64, pages: u64) -> PageRun {
    PageRun { first, pages }
}

#[test]
fn runs_come_back_as_they_were_inserted_and_merge_when_they_touch() {
    let map = PageMap::from_runs(300, [run(0, 1), run(63, 2), run(65, 63), run(299, 5)]);
    assert_eq!(map.runs().collect::<Vec<_>>(), [run(0, 1), run(63, 65), run(299, 1)]);
    assert_eq!(map.resident(), 67);
    assert!(map.contains(127) && !map.contains(128) && !map.contains(300));
}

#[test]
fn a_map_equals_a_naive_set_for_pseudo_random_runs() {
    let mut seed = 7_u64;
    let mut random = move |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % n
    };
    for _ in 0..500 {
        let pages = random(400) + 1;
        let mut naive = vec![false; pages as usize];
        let mut map = PageMap::new(pages);
        for _ in 0..random(8) {
            let r = run(random(pages), random(130) + 1);
            map.insert(r);
            (r.first..r.end().min(pages)).for_each(|p| naive[p as usize] = true);
        }
        assert_eq!(map.resident(), naive.iter().filter(|b| **b).count() as u64);
        assert!((0..pages).all(|p| map.contains(p) == naive[p as usize]));
        assert_eq!(PageMap::from_runs(pages, map.runs()), map);
        let cells = random(90) + 1;
        let shares = map.shares(cells);
        assert_eq!(shares.len() as u64, cells.min(pages));
        assert!(shares.iter().all(|s| (0.0..=1.0).contains(s)));
        let edge = |c: usize| c as u64 * pages / shares.len() as u64;
        let sum: f64 = shares.iter().enumerate().map(|(c, s)| s * (edge(c + 1) - edge(c)) as f64).sum();
        assert!((sum - map.resident() as f64).abs() < 1e-6);
    }
}

#[test]
fn minus_and_unite() {
    let a = PageMap::from_runs(100, [run(10, 80)]);
    let b = PageMap::from_runs(100, [run(0, 20), run(64, 1)]);
    assert_eq!(a.minus(&b).runs().collect::<Vec<_>>(), [run(20, 44), run(65, 25)]);
    let mut c = a.clone();
    c.unite(&b);
    assert_eq!(c.runs().collect::<Vec<_>>(), [run(0, 90)]);
}

#[test]
fn a_file_just_written_is_resident_and_both_calls_agree() {
    let mut file = tempfile::tempfile_in(std::env::temp_dir()).expect("a temporary file");
    file.write_all(&vec![7; 3 * page_size() as usize + 1]).expect("writes");
    let meta = file.metadata().expect("stat");
    let map = PageMap::of(&file, &meta).expect("mincore").expect("an own file is told");
    assert_eq!((map.pages(), map.resident()), (4, 4));
    if has_cachestat() {
        let stat = cachestat(&file, 0, 0).expect("cachestat").expect("an own file is told");
        assert_eq!(stat.cached, 4);
    }
}

#[test]
fn an_empty_file_has_an_empty_map() {
    let file = tempfile::tempfile().expect("a temporary file");
    let meta = file.metadata().expect("stat");
    assert_eq!(PageMap::of(&file, &meta).expect("mincore"), Some(PageMap::new(0)));
    assert_eq!(PageMap::new(0).runs().count(), 0);
    assert!(PageMap::new(0).shares(10).is_empty());
}

#[test]
fn a_sparse_file_costs_what_is_cached_not_what_it_could_hold() {
    use std::os::unix::fs::FileExt;
    if !has_cachestat() {
        eprintln!("SKIPPED: this kernel has no cachestat");
        return;
    }
    // Not below /tmp, which is no disk on many machines; 8 TiB, or what the file system can hold.
    let file = tempfile::tempfile_in("/var/tmp").expect("a temporary file");
    let page = page_size();
    let tebibytes = (0..=3).rev().find(|n| file.set_len(1 << (40 + n)).is_ok()).expect("a sparse file");
    let pages = (1 << (40 + tebibytes)) / page;
    let written = [0, 1, 77_777_777, pages / 2, pages - 1];
    for at in written {
        file.write_all_at(b"x", at * page).expect("written");
    }
    let began = std::time::Instant::now();
    let map =
        PageMap::of(&file, &file.metadata().expect("stat")).expect("asked").expect("an own file is told");
    let took = began.elapsed();
    let found: Vec<u64> = map.runs().flat_map(|r| r.first..r.end()).collect();
    assert_eq!(found, written);
    // By size it would take 8 s for each tebibyte, and by what is cached 1 ms.
    assert!(took.as_secs() < 2 << tebibytes, "{took:?}");
}

#[test]
fn only_the_lowest_bit_of_an_answer_counts() {
    let mut map = PageMap::new(104);
    map.set_from_vector(100, &[1, 0xfe, 3, 0xff, 1, 1]);
    assert_eq!(map.runs().collect::<Vec<_>>(), [run(100, 1), run(102, 2)], "and nothing behind the end");
    map.set_from_vector(0, &[]);
    assert_eq!(map.resident(), 3);
}

#[test]
fn a_share_is_that_of_the_pages_of_its_part() {
    // Ten pages in three parts: 0..3, 3..6, 6..10.
    let map = PageMap::from_runs(10, [run(2, 5)]);
    assert_eq!(map.shares(3), [1.0 / 3.0, 1.0, 0.25]);
    assert_eq!(map.shares(10)[1..4], [0.0, 1.0, 1.0]);
    assert_eq!(map.shares(0), [0.0; 0]);
    // The pages of the largest file there can be do not run over.
    let all = PageMap::from_runs(1 << 51, [run(0, u64::MAX)]);
    assert_eq!((all.resident(), all.shares(3)), (1 << 51, vec![1.0; 3]));
}

#[test]
fn what_lies_behind_the_end_is_cut_off_wherever_it_comes_from() {
    let mut map = PageMap::from_runs(10, [run(10, 1), run(u64::MAX, u64::MAX), run(8, u64::MAX)]);
    assert_eq!(map.runs().collect::<Vec<_>>(), [run(8, 2)]);
    map.unite(&PageMap::from_runs(20, [run(5, 1), run(9, 10)]));
    map.insert(run(u64::MAX, 1));
    assert_eq!(map.runs().collect::<Vec<_>>(), [run(5, 1), run(8, 2)]);
    let shared = map.and(&PageMap::from_runs(20, [run(0, 9)]));
    assert_eq!((shared.pages(), shared.runs().collect()), (10, vec![run(5, 1), run(8, 1)]));
}

/// Changed pages that nobody writes: neither this test nor a stranger evicts them.
fn changed(pages: u64, at: &[u64]) -> File {
    let file = tempfile::tempfile_in("/var/tmp").expect("a file");
    file.set_len(pages * page_size()).expect("sparse");
    for page in at {
        std::os::unix::fs::FileExt::write_all_at(&file, b"x", page * page_size()).expect("written");
    }
    file
}

#[test]
fn a_file_that_shrinks_is_absent_behind_its_end() {
    let file = changed(8, &[0, 1, 2, 3, 4, 5, 6, 7]);
    let before = file.metadata().expect("stat");
    file.set_len(2 * page_size() + 1).expect("cut");
    let map = PageMap::of(&file, &before).expect("asked").expect("an own file is told");
    assert_eq!((map.pages(), map.runs().collect()), (8, vec![run(0, 3)]));
    file.set_len(0).expect("cut");
    let map = PageMap::of(&file, &before).expect("asked").expect("told");
    assert_eq!((map.pages(), map.resident()), (8, 0));
}

#[test]
fn a_file_that_grows_is_looked_at_as_far_as_it_was_known() {
    let file = changed(2, &[0, 1]);
    let before = file.metadata().expect("stat");
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![1; 4 * page_size() as usize], 0).expect("grown");
    let map = PageMap::of(&file, &before).expect("asked").expect("told");
    assert_eq!((map.pages(), map.resident()), (2, 2));
}

#[test]
fn only_the_parts_of_a_file_that_hold_something_are_asked_about() {
    if !has_cachestat() {
        eprintln!("SKIPPED: this kernel has no cachestat");
        return;
    }
    // Halved down to 1024, of which nobody asks further: the first, two neighbours in the middle, and the last.
    let file = changed(8192, &[0, 4095, 4096, 8191]);
    let found = parts(&file, 8192).expect("asked");
    assert_eq!(found, [run(0, 1024), run(3072, 2048), run(7168, 1024)]);
    let tenth: Vec<u64> = (0..200).collect();
    assert_eq!(parts(&changed(2048, &tenth), 2048).expect("asked"), [run(0, 1024)], "less than a quarter");
    assert_eq!(parts(&file, 512).expect("asked"), [run(0, 512)], "small ones are not worth a question");
    assert_eq!(parts(&changed(8192, &[]), 8192).expect("asked"), [], "nothing is cached");
}

#[test]
fn a_file_that_is_cached_whole_is_one_part() {
    let all: Vec<u64> = (0..1200).collect();
    let file = changed(1200, &all);
    assert_eq!(parts(&file, 1200).expect("asked"), [run(0, 1200)]);
    assert_eq!(cached_pages(&file, &file.metadata().expect("stat")).expect("asked"), Some(1200));
}

#[test]
fn what_is_memory_itself_is_no_cache() {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let memory = File::from(rustix::fs::memfd_create("cold-test", flags).expect("made"));
    assert_eq!(backing(&memory).expect("told"), Backing::Memory);
    match rustix::fs::memfd_create("cold-test", flags | rustix::fs::MemfdFlags::HUGETLB) {
        Ok(huge) => {
            let huge = File::from(huge);
            assert_eq!(backing(&huge).expect("told"), Backing::HugePages);
            assert_eq!(cachestat(&huge, 0, 0).expect("no error"), None);
        }
        Err(e) => eprintln!("this kernel has no huge pages: {e}"),
    }
}
