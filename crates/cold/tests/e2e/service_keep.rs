//! `cold service`: what is read before a start, and given back.

pub(crate) mod root {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, Instant};

    use cold_plan::Store;
    use cold_sys::evict::{DropCaches, drop_caches};
    use cold_sys::procfs::ProcFs;
    use cold_sys::residency::cachestat;
    use cold_testbed::needs_root;
    use serde_json::Value;

    use crate::service::root::Served;
    use crate::support::*;

    /// What the service says once it has read for the nth time. Others' work can put that off.
    fn kept(s: &Served, times: u64) -> Value {
        let end = Instant::now() + Duration::from_mins(3);
        loop {
            let told = s.status();
            if told["service"]["kept"]["times"] == times {
                return told;
            }
            assert!(Instant::now() < end, "never quiet: {told}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// A service that knows the program from its history.
    fn known() -> Served {
        let mut s = Served::new();
        s.begin(&["--control-every", "0", "--no-keep"]);
        s.starts_until("followed", 1);
        s.end();
        s
    }

    #[test]
    fn what_was_started_often_is_read_again_while_nothing_waits() {
        needs_root!();
        let _machine = alone();
        let mut s = known();
        // The machine's own reclaim (DAMON) can take a page away between the reading and the start.
        attempts(|| {
            s.w.evict();
            s.begin(&["--control-every", "0"]);
            let told = kept(&s, 1);
            assert_eq!(told["service"]["kept"]["too_fast"], 0, "a volume of 0.8 ms for each read: {told}");
            // What is asked for last comes.
            std::thread::sleep(Duration::from_millis(500));
            // By the disk's log: a fault may wait for pages of other disks as well, of the C library, that others took away.
            let mut faults = 0;
            let reads = s.w.reads(|| faults = s.faults(0));
            let told = s.status();
            s.end();
            check(reads.is_empty(), || {
                format!("it reads {reads:?} from its disk; {faults} faults waited: {told}")
            })
        });
        // What is forgotten is not expected any more.
        s.begin(&["--control-every", "0"]);
        s.cold(&["forget", "cold-subject"]).run().expect(0);
        let told = kept(&s, 1);
        assert_eq!(told["service"]["kept"]["plans"], 0, "{told}");
        s.end();
    }

    /// A `/proc/meminfo` of which so many percent are free.
    fn tell_free(path: &Path, percent: u64) {
        let real = fs::read_to_string("/proc/meminfo").unwrap();
        let total: u64 = real.split_whitespace().nth(1).unwrap().parse().unwrap();
        let free = format!("MemFree: {} kB", total * percent / 100);
        let line = |line: &str| if line.starts_with("MemFree:") { free.clone() } else { line.to_owned() };
        let lines: Vec<_> = real.lines().map(line).collect();
        // In place: it is mounted.
        fs::write(path, lines.join("\n") + "\n").unwrap();
    }

    /// Bytes of the file that are cached.
    fn cached(path: &Path) -> u64 {
        let stat = cachestat(&fs::File::open(path).unwrap(), 0, 0).unwrap().unwrap();
        stat.cached * cold_sys::page::page_size()
    }

    #[test]
    fn memory_is_given_back_where_it_is_wanted_and_no_start_came() {
        needs_root!();
        let _machine = alone();
        let mut s = known();
        let memory = s.w.place.path("meminfo");
        let hidden = format!("mount --bind {} /proc/meminfo", memory.display());
        let begin = |s: &mut Served| {
            s.w.evict();
            tell_free(&memory, 60);
            let around = |run: Cold| run.after(&hidden).by("unshare", &["--mount", "--"]);
            s.begin_by(around, &["--no-learn", "--control-every", "0"]);
            let told = kept(s, 1);
            assert_eq!(told["service"]["kept"]["given_back"], 0, "{told}");
        };
        let given_back = |s: &Served| s.status()["service"]["kept"]["given_back"].as_u64().unwrap();
        // The machine's own reclaim (DAMON) can take a page away meanwhile.
        attempts(|| {
            begin(&mut s);
            std::thread::sleep(Duration::from_millis(500));
            let before = cached(&s.w.data);
            // Between the two bounds nothing is given back, which is looked at every 2 s.
            tell_free(&memory, 20);
            std::thread::sleep(Duration::from_secs(5));
            assert_eq!(given_back(&s), 0);
            tell_free(&memory, 10);
            let went = until("memory is given back", || Some(given_back(&s)).filter(|bytes| *bytes > 0));
            let left = cached(&s.w.data);
            let text = s.cold(&["status"]).run().expect(0).stdout;
            assert!(text.contains("given back"), "{text}");
            s.end();
            check(before > 0 && left == 0 && went >= before, || {
                format!("{before} bytes were cached, {left} are; it tells {went}")
            })
        });
        // What a start may have used stays, also where it was brought for another program; that program's own file goes.
        let mut words = s.w.program();
        let other = s.w.place.text("other");
        let own = std::mem::replace(&mut words[0], other.clone());
        fs::copy(&own, &other).unwrap();
        let learn = ["prefetch", "learn", "--evict", "files", "--starts", "2", "--store"].map(str::to_owned);
        let learn = learn.into_iter().chain([s.w.store(), "--".to_owned()]).chain(words.clone());
        s.w.place.cold(learn.collect::<Vec<_>>()).run().expect(0);
        let arguments: Vec<_> = words[1..].iter().map(String::as_str).collect();
        attempts(|| {
            s.w.place.cold(["cache", "evict", &own]).run().expect(0);
            // Else the data is brought for it, once it was started.
            s.cold(&["forget", &other]).run();
            begin(&mut s);
            s.counted("planned", || run(&other, &arguments));
            let before = [cached(&s.w.data), cached(own.as_ref())];
            tell_free(&memory, 10);
            let went = until("memory is given back", || Some(given_back(&s)).filter(|bytes| *bytes > 0));
            let left = [cached(&s.w.data), cached(own.as_ref())];
            s.end();
            check(before[0] > 0 && left[0] == before[0] && left[1] < before[1], || {
                format!("{before:?} bytes were cached, {left:?} are; it tells {went}")
            })
        });
    }

    #[test]
    fn a_plan_whose_disks_are_so_fast_that_it_does_not_pay_is_not_read_again() {
        needs_root!();
        let _machine = alone();
        let mut s = known();
        // A start that computes for an hour saves nothing by being warm.
        let store = Store::at(s.w.store());
        let old = store.list().unwrap().plans.remove(0).plan;
        let mut new = old.clone();
        new.learnt.cpu_ns = 3_600_000_000_000;
        assert!(store.replace(&old, &new).unwrap());
        s.w.evict();
        s.w.place.cold(["cache", "evict", &s.w.program()[0]]).run().expect(0);
        s.begin(&["--control-every", "0"]);
        let told = kept(&s, 1);
        assert_eq!(told["service"]["kept"]["too_fast"], 1, "{told}");
        let text = s.cold(&["status"]).run().expect(0).stdout;
        assert!(text.contains("1 plan not read before a start"), "{text}");
        // The next time that the cache was emptied.
        drop_caches(&ProcFs::default(), DropCaches::PageCache).unwrap();
        let told = kept(&s, 2);
        assert_eq!((&told["service"]["kept"]["plans"], cached(&s.w.data)), (&Value::from(0), 0), "{told}");
        assert_eq!(told["service"]["kept"]["too_fast"], 1, "{told}");
        s.end();
    }
}
