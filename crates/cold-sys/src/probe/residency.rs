//! What cachestat(2) and mincore(2) answer this process about a file, true or not.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use cold_model::Shown as _;

use crate::residency::{PageMap, ask_cachestat};
use crate::{Error, Result, open};

/// Calls cachestat on `path` (6.5; refused with EPERM for files one neither owns nor may write since
/// 6.13). The outer error is about opening the file.
pub fn cachestat(path: &Path) -> Result<io::Result<()>> {
    let (file, _) = open::regular(path, true)?;
    Ok(ask_cachestat(file.as_raw_fd(), 0, 0).map(|_| ()))
}

/// mincore's answer about a whole file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mincore {
    /// Pages of the file.
    pub pages: u64,
    /// Pages said to be resident. For a file one neither owns nor may write, Linux 5.2 and later say
    /// "all", whatever the truth.
    pub resident: u64,
}

/// Asks mincore about `path`.
pub fn mincore(path: &Path) -> Result<Mincore> {
    let (file, meta) = open::regular(path, true)?;
    let told = PageMap::as_answered(&file, &meta)?.ok_or_else(|| {
        Error::io("map", path.shown().to_string(), io::Error::from_raw_os_error(libc::ENODEV))
    })?;
    Ok(Mincore { pages: told.pages(), resident: told.resident() })
}
