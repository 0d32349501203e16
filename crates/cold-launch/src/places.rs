//! Which mounts may be walked into. A dead server behind a mount holds whoever looks a name up there, and
//! cannot be killed for it (fs/fuse/dev.c, `request_wait_answer`), so the mount table decides beforehand.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cold_sys::beneath::Beneath;
use cold_sys::device::{self, Dev};
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
    match mount.fs_type.as_str() {
        // Anonymous device numbers, but disks below.
        "btrfs" | "bcachefs" | "overlay" | "zfs" | "ubifs" | "aufs" => Class::Local,
        // Of these, fuseblk has a block device's number, but a server in between.
        "fuseblk" | "autofs" | "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "9p" | "afs" | "coda"
        | "virtiofs" | "orangefs" | "lustre" | "gpfs" => Class::Server,
        t if t == "fuse" || t.starts_with("fuse.") => Class::Server,
        // Of the rest, what has a block device's number has a disk, and procfs and its kin have none.
        _ if mount.dev.0 != 0 => Class::Local,
        _ => Class::Kernel,
    }
}

#[derive(Debug)]
struct Place {
    point: PathBuf,
    dev: Dev,
    class: Class,
    root: OnceLock<Option<Beneath>>,
}

/// The mounts that paths lead into.
#[derive(Debug)]
pub(crate) struct Places {
    places: Vec<Place>,
}

impl Places {
    /// From the mount table, in the kernel's order. A server's mount is walked into only where the program
    /// itself (`executable`) lies on it: then its exec would wait for the same server.
    pub(crate) fn new(mounts: &[Mount], executable: &Path) -> Self {
        let mut places: Vec<Place> = Vec::with_capacity(mounts.len());
        for m in mounts {
            // A later mount covers what was mounted at and below its point before. But the root that an early
            // root was exchanged for is listed after /proc, /sys and /dev, which were moved onto it.
            let is_root = m.mount_point == Path::new("/");
            places.retain(|p| p.point != m.mount_point && (is_root || !p.point.starts_with(&m.mount_point)));
            let (point, class) = (m.mount_point.clone(), class_of(m));
            places.push(Place { point, dev: m.dev, class, root: OnceLock::new() });
        }
        for place in
            places.iter_mut().filter(|p| p.class == Class::Server && executable.starts_with(&p.point))
        {
            place.class = Class::Local;
        }
        Self { places }
    }

    /// The same table with no directory open, for a helper that has closed its descriptors.
    pub(crate) fn closed(&self) -> Self {
        let closed = |p: &Place| Place { point: p.point.clone(), root: OnceLock::new(), ..*p };
        Self { places: self.places.iter().map(closed).collect() }
    }

    /// The mount that `path` leads into and the rest of the path; `None` when it must be left alone, or is
    /// no plain absolute path.
    pub(crate) fn of<'p>(&self, path: &'p Path) -> Option<(&Beneath, &'p Path)> {
        use std::path::Component;
        if !path.has_root() || path.components().any(|c| matches!(c, Component::ParentDir)) {
            return None;
        }
        let passed = || self.places.iter().filter(|p| path.starts_with(&p.point));
        // Also on the way there nobody may be asked who might not answer.
        if passed().any(|p| p.class == Class::Server) {
            return None;
        }
        let place = passed().max_by_key(|p| p.point.as_os_str().len())?;
        if place.class != Class::Local {
            return None;
        }
        let root = place.root.get_or_init(|| Beneath::at(&place.point).ok()).as_ref()?;
        Some((root, path.strip_prefix(&place.point).ok()?))
    }

    /// The way to a device node. `/dev` is the kernel's, so it is reached by itself.
    pub(crate) fn device<'p>(&self, path: &'p Path) -> Option<(&Beneath, &'p Path)> {
        let place = self.places.iter().find(|p| p.point == Path::new("/dev") && p.class == Class::Kernel)?;
        let rel = path.strip_prefix("/dev").ok()?;
        if rel.components().any(|c| matches!(c, std::path::Component::ParentDir)) {
            return None;
        }
        Some((place.root.get_or_init(|| Beneath::at(&place.point).ok()).as_ref()?, rel))
    }

    /// Whether `rdev` is the block device of a mounted local file system.
    pub(crate) fn is_mounted_device(&self, rdev: u64) -> bool {
        let dev = device::split(rdev);
        self.places.iter().any(|p| p.class == Class::Local && p.dev == dev && dev.0 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(point: &str, fs_type: &str, dev: Dev) -> Mount {
        Mount {
            dev,
            root: "/".into(),
            mount_point: point.into(),
            options: String::new(),
            fs_type: fs_type.to_owned(),
            source: String::new(),
            super_options: String::new(),
        }
    }

    fn allowed(places: &Places, path: &str) -> bool {
        let path = Path::new(path);
        let passed = || places.places.iter().filter(|p| path.starts_with(&p.point));
        !passed().any(|p| p.class == Class::Server)
            && passed().max_by_key(|p| p.point.as_os_str().len()).is_some_and(|p| p.class == Class::Local)
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
    fn paths_that_climb_are_refused() {
        let places = Places::new(&[mount("/", "ext4", (8, 1))], Path::new("/x"));
        assert!(places.of(Path::new("/usr/../etc/passwd")).is_none());
        assert!(places.of(Path::new("etc/passwd")).is_none());
        assert!(places.of(Path::new("/etc/passwd")).is_some());
    }
}
