//! Taking files out of the page cache, with proof: what stayed, and why.
//!
//! Every file is looked at again after the eviction, with cachestat or mincore. For those that stayed,
//! the pages that processes have mapped are read from `/proc/PID/pagemap`, so that a reason names the
//! process and the number of its pages. What the kernel does not tell about a file is `unknown`.

pub(crate) mod explain;

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cold_model::Bytes;
use cold_model::FileId;
use cold_sys::evict::{DropCaches, drop_caches, evict_file, sync_all, sync_fs};
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;
use cold_sys::reclaim::{ReclaimReport, ReclaimRoot, reclaim_mapped};
use cold_sys::residency::{PageMap, cached_pages};

use crate::{Error, Result};

/// A file to evict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvictTarget {
    /// Its path; symbolic links are followed.
    pub path: PathBuf,
    /// When given, the file must still be this one; another at the same path is an [`EvictReport::failed`].
    pub id: Option<FileId>,
}

/// Time for the reclaim of mapped pages: 0.12 to 0.22 s on an idle machine; on a busy one more does not
/// help, and hurts whoever needs those pages.
const RECLAIM_LIMIT: Duration = Duration::from_millis(500);

/// How to evict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Method {
    /// First write dirty data of the targets' file systems (without targets: of all) and drop all clean
    /// caches of the machine (root). Without it, file by file.
    pub drop_caches: bool,
    /// Then reclaim pages that processes map, through memory cgroups (root, no swap); only when a
    /// target stayed because it is mapped, or when there are no targets.
    pub reclaim_mapped: bool,
    /// How long to try again with pages that are busy (in a CPU's batch, being written or read).
    pub patience: Duration,
}

impl Method {
    /// File by file; needs no root.
    pub const FILES: Self =
        Self { drop_caches: false, reclaim_mapped: false, patience: Duration::from_millis(200) };
    /// Everything clean and unmapped on the machine; needs root.
    pub const ALL: Self = Self { drop_caches: true, ..Self::FILES };
    /// Everything, mapped pages included; needs root, a memory cgroup and no swap.
    pub const ALL_AND_MAPPED: Self = Self { reclaim_mapped: true, ..Self::ALL };
}

/// Why pages of a file stayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A process has them mapped.
    Mapped {
        /// Process id, as `/proc` names it.
        pid: i32,
        /// Its `comm`, at most 15 bytes.
        name: String,
        /// Pages of the cache that it maps; unknown where its pagemap could not be read.
        pages: Option<u64>,
        /// Bytes it has locked with mlock.
        locked: u64,
    },
    /// Mapped by nobody, but beside mapped pages: parts of a large folio, which leaves as a whole.
    LargeFolio {
        /// Resident pages of the file, mapped by nobody, that can share a folio with a mapped one.
        pages: u64,
    },
    /// Changed and not written (a read-only or failing store).
    Dirty {
        /// Dirty pages of the whole file, by cachestat(2).
        pages: u64,
    },
    /// Being written to storage when it was looked at.
    Writeback {
        /// Pages of the whole file under writeback, by cachestat(2).
        pages: u64,
    },
    /// The file lives in memory (tmpfs, ramfs, hugetlbfs): nothing to evict to.
    InMemory,
    /// It backs a loop device.
    Loop {
        /// The kernel's name of the device (`loop0`).
        device: String,
    },
    /// It is active swap.
    Swap,
    /// None of the above: in a CPU's LRU batch, being read, or pinned by I/O. `uninspected` processes
    /// could not be asked.
    Busy {
        /// Pages that no other reason explains.
        pages: u64,
        /// Processes that may map them but could not be inspected.
        uninspected: u64,
    },
}

/// A file of which pages stayed in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stayed {
    /// Path under which it was opened.
    pub path: PathBuf,
    /// Device and inode of the file that was opened there.
    pub id: FileId,
    /// Pages that stayed.
    pub pages: u64,
    /// Why, the largest share first; never empty.
    pub reasons: Vec<Reason>,
}

impl Stayed {
    /// Bytes that stayed (whole pages).
    pub fn bytes(&self) -> Bytes {
        Bytes(self.pages * page_size())
    }
    /// The processes that map the file, as `name[pid]`.
    pub fn mapped_by(&self) -> Vec<String> {
        let name = |r: &Reason| match r {
            Reason::Mapped { pid, name, .. } => Some(format!("{name}[{pid}]")),
            _ => None,
        };
        self.reasons.iter().filter_map(name).collect()
    }
}

/// What an [`evict`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EvictReport {
    /// Distinct files looked at.
    pub files: u64,
    /// Cached bytes before, of the files the kernel tells about.
    pub before: Bytes,
    /// Files with pages left, the largest first.
    pub stayed: Vec<Stayed>,
    /// Files that were asked to leave but whose residency the kernel does not tell this user, with their size.
    pub unknown: Vec<(PathBuf, Bytes)>,
    /// Files that could not be opened or evicted, with the reason.
    pub failed: Vec<(PathBuf, String)>,
    /// What reclaim did, when it was used.
    pub reclaim: Option<ReclaimReport>,
    /// Cached bytes of the files when reclaim began. The kernel remembers what it reclaims, other than what is dropped:
    /// read again, these count as refaults. All there can be where no file was named.
    pub reclaimed: Bytes,
    /// How long it took.
    pub took: Duration,
}

impl EvictReport {
    /// Bytes that stayed.
    pub fn stayed_bytes(&self) -> Bytes {
        self.stayed.iter().map(Stayed::bytes).sum()
    }
    /// Bytes of files whose residency is unknown.
    pub fn unknown_bytes(&self) -> Bytes {
        self.unknown.iter().map(|u| u.1).sum()
    }
    /// Every file is proved to be out of the cache.
    pub fn is_clean(&self) -> bool {
        self.stayed.is_empty() && self.unknown.is_empty() && self.failed.is_empty()
    }
}

/// Says why the pages of these files are in the cache, as after an [`evict`], without evicting. Files
/// without cached pages, and those that cannot be opened or are not told about, are left out.
pub fn stayed(paths: impl IntoIterator<Item = PathBuf>) -> Result<Vec<Stayed>> {
    let mut left = Vec::new();
    for path in paths {
        let Ok((file, meta)) = cold_sys::open::regular(&path, true) else { continue };
        if let Ok(Some(pages @ 1..)) = cached_pages(&file, &meta) {
            left.push(Left { path, id: FileId::of(&meta), file, meta, pages, only: None });
        }
    }
    let explained = explain::explain(&ProcFs::default(), Path::new("/sys"), left)?;
    Ok(sorted(explained))
}

fn sorted(explained: Vec<(Left, Vec<Reason>)>) -> Vec<Stayed> {
    let mut stayed: Vec<Stayed> = explained
        .into_iter()
        .map(|(l, reasons)| Stayed { path: l.path, id: l.id, pages: l.pages, reasons })
        .collect();
    stayed.sort_by(|a, b| b.pages.cmp(&a.pages).then_with(|| a.path.cmp(&b.path)));
    stayed
}

/// An open file that still has pages.
pub(crate) struct Left {
    pub(crate) path: PathBuf,
    pub(crate) id: FileId,
    pub(crate) file: File,
    pub(crate) meta: Metadata,
    pub(crate) pages: u64,
    /// The pages to be explained; all resident ones when `None`.
    pub(crate) only: Option<PageMap>,
}

/// Evicts `targets` and proves it. Files named twice (also by hard links) count once.
///
/// Fails as a whole only when a requested root-only step is refused; trouble with single files is in
/// the report.
pub fn evict(targets: &[EvictTarget], method: Method) -> Result<EvictReport> {
    let started = Instant::now();
    let proc = ProcFs::default();
    let reclaim = if method.reclaim_mapped { Some(reclaim_root(&proc)?) } else { None };
    let mut report = EvictReport::default();
    if method.drop_caches {
        report.before = count_and_sync(targets)?;
        drop_all(&proc)?;
    }
    let mut left = first_pass(targets, &mut report, !method.drop_caches);
    // Two short looks before the processes are searched: most batches are drained by then.
    for wait in [1, 4] {
        left = again(left, Duration::from_millis(wait), &mut report);
    }
    let mut explained = explain::explain(&proc, Path::new("/sys"), left)?;
    if let Some(root) = reclaim {
        let mapped = |e: &[(Left, Vec<Reason>)]| e.iter().any(|x| has_mapped(&x.1));
        if targets.is_empty() || mapped(&explained) {
            let mut files: Vec<Left> = explained.into_iter().map(|e| e.0).collect();
            let cached = files.iter().fold(0_u64, |sum, left| sum.saturating_add(left.pages));
            report.reclaimed =
                if targets.is_empty() { Bytes(u64::MAX) } else { Bytes(cached.saturating_mul(page_size())) };
            report.reclaim = Some(reclaim_mapped(&root, 3, RECLAIM_LIMIT, || {
                files = again(std::mem::take(&mut files), Duration::ZERO, &mut report);
                files.is_empty() && !targets.is_empty()
            }));
            // Reclaim may leave what it has just unmapped: those pages can be dropped now.
            files = again(files, Duration::ZERO, &mut report);
            explained = explain::explain(&proc, Path::new("/sys"), files)?;
        }
    }
    // Pages without a lasting reason are given time, as long as they become fewer.
    let (hopeful, lasting): (Vec<_>, Vec<_>) = explained.into_iter().partition(|e| may_still_go(&e.1));
    explained = lasting;
    if !hopeful.is_empty() {
        let files = hopeful.into_iter().map(|e| e.0).collect();
        let files = wait_for(files, started + method.patience, &mut report);
        explained.extend(explain::explain(&proc, Path::new("/sys"), files)?);
    }
    report.stayed = sorted(explained);
    report.took = started.elapsed();
    Ok(report)
}

fn has_mapped(reasons: &[Reason]) -> bool {
    reasons.iter().any(|r| matches!(r, Reason::Mapped { .. }))
}

/// Whether waiting can help: busy or being written, and not on behalf of a holder.
fn may_still_go(reasons: &[Reason]) -> bool {
    reasons.iter().any(|r| matches!(r, Reason::Busy { .. } | Reason::Writeback { .. } | Reason::Dirty { .. }))
}

fn reclaim_root(proc: &ProcFs) -> Result<ReclaimRoot> {
    if proc.meminfo()?.get("SwapTotal").copied().unwrap_or(0) > 0 {
        return Err(Error::SwapActive);
    }
    ReclaimRoot::find(&proc.mounts()?).ok_or(Error::NoReclaim)
}

fn drop_all(proc: &ProcFs) -> Result<()> {
    drop_caches(proc, DropCaches::All)
        .map_err(|cause| Error::NeedsRoot { what: "dropping all caches of the machine", cause })
}

/// Cached bytes of the targets, as far as they are told. Writes the dirty data of their file systems;
/// without targets that of the whole machine, which waits for its slowest disk (minutes, measured with
/// 400 MiB dirty on a slow test disk).
fn count_and_sync(targets: &[EvictTarget]) -> Result<Bytes> {
    if targets.is_empty() {
        sync_all();
    }
    let (mut seen, mut synced) = (HashSet::new(), HashSet::new());
    let mut pages = 0;
    for target in targets {
        // What cannot be opened is reported by the first pass.
        let Ok((file, meta)) = cold_sys::open::regular(&target.path, true) else { continue };
        let id = FileId::of(&meta);
        if seen.insert(id) {
            pages += cached_pages(&file, &meta)?.unwrap_or(0);
        }
        if synced.insert(id.dev) {
            sync_fs(&file)?;
        }
    }
    Ok(Bytes(pages * page_size()))
}

/// Opens, evicts and counts every target once; returns those with pages left.
fn first_pass(targets: &[EvictTarget], report: &mut EvictReport, count_before: bool) -> Vec<Left> {
    let mut seen = HashSet::new();
    let mut left = Vec::new();
    for target in targets {
        let path = &target.path;
        let (file, meta) = match cold_sys::open::regular(path, true) {
            Ok(opened) => opened,
            Err(e) => {
                report.failed.push((path.clone(), e.to_string()));
                continue;
            }
        };
        let id = FileId::of(&meta);
        if target.id.is_some_and(|wanted| wanted != id) {
            report.failed.push((path.clone(), "another file is at this path now".to_owned()));
            continue;
        }
        if !seen.insert(id) {
            continue;
        }
        report.files += 1;
        match evict_file(&file, &meta, &[]) {
            Ok(done) => {
                if count_before {
                    report.before += Bytes(done.before.unwrap_or(0) * page_size());
                }
                match done.after {
                    Some(0) => {}
                    Some(pages) => left.push(Left { path: path.clone(), id, file, meta, pages, only: None }),
                    None => report.unknown.push((path.clone(), Bytes(meta.len()))),
                }
            }
            Err(e) => report.failed.push((path.clone(), e.to_string())),
        }
    }
    left
}

/// Tries again after ever longer pauses until nothing is left, `deadline` is over, or three pauses in a
/// row (8, 16, 32 ms at first) changed nothing.
fn wait_for(mut left: Vec<Left>, deadline: Instant, report: &mut EvictReport) -> Vec<Left> {
    let pages = |left: &[Left]| left.iter().map(|l| l.pages).sum::<u64>();
    let (mut wait, mut stuck) = (Duration::from_millis(8), 0);
    while !left.is_empty() && stuck < 3 && Instant::now() < deadline {
        let before = pages(&left);
        left = again(left, wait, report);
        stuck = if pages(&left) < before { 0 } else { stuck + 1 };
        wait *= 2;
    }
    left
}

/// Waits once, tries every file again, and returns those with pages left.
fn again(left: Vec<Left>, wait: Duration, report: &mut EvictReport) -> Vec<Left> {
    if left.is_empty() {
        return left;
    }
    std::thread::sleep(wait);
    let mut still = Vec::new();
    for mut l in left {
        match evict_file(&l.file, &l.meta, &[]) {
            Ok(done) if done.after == Some(0) => {}
            Ok(done) => {
                l.pages = done.after.unwrap_or(l.pages);
                still.push(l);
            }
            Err(e) => report.failed.push((l.path, e.to_string())),
        }
    }
    still
}

#[cfg(test)]
mod tests;
