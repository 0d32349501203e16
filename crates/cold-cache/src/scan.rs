//! Residency of whole trees, in parallel.
//!
//! Per file: `openat` relative to its directory, `fstat`, `cachestat`, `close`; no mapping, no vector
//! (mincore only on kernels without cachestat). Symbolic links are not followed and file systems not
//! crossed unless asked; special files are never opened, directories that are mount triggers are never
//! entered; a file with several links, or reached over several paths, counts once.

mod walk;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cold_model::Bytes;
use cold_model::FileId;
use cold_sys::page::page_size;
use cold_sys::residency::CacheStat;

use crate::{Progress, Result};

/// What to scan beyond the plain tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScanOptions {
    /// Follow symbolic links found in trees (named paths are always followed).
    pub follow: bool,
    /// Enter other file systems.
    pub cross_device: bool,
}

/// Pages of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residency {
    /// The kernel told.
    Told(CacheStat),
    /// Told by mincore, which knows no dirty pages.
    Resident(u64),
    /// The kernel does not tell this user.
    Unknown,
}

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScannedFile {
    /// Name within its directory.
    pub name: OsString,
    /// Device and inode: what makes two links one file.
    pub id: FileId,
    /// Size in bytes.
    pub size: u64,
    /// Its cached pages, as far as this user is told.
    pub residency: Residency,
}

impl ScannedFile {
    /// Cached pages, if told.
    pub fn cached(&self) -> Option<u64> {
        match self.residency {
            Residency::Told(s) => Some(s.cached),
            Residency::Resident(n) => Some(n),
            Residency::Unknown => None,
        }
    }
    /// Dirty pages and those being written, if told.
    pub fn dirty(&self) -> Option<u64> {
        match self.residency {
            Residency::Told(s) => Some(s.dirty + s.writeback),
            Residency::Resident(_) | Residency::Unknown => None,
        }
    }
}

/// The files directly in one directory (or one named file in its parent).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScannedDir {
    /// Index of the named path it was reached from.
    pub root: usize,
    /// Path of the directory.
    pub path: PathBuf,
    /// The tree lives in memory (tmpfs, ramfs): resident, but not evictable.
    pub in_memory: bool,
    /// Its regular files.
    pub files: Vec<ScannedFile>,
}

/// Why something in a tree was not looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skipped {
    /// It could not be opened or listed.
    Unreadable {
        /// The entry, or the directory whose list could not be read to its end.
        path: PathBuf,
        /// The kernel's words.
        reason: String,
    },
    /// A directory on another file system.
    OtherDevice {
        /// The directory, which was not entered.
        path: PathBuf,
    },
    /// A file system without a page cache (proc, sysfs, …) or a mount trigger; its files are not opened.
    NoPageCache {
        /// The directory, which was not listed.
        path: PathBuf,
    },
}

/// Result of a [`scan`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// Directories with their files, sorted by path.
    pub dirs: Vec<ScannedDir>,
    /// What was not looked at.
    pub skipped: Vec<Skipped>,
    /// FIFOs, sockets, devices and (unless followed) symbolic links that were passed by.
    pub special: u64,
    /// Further links to files that were counted already.
    pub repeated: u64,
}

/// Sums over files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Regular files that were looked at; further links to one count in [`Scan::repeated`].
    pub files: u64,
    /// Sum of their sizes, holes included.
    pub size: Bytes,
    /// Whole pages in the cache, of files that are told.
    pub resident: Bytes,
    /// Dirty or being written, of files that are told.
    pub dirty: Bytes,
    /// Files whose residency is unknown.
    pub unknown_files: u64,
    /// Sum of the sizes of these files.
    pub unknown: Bytes,
}

/// By what files of a scan are put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOrder {
    /// Most cached bytes first; what is unknown comes behind the known ones and before the absent ones, as it may matter.
    Resident,
    /// Largest first.
    Size,
    /// Most dirty bytes first.
    Dirty,
    /// By path.
    Path,
}

impl FileOrder {
    fn compare(self, a: &ScannedFile, b: &ScannedFile) -> std::cmp::Ordering {
        let weight = |f: &ScannedFile| f.cached().map_or(1, |pages| pages * 2);
        match self {
            Self::Resident => (weight(b), b.size).cmp(&(weight(a), a.size)),
            Self::Size => b.size.cmp(&a.size),
            Self::Dirty => b.dirty().cmp(&a.dirty()),
            Self::Path => std::cmp::Ordering::Equal,
        }
    }

    /// Puts trees in this order; by path they stay as they are.
    pub fn sort_trees(self, trees: &mut [(PathBuf, Totals)]) {
        match self {
            Self::Resident => trees.sort_by_key(|t| std::cmp::Reverse(t.1.resident)),
            Self::Size => trees.sort_by_key(|t| std::cmp::Reverse(t.1.size)),
            Self::Dirty => trees.sort_by_key(|t| std::cmp::Reverse(t.1.dirty)),
            Self::Path => {}
        }
    }
}

impl Scan {
    /// The first `most` files in this order, equal ones by path.
    pub fn first(&self, order: FileOrder, most: usize) -> Vec<(&ScannedDir, &ScannedFile)> {
        let mut files: Vec<(&ScannedDir, &ScannedFile)> =
            self.dirs.iter().flat_map(|dir| dir.files.iter().map(move |file| (dir, file))).collect();
        let compare = |a: &(&ScannedDir, &ScannedFile), b: &(&ScannedDir, &ScannedFile)| {
            order.compare(a.1, b.1).then_with(|| (&a.0.path, &a.1.name).cmp(&(&b.0.path, &b.1.name)))
        };
        if most < files.len() {
            files.select_nth_unstable_by(most, compare);
            files.truncate(most);
        }
        files.sort_by(compare);
        files
    }
}

impl Totals {
    /// Bytes of the files whose residency is told.
    pub fn told(&self) -> Bytes {
        self.size.saturating_sub(self.unknown)
    }

    /// There are files, and of none is told what is cached.
    pub fn nothing_is_told(&self) -> bool {
        self.told().0 == 0 && self.unknown_files > 0
    }

    /// Adds one file.
    pub fn add(&mut self, file: &ScannedFile) {
        self.files += 1;
        self.size += Bytes(file.size);
        if let Some(pages) = file.cached() {
            self.resident += Bytes(pages * page_size());
        } else {
            self.unknown_files += 1;
            self.unknown += Bytes(file.size);
        }
        self.dirty += Bytes(file.dirty().unwrap_or(0) * page_size());
    }
    /// Adds other sums.
    pub fn merge(&mut self, other: &Self) {
        self.files += other.files;
        self.size += other.size;
        self.resident += other.resident;
        self.dirty += other.dirty;
        self.unknown_files += other.unknown_files;
        self.unknown += other.unknown;
    }
}

impl Scan {
    /// Every file with its path.
    pub fn files(&self) -> impl Iterator<Item = (PathBuf, &ScannedFile)> {
        self.dirs.iter().flat_map(|d| d.files.iter().map(|f| (d.path.join(&f.name), f)))
    }
    /// Sums over everything.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.dirs.iter().flat_map(|d| &d.files).for_each(|f| totals.add(f));
        totals
    }
    /// Sums per directory down to `depth` levels below each of `roots` (0: the named paths alone),
    /// deeper ones included in them; by path. Named files stand for themselves.
    pub fn trees(&self, roots: &[PathBuf], depth: usize) -> Vec<(PathBuf, Totals)> {
        let mut trees: std::collections::BTreeMap<PathBuf, Totals> = std::collections::BTreeMap::new();
        for dir in &self.dirs {
            let Some(root) = roots.get(dir.root) else { continue };
            let mut totals = Totals::default();
            dir.files.iter().for_each(|f| totals.add(f));
            let below = dir.path.strip_prefix(root).unwrap_or(Path::new(""));
            let mut at = root.clone();
            trees.entry(at.clone()).or_default().merge(&totals);
            for part in below.components().take(depth) {
                at.push(part);
                trees.entry(at.clone()).or_default().merge(&totals);
            }
        }
        trees.into_iter().collect()
    }
}

/// Scans `roots` (files or trees) with as many threads as CPUs. A named path that cannot be looked at
/// is an error; trouble further down is in [`Scan::skipped`].
pub fn scan(roots: &[PathBuf], options: ScanOptions, progress: &dyn Progress) -> Result<Scan> {
    walk::run(roots, options, progress)
}

#[cfg(test)]
mod tests;
