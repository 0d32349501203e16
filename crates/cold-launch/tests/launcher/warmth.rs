//! When a start counts as cold: how many of the plan's pages are absent, and whose.

use std::fs::File;
use std::path::Path;

use cold_launch::{Completed, Held, Options, Prospect, Skip, Wanted, Weather};
use cold_plan::Plan;
use cold_plan::plan::Identity;
use cold_sys::mapped::{MapKind, MappedFile};
use cold_sys::procfs::ProcFs;

use crate::world::{MIB, add, add_whole, directory, evict, file, plan};

/// What a step of the plans here may read at most.
const STEP: u64 = 128 << 10;

/// The bytes from `first` to `end` come into the cache, and no others: nothing is read around them.
fn read(path: &Path, first: u64, end: u64) {
    let file = File::open(path).expect("open");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Random).expect("advised");
    let mut bytes = vec![0; (end - first) as usize];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, first).expect("read");
}

/// What `do_it` makes of the plan, whatever is cached.
fn with_prospect<T>(
    plan: &Plan,
    options: &Options,
    do_it: impl FnOnce(Result<Prospect<'_>, Skip>) -> T,
) -> T {
    let mounts = ProcFs::default().mounts().expect("mounts");
    let mut options = options.clone();
    // Strangers' hunger for memory is no matter here.
    (options.guards.memory, options.guards.pressure) = (false, false);
    let held = Held::made(plan).expect("a plan");
    let prospect = held.prospect(&mounts, Weather::default(), &options);
    do_it(prospect)
}

/// Whether a start by this plan is warm, looked at closely or not.
fn is_warm(plan: &Plan, finely: bool) -> bool {
    let mut options = Options::new(Vec::new());
    options.guards.finely = finely;
    with_prospect(plan, &options, |prospect| match prospect {
        Ok(prospect) => {
            assert!(prospect.seen().sample.is_some_and(|s| s.absent > 0), "{:?}", prospect.seen());
            false
        }
        Err(Skip::Warm) => true,
        Err(why) => panic!("{why}"),
    })
}

#[test]
fn a_start_is_cold_where_two_of_the_places_looked_at_lack_pages() {
    let dir = directory();
    let data = file(&dir.path().join("data"), 16 * MIB);
    let mut plan = plan();
    add_whole(&mut plan, &data, false);
    let with_absent = |absent: &[std::ops::Range<u64>]| {
        evict(&data);
        let mut at = 0;
        for range in absent {
            read(&data, at, range.start);
            at = range.end;
        }
        read(&data, at, 16 * MIB);
        (is_warm(&plan, true), is_warm(&plan, false))
    };
    assert_eq!(with_absent(&[]), (true, true));
    // A sixteenth in one piece, which the close look alone counts as cold; a quarter, which both do.
    let piece = |range: std::ops::Range<u64>| with_absent(std::slice::from_ref(&range));
    assert_eq!(piece(8 * MIB..9 * MIB), (false, true));
    assert_eq!(piece(8 * MIB..12 * MIB), (false, false));
    // Everything.
    assert_eq!(piece(0..16 * MIB), (false, false));
}

#[test]
fn a_program_whose_own_file_is_absent_is_cold_whatever_others_keep_and_not_for_a_page_of_it() {
    let dir = directory();
    let (own, library) = (file(&dir.path().join("own"), MIB), file(&dir.path().join("lib"), 64 * MIB));
    let mut plan = plan();
    plan.key.executable = own.clone();
    add_whole(&mut plan, &own, false);
    add_whole(&mut plan, &library, false);
    read(&library, 0, 64 * MIB);
    evict(&own);
    // 1.5 % of the plan.
    assert_eq!((is_warm(&plan, true), is_warm(&plan, false)), (false, false));
    read(&own, 4096, MIB);
    assert_eq!((is_warm(&plan, true), is_warm(&plan, false)), (true, true), "one page of it is absent");
}

#[test]
fn what_is_completed_asks_for_the_steps_that_lack_a_page_and_no_others() {
    let dir = directory();
    let end = 4 * STEP + 5000;
    let data = file(&dir.path().join("data"), end);
    let mut plan = plan();
    let identity = Identity::of(&std::fs::metadata(&data).expect("stat"), [0; 20]);
    // The last one ends beyond the file.
    let steps = [0, 1, 2, 3].map(|n| (n * STEP, STEP as u32));
    add(&mut plan, &data, identity, &[&steps[..], &[(4 * STEP, 8192)]].concat(), false);
    let mut options = Options::new(Vec::new());
    options.guards.warm = false;
    let completed = || {
        with_prospect(&plan, &options, |prospect| {
            let tally = prospect.expect("can be read").complete().expect("read").tally;
            (tally.bytes, tally.gone)
        })
    };
    evict(&data);
    assert_eq!(completed(), (4 * STEP + 8192, 0));
    read(&data, 0, end);
    assert_eq!(completed(), (0, 0), "all is there");
    evict(&data);
    read(&data, 0, STEP + 4096);
    read(&data, STEP + 8192, end);
    assert_eq!(completed(), (STEP, 0), "one page of the second is absent");
    read(&data, 0, end);
    assert_eq!(completed(), (0, 0));
}

#[test]
fn reading_ends_before_the_chunk_from_which_on_it_is_enough() {
    let dir = directory();
    let data = file(&dir.path().join("data"), 16 * STEP);
    let mut plan = plan();
    add_whole(&mut plan, &data, false);
    let mut options = Options::new(Vec::new());
    options.guards.warm = false;
    with_prospect(&plan, &options, |prospect| {
        let prospect = prospect.expect("can be read");
        let read = |chunks: u32| {
            let mut asked = 0;
            let enough = &mut || {
                asked += 1;
                asked > chunks
            };
            let tally = prospect.read_until(enough).expect("read");
            (tally.calls, tally.bytes)
        };
        assert_eq!((read(0), read(1), read(5)), ((0, 0), (1, STEP), (5, 5 * STEP)));
        assert_eq!(read(u32::MAX).1, 16 * STEP, "all of it");
    });
}

/// How many bytes of a range of the file are cached, in whole pages.
fn cached(path: &Path, first: u64, end: u64) -> u64 {
    let file = File::open(path).expect("open");
    let stat = cold_sys::residency::cachestat(&file, first, end - first).expect("asked");
    stat.expect("told").cached * cold_sys::page::page_size()
}

#[test]
fn what_was_completed_is_given_back_where_it_was_absent_nobody_maps_it_and_nobody_wants_it() {
    let dir = directory();
    let data = file(&dir.path().join("data"), 4 * STEP);
    let (mut plan, mut other) = (plan(), crate::world::plan());
    add_whole(&mut plan, &data, false);
    let identity = Identity::of(&std::fs::metadata(&data).expect("stat"), [0; 20]);
    add(&mut other, &data, identity, &[(3 * STEP, STEP as u32)], false);
    let mut options = Options::new(Vec::new());
    options.guards.warm = false;
    let mounts = ProcFs::default().mounts().expect("mounts");
    let give_back = |completed: &Completed, wanted: &Wanted| {
        let held = Held::made(&plan).expect("a plan");
        held.give_back(&completed.brought, wanted, &mounts).expect("a plan")
    };
    let complete = || with_prospect(&plan, &options, |p| p.expect("can be read").complete().expect("read"));
    evict(&data);
    read(&data, STEP + 4096, STEP + 8192);
    let completed = complete();
    assert_eq!(cached(&data, 0, 4 * STEP), 4 * STEP);
    let again = complete();
    assert!(again.brought.is_empty() && !completed.brought.is_empty());
    assert_eq!(give_back(&again, &Wanted::default()), 0, "all was there");

    let opened = File::open(&data).expect("open");
    let map = MappedFile::new(&opened, 4 * STEP, MapKind::default()).expect("mapped");
    map.touch(0).expect("a page");
    let mut wanted = Wanted::default();
    Held::made(&other).expect("a plan").want(&mut wanted).expect("a plan");
    let went = give_back(&completed, &wanted);
    assert_eq!(went, 4 * STEP - cached(&data, 0, 4 * STEP), "it tells what went");
    assert_eq!(cached(&data, 0, 4096), 4096, "mapped");
    assert_eq!(cached(&data, STEP, 2 * STEP), 4096, "only what was there before");
    assert_eq!(cached(&data, 2 * STEP, 3 * STEP), 0);
    assert_eq!(cached(&data, 3 * STEP, 4 * STEP), STEP, "wanted");
    drop(map);
    give_back(&completed, &Wanted::default());
    assert_eq!(cached(&data, 0, 4 * STEP), 4096);
}

/// How many pages of the file, all of which are cached, were read by a call since they came (`KPF_REFERENCED`), and how
/// many it has.
fn read_by_calls(path: &Path) -> (usize, usize) {
    const REFERENCED: u64 = 1 << 2;
    const FRAME: u64 = (1 << 55) - 1;
    let page = cold_sys::page::page_size();
    let file = File::open(path).expect("open");
    let len = file.metadata().expect("stat").len();
    let word = |file: &File, at: u64| {
        let mut bytes = [0; 8];
        std::os::unix::fs::FileExt::read_exact_at(file, &mut bytes, at * 8).expect("a word");
        u64::from_ne_bytes(bytes)
    };
    let frames = File::open("/proc/self/pagemap").expect("pagemap");
    let flags = File::open("/proc/kpageflags").expect("kpageflags");
    let map = MappedFile::new(&file, len, MapKind::default()).expect("mapped");
    let count = (0..len).step_by(page as usize).filter(|at| {
        // A fault marks nothing of the kind.
        map.touch(*at).expect("a page");
        let frame = word(&frames, (map.address() + at) / page) & FRAME;
        assert_ne!(frame, 0, "mapped");
        word(&flags, frame) & REFERENCED != 0
    });
    (count.count(), len.div_ceil(page) as usize)
}

#[test]
fn pages_that_were_completed_are_touched_by_a_processor() {
    if !cold_testbed::need_root() {
        return;
    }
    let dir = directory();
    let data = file(&dir.path().join("data"), 4 * STEP);
    let mut plan = plan();
    add_whole(&mut plan, &data, false);
    let mut options = Options::new(Vec::new());
    options.guards.warm = false;
    evict(&data);
    cold_sys::readahead::read_ahead(&File::open(&data).expect("open"), 0, 4 * STEP).expect("asked");
    assert_eq!(read_by_calls(&data).0, 0, "only asked for");
    evict(&data);
    let tally = with_prospect(&plan, &options, |p| p.expect("can be read").complete().expect("read").tally);
    assert_eq!(tally.bytes, 4 * STEP);
    let (touched, all) = read_by_calls(&data);
    assert_eq!(touched, all);
}
