//! Settings of the kernel's own file systems are found again wherever those are mounted.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cold_journal::{Error, Guard, Journal, Outcome, recover};
use cold_sys::kernelfs;
use cold_testbed::needs_root;

use crate::trust::{World, boot, header, line};

/// A device of our own with its settings.
struct Device {
    number: u32,
    _guard: Guard,
    _dir: tempfile::TempDir,
}

impl Device {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        let image = dir.path().join("image");
        fs::File::create(&image).expect("create").set_len(1 << 20).expect("size");
        let journal = Journal::open_in(dir.path().join("journal"));
        let (number, guard) = journal.attach_loop(&image).expect("loop");
        Self { number, _guard: guard, _dir: dir }
    }
    /// Its read-ahead, from the root of sysfs.
    fn read_ahead(&self) -> PathBuf {
        PathBuf::from(format!("block/loop{}/queue/read_ahead_kb", self.number))
    }
    fn value(&self) -> String {
        fs::read_to_string(Path::new("/sys").join(self.read_ahead())).expect("read").trim().to_owned()
    }
}

fn setting(path: &Path, kernel: &str, old: &str, new: &str) -> String {
    let path = path.display();
    line(&format!(
        r#"{{"change":{{"id":0,"change":{{"kind":"setting","path":"{path}","old":"{old}","new":"{new}","kernel":{kernel}}}}}}}"#
    ))
}

#[test]
fn a_setting_whose_mount_has_vanished_is_put_back_as_root() {
    needs_root!();
    let device = Device::new();
    let before = device.value();
    let world = World::new("0");
    let mount = world.dir.path().join("mnt");
    fs::create_dir(&mount).expect("mkdir");
    let layers = Journal::open_in(world.dir.path().join("layers"));
    let mounted = layers.mount("sysfs".as_ref(), &mount, "sysfs", "").expect("mount");
    let guard = Journal::open_in(world.journal()).set(&mount.join(device.read_ahead()), "48").expect("set");
    assert_eq!(device.value(), "48");
    mounted.undo().expect("unmount");
    assert_eq!(guard.undo().expect("undo"), Outcome::Restored);
    assert_eq!(device.value(), before);
}

#[test]
fn a_setting_is_named_by_its_file_system_and_held_by_one_process_whatever_its_path_as_root() {
    needs_root!();
    let device = Device::new();
    let before = device.value();
    let world = World::new("0");
    let [first, second] = [(); 2].map(|()| Journal::open_in(world.journal()));
    let path = Path::new("/sys").join(device.read_ahead());
    // The kernel's own name, without the links of /sys/block.
    let within = path.canonicalize().expect("resolved").strip_prefix("/sys").expect("in sysfs").to_owned();
    let guard = first.set_kernel(&kernelfs::SYSFS, &within, "48").expect("set");
    assert_eq!(device.value(), "48");
    assert!(matches!(second.set(&path, "16"), Err(Error::Held { .. })));
    assert_eq!(guard.undo().expect("undo"), Outcome::Restored);
    assert_eq!(device.value(), before);
    let missing =
        first.set_kernel(&kernelfs::SYSFS, Path::new("kernel/none"), "1").expect_err("no such setting");
    assert!(missing.to_string().contains("/sys/kernel/none"), "{missing}");
}

#[test]
fn a_setting_of_a_device_that_is_gone_needs_no_undoing() {
    let gone = Path::new("/sys/block/loop999999/queue/read_ahead_kb");
    // The name is another device's by now: then its inode is another one.
    let other = fs::read_dir("/sys/block").expect("list").next().map(|e| e.expect("entry").path());
    let other = other.expect("a device").canonicalize().expect("resolved").join("queue/read_ahead_kb");
    let other_ino = other.metadata().expect("stat").ino() + 1;
    let value = fs::read_to_string(&other).expect("read");
    for (path, ino) in [(gone, 1), (&other, other_ino)] {
        let world = World::new("0");
        let within = path.strip_prefix("/sys").expect("in sysfs").display();
        let kernel = format!(r#"{{"fs_type":"sysfs","path":"/{within}","ino":{ino}}}"#);
        world.write(header(&boot()) + &setting(path, &kernel, "77", value.trim()));
        let undone = recover(&world.journal()).expect("recover");
        assert_eq!(undone[0].outcome.as_ref().expect("done"), &Outcome::Gone);
        assert_eq!(fs::read_dir(world.journal()).expect("list").count(), 0);
    }
    assert_eq!(fs::read_to_string(&other).expect("read"), value);
}

#[test]
fn a_setting_that_nobody_here_can_reach_stays_in_the_journal() {
    let world = World::new("0");
    // Of a later version: whether it is mounted, this one cannot tell.
    let kernel = r#"{"fs_type":"laterfs","path":"/x"}"#;
    world.write(header(&boot()) + &setting(Path::new("/later/x"), kernel, "1", "2"));
    for _ in 0..2 {
        let undone = recover(&world.journal()).expect("recover");
        let why = undone[0].outcome.as_ref().expect_err("cannot").to_string();
        assert!(why.contains("cannot reach /later/x: laterfs is not known"), "{why}");
        assert_eq!(fs::read_dir(world.journal()).expect("list").count(), 1);
    }
}

/// Run by the next test as an ordinary user.
#[test]
fn child() {
    let Some(journal) = std::env::var_os("COLD_JOURNAL_KERNEL_CHILD") else { return };
    let undone = recover(Path::new(&journal)).expect("recover");
    let why = undone[0].outcome.as_ref().expect_err("a user mounts nothing").to_string();
    assert!(why.contains("debugfs is mounted nowhere") && why.contains("as root"), "{why}");
}

#[test]
fn a_setting_that_takes_root_stays_in_the_journal_of_a_user_as_root() {
    needs_root!();
    let world = World::new("0");
    let kernel = r#"{"fs_type":"debugfs","path":"/fault_around_bytes"}"#;
    let usual = Path::new("/sys/kernel/debug").join("fault_around_bytes");
    if usual.exists() {
        return; // mounted: then a user is refused the file itself
    }
    let path = world.write(header(&boot()) + &setting(&usual, kernel, "65536", "4096"));
    for path in [world.dir.path(), &world.journal(), &path] {
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).expect("chown");
    }
    let copy = world.dir.path().join("test");
    fs::copy(std::env::current_exe().expect("exe"), &copy).expect("copy");
    let status = Command::new(copy)
        .args(["kernel::child", "--exact"])
        .env("COLD_JOURNAL_KERNEL_CHILD", world.journal())
        .uid(65534)
        .gid(65534)
        .status()
        .expect("run");
    assert!(status.success());
    assert!(path.exists(), "the journal stays");
}

#[test]
fn what_lies_on_a_disk_that_is_not_mounted_now_stays_in_the_journal_as_root() {
    needs_root!();
    let dir = tempfile::tempdir().expect("tempdir");
    let (image, mount) = (dir.path().join("image"), dir.path().join("mnt"));
    fs::File::create(&image).expect("create").set_len(16 << 20).expect("size");
    assert!(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).status().expect("mkfs").success());
    fs::create_dir(&mount).expect("mkdir");
    let layers = Journal::open_in(dir.path().join("layers"));
    let (number, device) = layers.attach_loop(&image).expect("loop");
    let path = PathBuf::from(format!("/dev/loop{number}"));
    let mounted = layers.mount(&path, &mount, "ext4", "").expect("mount");
    let journal = Journal::open_in(dir.path().join("journal"));
    let (ours, guard) = journal.create_directory(&mount, "ours").expect("made");
    fs::write(ours.join("file"), "x").expect("write");
    mounted.undo().expect("unmount");
    let why = guard.undo().expect_err("not mounted").to_string();
    assert!(why.contains("is not mounted; mount it"), "{why}");
    let again = layers.mount(&path, &mount, "ext4", "").expect("mount");
    assert!(ours.exists());
    let undone = journal.undo_all();
    let stays = ours.exists();
    again.undo().expect("unmount");
    device.undo().expect("detach");
    assert_eq!(undone[0].outcome.as_ref().expect("undone"), &Outcome::Restored);
    assert!(!stays);
}
