//! `/proc/PID/mountinfo`.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use cold_model::{Dev, Shown as _, path_text};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::ProcFs;
use crate::{Error, Result};

/// One line of `mountinfo` (proc(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Device of the file system as `st_dev` reports it, except on btrfs and overlayfs.
    pub dev: Dev,
    /// The directory of the file system that is mounted.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Options of the mount, as printed.
    pub options: String,
    /// File system type (`ext4`).
    pub fs_type: String,
    /// Source (`/dev/vda`), as printed.
    pub source: String,
    /// Options of the file system itself (`rw,discard,lowerdir=…`), as printed.
    pub super_options: String,
}

impl ProcFs {
    /// All mounts this process sees, in the kernel's order (later ones cover earlier ones).
    pub fn mounts(&self) -> Result<Vec<Mount>> {
        Ok(path_text::encode_bytes(&self.read_bytes("self/mountinfo")?)
            .lines()
            .filter_map(parse_line)
            .collect())
    }

    /// The mount that holds `path` (an absolute, resolved path): the longest mount point that is a
    /// prefix; among equals the latest, which covers the others.
    pub fn mount_of(&self, path: &Path) -> Result<Option<Mount>> {
        Ok(self
            .mounts()?
            .into_iter()
            .filter(|m| path.starts_with(&m.mount_point))
            .max_by_key(|m| m.mount_point.components().count()))
    }
}

/// Tells when the mounts that this process sees have changed.
#[derive(Debug)]
pub struct MountEvents {
    /// `/proc/self/mountinfo`: poll(2) says POLLERR and POLLPRI once after each change (proc(5)).
    file: File,
}

impl MountEvents {
    /// Changes from now on.
    pub fn new(proc: &ProcFs) -> Result<Self> {
        let path = proc.path("self/mountinfo");
        let file = File::open(&path).map_err(|e| Error::io("open", path.shown().to_string(), e))?;
        Ok(Self { file })
    }

    /// Whether there was one since the last time that this was asked; yes where it cannot be told.
    pub fn changed(&self) -> bool {
        let mut polled = [PollFd::new(&self.file, PollFlags::PRI)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(rustix::event::poll(&mut polled, Some(&at_once)), Ok(0))
    }
}

fn parse_line(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let l: Vec<&str> = left.split(' ').collect();
    let r: Vec<&str> = right.split(' ').collect();
    Some(Mount {
        dev: Dev::parse(l.get(2)?)?,
        root: unescape(l.get(3)?),
        mount_point: unescape(l.get(4)?),
        options: (*l.get(5)?).to_owned(),
        fs_type: (*r.first()?).to_owned(),
        source: unescape(r.get(1)?).to_string_lossy().into_owned(),
        super_options: r.get(2).copied().unwrap_or_default().to_owned(),
    })
}

/// Undoes the kernel's octal escapes of blank, tab, newline, backslash and (in sources) `#`, in a text of
/// [`path_text`]: the kernel writes no other backslash.
fn unescape(s: &str) -> PathBuf {
    let text = path_text::decode_bytes(s);
    let mut rest = &text[..];
    let mut name = Vec::with_capacity(rest.len());
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = match rest.get(..4) {
            Some(b"\\040") => Some(b' '),
            Some(b"\\011") => Some(b'\t'),
            Some(b"\\012") => Some(b'\n'),
            Some(b"\\043") => Some(b'#'),
            Some(b"\\134") => Some(b'\\'),
            _ => None,
        };
        name.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { rest.get(4..).unwrap_or_default() } else { tail };
    }
    OsString::from_vec(name).into()
}

#[cfg(test)]
mod tests;
