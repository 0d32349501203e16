//! Paths on file systems that hide where a file is: each exactly what it has to be.

mod root {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use cold_model::Bytes;
    use cold_model::recording::manifest::Tier;
    use cold_model::recording::{File, FileKind, Recording};
    use cold_testbed::disk::{FileSystem, Options, Preset};
    use cold_testbed::{SlowDisk, needs_root};

    use crate::support::*;
    use crate::trace::recorded;

    /// Records a program of Python. `None`: nothing is promised on this tier.
    fn python(place: &Sandbox, name: &str, state: [&str; 2], text: &str, args: &[&str]) -> Option<Recording> {
        let fixed = ["trace", state[0], state[1], "-o", name, "--", "/usr/bin/python3", "-S", "-c", text];
        place.cold(fixed.iter().chain(args)).run().expect(0);
        let r = recorded(place, name);
        (r.manifest.tier <= Tier::B).then_some(r)
    }

    /// Records a program that reads all of `file` by read and by mapping.
    fn record(place: &Sandbox, name: &str, file: &Path) -> Option<Recording> {
        let text = "import mmap, sys\nf = open(sys.argv[1], 'rb')\nm = mmap.mmap(f.fileno(), 0, prot=1)\nsum(m[::4096])\nf.read()";
        python(place, name, ["--evict", "files"], text, &[file.to_str().unwrap()])
    }

    /// The one touched file of this size, which no other file has.
    #[track_caller]
    fn touched(r: &Recording, size: u64) -> &File {
        let mut found: Vec<usize> = r
            .touches
            .iter()
            .flatten()
            .map(|t| t.file as usize)
            .filter(|i| r.files[*i].size == Some(size))
            .collect();
        found.sort_unstable();
        found.dedup();
        let [one] = found[..] else {
            panic!("{:#?}", found.iter().map(|i| &r.files[*i]).collect::<Vec<_>>())
        };
        &r.files[one]
    }

    #[track_caller]
    fn named(r: Option<Recording>, file: &Path, size: u64, kind: FileKind) {
        let Some(r) = r else { return };
        let row = touched(&r, size);
        assert_eq!((row.path.as_deref(), row.kind, row.deleted), (file.to_str(), kind, false), "{row:?}");
    }

    #[test]
    fn overlay_bind_mount_tmpfs_and_squashfs_show_the_name_that_was_used() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::new();
        let size = 3 * PAGE + 17;
        for dir in ["lower", "upper", "work", "source"] {
            fs::create_dir(place.path(dir)).unwrap();
        }
        data(place.path("lower/low"), size as usize);
        data(place.path("upper/up"), size as usize);
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
        for (name, file, kind) in [
            ("o.cold", "merged/low", FileKind::Regular),
            ("p.cold", "merged/up", FileKind::Regular),
            ("b.cold", "bind/bound", FileKind::Regular),
            ("m.cold", "memory/light", FileKind::Memory),
            ("s.cold", "squash/bound", FileKind::Regular),
        ] {
            let file = place.path(file);
            named(record(&place, name, &file), &file, size, kind);
        }
        drop((overlay, bound, memory, squashed));
    }

    /// A subvolume and a snapshot of it: the same inode number, the same extents, two files.
    #[test]
    fn a_btrfs_subvolume_and_its_snapshot() {
        needs_root!();
        let _machine = together();
        let disk = SlowDisk::create(Preset::Fast, Bytes(300 << 20)).unwrap();
        let image = disk.mount_point().join("image");
        fs::File::create(&image).unwrap().set_len(200 << 20).unwrap();
        run("mkfs.btrfs", &["-q", image.to_str().unwrap()]);
        let place = Sandbox::new();
        let mounted = Mounted::new(place.path("btrfs"), &["-o", "loop", image.to_str().unwrap()]);
        run("btrfs", &["-q", "subvolume", "create", &place.text("btrfs/sub")]);
        let file = data(place.path("btrfs/sub/inside"), 40_001);
        run("btrfs", &["-q", "subvolume", "snapshot", &place.text("btrfs/sub"), &place.text("btrfs/snap")]);
        let copy = place.path("btrfs/snap/inside");
        named(record(&place, "v.cold", &file), &file, 40_001, FileKind::Regular);
        named(record(&place, "w.cold", &copy), &copy, 40_001, FileKind::Regular);
        // A subvolume that is mounted by itself.
        let alone = Mounted::new(place.path("alone"), &["-o", "loop,subvol=snap", image.to_str().unwrap()]);
        let inside = place.path("alone/inside");
        named(record(&place, "x.cold", &inside), &inside, 40_001, FileKind::Regular);
        drop((alone, mounted));
    }

    #[test]
    fn xfs() {
        needs_root!();
        let _machine = together();
        let (preset, file_system, size) = (Preset::Fast, FileSystem::Xfs, Bytes(320 << 20));
        let disk = SlowDisk::with(&Options::new(preset, size, file_system)).unwrap();
        let file = data(disk.mount_point().join("inside"), 40_001);
        let place = Sandbox::new();
        named(record(&place, "x.cold", &file), &file, 40_001, FileKind::Regular);
    }

    /// Files that lose their names, or get another one's: never a living file of the old name.
    #[test]
    fn deleted_and_replaced_files_and_memory() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::new();
        let (doomed, replaced) = (place.text("doomed"), place.text("replaced"));
        for (name, size) in [("doomed", 40_001), ("replaced", 50_001), ("replaced.new", 60_001)] {
            place.file(name, size);
        }
        let text = "
import mmap, os, sys
def touch(f):
    m = mmap.mmap(f, 0, prot=1); return sum(m[::4096])
doomed, replaced = sys.argv[1:]
f = os.open(doomed, os.O_RDONLY); os.unlink(doomed); touch(f)
old = os.open(replaced, os.O_RDONLY); os.rename(replaced + '.new', replaced); touch(old)
touch(os.open(replaced, os.O_RDONLY))
memory = os.memfd_create('secret'); os.write(memory, b'x' * 70001); touch(memory)";
        let Some(r) = python(&place, "d.cold", ["--state", "as-is"], text, &[&doomed, &replaced]) else {
            return;
        };
        let gone = touched(&r, 40_001);
        assert_eq!((gone.path.as_deref(), gone.deleted), (Some(&*doomed), true), "{gone:?}");
        let old = touched(&r, 50_001);
        assert_eq!((old.path.as_deref(), old.deleted), (Some(&*replaced), true), "{old:?}");
        let new = touched(&r, 60_001);
        assert!(!new.deleted, "{new:?}");
        assert_eq!(new.path.as_deref(), Some(&*replaced), "{new:?}");
        let memory: Vec<_> = r.files.iter().filter(|f| f.path.as_deref() == Some("memfd:secret")).collect();
        assert!(matches!(memory[..], [f] if f.kind == FileKind::Memory), "{memory:?}");
    }

    /// A file that is renamed over another while the start is followed, and one that gets a new name: the names
    /// that they have in the end, and only the replaced one is gone.
    #[test]
    fn a_file_renamed_over_another_is_the_one_that_is_there() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::new();
        let target = place.text("target");
        let text = "
import mmap, os, sys
def touch(name):
    f = os.open(name, os.O_RDONLY); sum(mmap.mmap(f, 0, prot=1)[::4096])
target = sys.argv[1]
for name, size in ((target, 50001), (target + '.new', 60001), (target + '.plain', 70001)):
    open(name, 'wb').write(b'x' * size)
    touch(name)
os.rename(target + '.new', target)
os.rename(target + '.plain', target + '.renamed')";
        let Some(r) = python(&place, "n.cold", ["--state", "as-is"], text, &[&target]) else { return };
        for (size, name, deleted) in [
            (50_001, target.clone(), true),
            (60_001, target.clone(), false),
            (70_001, target + ".renamed", false),
        ] {
            // Their sizes were 0 when they were first seen: by what was touched of them.
            let pages = size as u64 / PAGE + 1;
            let of = |i: usize| r.touches.iter().flatten().filter(move |t| t.file as usize == i);
            let last = |i: &usize| of(*i).map(|t| t.first_page + u64::from(t.pages)).max() == Some(pages);
            let found: Vec<usize> = (0..r.files.len())
                .filter(|i| r.files[*i].path.as_deref() == Some(&*name))
                .filter(last)
                .collect();
            let [one] = found[..] else { panic!("{name} {size}: {found:?} {:#?}", r.files) };
            assert_eq!(r.files[one].deleted, deleted, "{:?}", r.files[one]);
        }
    }

    /// Names that are no UTF-8, and names that look like the text of such a name.
    #[test]
    fn names_of_any_bytes_are_found_again() {
        needs_root!();
        let _machine = together();
        let place = Sandbox::new();
        let names: [&[u8]; 3] = [b"caf\xe9", b"caf\\xe9", b"caf\\x5cxe9"];
        let at = |name: &[u8]| place.path("").join(std::ffi::OsStr::from_bytes(name));
        for (name, size) in names.iter().zip([50_001, 60_001, 70_001]) {
            data(at(name), size);
        }
        let text = "
import mmap, os, sys
for name in os.listdir(os.fsencode(sys.argv[1])):
    if name.startswith(b'caf'):
        f = os.open(os.path.join(os.fsencode(sys.argv[1]), name), os.O_RDONLY)
        sum(mmap.mmap(f, 0, prot=1)[::4096])";
        let dir = place.text("");
        let Some(r) = python(&place, "u.cold", ["--evict", "files"], text, &[&dir]) else { return };
        for (name, size) in names.iter().zip([50_001, 60_001, 70_001]) {
            let row = touched(&r, size);
            assert_eq!((row.place(), row.deleted), (Some(at(name)), false), "{row:?}");
            // It was evicted, so it had to be filled.
            let index = r.files.iter().position(|f| f == row).unwrap();
            assert!(r.fills.iter().flatten().any(|f| f.file as usize == index), "{row:?}");
        }
        let shown = place.cold(["cache", "show", "--json", &dir]).run().expect(0).json();
        let paths = shown["files"].as_array().unwrap().iter().map(|f| f["path"].as_str().unwrap());
        let mut paths: Vec<_> = paths.map(cold_model::path_text::decode).collect();
        paths.retain(|p| names.iter().any(|n| *p == at(n)));
        assert_eq!(paths.len(), 3, "{shown:#}");
    }
}
