//! `cold layout disk`: blocks move, bytes do not, whatever happens meanwhile.

mod root {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::Duration;

    use cold_model::Bytes;
    use cold_testbed::disk::{FileSystem, Options, Preset, Writes};
    use cold_testbed::faults::{Fault, Injection, Key, Names, Ran, Target};
    use cold_testbed::{SlowDisk, need_root};
    use rustix::fs::{FallocateFlags, fallocate};
    use serde_json::Value;

    use crate::support::*;

    /// A file system with a program whose start needs pages all over two files.
    struct Ground {
        place: Sandbox,
        disk: SlowDisk,
        store: String,
        subject: PathBuf,
    }

    impl Ground {
        fn new(file_system: FileSystem) -> Self {
            let (size, preset) = (Bytes(512 << 20), Preset::Fast);
            let options = Options::new(preset, size, file_system);
            let disk = SlowDisk::with(&options).expect("a test disk");
            let place = Sandbox::new();
            let subject = disk.mount_point().join("cold-subject");
            fs::copy(cold_testbed::subject(), &subject).unwrap();
            let data = data(disk.mount_point().join("data"), 16 * MIB);
            sync(&subject);
            let this = Self { store: place.text("plans"), place, disk, subject };
            let pages: Vec<String> = (0..40_u32).map(|n| (n * 97 % 4000).to_string()).collect();
            let learn = ["prefetch", "learn", "--store", &this.store, "--", this.subject.to_str().unwrap()];
            let program = ["touch-mapped", data.to_str().unwrap(), &pages.join(",")];
            this.place.cold(learn.iter().chain(&program)).run().expect(0);
            this
        }

        fn args(&self, more: &[&'static str]) -> Vec<String> {
            let args = ["layout", "disk", "--store", &self.store, "--plan", "cold-subject", "--json"];
            args.iter().chain(more).map(|a| (*a).to_owned()).collect()
        }

        fn disk(&self, more: &[&'static str]) -> Value {
            self.place.cold(self.args(more)).run().expect(0).json()
        }

        /// Every file with its bytes, times and inode.
        fn state(&self) -> BTreeMap<PathBuf, (Vec<u8>, std::time::SystemTime, u64)> {
            use std::os::unix::fs::MetadataExt;
            let files = [self.subject.clone(), self.disk.mount_point().join("data")];
            let of = |path: PathBuf| {
                let meta = path.metadata().unwrap();
                (path.clone(), (fs::read(path).unwrap(), meta.modified().unwrap(), meta.ino()))
            };
            files.into_iter().map(of).collect()
        }

        /// Hidden files of ours on the disk.
        fn hidden(&self) -> usize {
            let names = fs::read_dir(self.disk.mount_point()).unwrap();
            names
                .filter(|e| e.as_ref().unwrap().file_name().as_encoded_bytes().starts_with(b".coldstart"))
                .count()
        }

        /// Unmounts, and asks the file system's own checker.
        fn check(self, file_system: FileSystem) {
            self.disk.unmount().unwrap();
            let mut check = match file_system {
                FileSystem::Ext4 => command("e2fsck", &["-fn"]),
                FileSystem::Xfs => command("xfs_repair", &["-n"]),
                FileSystem::Btrfs => command("btrfs", &["check"]),
            };
            let out = check.arg(&self.disk.info().device).output().unwrap();
            assert!(out.status.success(), "{file_system:?}: {}", String::from_utf8_lossy(&out.stdout));
        }
    }

    fn command(name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(name);
        command.args(args);
        command
    }

    const ALL: [FileSystem; 3] = [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs];

    #[test]
    fn blocks_come_together_as_planned_and_go_back_and_no_byte_changes() {
        if !need_root() {
            return;
        }
        for file_system in ALL {
            let ground = Ground::new(file_system);
            let state = ground.state();
            let dry = ground.disk(&["--dry-run"]);
            assert!(dry["moved"].is_null() && ground.hidden() == 0, "{dry}");
            let done = ground.disk(&[]);
            assert_eq!(ground.state(), state, "{file_system:?}");
            let (before, after) = (&done["before"]["places"], &done["after"]["places"]);
            assert!(before.as_u64().unwrap() > 10, "{file_system:?} {done}");
            assert_eq!((after, &dry["after"]["places"]), (&1.into(), &1.into()), "{file_system:?} {done}");
            assert_eq!(done["after"]["bytes"], done["moved"]["bytes"], "{done}");
            assert_eq!(done["moved"]["stayed"], serde_json::json!({}));
            let again = ground.place.cold(ground.args(&[])).run().expect(2);
            assert!(again.stderr.contains("arranged already"), "{}", again.stderr);
            let back = ground.disk(&["--restore"]);
            assert_eq!(back["after"]["places"], done["before"]["places"], "{file_system:?} {back}");
            assert_eq!((ground.state(), ground.hidden()), (state, 0), "{file_system:?}");
            ground.check(file_system);
        }
    }

    #[test]
    fn a_disk_whose_blocks_are_none_of_4_kib_is_left_alone_with_the_reason() {
        if !need_root() {
            return;
        }
        let place = Sandbox::for_all();
        let image = place.text("image");
        fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
        run("mkfs.ext4", &["-q", "-b", "1024", &image]);
        let mounted = place.path("small");
        let _mounted = Mounted::new(mounted.clone(), &["-o", "loop", &image]);
        let subject = mounted.join("cold-subject");
        fs::copy(cold_testbed::subject(), &subject).unwrap();
        sync(&subject);
        let (file, store) = (data(mounted.join("data"), MIB), place.text("plans"));
        let learn = ["prefetch", "learn", "--store", &store, "--evict", "files", "--"];
        let program = [subject.to_str().unwrap(), "touch-mapped", file.to_str().unwrap(), "1,100,200"];
        place.cold(learn.iter().chain(&program)).run().expect(0);
        let disk = ["layout", "disk", "--store", &store, "--plan", "cold-subject", "--dry-run"];
        let ran = place.cold(disk).run().expect(1);
        assert!(ran.stderr.contains("its blocks are not of 4 KiB"), "{}", ran.stderr);
    }

    #[test]
    fn killed_anywhere_it_goes_on_or_back_while_every_start_succeeds() {
        if !need_root() {
            return;
        }
        for file_system in ALL {
            let ground = Ground::new(file_system);
            let state = ground.state();
            let (stop, starts) = (AtomicBool::new(false), AtomicU32::new(0));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        start(&ground.subject);
                        starts.fetch_add(1, Ordering::Relaxed);
                    }
                });
                let _stops = Stops(&stop);
                for n in 0..12_u64 {
                    let mut child = Command::new(env!("CARGO_BIN_EXE_cold"));
                    let child = child.args(ground.args(&[])).stdout(Stdio::null()).stderr(Stdio::null());
                    let mut child = child.spawn().unwrap();
                    std::thread::sleep(Duration::from_millis(30 + 60 * n));
                    child.kill().unwrap();
                    child.wait().unwrap();
                    assert_eq!(ground.state(), state, "{file_system:?} killed at {n}");
                    if n % 3 == 2 {
                        let back = ground.place.cold(ground.args(&["--restore"])).run();
                        let told = &back.stderr;
                        assert!(
                            back.code() == 0 || told.contains("is not arranged"),
                            "{file_system:?} {told}"
                        );
                        assert_eq!(ground.state(), state, "{file_system:?} restored at {n}");
                    }
                }
            });
            assert!(starts.load(Ordering::Relaxed) > 20);
            // Undisturbed, what is left is done.
            let done = ground.disk(&[]);
            assert_eq!(done["moved"]["stayed"], serde_json::json!({}), "{file_system:?}");
            assert_eq!(done["after"]["places"], 1, "{file_system:?}");
            assert_eq!(ground.state(), state, "{file_system:?}");
            ground.check(file_system);
        }
    }

    /// Ends the starts also where an assertion fails: the scope waits for their thread.
    struct Stops<'a>(&'a AtomicBool);

    impl Drop for Stops<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn start(program: &Path) {
        let ended =
            Command::new(program).arg("touch-mapped").stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(ended.is_ok(), "{ended:?}");
    }

    #[test]
    fn without_contiguous_room_nothing_moves_and_nothing_stays() {
        if !need_root() {
            return;
        }
        let ground = Ground::new(FileSystem::Ext4);
        // A file takes all there is, and gives back pieces of 32 KiB.
        let full = fs::File::create(ground.disk.mount_point().join("filler")).unwrap();
        let none = FallocateFlags::empty();
        let ended = (0..2048_u64).find(|n| fallocate(&full, none, n * (256 << 10), 256 << 10).is_err());
        let end = ended.expect("512 MiB are full before that") * (256 << 10);
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        for at in (0..end).step_by(64 << 10) {
            fallocate(&full, hole, at, 32 << 10).unwrap();
        }
        full.sync_all().unwrap();
        drop(full);
        sync(&ground.subject);
        let state = ground.state();
        let refused = ground.place.cold(ground.args(&[])).run();
        assert_ne!(refused.code(), 0, "{}", refused.stdout);
        assert!(refused.stderr.contains("nothing is moved"), "{}", refused.stderr);
        assert_eq!((ground.state(), ground.hidden()), (state, 0));
        ground.check(FileSystem::Ext4);
    }

    /// Calls that change something, here or on the disk.
    const CHANGES: [&str; 14] = [
        "fallocate",
        "fdatasync",
        "fsync",
        "ftruncate",
        "ioctl",
        "linkat",
        "mkdir",
        "mkdirat",
        "pwrite64",
        "rename",
        "renameat2",
        "sync_file_range",
        "unlink",
        "unlinkat",
    ];

    /// Killed as each kind of change begins: before the first, one in the middle, and the last of each.
    #[test]
    fn killed_at_each_step_it_goes_on_and_back() {
        if !need_root() {
            return;
        }
        let refused = cold_testbed::faults::refused();
        if !cold_testbed::need(refused.is_none(), "tracing programs") {
            return;
        }
        for file_system in [FileSystem::Ext4, FileSystem::Xfs] {
            let ground = Ground::new(file_system);
            let state = ground.state();
            let target = ground.target(&[]);
            let calls = run_traced(&target, None).calls;
            assert!(ground.state() == state, "{file_system:?}: traced");
            ground.disk(&["--restore"]);
            let mut steps: BTreeMap<Key, usize> = BTreeMap::new();
            for key in calls.into_iter().filter(|k| CHANGES.contains(&k.call)) {
                *steps.entry(key).or_default() += 1;
            }
            assert!(steps.keys().any(|k| k.call == "ioctl") && steps.len() > 8, "{steps:?}");
            let mut places: Vec<(Key, usize)> = Vec::new();
            for (key, count) in steps {
                let mut nth = vec![1, count.div_ceil(2), count];
                nth.dedup();
                places.extend(nth.into_iter().map(|n| (key.clone(), n)));
            }
            let mut hit = 0;
            for (key, nth) in places {
                let injection = Injection { key, nth, fault: Fault::Kill };
                let ran = run_traced(&target, Some(&injection));
                assert!(ground.state() == state, "{file_system:?}: {injection}");
                if !ran.hit {
                    // The file system answers otherwise than before (an ioctl that was tried again).
                    ground.restore_where_arranged();
                    continue;
                }
                hit += 1;
                let on = ground.place.cold(ground.args(&[])).run();
                let is_done = on.code() == 0 || on.stderr.contains("arranged already");
                assert!(is_done, "{file_system:?}: {injection}: {}", on.stderr);
                assert!(ground.state() == state, "{file_system:?}: {injection}: gone on");
                let back = ground.disk(&["--restore"]);
                assert_eq!(back["moved"]["stayed"], serde_json::json!({}), "{file_system:?}: {injection}");
                assert!(ground.state() == state, "{file_system:?}: {injection}: gone back");
                assert_eq!(ground.hidden(), 0, "{file_system:?}: {injection}");
            }
            assert!(hit > 10, "{file_system:?}: {hit}");
            ground.check(file_system);
        }
    }

    fn run_traced(target: &Target, fault: Option<&Injection>) -> Ran {
        // A thread of its own: the tracer waits for all children of its thread.
        std::thread::scope(|scope| scope.spawn(|| target.run(fault)).join().unwrap()).unwrap()
    }

    impl Ground {
        fn target(&self, more: &[&'static str]) -> Target {
            Target {
                program: env!("CARGO_BIN_EXE_cold").into(),
                args: self.args(more).into_iter().map(Into::into).collect(),
                // As the other runs have it: what a killed one leaves is in the journal of both.
                env: vec![("TMPDIR".into(), self.place.text("tmp").into())],
                cwd: self.place.path(""),
                names: Names(vec![(self.disk.mount_point().to_owned(), "D".into())]),
                deadline: cold_testbed::PATIENCE,
            }
        }

        fn restore_where_arranged(&self) {
            let back = self.place.cold(self.args(&["--restore"])).run();
            assert!(back.code() == 0 || back.stderr.contains("is not arranged"), "{}", back.stderr);
        }
    }

    /// Copies of the disk that are looked at, from each direction.
    const COPIES: usize = 16;

    /// The disk as it was after any of its writes: what was told to be on it is, once its journal has been read.
    #[test]
    fn after_a_power_failure_at_any_write_no_byte_is_another_and_the_way_back_is_there() {
        if !need_root() {
            return;
        }
        let ground = Ground::new(FileSystem::Ext4);
        let state = ground.state();
        assert!(Command::new("sync").arg("-f").arg(ground.disk.mount_point()).status().unwrap().success());
        // Copies of a whole disk are more than the sandbox's own disk holds.
        let copies = tempfile::Builder::new().prefix("cold-e2e-").tempdir_in("/var/tmp").unwrap();
        let (there, back) = (copies.path().join("there"), copies.path().join("back"));
        ground.disk.keep_writes(&there).unwrap();
        ground.disk(&[]);
        ground.disk.stop_keeping_writes().unwrap();
        let record = ground.place.path("plans/arranged/");
        let kept: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(&record)
            .unwrap()
            .map(|e| e.unwrap().path())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        ground.disk.keep_writes(&back).unwrap();
        ground.disk(&["--restore"]);
        ground.disk.stop_keeping_writes().unwrap();
        let copy = copies.path().join("copy");
        let mut middle = None;
        for dir in [&there, &back] {
            let all = Writes::count(dir).unwrap();
            assert!(all > COPIES, "{all} writes");
            let mut writes = Writes::open(dir).unwrap();
            let mut at = 0;
            for n in 0..=COPIES {
                let next = all * n / COPIES;
                writes.go_on(next - at).unwrap();
                at = next;
                copied(writes.image(), &copy);
                sound(&copy);
                for (path, (bytes, ..)) in &state {
                    let name = path.file_name().unwrap().to_str().unwrap();
                    let held = dumped(&copy, name);
                    assert!(held == *bytes, "{name} after write {at} of {all} in {}", dir.display());
                }
                if dir == &there && n == COPIES / 2 {
                    let image = copies.path().join("middle");
                    copied(&copy, &image);
                    middle = Some(image);
                }
            }
        }
        // The machine starts again with the disk of the middle, and goes back.
        for (path, bytes) in kept {
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        let middle = middle.unwrap();
        let mount = ground.disk.mount_point();
        ground.disk.unmount().unwrap();
        let loop_mount = Command::new("mount").args(["-o", "loop"]).arg(&middle).arg(mount).status().unwrap();
        assert!(loop_mount.success());
        let again = Unmounted(mount);
        let told = ground.place.cold(ground.args(&["--restore"])).run();
        let now = ground.state();
        let hidden = ground.hidden();
        drop(again);
        told.expect(0);
        assert!(now == state);
        assert_eq!(hidden, 0);
        sound(&middle);
    }

    /// A copy that takes no room for zeros.
    fn copied(from: &Path, to: &Path) {
        let status = command("cp", &["--sparse=always"]).arg(from).arg(to).status().unwrap();
        assert!(status.success());
    }

    /// Unmounts when it goes, also where a test fails.
    struct Unmounted<'a>(&'a Path);

    impl Drop for Unmounted<'_> {
        fn drop(&mut self) {
            let _ = cold_testbed::disk::unmount(self.0);
        }
    }

    /// Lets the file system's own checker read the journal, as a mount does; then nothing may be left to mend.
    #[track_caller]
    fn sound(image: &Path) {
        let replay = command("e2fsck", &["-fp"]).arg(image).output().unwrap();
        let said = String::from_utf8_lossy(&replay.stdout).into_owned();
        assert!(matches!(replay.status.code(), Some(0 | 1)), "{said}");
        let check = command("e2fsck", &["-fn"]).arg(image).output().unwrap();
        assert!(check.status.success(), "{said}\n{}", String::from_utf8_lossy(&check.stdout));
    }

    /// A file's bytes in an image that nobody has mounted.
    fn dumped(image: &Path, name: &str) -> Vec<u8> {
        let out = image.with_extension("dumped");
        let request = format!("dump /{name} {}", out.display());
        let ran = command("debugfs", &["-R", &request]).arg(image).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        fs::read(&out).unwrap()
    }
}
