//! Which mounts may be walked into. A dead server behind a mount holds whoever looks a name up there, and
//! cannot be killed for it (fs/fuse/dev.c, `request_wait_answer`), so the mount table decides beforehand.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cold_model::Dev;
use cold_model::file_system::Origin;
use cold_sys::beneath::Beneath;
use cold_sys::procfs::Mount;

/// What kind of thing answers below a mount point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// A block device of this machine.
    Local,
    /// A server, on this machine or another: may never answer.
    Server,
    /// The kernel itself (procfs, tmpfs): nothing to read from a disk.
    Kernel,
}

fn class_of(mount: &Mount) -> Class {
    match Origin::of(&mount.fs_type) {
        // Of these, fuseblk has a block device's number, but a server in between.
        origin if origin.may_hang() => Class::Server,
        Origin::Volume | Origin::Layers => Class::Local,
        // Of the rest, what has a block device's number has a disk, and procfs and its kin have none.
        _ if !mount.dev.is_anonymous() => Class::Local,
        _ => Class::Kernel,
    }
}

#[derive(Debug)]
struct MountPoint {
    point: PathBuf,
    dev: Dev,
    class: Class,
    root: OnceLock<Option<Beneath>>,
}

/// The rest of `path` behind the directory `dir`; `None` when it does not lie below it. Both are plain, so bytes
/// are compared, which takes a tenth of the time of comparing components.
fn behind<'p>(path: &'p Path, dir: &Path) -> Option<&'p Path> {
    let rest = path.as_os_str().as_bytes().strip_prefix(dir.as_os_str().as_bytes())?;
    let rest = match rest {
        [] => rest,
        [b'/', name @ ..] => name,
        // "/" ends with the slash itself.
        _ if dir == Path::new("/") => rest,
        _ => return None,
    };
    Some(Path::new(OsStr::from_bytes(rest)))
}

/// Absolute and as the kernel prints paths: one slash between names, none at the end, no dots for names.
fn is_plain(path: &Path) -> bool {
    let mut names = path.as_os_str().as_bytes().split(|b| *b == b'/');
    let absolute = names.next() == Some(b"");
    absolute && (path == Path::new("/") || names.all(|name| !matches!(name, b"" | b"." | b"..")))
}

/// The mounts that paths lead into.
#[derive(Debug)]
pub(crate) struct Places {
    places: Vec<MountPoint>,
}

impl Places {
    /// From the mount table, in the kernel's order. A server's mount is walked into only where the program
    /// itself (`executable`) lies on it: then its exec would wait for the same server.
    pub(crate) fn new(mounts: &[Mount], executable: &Path) -> Self {
        let mut places: Vec<MountPoint> = Vec::with_capacity(mounts.len());
        for m in mounts {
            // A later mount covers what was mounted at and below its point before. But the root that an early
            // root was exchanged for is listed after /proc, /sys and /dev, which were moved onto it.
            let is_root = m.mount_point == Path::new("/");
            let covers = |p: &MountPoint| behind(&p.point, &m.mount_point).is_some();
            places.retain(|p| if is_root { p.point != m.mount_point } else { !covers(p) });
            let (point, class) = (m.mount_point.clone(), class_of(m));
            places.push(MountPoint { point, dev: m.dev, class, root: OnceLock::new() });
        }
        let own = |p: &&mut MountPoint| p.class == Class::Server && behind(executable, &p.point).is_some();
        for place in places.iter_mut().filter(own) {
            place.class = Class::Local;
        }
        Self { places }
    }

    /// The same table with no directory open, for a helper that has closed its descriptors.
    pub(crate) fn closed(&self) -> Self {
        let closed = |p: &MountPoint| MountPoint { point: p.point.clone(), root: OnceLock::new(), ..*p };
        Self { places: self.places.iter().map(closed).collect() }
    }

    /// The mount that `path` leads into and the rest of the path; `None` when it must be left alone, or is
    /// no plain absolute path.
    pub(crate) fn of<'p>(&self, path: &'p Path) -> Option<(&Beneath, &'p Path)> {
        let (place, rest) = self.place(path)?;
        let root = place.root.get_or_init(|| Beneath::at(&place.point).ok()).as_ref()?;
        Some((root, rest))
    }

    /// The local mount that `path` leads into, and the rest of the path.
    fn place<'p>(&self, path: &'p Path) -> Option<(&MountPoint, &'p Path)> {
        if !is_plain(path) {
            return None;
        }
        let mut deepest: Option<(&MountPoint, &Path)> = None;
        for place in &self.places {
            let Some(rest) = behind(path, &place.point) else { continue };
            // Also on the way there nobody may be asked who might not answer.
            if place.class == Class::Server {
                return None;
            }
            if deepest.is_none_or(|(_, other)| rest.as_os_str().len() <= other.as_os_str().len()) {
                deepest = Some((place, rest));
            }
        }
        deepest.filter(|(place, _)| place.class == Class::Local)
    }

    /// Whether looking this name up may wait for a server that never answers; yes for what is no plain absolute path.
    fn may_hang(&self, path: &Path) -> bool {
        let server = |p: &&MountPoint| p.class == Class::Server && behind(path, &p.point).is_some();
        !is_plain(path) || self.places.iter().any(|p| server(&p))
    }

    /// The way to a device node. `/dev` is the kernel's, so it is reached by itself.
    pub(crate) fn device<'p>(&self, path: &'p Path) -> Option<(&Beneath, &'p Path)> {
        let dev = Path::new("/dev");
        let place = self.places.iter().find(|p| p.point == dev && p.class == Class::Kernel)?;
        let rest = behind(path, dev).filter(|_| is_plain(path))?;
        Some((place.root.get_or_init(|| Beneath::at(&place.point).ok()).as_ref()?, rest))
    }

    /// Whether `rdev` is the block device of a mounted local file system.
    pub(crate) fn is_mounted_device(&self, rdev: u64) -> bool {
        let dev = Dev::of_number(rdev);
        self.places.iter().any(|p| p.class == Class::Local && p.dev == dev && !dev.is_anonymous())
    }
}

/// Whether looking up a name may wait for a server that never answers (as `Places` asks), by these mounts.
pub fn may_hang(mounts: &[Mount], path: &Path) -> bool {
    Places::new(mounts, Path::new("/")).may_hang(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(point: &str, fs_type: &str, (major, minor): (u32, u32)) -> Mount {
        Mount {
            dev: Dev::new(major, minor),
            root: "/".into(),
            mount_point: point.into(),
            options: String::new(),
            fs_type: fs_type.to_owned(),
            source: String::new(),
            super_options: String::new(),
        }
    }

    fn allowed(places: &Places, path: &str) -> bool {
        places.place(Path::new(path)).is_some()
    }

    #[test]
    fn servers_and_what_lies_behind_them_are_left_alone() {
        let mounts = [
            mount("/", "ext4", (8, 1)),
            mount("/proc", "proc", (0, 5)),
            mount("/home", "nfs4", (0, 50)),
            mount("/home/a/disk", "ext4", (7, 0)),
            mount("/mnt/app", "fuse.squashfuse", (0, 51)),
            mount("/sub", "btrfs", (0, 40)),
            mount("/ntfs", "fuseblk", (8, 2)),
        ];
        let places = Places::new(&mounts, Path::new("/usr/bin/x"));
        assert!(allowed(&places, "/usr/bin/x") && allowed(&places, "/sub/x"));
        for path in ["/proc/self/mem", "/home/a/x", "/home/a/disk/x", "/mnt/app/x", "/ntfs/x"] {
            assert!(!allowed(&places, path), "{path}");
        }
        assert!(places.may_hang(Path::new("/home/a/disk/x")) && places.may_hang(Path::new("x")));
        assert!(!places.may_hang(Path::new("/usr/bin/x")) && !places.may_hang(Path::new("/proc/self/exe")));
        let at_home = Places::new(&mounts, Path::new("/home/a/bin/x"));
        assert!(allowed(&at_home, "/home/b/x") && !allowed(&at_home, "/mnt/app/x"));
    }

    #[test]
    fn a_later_mount_covers_what_lay_below() {
        let mounts = [
            mount("/", "ext4", (8, 1)),
            mount("/a/b", "ext4", (8, 2)),
            mount("/a", "fuse.x", (0, 9)),
            mount("/c", "fuse.x", (0, 10)),
            mount("/c", "xfs", (8, 3)),
        ];
        let places = Places::new(&mounts, Path::new("/usr/bin/x"));
        assert!(!allowed(&places, "/a/b/x"), "what is at /a answers for /a/b");
        assert!(allowed(&places, "/c/x"));
    }

    #[test]
    fn a_root_that_is_listed_late_covers_nothing_but_the_early_root() {
        let mounts = [
            mount("/", "rootfs", (0, 2)),
            mount("/proc", "proc", (0, 21)),
            mount("/dev", "devtmpfs", (0, 6)),
            mount("/", "ext4", (254, 0)),
        ];
        let places = Places::new(&mounts, Path::new("/usr/bin/x"));
        assert!(allowed(&places, "/usr/bin/x") && !allowed(&places, "/proc/self/mem"));
        assert!(places.device(Path::new("/dev/vda")).is_some(), "metadata is read from devices");
    }

    #[test]
    fn paths_that_are_not_plain_are_refused() {
        let mounts =
            [mount("/", "ext4", (8, 1)), mount("/dev", "devtmpfs", (0, 6)), mount("/a", "xfs", (8, 2))];
        let places = Places::new(&mounts, Path::new("/x"));
        for path in ["/usr/../etc/passwd", "etc/passwd", "", "//etc/passwd", "/etc/./passwd", "/etc/", "/.."]
        {
            assert!(!allowed(&places, path), "{path}");
        }
        assert!(places.device(Path::new("/dev/../etc/passwd")).is_none());
        for (path, point, rest) in [("/", "/", ""), ("/ab", "/", "ab"), ("/a", "/a", ""), ("/a/b", "/a", "b")]
        {
            let (place, found) = places.place(Path::new(path)).expect(path);
            assert_eq!((&*place.point, found), (Path::new(point), Path::new(rest)), "{path}");
        }
    }
}
