//! `/proc` below a root directory, parsed into plain values. See proc(5).
//!
//! Own readers instead of the `procfs` crate, because tests need a fake root and the wait for a
//! process tree polls these files.

mod cpu;
mod machine;
mod memory;
mod mounts;
mod net;
mod pagemap;
mod process;
mod system;

use std::path::{Path, PathBuf};

pub use machine::{LoadAverage, Lock, Swap};
pub use memory::{MapEntry, MapUse, parse_maps, parse_smaps};
pub use mounts::{Mount, MountEvents};
pub use process::{Fd, InCgroup, Stat};
pub use system::{CpuTimes, DiskStat, Pressure, PressureLine};

use cold_model::Shown as _;

use crate::{Error, Result};

/// A `/proc` file system, or a directory that looks like one.
#[derive(Debug, Clone)]
pub struct ProcFs {
    root: PathBuf,
}

impl Default for ProcFs {
    fn default() -> Self {
        Self::new("/proc")
    }
}

impl ProcFs {
    /// Reads below `root` (`/proc`, or a fake tree).
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
    /// The path of `rel` below the root.
    pub fn path(&self, rel: impl AsRef<Path>) -> PathBuf {
        self.root.join(rel)
    }
    /// The text of `rel`; bytes that are not UTF-8 are replaced.
    pub fn read(&self, rel: impl AsRef<Path>) -> Result<String> {
        Ok(String::from_utf8_lossy(&self.read_bytes(rel)?).into_owned())
    }
    /// What `rel` holds: where names of files stand in it, nothing may be replaced.
    pub(crate) fn read_bytes(&self, rel: impl AsRef<Path>) -> Result<Vec<u8>> {
        let path = self.path(rel);
        // Room from the start: these files say they are empty, and reading them in bits that grow from 32
        // bytes makes the kernel write the text anew for each.
        let mut bytes = Vec::with_capacity(16 << 10);
        std::fs::File::open(&path)
            .and_then(|mut file| std::io::Read::read_to_end(&mut file, &mut bytes))
            .map_err(|e| Error::io("read", path.shown().to_string(), e))?;
        Ok(bytes)
    }
    pub(crate) fn parse_error(&self, rel: &str, text: &str, expected: &'static str) -> Error {
        Error::Parse { file: self.path(rel), text: text.chars().take(120).collect(), expected }
    }
}

#[cfg(test)]
mod tests;
