//! Bringing the cache back to the pages of a snapshot.
//!
//! Exactness comes from three things: reads through a descriptor with `POSIX_FADV_RANDOM` bring in the
//! pages asked for and no others (no readahead, folios of one page); pages too many are dropped again,
//! by run, and with the whole file when a large folio straddles a run; and every file is compared page by
//! page afterwards, and again until it is equal or the rounds are over.

use std::fmt;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use cold_model::Bytes;
use cold_model::FileId;
use cold_sys::evict::{
    advise_dontneed, advise_dontneed_run, advise_random, evict_file, read_run, start_reading,
};
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;
use cold_sys::residency::{PageMap, cachestat};

use super::{Snapshot, SnapshotFile};
use crate::evict::{Left, Reason, explain};
use crate::{Progress, Result};

/// Threads that read at once: enough to keep a disk's queue filled with small files.
const READERS: usize = 8;

/// How often a file is corrected: others may drop or read the same pages at the same time.
const ROUNDS: u32 = 5;

/// A file whose pages are not those of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Absolute path, as the snapshot has it.
    pub path: PathBuf,
    /// Pages of the snapshot that are not in the cache.
    pub missing: u64,
    /// Pages in the cache that the snapshot does not have.
    pub extra: u64,
    /// Why the extra pages stayed.
    pub reasons: Vec<Reason>,
    /// The error that stopped the correction, if there was one.
    pub error: Option<String>,
}

/// Why a file of a snapshot was left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftAlone {
    /// It is not what it was: in which way.
    Changed(&'static str),
    /// It is gone, or cannot be read: an error that names it.
    Refused(String),
}

impl fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Changed(why) => why,
            Self::Refused(error) => error,
        })
    }
}

/// What a [`restore`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestoreReport {
    /// Files whose pages are now exactly those of the snapshot.
    pub identical: u64,
    /// Bytes that the snapshot wants in the cache, of files that still are what they were.
    pub wanted: Bytes,
    /// Bytes read to bring missing pages, those that were read again included.
    pub read: Bytes,
    /// Bytes evicted, over all rounds: a page that came back meanwhile counts again.
    pub evicted: Bytes,
    /// Files that are not what they were, gone or unreadable, with the reason; left as they are.
    pub changed: Vec<(PathBuf, LeftAlone)>,
    /// Files whose residency the kernel does not tell this user; left as they are.
    pub unknown: Vec<PathBuf>,
    /// Files that could not be brought to the saved pages.
    pub different: Vec<Difference>,
}

impl RestoreReport {
    /// Every file of the snapshot has exactly the saved pages.
    pub fn is_exact(&self) -> bool {
        self.changed.is_empty() && self.unknown.is_empty() && self.different.is_empty()
    }
}

/// A file after an attempt.
enum Attempt {
    Identical,
    Unknown,
    Changed(LeftAlone),
    Different { missing: u64, extra: PageMap, error: Option<String> },
}

struct Job<'a> {
    snapshot: &'a Snapshot,
    read: AtomicU64,
    evicted: AtomicU64,
    progress: &'a dyn Progress,
    total: u64,
}

/// Makes the cache hold exactly the pages of `snapshot`, for the files that are in it. Files that
/// changed since are left alone and named.
pub fn restore(snapshot: &Snapshot, progress: &dyn Progress) -> Result<RestoreReport> {
    let total = snapshot.resident().0;
    let job = Job { snapshot, read: AtomicU64::new(0), evicted: AtomicU64::new(0), progress, total };
    let mut open: Vec<usize> = (0..snapshot.files.len()).collect();
    // By path, so that one file after the other and each from its start is read.
    open.sort_by_key(|i| snapshot.files.get(*i).map(|f| f.path.as_os_str()));
    let mut report = RestoreReport::default();
    let mut last: Vec<(usize, Attempt)> = Vec::new();
    for round in 0..ROUNDS {
        if open.is_empty() {
            break;
        }
        if round > 0 {
            std::thread::sleep(Duration::from_millis(5 << round));
        }
        last.clear();
        for (i, attempt) in job.round(&open) {
            match attempt {
                Attempt::Different { .. } => last.push((i, attempt)),
                Attempt::Identical => {
                    report.identical += 1;
                    report.wanted += job.wanted(i);
                }
                Attempt::Unknown => report.unknown.extend(job.path(i)),
                Attempt::Changed(why) => report.changed.extend(job.path(i).map(|p| (p, why))),
            }
        }
        open = last.iter().map(|l| l.0).collect();
    }
    for (i, attempt) in last {
        report.wanted += job.wanted(i);
        report.different.extend(job.difference(i, attempt)?);
    }
    report.read = Bytes(job.read.load(Ordering::Relaxed));
    report.evicted = Bytes(job.evicted.load(Ordering::Relaxed));
    Ok(report)
}

impl Job<'_> {
    fn path(&self, i: usize) -> Option<PathBuf> {
        self.snapshot.files.get(i).map(|f| f.path.clone())
    }

    fn wanted(&self, i: usize) -> Bytes {
        Bytes(self.snapshot.files.get(i).map_or(0, SnapshotFile::resident) * page_size())
    }

    /// Corrects all of `open` once, in parallel, taken in order; results in that order.
    fn round(&self, open: &[usize]) -> Vec<(usize, Attempt)> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::with_capacity(open.len()));
        let read = || {
            // One request of at most 1 MiB; exact, because readahead is off.
            let mut buffer = vec![0; 1 << 20];
            while let Some(i) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                let Some(file) = self.snapshot.files.get(*i) else { continue };
                let attempt = self.correct(file, &mut buffer);
                if let Ok(mut results) = results.lock() {
                    results.push((*i, attempt));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..READERS.min(open.len()) {
                // Where the kernel refuses a thread, the others read; this one does in any case.
                let _ = std::thread::Builder::new().spawn_scoped(scope, read);
            }
            read();
        });
        let mut results = results.into_inner().unwrap_or_default();
        results.sort_by_key(|r: &(usize, Attempt)| r.0);
        results
    }

    /// Evicts what is too much in one file, reads what is missing, and looks.
    fn correct(&self, saved: &SnapshotFile, buffer: &mut [u8]) -> Attempt {
        let (file, meta) = match cold_sys::open::regular(&saved.path, false) {
            Ok(opened) => opened,
            Err(e) => return Attempt::Changed(LeftAlone::Refused(e.to_string())),
        };
        if let Some(why) = changed(saved, &meta) {
            return Attempt::Changed(LeftAlone::Changed(why));
        }
        // Most files of a large tree are absent now and were then: one call tells.
        if saved.runs.is_empty() && matches!(cachestat(&file, 0, 0), Ok(Some(s)) if s.cached == 0) {
            return Attempt::Identical;
        }
        let want = saved.map();
        let error = match self.bring(&file, &meta, &want, buffer) {
            Ok(true) => None,
            Ok(false) => return Attempt::Unknown,
            Err(e) => Some(e.to_string()),
        };
        match PageMap::of(&file, &meta) {
            Ok(Some(now)) if now == want => Attempt::Identical,
            Ok(Some(now)) => {
                Attempt::Different { missing: want.minus(&now).resident(), extra: now.minus(&want), error }
            }
            Ok(None) => Attempt::Unknown,
            Err(e) => Attempt::Changed(LeftAlone::Refused(e.to_string())),
        }
    }

    /// One correction; false when the kernel does not tell what is there.
    fn bring(&self, file: &File, meta: &Metadata, want: &PageMap, buffer: &mut [u8]) -> Result<bool> {
        let Some(before) = PageMap::of(file, meta)? else { return Ok(false) };
        let extra = before.minus(want);
        if extra.resident() > 0 {
            drop_extra(file, meta, &extra, want)?;
            self.evicted.fetch_add(extra.resident() * page_size(), Ordering::Relaxed);
        }
        let Some(now) = PageMap::of(file, meta)? else { return Ok(false) };
        let missing = want.minus(&now);
        if missing.resident() > 0 {
            advise_random(file)?;
            for run in missing.runs() {
                start_reading(file, run)?;
            }
            for run in missing.runs() {
                let got = read_run(file, run, buffer)?;
                let done = self.read.fetch_add(got, Ordering::Relaxed) + got;
                self.progress.bytes(done, self.total);
            }
            // Some file systems fill whole compressed blocks; their surplus pages are single and can go.
            if let Some(after) = PageMap::of(file, meta)? {
                for run in after.minus(want).runs() {
                    advise_dontneed_run(file, run)?;
                }
            }
        }
        Ok(true)
    }

    /// What is wrong with a file after the last round, with reasons for its extra pages.
    fn difference(&self, i: usize, attempt: Attempt) -> Result<Option<Difference>> {
        let (Attempt::Different { missing, extra, error }, Some(path)) = (attempt, self.path(i)) else {
            return Ok(None);
        };
        let pages = extra.resident();
        let mut reasons = Vec::new();
        if pages > 0
            && let Ok((file, meta)) = cold_sys::open::regular(&path, false)
        {
            let id = FileId::of(&meta);
            let left = Left { path: path.clone(), id, file, meta, pages, only: Some(extra) };
            let explained = explain::explain(&ProcFs::default(), Path::new("/sys"), vec![left])?;
            reasons = explained.into_iter().flat_map(|e| e.1).collect();
        }
        Ok(Some(Difference { path, missing, extra: pages, reasons, error }))
    }
}

/// Drops pages that should not be there: run by run, so that the good ones need no second read; when
/// that does not suffice (dirty, or a large folio reaches beyond its run), with the whole file.
fn drop_extra(file: &File, meta: &Metadata, extra: &PageMap, want: &PageMap) -> Result<()> {
    if want.resident() == 0 {
        evict_file(file, meta, &[])?;
        return Ok(());
    }
    for run in extra.runs() {
        advise_dontneed_run(file, run)?;
    }
    let left = PageMap::of(file, meta)?.is_some_and(|now| now.minus(want).resident() > 0);
    if left {
        evict_file(file, meta, &[])?;
        advise_dontneed(file)?;
    }
    Ok(())
}

/// How the file differs from the one that was saved.
fn changed(saved: &SnapshotFile, meta: &Metadata) -> Option<&'static str> {
    if FileId::of(meta) != saved.id {
        Some("replaced by another file since the snapshot")
    } else if meta.len() != saved.size {
        Some("its size changed since the snapshot")
    } else if (meta.mtime(), meta.mtime_nsec()) != (saved.mtime.0, i64::from(saved.mtime.1)) {
        Some("it was modified since the snapshot")
    } else {
        None
    }
}
