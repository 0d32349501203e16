//! Files that are written whole or not at all: the one way in which `cold` writes results and what it keeps.
//!
//! The content goes into a file without a name (`O_TMPFILE`), which takes the target's name when all of it is
//! on the disk. So a full disk, a signal or `kill -9` leaves the old file, or none, and never half of one; and
//! nothing is left to clean up. Where a file system has no nameless files, a hidden one with a random name
//! stands in; only there `kill -9` leaves something.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use crate::open::held;

/// How names of files begin that are being written, where they need one.
const HIDDEN: &str = ".cold-";
/// As many symbolic links as the kernel follows.
const MOST_LINKS: usize = 40;
/// Names to try before giving up.
const TRIES: usize = 16;

/// Who may have which name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// A result that a user named: symbolic links are followed (where the kernel would,
    /// `fs.protected_symlinks`), an existing file keeps its mode and owner, a new one obeys the umask. What is
    /// no regular file (`/dev/stdout`, a FIFO) is written as it is.
    Result,
    /// A file of our own with this mode, whatever the umask; a link of its name is replaced, never followed.
    Own(u32),
}

/// A file that is being written. Dropped without [`WholeFile::commit`], nothing has happened.
#[derive(Debug)]
pub struct WholeFile {
    out: BufWriter<File>,
    /// `None`: written in place, because it is no regular file.
    place: Option<Destination>,
}

#[derive(Debug)]
struct Destination {
    directory: OwnedFd,
    name: OsString,
    /// The hidden name that it has until it is whole.
    hidden: Option<OsString>,
    /// What it replaces must not: the name must be free.
    new: bool,
}

/// Writes `bytes` as the whole file `path`.
pub fn write(path: &Path, kind: Ownership, bytes: &[u8]) -> io::Result<()> {
    let mut file = WholeFile::create(path, kind)?;
    file.write_all(bytes)?;
    file.commit()
}

impl WholeFile {
    /// Begins a file that will have the name `path`. What has that name stays until [`WholeFile::commit`].
    pub fn create(path: &Path, kind: Ownership) -> io::Result<Self> {
        if kind == Ownership::Result
            && let Some(file) = in_place(path)?
        {
            return Ok(Self { out: BufWriter::with_capacity(1 << 16, file), place: None });
        }
        Self::begin(path, kind, false)
    }

    /// As [`WholeFile::create`], but the name must be free, also at the end
    /// ([`io::ErrorKind::AlreadyExists`]).
    pub fn create_new(path: &Path, kind: Ownership) -> io::Result<Self> {
        if path.symlink_metadata().is_ok() {
            return Err(Errno::EXIST.into());
        }
        Self::begin(path, kind, true)
    }

    fn begin(path: &Path, kind: Ownership, new: bool) -> io::Result<Self> {
        let path = if kind == Ownership::Result && !new { followed(path)? } else { path.to_owned() };
        let (parent, name) = split(&path)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, flags, Mode::empty())?;
        let old = stat_at(&directory, name)?;
        if let (Ownership::Result, Some(old)) = (kind, &old) {
            if old.is_dir() {
                return Err(Errno::ISDIR.into());
            }
            // Renaming over it would not ask whether it may be written.
            rustix::fs::accessat(&directory, name, Access::WRITE_OK, AtFlags::EACCESS)?;
        }
        let (file, hidden) = nameless(&directory, kind)?;
        let place = Destination { directory, name: name.to_owned(), hidden, new };
        let this = Self { out: BufWriter::with_capacity(1 << 16, file), place: Some(place) };
        match (kind, old) {
            (Ownership::Own(mode), _) => rustix::fs::fchmod(this.file(), Mode::from_raw_mode(mode))?,
            (Ownership::Result, Some(old)) => keep_owner_and_mode(this.file(), &old)?,
            (Ownership::Result, None) => {}
        }
        Ok(this)
    }

    /// The file itself; what is written to it directly stands before what is still buffered.
    pub fn file(&self) -> &File {
        self.out.get_ref()
    }

    /// Puts the file in its place when all of it is on the disk, and makes its name survive a power cut.
    pub fn commit(mut self) -> io::Result<()> {
        self.out.flush()?;
        let Some(place) = &mut self.place else { return Ok(()) };
        let file = self.out.get_ref();
        file.sync_all()?;
        place.put(file)?;
        // Some file systems cannot sync a directory; the file itself is safe.
        let directory =
            rustix::fs::openat(&place.directory, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let _ = directory.and_then(rustix::fs::fsync);
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(Destination { directory, hidden: Some(hidden), .. }) = &self.place {
            let _ = rustix::fs::unlinkat(directory, hidden, AtFlags::empty());
        }
    }
}

impl Destination {
    fn put(&mut self, file: &File) -> io::Result<()> {
        if self.hidden.is_none() {
            let own = held(file);
            match rustix::fs::linkat(
                rustix::fs::CWD,
                &own,
                &self.directory,
                &self.name,
                AtFlags::SYMLINK_FOLLOW,
            ) {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) if !self.new => {}
                Err(e) => return Err(e.into()),
            }
            let link = |name: &OsStr| {
                rustix::fs::linkat(rustix::fs::CWD, &own, &self.directory, name, AtFlags::SYMLINK_FOLLOW)
            };
            self.hidden = Some(with_random_name(link)?.1);
        }
        let Some(hidden) = &self.hidden else { return Ok(()) };
        if self.new {
            rustix::fs::linkat(&self.directory, hidden, &self.directory, &self.name, AtFlags::empty())?;
            return Ok(()); // dropping removes the hidden name
        }
        rustix::fs::renameat(&self.directory, hidden, &self.directory, &self.name)?;
        self.hidden = None;
        Ok(())
    }
}

/// A file that is written in place because it is no regular file, or only a process's descriptor.
fn in_place(path: &Path) -> io::Result<Option<File>> {
    let meta = match path.metadata() {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let kind = meta.file_type();
    let special = kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket();
    // `/dev/stdout` of a shell's `>`: the file behind it has another writer and must stay the same.
    let descriptor = || {
        let own = path.canonicalize().unwrap_or_default();
        let text = path.as_os_str().as_encoded_bytes();
        own != path
            && (text.starts_with(b"/dev/std") || text.starts_with(b"/dev/fd/") || text.starts_with(b"/proc/"))
    };
    if !special && !descriptor() {
        return Ok(None);
    }
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    let flags = if special { flags } else { flags | OFlags::TRUNC };
    Ok(Some(rustix::fs::open(path, flags, Mode::empty())?.into()))
}

/// Makes `path` a symbolic link to `target`, in place of a link of this name; anything else of this name stays
/// ([`io::ErrorKind::AlreadyExists`]).
pub fn link(path: &Path, target: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(meta) if !meta.is_symlink() => return Err(Errno::EXIST.into()),
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let (parent, name) = split(path)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent, flags, Mode::empty())?;
    let ((), hidden) = with_random_name(|hidden| rustix::fs::symlinkat(target, &directory, hidden))?;
    rustix::fs::renameat(&directory, &hidden, &directory, name).inspect_err(|_| {
        let _ = rustix::fs::unlinkat(&directory, &hidden, AtFlags::empty());
    })?;
    Ok(())
}

/// Makes new and removed names in a directory survive a power cut.
pub fn sync_names(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// The path without symbolic links at its end. A link that another user could have put into a shared directory
/// is refused, as by the kernel with `fs.protected_symlinks`.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let link = match path.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => meta,
            Ok(_) => return Ok(path),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(path),
            Err(e) => return Err(e),
        };
        let parent = parent_of(&path);
        let shared = parent.metadata()?;
        let sticky = shared.mode() & 0o1002 == 0o1002;
        if sticky && link.uid() != rustix::process::geteuid().as_raw() && link.uid() != shared.uid() {
            let why = "it is a symbolic link that another user put into a shared directory";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        path = parent.join(path.read_link()?);
    }
    Err(Errno::LOOP.into())
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    // `x/` and `x/.` name a directory; `file_name` would drop the slash.
    let text = path.as_os_str().as_encoded_bytes();
    let name = path.file_name().filter(|n| text.ends_with(n.as_encoded_bytes()));
    name.map(|name| (parent_of(path), name)).ok_or_else(|| Errno::ISDIR.into())
}

/// What has this name, itself.
fn stat_at(directory: &OwnedFd, name: &OsStr) -> io::Result<Option<Metadata>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, name, flags, Mode::empty()) {
        Ok(found) => File::from(found).metadata().map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// A file without a name in the directory; with a hidden one where the file system has none without.
fn nameless(directory: &OwnedFd, kind: Ownership) -> io::Result<(File, Option<OsString>)> {
    let mode = Mode::from_raw_mode(match kind {
        Ownership::Result => 0o666,
        Ownership::Own(_) => 0o600,
    });
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    match rustix::fs::openat(directory, ".", flags | OFlags::TMPFILE, mode) {
        // Without procfs it could not get its name.
        Ok(file) if held(&file).exists() => return Ok((file.into(), None)),
        Ok(_) | Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT | Errno::NOSYS) => {}
        Err(e) => return Err(e.into()),
    }
    let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let (file, name) = with_random_name(|name| rustix::fs::openat(directory, name, flags, mode))?;
    Ok((file.into(), Some(name)))
}

fn with_random_name<T>(make: impl Fn(&OsStr) -> rustix::io::Result<T>) -> io::Result<(T, OsString)> {
    for _ in 0..TRIES {
        let name = OsString::from(format!("{HIDDEN}{}", crate::place::random_name()?));
        match make(&name) {
            Err(Errno::EXIST) => {}
            made => return Ok((made?, name)),
        }
    }
    Err(Errno::EXIST.into())
}

/// What is replaced had an owner and a mode, which a new inode has to be given.
fn keep_owner_and_mode(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let (uid, gid) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
        // Only root can, and only root has to: what others may write in place they may also replace.
        let _ = rustix::fs::fchown(file, Some(uid), Some(gid));
    }
    rustix::fs::fchmod(file, Mode::from_raw_mode(old.mode() & 0o777))?;
    Ok(())
}

#[cfg(test)]
mod tests;
