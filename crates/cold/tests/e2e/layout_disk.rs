//! `cold layout disk`: blocks move, bytes do not, whatever happens meanwhile.

mod root {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::Duration;

    use cold_model::Bytes;
    use cold_testbed::disk::{FileSystem, Options, Preset};
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
            let options = Options { preset, size, file_system, mount: None, backing: None };
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
            let (mount, device) = (self.disk.mount_point(), self.disk.info().device.clone());
            assert!(Command::new("umount").arg(mount).status().unwrap().success());
            let mut check = match file_system {
                FileSystem::Ext4 => command("e2fsck", &["-fn"]),
                FileSystem::Xfs => command("xfs_repair", &["-n"]),
                FileSystem::Btrfs => command("btrfs", &["check"]),
            };
            let out = check.arg(device).output().unwrap();
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
                stop.store(true, Ordering::Relaxed);
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
}
