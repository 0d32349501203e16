//! `/sys` below a root directory. See sysfs(5) and Documentation/ABI/ in the kernel tree.

mod block;
mod identity;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub use block::{BlockDevice, BlockKind};

use cold_model::Shown as _;

use crate::{Error, Result};

/// A `/sys` file system, or a directory that looks like one.
#[derive(Debug, Clone)]
pub struct SysFs {
    root: PathBuf,
}

impl Default for SysFs {
    fn default() -> Self {
        Self::new("/sys")
    }
}

impl SysFs {
    /// Reads below `root` (`/sys`, or a fake tree).
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The path of `rel` below the root.
    pub fn path(&self, rel: impl AsRef<Path>) -> PathBuf {
        self.root.join(rel)
    }

    /// The trimmed text of an attribute; `None` when this kernel or device does not have it.
    pub fn read_opt(&self, rel: impl AsRef<Path>) -> Result<Option<String>> {
        let path = self.path(rel);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned())),
            // A removed device answers ENODEV, an attribute the driver does not back EINVAL.
            Err(e)
                if e.kind() == ErrorKind::NotFound
                    || matches!(e.raw_os_error(), Some(libc::ENODEV | libc::EINVAL)) =>
            {
                Ok(None)
            }
            Err(e) => Err(Error::io("read", path.shown().to_string(), e)),
        }
    }

    /// The names in a directory, sorted; empty when it does not exist.
    pub fn list(&self, rel: impl AsRef<Path>) -> Result<Vec<String>> {
        let path = self.path(rel);
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("list", path.shown().to_string(), e)),
        };
        let mut names: Vec<String> =
            entries.filter_map(|e| Some(e.ok()?.file_name().to_string_lossy().into_owned())).collect();
        names.sort();
        Ok(names)
    }

    /// The value in brackets of an attribute like `always [madvise] never`.
    pub fn chosen(text: &str) -> Option<&str> {
        text.split_once('[')?.1.split_once(']').map(|(chosen, _)| chosen)
    }
}
