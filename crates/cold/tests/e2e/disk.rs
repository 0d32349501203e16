//! Against a disk that keeps its own account of every request.

mod root {
    use std::fs;
    use std::path::PathBuf;

    use cold_model::Bytes;
    use cold_model::bench::State;
    use cold_testbed::disk::Preset;
    use cold_testbed::{SlowDisk, needs_root};

    use crate::support::*;

    /// A test disk with the program under test and data on it.
    struct Disk {
        slow: SlowDisk,
        subject: String,
        data: PathBuf,
    }

    impl Disk {
        fn new(preset: Preset) -> Self {
            let disk = SlowDisk::create(preset, Bytes(128 << 20)).expect("a test disk");
            let subject = disk.mount_point().join("cold-subject");
            fs::copy(cold_testbed::subject(), &subject).unwrap();
            let data = data(disk.mount_point().join("data"), 16 * MIB);
            sync(&subject);
            Self { subject: subject.into_os_string().into_string().unwrap(), data, slow: disk }
        }
        /// Everything in the cache, so that the observed start reads nothing.
        fn warm(&self) {
            fs::read(&self.subject).unwrap();
            fs::read(&self.data).unwrap();
        }
        fn data(&self) -> &str {
            self.data.to_str().unwrap()
        }
    }

    #[test]
    fn bytes_and_requests_equal_the_disks_own_log() {
        needs_root!();
        let _machine = together();
        let (place, disk) = (Sandbox::new(), Disk::new(Preset::SataSsd));
        let programs: [&[&str]; 2] = [
            &["touch-mapped", disk.data(), "0,40,1000-1100,3000"],
            &["read-ranges", disk.data(), "0:4096", "1000000:300000", "9000000:5000000"],
        ];
        for program in programs {
            attempts(|| {
                disk.warm();
                disk.slow.reset_log().unwrap();
                let args = ["--states", "cold", "-r", "3", "--", &disk.subject];
                let ran = place.bench(args.iter().chain(program)).run().finished();
                let told = disk.slow.totals().unwrap();
                let runs = ran.report().runs;
                let bytes: u64 = runs.iter().filter_map(|r| r.read_bytes.value()).map(|b| b.0).sum();
                let requests: u64 = runs.iter().filter_map(|r| r.read_requests.value()).sum();
                assert!(told.reads > 30 && bytes > 3 << 20, "{told:?}");
                let off = |a: u64, b: u64| a.abs_diff(b) as f64 / b as f64;
                let text =
                    || format!("bench: {bytes} bytes in {requests}; disk: {told:?}; {:?}", kinds(&runs));
                check(off(bytes, told.read_bytes.0) <= 0.01 && off(requests, told.reads) <= 0.01, text)
            });
        }
    }

    #[test]
    fn two_whole_benchmarks_of_a_disk_of_known_speed_agree() {
        needs_root!();
        let _machine = together();
        let (place, disk) = (Sandbox::new(), Disk::new(Preset::Hdd));
        // 20 pages far apart, each a seek of about 8 ms, one after the other.
        let pages: Vec<String> = (0..20).map(|i| (i * 997 % 4096).to_string()).collect();
        let pages = pages.join(",");
        let args = [
            "--states",
            "cold",
            "-r",
            "5",
            "--",
            &disk.subject,
            "touch-mapped",
            disk.data(),
            &pages,
            "--random",
        ];
        attempts(|| {
            let mut medians = Vec::new();
            for _ in 0..2 {
                let runs = place.bench(args).run().finished().report().runs;
                // The disk does not care for the load of the CPUs, of which a test machine has plenty.
                let runs = runs.iter().filter(|r| only_busy(r));
                let mut times: Vec<f64> = runs.map(|r| r.ready.as_secs() * 1e3).collect();
                check(times.len() >= 5, || format!("only {} runs", times.len()))?;
                times.sort_by(f64::total_cmp);
                medians.push(times[times.len() / 2]);
            }
            let [a, b] = medians[..] else { unreachable!() };
            // The head has to move for at least 19 of them: 5.2 ms is the shortest move with half a turn.
            assert!(a > 95.0 && b > 95.0, "{a} and {b} ms cannot be");
            check((a - b).abs() < a.min(b) * 0.2, || format!("{a} and {b} ms differ by more than 20%"))
        });
    }

    #[test]
    fn a_recorded_start_can_be_limited_as_a_measured_one() {
        needs_root!();
        let _machine = together();
        let (place, disk) = (Sandbox::new(), Disk::new(Preset::Fast));
        let pages: Vec<String> = (0..40).map(|i| (i * 97).to_string()).collect();
        let (pages, at) = (pages.join(","), place.text("limited.cold"));
        let fixed =
            ["trace", "--json", "--evict", "files", "--overwrite", "-o", &at, "--disk-limit", "iops=40"];
        let command = ["--", &disk.subject, "touch-mapped", disk.data(), &pages, "--random"];
        attempts(|| {
            let h = place.cold([&fixed[..], &command].concat()).run().expect(0).json()["headline"].clone();
            let (Some(requests), Some(ready)) = (h["requests"].as_u64(), h["ready"].as_u64()) else {
                return Err(format!("{h}"));
            };
            check(requests >= 40, || format!("{requests} requests: something stayed cached"))?;
            let least = (requests as f64 / 40.0 - 0.2) * 0.8;
            assert!(ready as f64 / 1e9 >= least, "{requests} requests in {ready} ns");
            Ok(())
        });
        let none = ["trace", "--state", "as-is", "--disk-limit", "iops=40", "--", "true"];
        assert!(place.cold(none).run().expect(2).error().contains("--state as-is"));
    }

    #[test]
    fn a_limit_slows_the_tree_and_is_gone_afterwards() {
        needs_root!();
        let _machine = together();
        let (place, disk) = (Sandbox::new(), Disk::new(Preset::Fast));
        let pages: Vec<String> = (0..40).map(|i| (i * 97).to_string()).collect();
        let (pages, limit) = (pages.join(","), "--disk-limit");
        let args = ["--states", "cold", "-r", "1", limit, "iops=40", "--", &disk.subject, "touch-mapped"];
        let args = args.iter().copied().chain([disk.data(), &pages, "--random"]);
        attempts(|| {
            let started = place.bench(args.clone()).start();
            let pid = started.pid();
            let runs = undisturbed(&started.end().finished().report(), &State::Cold, 1)?;
            let requests = *runs[0].read_requests.value().unwrap();
            assert!(requests >= 40);
            // The throttle averages over slices of 0.1 s, and lets the first one begin full.
            let least = (requests as f64 / 40.0 - 0.2) * 0.8;
            assert!(runs[0].ready.as_secs() >= least, "{requests} requests in {}", runs[0].ready);
            assert_eq!(cgroups(pid), [] as [PathBuf; 0]);
            let quick =
                ["--states", "cold", "-r", "1", "--", &disk.subject, "touch-mapped", disk.data(), &pages];
            let report = place.bench(quick).run().finished().report();
            let free = undisturbed(&report, &State::Cold, 1)?[0].ready.as_secs();
            check(free < least, || format!("{free} s without a limit"))
        });
        for control in ["blkio.throttle.read_iops_device", "blkio.throttle.read_bps_device"] {
            let root = std::path::Path::new("/sys/fs/cgroup/blkio").join(control);
            assert_eq!(fs::read_to_string(root).unwrap_or_default(), "");
        }
    }
}
