//! Taking pages out of the page cache, and putting exact ones in. Mechanism only.
//!
//! `POSIX_FADV_DONTNEED` silently skips pages that are dirty, under writeback, locked, mapped by any
//! process, or parked in another CPU's LRU batch (it drains those batches once itself and tries again,
//! mm/fadvise.c). So success is never assumed: look at the residency afterwards.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use cold_model::Shown as _;

use crate::page::page_size;
use crate::procfs::ProcFs;
use crate::residency::{PageRun, cached_pages, cachestat};
use crate::{Error, Result};

/// What `/proc/sys/vm/drop_caches` drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropCaches {
    /// Clean, unmapped pages of every file.
    PageCache = 1,
    /// Dentries, inodes and other reclaimable slab objects.
    Slab = 2,
    /// Both at once.
    All = 3,
}

/// Pages of a file before and after an eviction; `None` is unknown to this user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEviction {
    /// Cached pages before.
    pub before: Option<u64>,
    /// Cached pages after the last attempt.
    pub after: Option<u64>,
}

/// Asks the kernel to drop every page of the file, once. The range 0,0 means the whole file with its
/// partial last page and large folios that reach beyond the end.
pub fn advise_dontneed(file: &File) -> Result<()> {
    advise(file, 0, 0, libc::POSIX_FADV_DONTNEED, "drop the cached pages of")
}

/// Drops a run of whole pages; a large folio that is only partly inside stays whole.
pub fn advise_dontneed_run(file: &File, run: PageRun) -> Result<()> {
    let page = page_size();
    advise(file, run.first * page, run.pages * page, libc::POSIX_FADV_DONTNEED, "drop pages of")
}

/// Turns readahead off for reads through this descriptor.
pub fn advise_random(file: &File) -> Result<()> {
    advise(file, 0, 0, libc::POSIX_FADV_RANDOM, "turn off readahead for")
}

/// Reads through this descriptor, and mappings made of it, read ahead twice as far as usual.
pub fn advise_sequential(file: &File) -> Result<()> {
    advise(file, 0, 0, libc::POSIX_FADV_SEQUENTIAL, "double readahead for")
}

/// Takes back [`advise_random`] and [`advise_sequential`].
pub fn advise_normal(file: &File) -> Result<()> {
    advise(file, 0, 0, libc::POSIX_FADV_NORMAL, "set usual readahead for")
}

/// Starts reading exactly these pages without waiting. Such a call reads at most the device's largest
/// request and says nothing when it cuts (mm/readahead.c, `force_page_cache_ra`), so it is made in chunks
/// of 128 KiB, below every device's limit.
pub fn start_reading(file: &File, run: PageRun) -> Result<()> {
    const CHUNK: u64 = 128 << 10;
    let (mut at, end) = (run.first * page_size(), run.end() * page_size());
    while at < end {
        let len = CHUNK.min(end - at);
        advise(file, at, len, libc::POSIX_FADV_WILLNEED, "start reading")?;
        at += len;
    }
    Ok(())
}

fn advise(file: &File, offset: u64, len: u64, advice: i32, action: &'static str) -> Result<()> {
    let fd = file.as_raw_fd();
    let (offset, len) = (offset.cast_signed(), len.cast_signed());
    // SAFETY: no pointers; the descriptor is open.
    let rc = unsafe { libc::posix_fadvise(fd, offset, len, advice) };
    match rc {
        0 => Ok(()),
        e => Err(Error::io(action, format!("descriptor {fd}"), io::Error::from_raw_os_error(e))),
    }
}

/// Writes dirty pages of the file (where there are any, or where the kernel does not tell), drops its
/// pages and counts what is left. Each of `waits` is one more attempt after that pause, made only
/// while pages are known to be left: those in another CPU's batch or under writeback go then.
pub fn evict_file(file: &File, meta: &std::fs::Metadata, waits: &[Duration]) -> Result<FileEviction> {
    let stat = cachestat(file, 0, 0)?;
    let before = match stat {
        Some(s) => Some(s.cached),
        None => cached_pages(file, meta)?,
    };
    if before == Some(0) {
        return Ok(FileEviction { before, after: before });
    }
    // A file system that cannot sync (EINVAL, EROFS) has nothing to write either; pages that stay dirty
    // show up in the count below, so neither result matters.
    match stat {
        Some(s) if s.dirty + s.writeback > 0 => drop(file.sync_data()),
        Some(_) => {}
        None => write_pages(file),
    }
    advise_dontneed(file)?;
    let mut after = cached_pages(file, meta)?;
    for wait in waits {
        if after.is_none_or(|n| n == 0) {
            break;
        }
        std::thread::sleep(*wait);
        advise_dontneed(file)?;
        after = cached_pages(file, meta)?;
    }
    Ok(FileEviction { before, after })
}

/// Writes dirty pages and waits, without the flush of the device's own cache that `fdatasync` would cost
/// for every clean file (1000 foreign files at a flush each).
fn write_pages(file: &File) {
    let all =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: no pointers; the descriptor is open. 0,0 is the whole file.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, all) };
}

/// Drops clean caches of the whole machine (root only). Dirty pages stay: call [`sync_all`] before.
pub fn drop_caches(proc: &ProcFs, what: DropCaches) -> Result<()> {
    let path = proc.path("sys/vm/drop_caches");
    let text = format!("{}\n", what as u8);
    crate::knob::write(&path, &text).map_err(|e| Error::io("write", path.shown().to_string(), e))
}

/// Writes all dirty data of the machine and waits for it (sync(2)).
pub fn sync_all() {
    // SAFETY: sync has no preconditions and cannot fail.
    unsafe { libc::sync() };
}

/// Writes all dirty data of the file system that holds `file` and waits for it.
pub fn sync_fs(file: &File) -> Result<()> {
    let fd = file.as_raw_fd();
    // SAFETY: no pointers; the descriptor is open.
    match unsafe { libc::syncfs(fd) } {
        0 => Ok(()),
        _ => Err(Error::last_os("sync the file system of", format!("descriptor {fd}"))),
    }
}

/// Reads a run of pages through the cache into `buffer` (which is the size of one request). On a
/// descriptor with [`advise_random`] exactly these pages come in. Returns the bytes read: fewer than
/// the run when the file ends earlier.
pub fn read_run(file: &File, run: PageRun, buffer: &mut [u8]) -> Result<u64> {
    let mut at = run.first * page_size();
    let end = run.end() * page_size();
    let start = at;
    while at < end {
        let want = (buffer.len() as u64).min(end - at) as usize;
        let Some(part) = buffer.get_mut(..want) else { break };
        match file.read_at(part, at) {
            Ok(0) => break,
            Ok(n) => at += n as u64,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("read", format!("offset {at}"), e)),
        }
    }
    Ok(at - start)
}

#[cfg(test)]
mod tests;
