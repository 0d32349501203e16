//! Saving which pages of files are cached, and bringing the cache back to exactly these pages.
//!
//! The format is in docs/formats/cache-snapshot.md; a snapshot file is untrusted on
//! read. [`capture`] looks, [`restore()`] evicts what the snapshot does not have, reads what it has, and
//! looks again, page by page.

mod codec;
mod restore;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cold_model::Bytes;
use cold_model::FileId;
use cold_sys::page::page_size;
use cold_sys::residency::{PageMap, PageRun};

#[cfg(feature = "fuzzing")]
pub(crate) use codec::seal;
pub use codec::{CodecError, MAX_BYTES, VERSION};
pub use restore::{Difference, LeftAlone, RestoreReport, restore};

use crate::{Error, Progress, Result, ScanOptions};

/// The cached pages of one file, and which file it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    /// Absolute path without symbolic links.
    pub path: PathBuf,
    /// Identity at the time.
    pub id: FileId,
    /// Size in bytes at the time.
    pub size: u64,
    /// Modification time: seconds since 1970 and nanoseconds.
    pub mtime: (i64, u32),
    /// Runs of resident pages, ascending, not touching each other.
    pub runs: Vec<PageRun>,
}

/// The cached pages of several files at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Bytes per page on the machine that saved it.
    pub page_size: u32,
    /// When it was saved: seconds since 1970.
    pub created: u64,
    /// The files, also those without a cached page, sorted by path.
    pub files: Vec<SnapshotFile>,
}

/// What a [`capture`] could not include.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CaptureGaps {
    /// Files whose residency the kernel does not tell this user, with their size.
    pub unknown: Vec<(PathBuf, Bytes)>,
    /// Paths in the trees that were not looked at.
    pub skipped: Vec<crate::Skipped>,
    /// Files that vanished or failed between the listing and the look, with the reason.
    pub failed: Vec<(PathBuf, String)>,
}

impl SnapshotFile {
    /// Pages of the file.
    fn pages(&self) -> u64 {
        self.size.div_ceil(page_size())
    }
    /// The resident pages as a set.
    fn map(&self) -> PageMap {
        PageMap::from_runs(self.pages(), self.runs.iter().copied())
    }
    /// Number of resident pages, of [`Snapshot::page_size`] bytes each.
    pub fn resident(&self) -> u64 {
        self.runs.iter().map(|r| r.pages).sum()
    }
}

impl Snapshot {
    /// Resident bytes (whole pages).
    pub fn resident(&self) -> Bytes {
        Bytes(self.files.iter().map(SnapshotFile::resident).sum::<u64>() * u64::from(self.page_size))
    }

    /// Writes the snapshot to `path`, complete or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        let written = cold_sys::whole::write(path, cold_sys::whole::Ownership::Result, &self.encode());
        written.map_err(|cause| Error::Path { path: path.to_owned(), cause })
    }

    /// Reads a snapshot file; its content is not trusted.
    pub fn load(path: &Path) -> Result<Self> {
        let (file, _) = cold_sys::open::regular(path, true)?;
        let damaged = |cause| Error::Snapshot { path: path.to_owned(), cause };
        let read = cold_sys::open::content(&file, MAX_BYTES);
        let bytes = read.map_err(|cause| Error::Path { path: path.to_owned(), cause })?;
        let bytes = bytes.ok_or_else(|| damaged(CodecError::TooLarge))?;
        let snapshot = Self::decode(&bytes).map_err(damaged)?;
        if u64::from(snapshot.page_size) != page_size() {
            return Err(damaged(CodecError::PageSize(snapshot.page_size)));
        }
        Ok(snapshot)
    }
}

/// Looks which pages of all files below `roots` are in the cache. Files without cached pages are part
/// of the snapshot: a restore takes their pages out.
pub fn capture(
    roots: &[PathBuf],
    options: ScanOptions,
    progress: &dyn Progress,
) -> Result<(Snapshot, CaptureGaps)> {
    let canonical =
        |p: &PathBuf| std::fs::canonicalize(p).map_err(|cause| Error::Path { path: p.clone(), cause });
    let roots: Vec<PathBuf> = roots.iter().map(canonical).collect::<Result<_>>()?;
    let scan = crate::scan(&roots, options, progress)?;
    let mut gaps = CaptureGaps { skipped: scan.skipped.clone(), ..CaptureGaps::default() };
    let mut files = Vec::new();
    for (path, scanned) in scan.files() {
        // A link inside the tree that was followed: the snapshot names the file itself.
        let path = if options.follow { std::fs::canonicalize(&path).unwrap_or(path) } else { path };
        match look(&path, scanned.cached() == Some(0)) {
            Ok(Some(file)) => files.push(file),
            Ok(None) => gaps.unknown.push((path, Bytes(scanned.size))),
            Err(e) => gaps.failed.push((path, e.to_string())),
        }
    }
    files.sort_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
    let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let page_size = u32::try_from(page_size()).unwrap_or(4096);
    Ok((Snapshot { page_size, created, files }, gaps))
}

/// One file's entry; `None` when the kernel does not tell. A file known to be absent is not asked
/// page by page.
fn look(path: &Path, absent: bool) -> Result<Option<SnapshotFile>> {
    let (file, meta) = cold_sys::open::regular(path, false)?;
    let runs = if absent {
        Vec::new()
    } else {
        match PageMap::of(&file, &meta)? {
            Some(map) => map.runs().collect(),
            None => return Ok(None),
        }
    };
    Ok(Some(SnapshotFile {
        path: path.to_owned(),
        id: FileId::of(&meta),
        size: meta.len(),
        mtime: (meta.mtime(), u32::try_from(meta.mtime_nsec()).unwrap_or(0)),
        runs,
    }))
}

#[cfg(test)]
mod tests;
