//! Paths on file systems that hide where a file is: right, or said to be unknown.

mod root {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use cold_model::Bytes;
    use cold_model::recording::manifest::Tier;
    use cold_model::recording::{FileKind, Recording};
    use cold_testbed::disk::Preset;
    use cold_testbed::{SlowDisk, need_root};

    use crate::support::*;
    use crate::trace::recorded;

    /// A mount, gone with its value.
    struct Mounted(PathBuf);

    impl Mounted {
        fn new(at: PathBuf, args: &[&str]) -> Self {
            fs::create_dir_all(&at).unwrap();
            let out = Command::new("mount").args(args).arg(&at).output().unwrap();
            assert!(out.status.success(), "mount {args:?}: {}", String::from_utf8_lossy(&out.stderr));
            Self(at)
        }
    }

    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        }
    }

    fn run(program: &str, args: &[&str]) {
        let out = Command::new(program).args(args).output().unwrap();
        assert!(out.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    }

    /// Records a program that reads all of `file` by read and by mapping.
    fn record(place: &Place, name: &str, file: &Path) -> Recording {
        let text = "import mmap, sys\nf = open(sys.argv[1], 'rb')\nm = mmap.mmap(f.fileno(), 0, prot=1)\nsum(m[::4096])\nf.read()";
        let args = ["trace", "--evict", "files", "-o", name, "--", "/usr/bin/python3", "-S", "-c", text];
        place.cold(args.iter().copied().chain([file.to_str().unwrap()])).run().expect(0);
        recorded(place, name)
    }

    /// The file is there under its name, or honestly without one, and never under a wrong one.
    #[track_caller]
    fn named(r: &Recording, file: &Path, size: u64) {
        if r.manifest.tier > Tier::B {
            return;
        }
        let paths: Vec<_> = r.files.iter().filter_map(|f| f.path.as_deref()).collect();
        let right = paths.contains(&file.to_str().unwrap());
        let unknown = r
            .files
            .iter()
            .any(|f| f.path.is_none() && f.kind == FileKind::Regular && f.size.is_none_or(|s| s == size));
        assert!(right || unknown, "{} is not among {paths:?}", file.display());
    }

    #[test]
    fn overlay_bind_mount_tmpfs_squashfs_and_subvolume() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Place::new();
        let size = 3 * PAGE + 17;
        for dir in ["lower", "upper", "work", "source"] {
            fs::create_dir(place.path(dir)).unwrap();
        }
        data(place.path("lower/low"), size as usize);
        data(place.path("source/bound"), size as usize);
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            place.text("lower"),
            place.text("upper"),
            place.text("work")
        );
        let overlay = Mounted::new(place.path("merged"), &["-t", "overlay", "-o", &options, "overlay"]);
        let bound = Mounted::new(place.path("bind"), &["--bind", &place.text("source")]);
        let memory = Mounted::new(place.path("memory"), &["-t", "tmpfs", "none"]);
        data(place.path("memory/light"), size as usize);
        run("mksquashfs", &[&place.text("source"), &place.text("image"), "-quiet", "-no-progress"]);
        let squashed = Mounted::new(place.path("squash"), &["-o", "loop,ro", &place.text("image")]);
        for (name, file) in [
            ("o.cold", place.path("merged/low")),
            ("b.cold", place.path("bind/bound")),
            ("m.cold", place.path("memory/light")),
            ("s.cold", place.path("squash/bound")),
        ] {
            named(&record(&place, name, &file), &file, size);
        }
        drop((overlay, bound, memory, squashed));
    }

    #[test]
    fn a_btrfs_subvolume() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let disk = SlowDisk::create(Preset::Fast, Bytes(300 << 20)).unwrap();
        let image = disk.mount_point().join("image");
        fs::File::create(&image).unwrap().set_len(200 << 20).unwrap();
        run("mkfs.btrfs", &["-q", image.to_str().unwrap()]);
        let place = Place::new();
        let mounted = Mounted::new(place.path("btrfs"), &["-o", "loop", image.to_str().unwrap()]);
        run("btrfs", &["-q", "subvolume", "create", &place.text("btrfs/sub")]);
        let file = data(place.path("btrfs/sub/inside"), 40_000);
        named(&record(&place, "v.cold", &file), &file, 40_000);
        drop(mounted);
    }

    #[test]
    fn a_file_that_is_deleted_while_it_is_mapped() {
        if !need_root() {
            return;
        }
        let _machine = together();
        let place = Place::new();
        let file = place.text("doomed");
        let text = "import mmap, os, sys\np = sys.argv[1]\nopen(p, 'wb').write(b'x' * 40000)\nf = open(p, 'rb')\nm = mmap.mmap(f.fileno(), 0, prot=1)\nos.unlink(p)\nsum(m[::4096])";
        let args =
            ["trace", "--state", "as-is", "-o", "d.cold", "--", "/usr/bin/python3", "-S", "-c", text, &file];
        place.cold(args).run().expect(0);
        let r = recorded(&place, "d.cold");
        if r.manifest.tier <= Tier::B {
            // Not as a living file of that name.
            let wrong = r.files.iter().find(|f| f.path.as_deref() == Some(&file) && !f.deleted);
            assert!(wrong.is_none(), "{wrong:?}");
        }
    }
}
