//! Forgetting: a directory in which every start finds what the first one found.
//!
//! A directory of our own is emptied. Any other is covered by an overlay in a mount namespace of this
//! process: a layer hides what is to be absent, and whatever a start writes is dropped with the top layer
//! before the next one. Nobody else sees it, and the kernel removes it with the process. Without root the
//! mounts are made in a user namespace, in which everybody but the user is nobody: programs with the
//! set-user-ID bit run without it there (Linux 5.11 or later; some distributions forbid it).

use std::cell::Cell;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cold_model::Shown as _;
use cold_model::file::Content;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use serde::{Deserialize, Serialize};

use crate::{Error, Result, remove};

/// A directory that is renewed before every start of the first program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fresh {
    /// Its content is removed: only for a directory made for this.
    Emptied(PathBuf),
    /// It is covered.
    Covered {
        /// Where the overlay is mounted: it shows what is there but for `hidden`; what is
        /// written is gone at the next start.
        directory: PathBuf,
        /// Names in it that are not to be seen.
        hidden: Vec<Vec<u8>>,
        /// An empty directory of ours on which the layers are mounted.
        layers: PathBuf,
    },
}

/// Everything that is renewed. The mounts go with the process.
pub(super) struct Renewal {
    all: Vec<Fresh>,
    /// The directories that are emptied, in their order: held, so that whatever a start puts in the place of one
    /// stays.
    held: Vec<OwnedFd>,
    programs: Vec<Reachable>,
    covered: Cell<bool>,
}

/// A program below a directory that is covered. An overlay shows no file system that is mounted below the
/// directory, so the program may have to be put back into its place.
struct Reachable {
    path: PathBuf,
    file: OwnedFd,
    content: Content,
}

impl Renewal {
    pub(super) fn new<'p>(fresh: &[Fresh], programs: impl Iterator<Item = &'p Path>) -> Result<Self> {
        if fresh.iter().any(|f| matches!(f, Fresh::Covered { .. })) {
            private_mounts()?;
        }
        let mut fresh = fresh.to_vec();
        // Where our own layers lie is covered last, and uncovered first: the layers of the others are mounts below
        // it, which its overlay does not show.
        fresh.sort_by_key(Fresh::holds_layers);
        // After the mounts have become private: what is mounted elsewhere cannot be bound here.
        let programs = programs.filter_map(|p| Reachable::below(p, &fresh)).collect();
        let mut held = Vec::new();
        for f in &fresh {
            match f {
                Fresh::Covered { hidden, layers, .. } => lower_layer(layers, hidden)?,
                Fresh::Emptied(dir) => {
                    let dir = remove::hold(dir).map_err(|e| Error::io("open", dir.shown().to_string(), e))?;
                    held.push(dir);
                }
            }
        }
        Ok(Self { all: fresh, held, programs, covered: Cell::new(false) })
    }

    /// To be called before a start.
    pub(super) fn renew(&self) -> Result<()> {
        if self.covered.replace(true) {
            for f in self.all.iter().rev() {
                if let Fresh::Covered { directory, layers, .. } = f {
                    uncover(directory)?;
                    uncover(&layers.join("top"))?;
                }
            }
        }
        let mut held = self.held.iter();
        for f in &self.all {
            match f {
                Fresh::Emptied(dir) => {
                    let content = held.next().map_or(Ok(()), remove::content);
                    content.map_err(|e| Error::io("empty", dir.shown().to_string(), e))?;
                }
                Fresh::Covered { directory, layers, .. } => cover(directory, layers)?,
            }
        }
        self.programs.iter().try_for_each(Reachable::put_back)
    }
}

impl Fresh {
    fn holds_layers(&self) -> bool {
        matches!(self, Self::Covered { directory, layers, .. } if layers.starts_with(directory))
    }
}

impl Reachable {
    /// `None` for a program that lies elsewhere, or cannot be looked at: its start says so.
    fn below(program: &Path, fresh: &[Fresh]) -> Option<Self> {
        let path = fs::canonicalize(program).ok()?;
        let below = |f: &Fresh| matches!(f, Fresh::Covered { directory, .. } if path.starts_with(directory));
        if !fresh.iter().any(below) {
            return None;
        }
        let file = rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let meta = fs::metadata(&path).ok()?;
        Some(Self { path, file, content: Content::of(&meta) })
    }

    /// Binds the program to its path, if another file or none is to be seen there.
    fn put_back(&self) -> Result<()> {
        if fs::symlink_metadata(&self.path).is_ok_and(|m| Content::of(&m) == self.content) {
            return Ok(());
        }
        let fail =
            |e: io::Error| Error::io("show in the covered directory", self.path.shown().to_string(), e);
        if let Some(parent) = self.path.parent() {
            fs::create_dir_all(parent).map_err(fail)?;
        }
        let flags = OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::WRONLY;
        rustix::fs::open(&self.path, flags, Mode::from_raw_mode(0o700)).map_err(|e| fail(e.into()))?;
        rustix::mount::mount_bind(crate::open::held(&self.file), &self.path).map_err(|e| fail(e.into()))
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn private_mounts() -> Result<()> {
    use rustix::thread::UnshareFlags;
    let (root, uid, gid) = (is_root(), rustix::process::geteuid(), rustix::process::getegid());
    let what = if root { UnshareFlags::NEWNS } else { UnshareFlags::NEWNS | UnshareFlags::NEWUSER };
    // SAFETY: this process has one thread, and shares its file system information with nobody.
    unsafe { rustix::thread::unshare_unsafe(what) }
        .map_err(|e| Error::io("unshare the mounts of", "the spawner", e.into()))?;
    if !root {
        // Who it is stays the same, so that programs do what they did before.
        let maps = [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{0} {0} 1", uid.as_raw())),
            ("gid_map", format!("{0} {0} 1", gid.as_raw())),
        ];
        for (name, text) in maps {
            let path = Path::new("/proc/self").join(name);
            let file = fs::OpenOptions::new().write(true).open(&path);
            let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|e| Error::io("write", path.shown().to_string(), e))?;
        }
    }
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", flags).map_err(|e| Error::io("make private", "/", e.into()))
}

fn mount(source: &str, target: &Path, kind: &str, data: &[u8]) -> Result<()> {
    let fail = |e: io::Error| Error::io("mount", format!("{kind} on {}", target.shown()), e);
    let data = std::ffi::CString::new(data).map_err(|e| fail(e.into()))?;
    rustix::mount::mount(source, target, kind, MountFlags::empty(), data.as_c_str())
        .map_err(|e| fail(e.into()))
}

/// A tmpfs with a whiteout for every hidden name.
fn lower_layer(layers: &Path, hidden: &[Vec<u8>]) -> Result<()> {
    let fail = |e: io::Error| Error::io("write", layers.shown().to_string(), e);
    mount("tmpfs", layers, "tmpfs", b"mode=0755")?;
    let names = layers.join("hidden");
    fs::create_dir(&names).map_err(fail)?;
    fs::create_dir(layers.join("top")).map_err(fail)?;
    for name in hidden {
        let path = names.join(std::ffi::OsStr::from_bytes(name));
        let none = rustix::fs::makedev(0, 0);
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::CharacterDevice, Mode::empty(), none)
            .map_err(|e| fail(e.into()))?;
    }
    Ok(())
}

/// Takes away what [`cover`] has mounted.
fn uncover(mounted: &Path) -> Result<()> {
    rustix::mount::unmount(mounted, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
        .map_err(|e| Error::io("unmount", mounted.shown().to_string(), e.into()))
}

fn cover(directory: &Path, layers: &Path) -> Result<()> {
    let fail = |e: io::Error| Error::io("write", layers.shown().to_string(), e);
    let top = layers.join("top");
    mount("tmpfs", &top, "tmpfs", b"mode=0755")?;
    let (upper, work) = (top.join("upper"), top.join("work"));
    fs::create_dir(&upper).map_err(fail)?;
    fs::create_dir(&work).map_err(fail)?;
    like(directory, &upper)?;
    let data = [
        if is_root() { b"lowerdir=".to_vec() } else { b"userxattr,lowerdir=".to_vec() },
        escaped(&layers.join("hidden")),
        b":".to_vec(),
        escaped(directory),
        b",upperdir=".to_vec(),
        escaped(&upper),
        b",workdir=".to_vec(),
        escaped(&work),
    ];
    mount("overlay", directory, "overlay", &data.concat())
}

/// A path among the options of an overlay: byte for byte, or it would be another one.
fn escaped(path: &Path) -> Vec<u8> {
    let special = |b: &u8| matches!(b, b'\\' | b',' | b':');
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.flat_map(|b| special(b).then_some(b'\\').into_iter().chain([*b])).collect()
}

/// The top layer gives the directory its owner and mode.
fn like(directory: &Path, upper: &Path) -> Result<()> {
    let fail = |e: io::Error| Error::io("cover", directory.shown().to_string(), e);
    let meta = fs::metadata(directory).map_err(fail)?;
    fs::set_permissions(upper, meta.permissions()).map_err(fail)?;
    match std::os::unix::fs::chown(upper, Some(meta.uid()), Some(meta.gid())) {
        // Another's directory that everybody may write to: in our namespace its owner has no number.
        Err(e) if is_root() => Err(fail(e)),
        _ => Ok(()),
    }
}
