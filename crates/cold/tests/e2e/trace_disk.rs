//! A recording against a disk that keeps its own account, and a program whose touches are known.

mod root {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use cold_model::Bytes;
    use cold_model::recording::manifest::Tier;
    use cold_model::recording::{
        DeviceRead, FileIdx, Fill, FillCause, Recording, Stall, StallCause, TouchKind,
    };
    use cold_testbed::disk::{Op, Preset, Request};
    use cold_testbed::{SlowDisk, needs_root};

    use crate::support::*;
    use crate::trace::recorded;

    const PAGES: u64 = 4096;

    /// A test disk with nothing but data on it. Programs lie elsewhere, so that all it is asked for is known.
    struct Disk {
        slow: SlowDisk,
        data: PathBuf,
        place: Sandbox,
    }

    impl Disk {
        fn new(preset: Preset) -> Self {
            let slow = SlowDisk::create(preset, Bytes(128 << 20)).expect("a test disk");
            let data = data(slow.mount_point().join("data"), (PAGES * PAGE) as usize);
            Self { data, slow, place: Sandbox::new() }
        }

        fn text(&self) -> &str {
            self.data.to_str().unwrap()
        }

        /// A cold start of the subject with these arguments; the log is that of the disk between start and
        /// end. `Err`: a stranger disturbed it.
        fn trace(&self, options: &[&str], program: &[&str]) -> Result<(Recording, Vec<Request>), String> {
            fs::read(program[0]).unwrap();
            fs::read(&self.data).unwrap();
            let _ = fs::remove_dir_all(self.place.path("t.cold"));
            let fixed = ["trace", "--evict", "files", "--no-stacks", "-o", "t.cold"];
            self.slow.reset_log().unwrap();
            let args = fixed.iter().chain(options).chain(&["--"]).chain(program);
            self.place.cold(args).run().expect(0);
            let log = self.slow.log().unwrap();
            let r = recorded(&self.place, "t.cold");
            check(r.manifest.tier <= Tier::B, || format!("tier {}: nothing to compare", r.manifest.tier))?;
            quiet(&r)?;
            let (start, end) = (r.manifest.start, r.manifest.end);
            let during = |q: &Request| q.op == Op::Read && q.arrival >= start && q.arrival <= end;
            Ok((r, log.into_iter().filter(during).collect()))
        }

        /// What was recorded of this disk.
        fn reads<'a>(&self, r: &'a Recording) -> impl Iterator<Item = (u32, &'a DeviceRead)> {
            let number = cold_model::Dev::of_number(self.data.metadata().unwrap().dev());
            let start = r.manifest.start;
            let all = r.device_reads.iter().flatten().enumerate();
            all.filter(move |(_, d)| number == d.dev && d.queued >= start).map(|(i, d)| (i as u32, d))
        }

        #[track_caller]
        fn request_for_request(&self, r: &Recording, log: &[Request]) {
            let mut asked: Vec<_> = log.iter().map(|q| (q.offset, q.len.0)).collect();
            let mut told: Vec<_> = self.reads(r).map(|(_, d)| (d.sector * 512, u64::from(d.bytes))).collect();
            asked.sort_unstable();
            told.sort_unstable();
            assert_eq!(told, asked, "request for request");
        }
    }

    fn row(r: &Recording, path: &Path) -> FileIdx {
        let found = r.files.iter().position(|f| f.path.as_deref() == path.to_str());
        u32::try_from(found.unwrap_or_else(|| panic!("{} is not in the recording", path.display()))).unwrap()
    }

    fn touched(r: &Recording, file: FileIdx, kind: TouchKind) -> BTreeSet<u64> {
        let touches = r.touches.iter().flatten().filter(|t| t.file == file && t.kind == kind);
        touches.flat_map(|t| t.first_page..t.first_page + u64::from(t.pages)).collect()
    }

    fn pages_of(fill: &Fill) -> BTreeSet<u64> {
        (fill.first_page..fill.first_page + u64::from(fill.pages)).collect()
    }

    fn fills(r: &Recording, file: FileIdx) -> Vec<&Fill> {
        r.fills.iter().flatten().filter(|f| f.file == file).collect()
    }

    fn filled(r: &Recording, file: FileIdx) -> BTreeSet<u64> {
        let size = r.files[file as usize].size.unwrap();
        fills(r, file).into_iter().flat_map(pages_of).filter(|page| page * PAGE < size).collect()
    }

    /// What was filled is what is cached now, and was not before. `Err`: the kernel has taken pages away
    /// again, for somebody who needed memory.
    #[track_caller]
    fn filled_is_cached(r: &Recording, file: FileIdx) -> Result<(), String> {
        let path = r.files[file as usize].path.as_ref().unwrap();
        let (filled, now) = (filled(r, file), resident(Path::new(path)));
        // First: where the file's beginning was taken away, the recorder has read it again for the build-id.
        check(filled.is_subset(&now), || format!("taken away: {:?}", filled.difference(&now)))?;
        assert_eq!(now, filled, "cached, not filled");
        Ok(())
    }

    fn waits(r: &Recording, file: FileIdx, page: u64) -> Vec<&Stall> {
        let on_page = |s: &&Stall| s.file == Some(file) && s.page == Some(page);
        r.stalls.iter().flatten().filter(on_page).filter(|s| s.cause != StallCause::Lock).collect()
    }

    fn quiet(r: &Recording) -> Result<(), String> {
        let m = &r.manifest;
        check(m.lost_events() == 0, || format!("lost: {:?}", m.lost))?;
        check(
            m.taints
                .iter()
                .all(|t| ["CPU", "busy", "steal", "other processes read"].iter().any(|w| t.contains(w))),
            || format!("tainted: {:?}", m.taints),
        )?;
        let absent = m.state.residual.as_ref().and_then(|k| k.value()).is_some_and(|r| r.bytes == Bytes(0));
        check(absent, || format!("not cold: {:?}", m.state))
    }

    /// Spread, so that no two are one request.
    fn pattern(n: u64) -> (BTreeSet<u64>, String) {
        let pages: BTreeSet<u64> = (0..n).map(|i| i * 37 % PAGES).collect();
        let list: Vec<String> = pages.iter().map(ToString::to_string).collect();
        (pages, list.join(","))
    }

    #[test]
    fn touches_fills_requests_and_stalls_equal_what_is_known() {
        needs_root!();
        let _machine = together();
        let _settings = exactly();
        for (preset, n) in [(Preset::Hdd, 20), (Preset::SataSsd, 100), (Preset::Cloud, 50)] {
            let disk = Disk::new(preset);
            let (pages, list) = pattern(n);
            let subject = disk.place.subject();
            attempts(|| {
                let program = [&subject, "touch-mapped", disk.text(), &list];
                let (r, log) = disk.trace(&["--exact-need"], &program)?;
                assert!(r.manifest.exact_need, "{:?}", r.manifest.notes);
                let file = row(&r, &disk.data);
                assert_eq!(touched(&r, file, TouchKind::Fault), pages, "touches are the pattern, exactly");
                assert_eq!(touched(&r, file, TouchKind::FaultAround), BTreeSet::new());
                filled_is_cached(&r, file)?;
                disk.request_for_request(&r, &log);
                stalls(&disk, &r, &log, file, &pages).map_err(|why| format!("{preset:?}: {why}"))
            });
        }
    }

    /// One task waits for one request at a time. A wait begins when the request is on its way and ends with
    /// the interrupt that completes it, so it is the block layer's time for the request less the few
    /// microseconds in which the task goes to sleep; and that is the disk's own service time, plus the way
    /// there and back (loop device and FUSE: 20 µs and 15 µs, which is little only beside a slow disk).
    fn stalls(
        disk: &Disk,
        r: &Recording,
        log: &[Request],
        file: FileIdx,
        pages: &BTreeSet<u64>,
    ) -> Result<(), String> {
        let (mut waited, mut device, mut service, mut way) = (0, 0, 0, 0);
        for page in pages {
            let mine = r.transfers.iter().flatten().find(|t| {
                t.file == Some(file) && (t.first_page..t.first_page + u64::from(t.pages)).contains(page)
            });
            let request = mine.expect("a request brought it").request;
            let (_, read) = disk.reads(r).find(|(i, _)| *i == request).expect("on this disk");
            let served = log.iter().find(|q| q.offset == read.sector * 512).expect("in the log");
            let all = waits(r, file, *page);
            assert!(all.len() <= 1, "page {page}: {all:?}");
            // One that lost its CPU to another before it slept finds its page there, and has not waited.
            let wait = all.first().ok_or_else(|| format!("page {page} came before it was waited for"))?;
            let (completed, woken) = (read.completed.unwrap(), wait.woken.expect("seen to be woken"));
            assert!(read.queued <= served.arrival && served.done <= completed, "{read:?} {served:?}");
            assert!(read.queued <= wait.began && served.done <= woken, "{read:?} {wait:?}");
            waited += woken.0 - wait.began.0;
            device += completed.0 - read.queued.0;
            service += served.done.0 - served.arrival.0;
            way += (served.arrival.0 - read.queued.0) + (completed.0 - served.done.0);
        }
        let off = |a: u64, b: u64| a.abs_diff(b) as f64 / b.max(1) as f64;
        let sums = format!("waited {waited} ns, device {device} ns, service {service} ns, way {way} ns");
        eprintln!("{} pages: {sums}: {:.2}% off", pages.len(), 100.0 * off(waited, device));
        check(off(waited, device) <= 0.05, || format!("not the device's time: {sums}"))?;
        check(off(waited, service + way) <= 0.05, || format!("not the log's time: {sums}"))?;
        // The way is short unless the CPUs are busy: the loop device and the disk's server need them.
        check(way * 25 > service || off(waited, service) <= 0.05, || format!("not the service time: {sums}"))
    }

    #[test]
    fn a_buffered_read_is_told_from_what_is_read_ahead_of_it() {
        needs_root!();
        let _machine = together();
        let disk = Disk::new(Preset::Cloud);
        let subject = disk.place.subject();
        // Part of a page, pages across a boundary, a long run.
        let ranges = ["5:100", "409500:5000", "4096000:1000000"];
        let asked = (0..1).chain(99..102).chain(1000..1245);
        let wanted: BTreeSet<u64> = asked.collect();
        attempts(|| {
            let program = [&[&subject, "read-ranges", disk.text()][..], &ranges].concat();
            let (r, log) = disk.trace(&[], &program)?;
            let file = row(&r, &disk.data);
            assert_eq!(touched(&r, file, TouchKind::Read), wanted);
            filled_is_cached(&r, file)?;
            for fill in fills(&r, file) {
                let needed = pages_of(fill).iter().any(|p| wanted.contains(p));
                let cause = if needed { FillCause::BufferedRead } else { FillCause::ReadAhead };
                assert_eq!((fill.cause, fill.in_tree), (cause, true), "{fill:?}");
            }
            disk.request_for_request(&r, &log);
            Ok(())
        });
    }

    #[test]
    fn an_executed_file() {
        needs_root!();
        let _machine = together();
        let disk = Disk::new(Preset::SataSsd);
        let program = disk.slow.mount_point().join("program");
        fs::copy(cold_testbed::subject(), &program).unwrap();
        sync(&program);
        attempts(|| {
            let (r, log) = disk.trace(&[], &[program.to_str().unwrap(), "sleep", "0"])?;
            let file = row(&r, &program);
            let executable = r.processes.iter().any(|p| p.in_tree && p.executable == Some(file));
            assert!(executable, "{:?}", r.processes);
            // The disk's requests are the witness here: afterwards the recorder reads the file's build-id.
            let size = program.metadata().unwrap().len();
            let brought = r.transfers.iter().flatten().filter(|t| t.file == Some(file));
            let brought = brought.flat_map(|t| t.first_page..t.first_page + u64::from(t.pages));
            let brought: BTreeSet<u64> = brought.filter(|page| page * PAGE < size).collect();
            assert_eq!(filled(&r, file), brought);
            let left = brought.intersection(&resident(&program)).count();
            check(left == brought.len(), || format!("{left} of {} pages were left", brought.len()))?;
            let (first, header) = (waits(&r, file, 0), touched(&r, file, TouchKind::Read));
            assert_eq!(first.first().map(|s| s.cause), Some(StallCause::Exec), "{first:?}");
            assert!(header.contains(&0), "the kernel read the header: {header:?}");
            disk.request_for_request(&r, &log);
            Ok(())
        });
    }

    #[test]
    fn pages_that_were_asked_for_are_no_touches() {
        needs_root!();
        let _machine = together();
        let disk = Disk::new(Preset::Fast);
        let subject = disk.place.subject();
        for way in ["populate", "willneed", "fadvise"] {
            attempts(|| {
                let (r, log) = disk.trace(&[], &[&subject, "ask", way, disk.text()])?;
                let file = row(&r, &disk.data);
                filled_is_cached(&r, file).map_err(|why| format!("{way}: {why}"))?;
                for fill in fills(&r, file) {
                    assert_eq!((fill.cause, fill.in_tree), (FillCause::Advice, true), "{way}: {fill:?}");
                }
                let touches = || r.touches.iter().flatten().filter(|t| t.file == file);
                // Pages that were mapped never fault: they may have been used, which is a bound.
                assert!(touches().all(|t| t.kind == TouchKind::FaultAround), "{way}: nothing was touched");
                assert!(way == "populate" || touches().count() == 0, "{way}: not mapped");
                let told = r.advice.iter().flatten().any(|a| a.file == Some(file));
                assert!(told, "{way}: {:?}", r.advice);
                disk.request_for_request(&r, &log);
                Ok(())
            });
        }
    }

    /// The kernel books the second fault as minor. It waits as long as the first.
    #[test]
    fn a_page_that_is_already_on_its_way_stalls_the_second_thread_too() {
        needs_root!();
        let _machine = together();
        let disk = Disk::new(Preset::Hdd);
        let subject = disk.place.subject();
        let (pages, list) = pattern(10);
        attempts(|| {
            let (r, log) = disk.trace(&[], &[&subject, "touch-together", disk.text(), &list])?;
            let file = row(&r, &disk.data);
            assert_eq!(touched(&r, file, TouchKind::Fault), pages);
            disk.request_for_request(&r, &log);
            for page in &pages {
                let both = waits(&r, file, *page);
                let threads: BTreeSet<u32> = both.iter().map(|s| s.tid).collect();
                // A thread that came too late did not wait at all: then nothing is known about it.
                check(threads.len() == 2, || format!("page {page}: {both:?}"))?;
                let requests = r.transfers.iter().flatten().filter(|t| {
                    t.file == Some(file) && (t.first_page..t.first_page + u64::from(t.pages)).contains(page)
                });
                assert_eq!(requests.count(), 1, "one request for both");
            }
            Ok(())
        });
    }

    #[test]
    fn what_another_process_reads_at_the_same_time_is_its_own() {
        needs_root!();
        let _machine = together();
        let disk = Disk::new(Preset::SataSsd);
        let theirs = data(disk.slow.mount_point().join("theirs"), 4 * MIB);
        let script = "
import os, sys
f = os.open(sys.argv[1], os.O_RDONLY); print('reads', flush=True)
while True: os.posix_fadvise(f, 0, 0, os.POSIX_FADV_DONTNEED); os.pread(f, 200000, 0)";
        let other = Other::start("/usr/bin/python3", &["-c", script, theirs.to_str().unwrap()], "reads");
        let subject = disk.place.subject();
        let (pages, list) = pattern(100);
        attempts(|| {
            let (r, _) = disk.trace(&[], &[&subject, "touch-mapped", "--random", disk.text(), &list])?;
            let (mine, file) = (row(&r, &disk.data), row(&r, &theirs));
            assert_eq!(touched(&r, mine, TouchKind::Fault), pages);
            assert!(fills(&r, mine).iter().all(|f| f.in_tree), "{:?}", fills(&r, mine));
            assert!(!r.touches.iter().flatten().any(|t| t.file == file), "no touch of the start");
            let foreign = fills(&r, file);
            check(!foreign.is_empty(), || "it read nothing in this time".into())?;
            assert!(foreign.iter().all(|f| !f.in_tree && f.pid == other.pid()), "{foreign:?}");
            for (i, read) in disk.reads(&r) {
                let brings =
                    |file| r.transfers.iter().flatten().any(|t| t.request == i && t.file == Some(file));
                let owner = if brings(file) { Some(false) } else { brings(mine).then_some(true) };
                assert!(owner.is_none_or(|o| o == read.in_tree), "{read:?}");
            }
            Ok(())
        });
    }

    /// Programs that save files at the same time wait for the journal's commit and for their data; no wait
    /// of theirs is a mere lookup, and each is told with the path it is about.
    #[test]
    fn saving_files_waits_for_the_journal_and_for_writing() {
        needs_root!();
        let _machine = together();
        let disk = Disk::new(Preset::Cloud);
        let subject = disk.place.subject();
        let dir = disk.slow.mount_point().to_str().unwrap().to_owned();
        attempts(|| {
            let (r, _) = disk.trace(&[], &[&subject, "renames", &dir, "3", "8"])?;
            let lookups = r.lookups.as_deref().unwrap();
            let path_of = |s: &Stall| {
                let asked = s.lookup.and_then(|l| lookups[l as usize].path.clone());
                asked.or_else(|| r.files[s.file? as usize].path.clone())
            };
            let mut waited: BTreeMap<StallCause, u64> = BTreeMap::new();
            for s in r.stalls.iter().flatten() {
                let saves = matches!(s.cause, StallCause::Journal | StallCause::Write);
                let path = path_of(s).filter(|path| path.starts_with(&dir));
                assert!(path.is_some() || !saves, "it has a path: {s:?}");
                let Some(path) = path else { continue };
                *waited.entry(s.cause).or_default() += s.woken.map_or(0, |woken| woken.0 - s.began.0);
                if s.lookup.is_none() {
                    assert!(saves && path.contains("/saved"), "of a descriptor: {path}: {s:?}");
                }
            }
            eprintln!("{waited:?}");
            let of = |cause| waited.get(&cause).copied().unwrap_or(0);
            // Files and directory were looked at before: what is left of lookups and locks is little.
            let (saving, rest) =
                (of(StallCause::Journal) + of(StallCause::Write), waited.values().sum::<u64>());
            assert!(of(StallCause::Journal) > 0, "{waited:?}");
            check(saving * 10 >= rest * 9, || format!("{waited:?}"))
        });
    }
}
