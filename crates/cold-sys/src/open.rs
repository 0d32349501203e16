//! Opening files that somebody else named, without side effects.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cold_model::Shown as _;

use crate::{Error, Result};

/// Opens a regular file for reading and nothing else: the path is first resolved with `O_PATH` (which
/// neither blocks on a FIFO, nor touches a device, nor triggers a mount at the last component), its
/// type is checked, and only then is that same object reopened for reading.
///
/// With `follow` false a symbolic link at the last component is refused as [`Error::NotRegular`].
pub fn regular(path: &Path, follow: bool) -> Result<(File, Metadata)> {
    let nofollow = if follow { 0 } else { libc::O_NOFOLLOW };
    let subject = || path.shown().to_string();
    let handle = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | nofollow | libc::O_CLOEXEC)
        .open(path)
        .map_err(|e| Error::io("open", subject(), e))?;
    let meta = handle.metadata().map_err(|e| Error::io("stat", subject(), e))?;
    if !meta.is_file() {
        return Err(Error::NotRegular { path: path.to_owned(), kind: kind_of(&meta) });
    }
    let file = reopen(&handle, &meta).map_err(|e| Error::io("open", subject(), e))?;
    Ok((file, meta))
}

/// All bytes of an open file; `None` where it has more than `most`, and then nothing of it is read. A file that grows
/// while it is read is held to the same bound.
pub fn content(file: &File, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    let length = file.metadata()?.len();
    if length > most {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// The text of a regular file of at most `most` bytes, opened as [`regular`] does and following links.
pub fn text(path: &Path, most: u64) -> Result<String> {
    let (file, _) = regular(path, true)?;
    let read = |e| Error::io("read", path.shown().to_string(), e);
    let bytes = content(&file, most).map_err(read)?;
    let bytes =
        bytes.ok_or_else(|| read(std::io::Error::other(format!("it is longer than {most} bytes"))))?;
    String::from_utf8(bytes).map_err(|_| read(std::io::Error::other("it is no UTF-8 text")))
}

/// Opens a file that somebody named for a program's output: made, or emptied. A FIFO that nobody reads is refused,
/// where opening it would wait for ever.
pub fn for_output(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl};
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags | OFlags::NONBLOCK, Mode::from_raw_mode(0o666)) {
        Err(rustix::io::Errno::NXIO) => return Err(std::io::Error::other("nobody reads from it")),
        opened => opened?,
    };
    // The program's own writes wait, as it expects.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file.into())
}

/// Opens a file that is there to be locked, and makes it where it is not, for its owner alone. Neither a symbolic link nor
/// a FIFO is followed or waited for.
#[allow(clippy::disallowed_methods, reason = "a lock, and not its content, is what counts")]
pub fn for_lock(path: &Path) -> std::io::Result<File> {
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
}

/// Whether all names and inodes on the way to a file, and its own, are in memory, so that looking it up reads nothing
/// (`RESOLVE_CACHED`, Linux 5.12); `None` where the kernel does not tell, or there is nothing of this name.
pub fn is_known(path: &Path) -> Option<bool> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(rustix::fs::CWD, path, flags, Mode::empty(), ResolveFlags::CACHED) {
        Ok(_) => Some(true),
        Err(rustix::io::Errno::AGAIN) => Some(false),
        Err(_) => None,
    }
}

/// The path by which this process reaches what it holds open, whatever has its name by now.
pub fn held(file: &impl AsFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd()).into()
}

/// The object that an `O_PATH` descriptor stands for, opened for reading: without waiting, without becoming
/// anybody's terminal, and without a new access time where the kernel allows that (to owners and root).
pub(crate) fn reopen(handle: &File, meta: &Metadata) -> std::io::Result<File> {
    let magic = held(handle);
    let open = |extra| {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC | extra;
        std::fs::OpenOptions::new().read(true).custom_flags(flags).open(&magic)
    };
    let euid = rustix::process::geteuid();
    if !euid.is_root() && euid.as_raw() != meta.uid() {
        return open(0);
    }
    // Root of a user namespace is not everybody's.
    open(libc::O_NOATIME).or_else(|e| if e.raw_os_error() == Some(libc::EPERM) { open(0) } else { Err(e) })
}

/// The kind of a directory entry in words.
pub fn kind_of(meta: &Metadata) -> &'static str {
    let t = meta.file_type();
    if t.is_dir() {
        "directory"
    } else if t.is_symlink() {
        "symbolic link"
    } else if t.is_fifo() {
        "FIFO"
    } else if t.is_socket() {
        "socket"
    } else if t.is_char_device() {
        "character device"
    } else if t.is_block_device() {
        "block device"
    } else if meta.mode() & libc::S_IFMT == libc::S_IFREG {
        "regular file"
    } else {
        "file of unknown kind"
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn fifo(path: &Path) {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).expect("made");
    }

    fn kind(path: &Path, follow: bool) -> &'static str {
        match regular(path, follow) {
            Err(Error::NotRegular { kind, path: named }) => {
                assert_eq!(named, path);
                kind
            }
            other => panic!("{}: {other:?}", path.display()),
        }
    }

    #[test]
    fn what_could_block_or_act_is_named_and_not_opened() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        // Nobody writes to it: opening it would wait for ever.
        fifo(&at("fifo"));
        let _listener = UnixListener::bind(at("socket")).expect("bound");
        std::fs::write(at("file"), "x").expect("written");
        symlink("file", at("link")).expect("linked");
        symlink("fifo", at("to fifo")).expect("linked");
        assert_eq!((kind(&at("fifo"), true), kind(&at("to fifo"), true)), ("FIFO", "FIFO"));
        assert_eq!((kind(&at("socket"), true), kind(dir.path(), true)), ("socket", "directory"));
        assert_eq!(kind(Path::new("/dev/null"), true), "character device");
        assert_eq!(kind(&at("link"), false), "symbolic link");
        assert_eq!(regular(&at("link"), true).expect("followed").1.len(), 1);
        let error = regular(&at("none"), true).expect_err("absent");
        assert_eq!(error.errno(), Some(libc::ENOENT));
    }

    #[test]
    fn what_was_looked_at_is_opened_whatever_has_its_name_now() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        std::fs::write(&path, "first").expect("written");
        let handle =
            std::fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).expect("held");
        let meta = handle.metadata().expect("stat");
        std::fs::remove_file(&path).expect("removed");
        fifo(&path);
        let mut text = String::new();
        reopen(&handle, &meta).expect("opened").read_to_string(&mut text).expect("read");
        assert_eq!(text, "first");
    }

    #[test]
    fn content_is_whole_or_refused_unread_and_unknown_lengths_are_bounded_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        std::fs::write(&path, "12345").expect("written");
        let of = |most| content(&File::open(&path).expect("opened"), most).expect("read");
        assert_eq!((of(6), of(5), of(4)), (Some(b"12345".to_vec()), Some(b"12345".to_vec()), None));
        assert_eq!(of(u64::MAX).map(|b| b.len()), Some(5));
        File::create(&path).and_then(|f| f.set_len(1 << 40)).expect("sparse: no memory could hold it");
        assert_eq!(of(1 << 20), None);
        // The kernel says 0 for the length of its own files.
        let kernel = |most| content(&File::open("/proc/self/status").expect("opened"), most).expect("read");
        assert!(kernel(1 << 20).is_some_and(|b| b.starts_with(b"Name:")) && kernel(10).is_none());
    }

    #[test]
    fn a_text_is_read_up_to_its_bound() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("list");
        std::fs::write(&path, "four").expect("written");
        assert_eq!(text(&path, 4).expect("read"), "four");
        assert!(text(&path, 3).is_err());
        std::fs::write(&path, b"\xff").expect("written");
        assert!(text(&path, 3).expect_err("refused").to_string().contains("UTF-8"));
    }

    #[test]
    fn output_empties_what_is_there_and_makes_what_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("out");
        for text in ["longer", "x"] {
            for_output(&path).expect("opened").write_all(text.as_bytes()).expect("written");
            assert_eq!(std::fs::read_to_string(&path).expect("read"), text);
        }
        assert_eq!(for_output(dir.path()).expect_err("a directory").raw_os_error(), Some(libc::EISDIR));
    }

    #[test]
    fn what_was_just_looked_up_is_known() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, missing) = (dir.path().join("file"), dir.path().join("missing"));
        std::fs::write(&file, "").expect("written");
        assert_ne!(is_known(&missing), Some(true));
        file.metadata().expect("is there");
        // `None`: a kernel before 5.12.
        assert_ne!(is_known(&file), Some(false));
    }

    #[test]
    fn a_fifo_without_a_reader_is_refused_and_with_one_writes_wait() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("fifo");
        fifo(&path);
        assert_eq!(for_output(&path).expect_err("refused").to_string(), "nobody reads from it");
        // For reading and writing it opens at once.
        let _reader = File::options().read(true).write(true).open(&path).expect("opened");
        let out = for_output(&path).expect("read from");
        assert!(!rustix::fs::fcntl_getfl(&out).expect("flags").contains(rustix::fs::OFlags::NONBLOCK));
    }
}
