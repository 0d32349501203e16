//! Tiers A and B, from the programs to the tables.

use cold_model::recording::{FillCause, LookupKind, StallCause};

use super::*;

/// Rows of one file: touches and fills as sets of pages.
struct OfFile {
    file: u32,
    exact: BTreeSet<u64>,
    filled: BTreeSet<u64>,
    causes: BTreeSet<FillCause>,
}

fn of_file(r: &Recording, path: &Path) -> OfFile {
    let file = r.files.iter().position(|f| f.path.as_deref() == path.to_str());
    let file = file.unwrap_or_else(|| panic!("{} is not among {:?}", path.display(), r.files)) as u32;
    let touches = r.touches.iter().flatten().filter(|t| t.file == file && t.kind != TouchKind::FaultAround);
    let fills = || r.fills.iter().flatten().filter(|f| f.file == file);
    OfFile {
        file,
        exact: touches.flat_map(|t| t.first_page..t.first_page + u64::from(t.pages)).collect(),
        filled: fills().flat_map(|f| f.first_page..f.first_page + u64::from(f.pages)).collect(),
        causes: fills().map(|f| f.cause).collect(),
    }
}

/// A cold start of the subject with a known pattern; again when somebody else read the file meanwhile, or
/// when the device was so quick that nothing waited for `cause`.
fn cold(tier: Tier, cause: StallCause, path: &Path, argv: &[&OsStr]) -> Recording {
    let file = std::fs::File::open(path).expect("exists");
    file.sync_all().expect("synced");
    for _ in 0..30 {
        let _ = cold_sys::evict::advise_dontneed(&file);
        let meta = file.metadata().expect("open");
        let before = cold_sys::residency::PageMap::of(&file, &meta).expect("told").expect("own file");
        let options = RecordOptions {
            tier: Some(tier),
            stacks: Some(StackMethod::FramePointers),
            ..RecordOptions::default()
        };
        let (r, _) = record(&options, argv).expect("root may");
        let number = of_file(&r, path).file;
        let undisturbed = r.fills.iter().flatten().all(|f| f.in_tree || f.file != number);
        let waited = r.stalls.iter().flatten().any(|s| s.cause == cause && s.file == Some(number));
        if before.resident() == 0 && undisturbed && waited {
            return r;
        }
    }
    panic!("{} was read by somebody else, or nothing ever waited for it", path.display());
}

fn mapped_pattern(tier: Tier) {
    let dir = tempfile::tempdir().expect("a directory");
    let (path, pages, expected) = file_with_pattern(dir.path());
    let subject = cold_testbed::subject();
    let argv = [subject.as_os_str(), "touch-mapped".as_ref(), path.as_os_str(), pages.as_ref()];
    let r = cold(tier, StallCause::Fault, &path, &argv);
    assert_eq!(r.manifest.lost_events(), 0, "{:?}", r.manifest.lost);
    let seen = of_file(&r, &path);
    assert_eq!(seen.exact, expected);
    assert!(seen.exact.is_subset(&seen.filled), "what was needed was read: {:?}", seen.filled);
    assert!(seen.causes.contains(&FillCause::DemandFault), "{:?}", seen.causes);
    assert!(seen.causes.is_subset(&BTreeSet::from([FillCause::DemandFault, FillCause::ReadAround])));
    // What came is what is there now, and what the requests brought.
    let file = std::fs::File::open(&path).expect("exists");
    let now = cold_sys::residency::PageMap::of(&file, &file.metadata().expect("open")).expect("told");
    let now: BTreeSet<u64> = now.expect("own").runs().flat_map(|r| r.first..r.end()).collect();
    assert_eq!(seen.filled, now);
    let transfers = r.transfers.iter().flatten().filter(|t| t.file == Some(seen.file));
    let brought: BTreeSet<u64> =
        transfers.flat_map(|t| t.first_page..t.first_page + u64::from(t.pages)).collect();
    assert_eq!(brought, seen.filled);
    // It waited for pages of the pattern.
    let stalls =
        r.stalls.iter().flatten().filter(|s| s.cause == StallCause::Fault && s.file == Some(seen.file));
    let pages: BTreeSet<u64> = stalls.filter_map(|s| s.page).collect();
    assert!(!pages.is_empty() && pages.is_subset(&expected), "{pages:?} of {:?}", r.stalls);
    let opened = r.lookups.iter().flatten().find(|l| l.kind == LookupKind::Open && l.file == Some(seen.file));
    assert_eq!(opened.expect("opened").path.as_deref(), path.to_str());
    let image = r.processes.iter().rev().find(|p| p.in_tree && p.how == Began::Exec).expect("an exec");
    assert_eq!(image.arguments.as_ref().map(Vec::len), Some(4));
    assert!(r.processes.iter().all(|p| !p.in_tree || p.ended.is_some()));
    assert!(r.mappings.iter().flatten().any(|m| m.file == seen.file && m.offset == 0));
    assert!(!r.manifest.cost.programs.is_empty() && !r.manifest.disk_counters.is_empty());
}

#[test]
fn tier_a_from_fault_to_request() {
    if cold_testbed::need_root() {
        mapped_pattern(Tier::A);
    }
}

#[test]
fn tier_b_by_addresses() {
    if cold_testbed::need_root() {
        mapped_pattern(Tier::B);
    }
}

#[test]
fn what_was_cached_before_is_told_though_the_start_does_not_touch_it() {
    cold_testbed::needs_root!();
    let dir = tempfile::tempdir().expect("a directory");
    let (path, _, _) = file_with_pattern(dir.path());
    let file = std::fs::File::open(&path).expect("exists");
    file.sync_all().expect("synced");
    let subject = cold_testbed::subject();
    let argv = [subject.as_os_str(), "touch-mapped".as_ref(), path.as_os_str(), "0,33".as_ref()];
    let cached = || {
        let map = cold_sys::residency::PageMap::of(&file, &file.metadata().expect("open")).expect("told");
        map.expect("own").runs().map(|run| run.first..run.end()).collect::<Vec<_>>()
    };
    let told = |r: &Recording| {
        let number = of_file(r, &path).file;
        let rows = r.residency.iter().flatten().filter(|c| c.file == number);
        rows.map(|c| c.first_page..c.first_page + u64::from(c.pages)).collect::<Vec<_>>()
    };
    // The machine may take pages away between the look and the start.
    let same = (0..10).any(|_| {
        let _ = cold_sys::evict::advise_dontneed(&file);
        for page in [64, 120] {
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut [0], page * cold_sys::page::page_size())
                .expect("read");
        }
        let before = cached();
        let held = |page: u64| before.iter().any(|run| run.contains(&page));
        assert!(held(64) && held(120) && !held(0) && !held(33), "{before:?}");
        let (r, _) = record(&RecordOptions { tier: Some(Tier::A), ..RecordOptions::default() }, &argv)
            .expect("root may");
        assert_ne!(cached(), before, "it reads pages 0 and 33");
        told(&r) == before
    });
    assert!(same, "ten recordings told of other pages than were cached");
}

/// A page of an address space: address, path, page in the file, may be executed.
type Mapped = (u64, String, u64, bool);

/// Each page that `/proc/PID/maps` shows; without a path where it is no file's.
fn pages_of_maps(maps: &str) -> Vec<Mapped> {
    let page = cold_sys::page::page_size();
    let number = |text: &str| u64::from_str_radix(text, 16).expect("hexadecimal");
    let pages = |words: Vec<&str>| {
        let (start, end) = words[0].split_once('-').expect("a range");
        let (start, offset) = (number(start), number(words[2]) / page);
        let path = words.get(5).filter(|path| path.starts_with('/')).unwrap_or(&"").to_string();
        let code = words[1].contains('x');
        (0..(number(end) - start) / page).map(move |n| (start + n * page, path.clone(), offset + n, code))
    };
    maps.lines().flat_map(|line| pages(line.split_whitespace().collect())).collect()
}

/// What a recording says is mapped in the end, where nothing is unmapped.
fn pages_of_mappings(r: &Recording, pid: u32, since: Nanos) -> BTreeSet<Mapped> {
    let page = cold_sys::page::page_size();
    let mut all = std::collections::BTreeMap::new();
    for m in r.mappings.iter().flatten().filter(|m| m.pid == pid && m.at >= since) {
        let path = r.files[m.file as usize].path.clone().unwrap_or_default();
        for n in 0..m.bytes / page {
            all.insert(m.address + n * page, (path.clone(), m.offset / page + n, m.executable));
        }
    }
    all.into_iter().map(|(address, (path, n, code))| (address, path, n, code)).collect()
}

#[test]
fn mappings_are_those_that_proc_tells() {
    cold_testbed::needs_root!();
    for tier in [Tier::A, Tier::B] {
        let dir = tempfile::tempdir().expect("a directory");
        let told = dir.path().join("maps");
        let script = "exec cat /proc/self/maps > \"$1\"";
        let argv = ["sh", "-c", script, "sh"].map(OsStr::new);
        let argv: Vec<&OsStr> = argv.into_iter().chain([told.as_os_str()]).collect();
        let options =
            RecordOptions { tier: Some(tier), stacks: Some(StackMethod::None), ..RecordOptions::default() };
        let (r, _) = record(&options, &argv).expect("root may");
        assert_eq!(r.manifest.lost_events(), 0, "{:?}", r.manifest.lost);
        let image = r.processes.iter().rev().find(|p| p.in_tree && p.how == Began::Exec).expect("an exec");
        let before = r.processes.iter().filter(|p| p.pid == image.pid && p.how == Began::Exec).count();
        assert_eq!(before, 2, "the shell, and cat in its place: {:?}", r.processes);
        let maps = pages_of_maps(&std::fs::read_to_string(&told).expect("cat wrote it"));
        let (files, others): (BTreeSet<_>, BTreeSet<_>) =
            maps.into_iter().partition(|page| !page.1.is_empty());
        assert!(files.iter().any(|page| page.1.contains("libc")) && files.iter().any(|page| page.3));
        // The new image is mapped before its exec is told: the shell's own mappings end before.
        let renamed = r.mappings.iter().flatten().filter(|m| m.pid == image.pid && m.at < image.began);
        let since = renamed.map(|m| m.at).max().expect("its image");
        let seen = pages_of_mappings(&r, image.pid, since);
        let unseen: Vec<_> = files.difference(&seen).collect();
        assert!(unseen.is_empty(), "tier {tier}: {unseen:?}");
        // The table tells of files only: memory that the loader put over the end of a library is none of a row.
        let over: BTreeSet<u64> = others.iter().map(|page| page.0).collect();
        let gone = |page: &&Mapped| !over.contains(&page.0) && !page.1.contains("ld.so.cache");
        let unmapped: Vec<_> = seen.difference(&files).filter(gone).collect();
        assert!(unmapped.is_empty(), "tier {tier}: {unmapped:?}");
    }
}

#[test]
fn reads_of_both_tiers() {
    cold_testbed::needs_root!();
    for tier in [Tier::A, Tier::B] {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, _, _) = file_with_pattern(dir.path());
        let subject = cold_testbed::subject();
        let argv = [
            subject.as_os_str(),
            "read-ranges".as_ref(),
            path.as_os_str(),
            "0:5000".as_ref(),
            "204800:4096".as_ref(),
        ];
        let r = cold(tier, StallCause::Read, &path, &argv);
        let seen = of_file(&r, &path);
        assert_eq!(seen.exact, BTreeSet::from([0, 1, 50]), "tier {tier}");
        assert!(seen.causes.contains(&FillCause::BufferedRead), "{:?}", seen.causes);
        assert!(seen.causes.is_subset(&BTreeSet::from([FillCause::BufferedRead, FillCause::ReadAhead])));
        let stalls = r.stalls.iter().flatten().filter(|s| s.cause == StallCause::Read);
        let places: BTreeSet<_> =
            stalls.filter(|s| s.file == Some(seen.file)).filter_map(|s| s.page).collect();
        assert!(
            !places.is_empty() && places.is_subset(&seen.exact),
            "tier {tier}: {places:?} of {:?}",
            r.stalls
        );
    }
}
