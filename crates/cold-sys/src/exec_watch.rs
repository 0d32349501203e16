//! Hearing of every start of a program, without anybody waiting for the listener.
//!
//! A fanotify group with `FAN_OPEN_EXEC` (fanotify(7), Linux 5.0, root) on whole file systems: a notification, never
//! a permission event, so a stopped or dead listener holds nobody up. Events name files by their handle
//! (`FAN_REPORT_FID`, Linux 5.1): an event that waits in the queue then keeps no file open and no mount busy. Where a
//! file system cannot be named so (a btrfs subvolume: `EXDEV`; without NFS export: `EOPNOTSUPP`), a second group takes
//! the file itself, which is closed as soon as its device and inode are known.

use std::ffi::CString;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cold_model::Shown as _;

use crate::{Error, Result};

/// Bytes of a handle that are kept: ext4 and XFS use 8 to 12, btrfs 20, overlay about 40. A longer one is nobody's.
const HANDLE: usize = 48;
/// `kind` of a file that is known by device and inode; no file system's handles have it (`FILEID_INVALID` is 255).
const BY_INODE: i32 = -1;
/// `AT_HANDLE_FID` (Linux 6.5): a handle to compare with, also of file systems that cannot open by it.
const AT_HANDLE_FID: libc::c_int = 0x200;
/// Bytes of events that are read at a time: about 150 events.
const BUFFER: usize = 8 << 10;

/// Which file was executed, as events and [`ExecWatch::ids_of`] name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecutedFile {
    /// Of the file system; of a file known by inode the device.
    fs: u64,
    kind: i32,
    len: u8,
    bytes: [u8; HANDLE],
}

impl ExecutedFile {
    fn of_inode(dev: u64, inode: u64) -> Self {
        Self::new(dev, BY_INODE, &inode.to_ne_bytes()).unwrap_or(Self::NONE)
    }

    const NONE: Self = Self { fs: 0, kind: BY_INODE, len: 0, bytes: [0; HANDLE] };

    fn new(fs: u64, kind: i32, handle: &[u8]) -> Option<Self> {
        let mut bytes = [0; HANDLE];
        bytes.get_mut(..handle.len())?.copy_from_slice(handle);
        Some(Self { fs, kind, len: handle.len() as u8, bytes })
    }
}

/// What was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// A file was opened to be executed: a program, a script, a program's loader.
    Exec {
        /// The file that was executed.
        file: ExecutedFile,
        /// The process, in the pid namespace of the listener; 0 where it is in none below that.
        pid: i32,
    },
    /// The kernel's queue was full (16,384 events by default): starts were not told.
    Overflow,
}

/// How the starts on a file system are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// By a handle of the file.
    Handle,
    /// By the opened file.
    Inode,
}

/// The listener. Its marks go with it.
#[derive(Debug)]
pub struct ExecWatch {
    by_handle: File,
    by_inode: Option<File>,
    systems: Vec<System>,
}

/// A file system whose files are named by handle.
#[derive(Debug)]
struct System {
    /// Its number as events have it, and as [`ExecutedFile`] has.
    told: u64,
    id: u64,
    mount_point: PathBuf,
}

impl ExecWatch {
    /// Listens to nothing yet. An error without root, and before Linux 5.1.
    pub fn new() -> Result<Self> {
        Ok(Self { by_handle: group(libc::FAN_REPORT_FID)?, by_inode: None, systems: Vec::new() })
    }

    /// Hears of the programs of the file system that is mounted at `mount_point` from now on, wherever else it is
    /// mounted. Asking twice changes nothing. Unmounting it is not hindered, and ends the watch.
    pub fn watch(&mut self, mount_point: &Path) -> Result<Named> {
        match mark(&self.by_handle, mount_point) {
            Ok(()) => {
                if let Some((told, id)) = handle_of(mount_point)
                    && !self.systems.iter().any(|s| (s.told, s.id) == (told, id.fs))
                {
                    self.systems.push(System { told, id: id.fs, mount_point: mount_point.to_owned() });
                }
                return Ok(Named::Handle);
            }
            Err(e) if matches!(e.errno(), Some(libc::EXDEV | libc::EOPNOTSUPP | libc::ENODEV)) => {}
            Err(e) => return Err(e),
        }
        let group = match self.by_inode.take() {
            Some(group) => group,
            None => group(0)?,
        };
        let done = mark(&group, mount_point);
        self.by_inode = Some(group);
        done.map(|()| Named::Inode)
    }

    /// Hears of this file no more: the loader, which every dynamic program executes as well. An error before Linux 5.19
    /// (`FAN_MARK_EVICTABLE`, so that the mark keeps no inode in memory): then it is told on, which costs time only.
    pub fn ignore(&self, path: &Path) -> Result<()> {
        self.ignored(path, libc::FAN_MARK_ADD | libc::FAN_MARK_EVICTABLE)
    }

    /// Hears of a file that was told no more, until [`ExecWatch::hear_again`]. An error before Linux 5.19, and where
    /// events name files by device and inode.
    pub fn ignore_told(&self, file: &ExecutedFile) -> Result<()> {
        let opened = self.open(file)?;
        self.ignored(&in_procfs(&opened), libc::FAN_MARK_ADD | libc::FAN_MARK_EVICTABLE)
    }

    /// Hears again of a file that was ignored; one that is gone by now is no error.
    pub fn hear_again(&self, file: &ExecutedFile) {
        if let Ok(opened) = self.open(file) {
            // What the kernel has forgotten meanwhile is heard of anyway.
            let _ = self.ignored(&in_procfs(&opened), libc::FAN_MARK_REMOVE);
        }
    }

    fn ignored(&self, path: &Path, change: libc::c_uint) -> Result<()> {
        let name = c_path(path)?;
        let how = change | libc::FAN_MARK_IGNORED_MASK | libc::FAN_MARK_IGNORED_SURV_MODIFY;
        for group in [Some(&self.by_handle), self.by_inode.as_ref()].into_iter().flatten() {
            // SAFETY: the path ends in a NUL and outlives the call.
            let rc = unsafe {
                libc::fanotify_mark(
                    group.as_raw_fd(),
                    how,
                    libc::FAN_OPEN_EXEC,
                    libc::AT_FDCWD,
                    name.as_ptr(),
                )
            };
            if rc != 0 {
                return Err(Error::last_os("hear no more of", path.shown().to_string()));
            }
        }
        Ok(())
    }

    /// The file itself, neither read nor executed. Its mount is busy as long as this is open.
    fn open(&self, file: &ExecutedFile) -> Result<OwnedFd> {
        let what = || "a file by its handle".to_owned();
        let system = self.systems.iter().find(|s| s.id == file.fs && file.kind != BY_INODE);
        let system = system.ok_or_else(|| Error::io("open", what(), ErrorKind::Unsupported.into()))?;
        let mount = File::open(&system.mount_point).map_err(|e| Error::io("open", what(), e))?;
        // `struct file_handle`: how many bytes, the kind, the bytes.
        let mut handle = Vec::with_capacity(8 + HANDLE);
        handle.extend(u32::from(file.len).to_ne_bytes());
        handle.extend(file.kind.to_ne_bytes());
        handle.extend(file.bytes);
        // SAFETY: the handle has the bytes that it says, the descriptor is open, and both outlive the call, which only
        // reads them.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                mount.as_raw_fd(),
                handle.as_ptr(),
                libc::O_PATH | libc::O_CLOEXEC,
            )
        };
        match libc::c_int::try_from(fd) {
            // SAFETY: the kernel just gave us this descriptor, nobody else has it.
            Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
            _ => Err(Error::last_os("open", what())),
        }
    }

    /// By what events would name this file, links resolved. Several: which one depends on its file system.
    pub fn ids_of(path: &Path) -> Result<Vec<ExecutedFile>> {
        let meta = path.metadata().map_err(|e| Error::io("stat", path.shown().to_string(), e))?;
        let mut ids = vec![ExecutedFile::of_inode(meta.dev(), meta.ino())];
        ids.extend(handle_of(path).map(|(_, id)| id));
        Ok(ids)
    }

    /// Waits until there is something to hear; false when `limit` passed or a signal came.
    pub fn wait(&self, limit: Duration) -> Result<bool> {
        let fds = [Some(&self.by_handle), self.by_inode.as_ref()];
        let fds: Vec<_> = fds.into_iter().flatten().map(AsFd::as_fd).collect();
        crate::helper::any_is_readable(&fds, Some(limit)).map_err(|e| Error::io("wait for", "fanotify", e))
    }

    /// Tells everything that has been heard, without waiting.
    pub fn hear(&self, tell: &mut dyn FnMut(Heard)) -> Result<()> {
        let told = |fs| self.systems.iter().find(|s| s.told == fs).map_or(fs, |s| s.id);
        let mut known = |heard| {
            tell(match heard {
                Heard::Exec { file, pid } => {
                    Heard::Exec { file: ExecutedFile { fs: told(file.fs), ..file }, pid }
                }
                Heard::Overflow => heard,
            });
        };
        drain(&self.by_handle, &mut known)?;
        self.by_inode.as_ref().map_or(Ok(()), |group| drain(group, tell))
    }
}

fn group(report: u32) -> Result<File> {
    let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | report;
    let opened = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_LARGEFILE | libc::O_NOATIME;
    // SAFETY: takes no pointers; the second argument is of the descriptors that come with events.
    let fd = unsafe { libc::fanotify_init(flags, opened as u32) };
    if fd < 0 {
        return Err(Error::last_os("listen to starts with", "fanotify"));
    }
    // SAFETY: the kernel just gave us this descriptor, nobody else has it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// A path that leads to what is open.
fn in_procfs(opened: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()))
}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|e| Error::io("name", path.shown().to_string(), e.into()))
}

fn mark(group: &File, mount_point: &Path) -> Result<()> {
    let path = c_path(mount_point)?;
    let how = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
    // SAFETY: the path ends in a NUL and outlives the call.
    let rc = unsafe {
        libc::fanotify_mark(group.as_raw_fd(), how, libc::FAN_OPEN_EXEC, libc::AT_FDCWD, path.as_ptr())
    };
    if rc == 0 { Ok(()) } else { Err(Error::last_os("hear of starts on", mount_point.shown().to_string())) }
}

/// The handle by which events would name the file, and the number that its file system has there, where the watch was
/// asked for at this path; `None` where its file system has no handles.
fn handle_of(path: &Path) -> Option<(u64, ExecutedFile)> {
    let fs = rustix::fs::statfs(path).ok()?;
    // SAFETY: `fsid_t` is two numbers of 32 bits, as the kernel's `__kernel_fsid_t`; every bit pattern is one.
    let fsid: [u32; 2] = unsafe { std::mem::transmute_copy(&fs.f_fsid) };
    let name = c_path(path).ok()?;
    // `struct file_handle`: how many bytes there is room for, the kind, the bytes.
    let mut handle = [0_u32; 2 + HANDLE / 4];
    let mut mount = 0_i32;
    for flags in [AT_HANDLE_FID | libc::AT_SYMLINK_FOLLOW, libc::AT_SYMLINK_FOLLOW] {
        *handle.first_mut()? = HANDLE as u32;
        // SAFETY: the name ends in a NUL; `handle` has room for the header and the `HANDLE` bytes that it says; all
        // live across the call.
        let rc = unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                libc::AT_FDCWD,
                name.as_ptr(),
                handle.as_mut_ptr(),
                &raw mut mount,
                flags,
            )
        };
        if rc == 0 {
            let bytes: Vec<u8> = handle.iter().flat_map(|word| word.to_ne_bytes()).collect();
            let told = fs_number(fsid);
            let id = parse_handle(told, &bytes)?;
            return Some((told, ExecutedFile { fs: id.fs ^ subvolume(&id), ..id }));
        }
    }
    None
}

/// What statfs(2) mixes into the number of a btrfs for the subvolume of a file (fs/btrfs/super.c, `btrfs_statfs`):
/// events have the number with that of the directory at which the watch was asked for. The handle tells the
/// subvolume anyway (fs/btrfs/export.h, `struct btrfs_fid`).
fn subvolume(id: &ExecutedFile) -> u64 {
    /// `FILEID_BTRFS_WITHOUT_PARENT` and its kin (include/linux/exportfs.h).
    const BTRFS: std::ops::RangeInclusive<i32> = 0x4d..=0x4f;
    let root = id.bytes.get(8..16).filter(|_| BTRFS.contains(&id.kind) && id.len >= 16);
    let root = root.and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    root.rotate_right(32)
}

fn fs_number([a, b]: [u32; 2]) -> u64 {
    u64::from(a) | u64::from(b) << 32
}

/// `struct file_handle` in these bytes.
fn parse_handle(fs: u64, bytes: &[u8]) -> Option<ExecutedFile> {
    let len = u32_at(bytes, 0)? as usize;
    let kind = u32_at(bytes, 4)?.cast_signed();
    ExecutedFile::new(fs, kind, bytes.get(8..)?.get(..len)?)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn drain(mut group: &File, tell: &mut dyn FnMut(Heard)) -> Result<()> {
    let mut buffer = [0_u8; BUFFER];
    loop {
        let got = match group.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(got) => got,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(Error::io("read events of", "fanotify", e)),
        };
        let mut rest = buffer.get(..got).unwrap_or_default();
        while let Some(event) = ExecEvent::parse(rest) {
            if let Some(heard) = event.heard() {
                tell(heard);
            }
            rest = rest.get(event.bytes.len()..).unwrap_or_default();
        }
    }
}

/// `struct fanotify_event_metadata` and what follows it.
struct ExecEvent<'a> {
    mask: u64,
    opened: Option<File>,
    pid: i32,
    /// All of it, header included.
    bytes: &'a [u8],
}

impl<'a> ExecEvent<'a> {
    const HEADER: usize = size_of::<libc::fanotify_event_metadata>();

    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let len = u32_at(bytes, 0)? as usize;
        let bytes = bytes.get(..len).filter(|b| b.len() >= Self::HEADER)?;
        // SAFETY: there are as many bytes as the structure has, which is plain numbers; it may be unaligned.
        let head = unsafe { bytes.as_ptr().cast::<libc::fanotify_event_metadata>().read_unaligned() };
        // SAFETY: the kernel opened this descriptor for us with the event, which is parsed once.
        let opened = (head.fd >= 0).then(|| File::from(unsafe { OwnedFd::from_raw_fd(head.fd) }));
        Some(Self { mask: head.mask, opened, pid: head.pid, bytes })
    }

    fn heard(&self) -> Option<Heard> {
        if self.mask & libc::FAN_Q_OVERFLOW != 0 {
            return Some(Heard::Overflow);
        }
        let file = match &self.opened {
            Some(file) => file.metadata().ok().map(|m| ExecutedFile::of_inode(m.dev(), m.ino()))?,
            None => file_of(self.bytes.get(Self::HEADER..)?)?,
        };
        Some(Heard::Exec { file, pid: self.pid })
    }
}

/// The first `struct fanotify_event_info_fid` in these records: type, padding, length, file system, handle.
fn file_of(mut records: &[u8]) -> Option<ExecutedFile> {
    while let [kind, _, a, b, ..] = records {
        let len = usize::from(u16::from_ne_bytes([*a, *b]));
        let record = records.get(..len).filter(|r| !r.is_empty())?;
        if *kind == libc::FAN_EVENT_INFO_TYPE_FID {
            let fs = fs_number([u32_at(record, 4)?, u32_at(record, 8)?]);
            return parse_handle(fs, record.get(12..)?);
        }
        records = records.get(len..)?;
    }
    None
}

#[cfg(test)]
mod tests;
