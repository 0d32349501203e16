//! The slow disk against the kernel's own counters.

mod root {
    use std::fs::{self, File, OpenOptions};
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    use std::os::unix::process::ExitStatusExt;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use cold_model::Bytes;
    use cold_testbed::disk::{FileSystem, Op, Options, Preset, Totals, clean, running};
    use cold_testbed::{SlowDisk, need, need_root, needs_root, subject};

    const MIB: u64 = 1 << 20;

    fn disk(preset: Preset) -> SlowDisk {
        SlowDisk::create(preset, Bytes(128 * MIB)).expect("a test disk")
    }

    /// Reads and bytes read since the device was made (Documentation/block/stat.rst).
    fn kernel_reads(disk: &SlowDisk) -> (u64, u64) {
        let text = fs::read_to_string(format!("/sys/block/{}/stat", disk.device_name())).expect("stat");
        let n: Vec<u64> = text.split_whitespace().map(|w| w.parse().expect("number")).collect();
        (n[0], n[2] * 512)
    }

    /// A file of 8 MiB in which every page says its own number; written, synced, dropped from the cache.
    fn content(disk: &SlowDisk) -> PathBuf {
        let path = disk.mount_point().join("content");
        let bytes: Vec<u8> = (0..2048_u32).flat_map(|page| page.to_le_bytes().repeat(1024)).collect();
        fs::write(&path, &bytes).expect("write");
        drop_from_cache(&path);
        path
    }

    fn drop_from_cache(path: &Path) {
        let file = File::open(path).expect("open");
        file.sync_all().expect("sync");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("fadvise");
    }

    fn direct(path: &Path) -> File {
        let flag = rustix::fs::OFlags::DIRECT.bits().cast_signed();
        OpenOptions::new().read(true).custom_flags(flag).open(path).expect("open")
    }

    /// Memory aligned to a page, as `O_DIRECT` wants it.
    fn read_page(file: &File, page: u64, buffer: &mut [u8]) {
        let start = buffer.as_ptr().align_offset(4096);
        let bytes = &mut buffer[start..start + 4096];
        file.read_exact_at(bytes, page * 4096).expect("read");
        assert_eq!(bytes[..4], u32::try_from(page).expect("small").to_le_bytes());
    }

    #[test]
    fn the_log_equals_the_kernels_counters() {
        needs_root!();
        let disk = disk(Preset::Fast);
        let path = content(&disk);
        disk.reset_log().expect("reset");
        let before = kernel_reads(&disk);
        let file = direct(&path);
        let mut buffer = vec![0; 8192];
        for page in (0..200).map(|i| i * 7 % 2048) {
            read_page(&file, page, &mut buffer);
        }
        // Buffered: read-ahead makes larger requests.
        assert_eq!(fs::read(&path).expect("read").len(), 8 << 20);
        let out = Command::new(subject())
            .args(["read-ranges"])
            .arg(&path)
            .args(["4096:8192", "1048576:1"])
            .status();
        assert!(out.expect("run").success());
        let (reads, bytes) = kernel_reads(&disk);
        let log = disk.log().expect("log");
        let totals = Totals::of(&log);
        assert_eq!((totals.reads, totals.read_bytes.0), (reads - before.0, bytes - before.1));
        assert!(totals.reads >= 200 + 8 * 1024 / 512, "{totals:?}");
        assert!(log.iter().all(|r| r.done >= r.arrival));
    }

    #[test]
    fn each_direct_read_is_one_request_of_its_size_and_at_least_as_slow_as_the_model() {
        needs_root!();
        let disk = disk(Preset::Hdd);
        let path = content(&disk);
        let file = direct(&path);
        let mut buffer = vec![0; 8192];
        read_page(&file, 0, &mut buffer); // the file's own metadata comes with the first read
        disk.reset_log().expect("reset");
        let begin = Instant::now();
        (0..40).for_each(|i| read_page(&file, (i * 997) % 2048, &mut buffer));
        let elapsed = begin.elapsed();
        let log: Vec<_> = disk.log().expect("log").into_iter().filter(|r| r.op == Op::Read).collect();
        assert_eq!(log.len(), 40);
        let mut model = 0;
        for r in &log {
            assert_eq!(r.len.0, 4096);
            assert!(r.done.0 - r.arrival.0 >= r.model.0, "{r:?}");
            model += r.model.0;
        }
        assert!(elapsed.as_nanos() >= u128::from(model));
        // Positioning within 8 of 128 MiB: 1 ms + up to 1.4 ms + 4.17 ms.
        let mean = model / 40;
        assert!((5_000_000..7_500_000).contains(&mean), "{mean} ns");
        assert_eq!(fs::read_to_string(queue(&disk, "read_ahead_kb")).expect("read"), "128\n");
        assert_eq!(fs::read_to_string(queue(&disk, "rotational")).expect("read"), "1\n");
    }

    #[test]
    fn a_punctual_disk_counts_from_the_kernels_issue_and_answers_ahead() {
        needs_root!();
        let options = Options::new(Preset::Cloud, Bytes(128 * MIB), FileSystem::Ext4);
        let disk = SlowDisk::with(&Options { punctual: true, ..options }).expect("disk");
        assert!(disk.info().punctual);
        let file = direct(&content(&disk));
        let mut buffer = vec![0; 8192];
        read_page(&file, 0, &mut buffer);
        disk.reset_log().expect("reset");
        (0..300).for_each(|i| read_page(&file, (i * 997) % 2048, &mut buffer));
        let log: Vec<_> = disk.log().expect("log").into_iter().filter(|r| r.op == Op::Read).collect();
        assert_eq!(log.len(), 300);
        for r in &log {
            let issued = r.issued.expect("told by the kernel");
            assert!(issued <= r.arrival && r.arrival <= r.done, "{r:?}");
            // One at a time: none waits for another.
            assert_eq!(r.due.0 - issued.0, r.model.0, "{r:?}");
        }
        // The way back takes its time, so the server has to be early; on a busy machine it is not always.
        let ahead = log[100..].iter().filter(|r| r.done < r.due).count();
        assert!(ahead > 100, "{ahead} of 200 answers were sent before they were due");
    }

    fn queue(disk: &SlowDisk, name: &str) -> String {
        format!("/sys/block/{}/queue/{name}", disk.device_name())
    }

    #[test]
    fn a_program_touching_single_pages_reads_single_pages() {
        needs_root!();
        let disk = disk(Preset::Fast);
        let path = content(&disk);
        // Bring its metadata in, and nothing else.
        let _ = path.metadata().expect("stat");
        let mut last = Totals::default();
        for _ in 0..5 {
            drop_from_cache(&path);
            disk.reset_log().expect("reset");
            let status = Command::new(subject())
                .arg("touch-mapped")
                .arg(&path)
                .args(["3,500,1000-1001", "--random"])
                .status();
            assert!(status.expect("run").success());
            last = disk.totals().expect("totals");
            // Others who drop all caches in between make the file's metadata be read, too.
            if (last.reads, last.read_bytes.0) == (4, 4 * 4096) {
                return;
            }
        }
        panic!("four pages were touched, but {last:?}");
    }

    /// Whether anything of a disk is left.
    fn remains(info: &cold_testbed::disk::Info) -> Option<String> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mountinfo");
        let dir = info.directory.to_string_lossy().into_owned();
        let backing = fs::read_to_string(format!("/sys/block/loop{}/loop/backing_file", info.number));
        if mounts.contains(&dir) {
            Some("a mount".to_owned())
        } else if backing.is_ok_and(|b| b.contains(&dir)) {
            Some("a loop device".to_owned())
        } else if info.directory.exists() {
            Some(dir)
        } else {
            None
        }
    }

    #[test]
    fn nothing_stays_after_dropping_it_with_a_file_system_of_each_kind() {
        needs_root!();
        for (file_system, mkfs) in
            [(FileSystem::Ext4, "ext4"), (FileSystem::Xfs, "xfs"), (FileSystem::Btrfs, "btrfs")]
        {
            let known = fs::read_to_string("/proc/filesystems").expect("read").contains(mkfs);
            let tool = Path::new("/usr/sbin").join(format!("mkfs.{mkfs}")).exists();
            if !need(known && tool, &format!("{mkfs} in the kernel and mkfs.{mkfs}")) {
                continue;
            }
            let backing = tempfile::tempdir().expect("tempdir");
            let options = Options {
                backing: Some(backing.path().to_owned()),
                ..Options::new(Preset::SataSsd, Bytes(320 * MIB), file_system)
            };
            let disk = SlowDisk::with(&options).expect(mkfs);
            fs::write(disk.mount_point().join("file"), "content").expect("write");
            let info = disk.info().clone();
            assert!(running().iter().any(|i| i.directory == info.directory));
            let csv = backing.path().join("log.csv");
            disk.write_csv(&csv).expect("csv");
            assert!(fs::read_to_string(&csv).expect("read").starts_with("op,offset,bytes,"));
            drop(disk);
            assert_eq!(remains(&info), None, "{mkfs}");
            fs::remove_file(csv).expect("remove");
            assert_eq!(fs::read_dir(backing.path()).expect("list").count(), 0, "{mkfs}: the image stays");
        }
    }

    #[test]
    fn nothing_stays_after_kill_9_of_the_supervisor() {
        needs_root!();
        let disk = disk(Preset::Hdd);
        fs::write(disk.mount_point().join("file"), vec![7; 4 << 20]).expect("write");
        let info = disk.info().clone();
        // With dirty data on it. The server dies with the supervisor, whoever waits for it gets EIO.
        let pid = rustix::process::Pid::from_raw(info.supervisor).expect("pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("kill");
        drop(disk);
        assert!(remains(&info).is_some(), "a killed process cannot have cleaned up");
        let deadline = Instant::now() + Duration::from_mins(1);
        // Another test that makes a disk may be the one to clean.
        while let Some(what) = remains(&info) {
            clean().expect("clean");
            assert!(Instant::now() < deadline, "{what} stays");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    const VICTIM: &str = "COLD_TESTBED_VICTIM";

    /// The process of the next two tests; as a test of its own it does nothing.
    #[test]
    fn victim() {
        let Some(report) = std::env::var_os(VICTIM) else { return };
        let disk = disk(Preset::Fast);
        fs::write(disk.mount_point().join("file"), vec![7; 1 << 20]).expect("write");
        fs::write(&report, serde_json::to_string(disk.info()).expect("json")).expect("write");
        assert!(!Path::new(&report).with_extension("panic").exists(), "panics as asked");
        let me = rustix::process::getpid();
        rustix::process::kill_process(me, rustix::process::Signal::KILL).expect("kill");
    }

    /// Runs the victim and gives what it said about its disk.
    fn sacrifice(panic: bool) -> cold_testbed::disk::Info {
        let dir = tempfile::tempdir().expect("tempdir");
        let report = dir.path().join("report");
        if panic {
            fs::write(report.with_extension("panic"), "").expect("write");
        }
        let status = Command::new(std::env::current_exe().expect("exe"))
            .args(["disk::root::victim", "--exact"])
            .env(VICTIM, &report)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("run");
        assert_eq!(status.signal(), if panic { None } else { Some(9) });
        serde_json::from_str(&fs::read_to_string(&report).expect("report")).expect("json")
    }

    #[test]
    fn nothing_stays_after_a_panic() {
        if need_root() {
            assert_eq!(remains(&sacrifice(true)), None);
        }
    }

    #[test]
    fn nothing_stays_after_kill_9_of_the_test() {
        needs_root!();
        let info = sacrifice(false);
        // The supervisor sees its caller's end, and takes the disk down by itself.
        let deadline = Instant::now() + Duration::from_mins(1);
        while let Some(what) = remains(&info) {
            assert!(Instant::now() < deadline, "{what} stays");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
