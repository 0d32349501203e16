//! Which pages of a file are in the page cache: mincore(2) and cachestat(2).
//!
//! Two questions with two answers:
//! - [`cachestat`] (Linux 6.5+) counts the folios of the mapping in one call, without a mapping and
//!   without a vector, and knows dirty and writeback. It also counts folios whose read is still in
//!   flight: 1024 pages right after `readahead`, of which mincore reports 0.
//! - [`PageMap::of`] (mincore) tells page by page which ones are ready to be used.
//!
//! **Truth.** Since 5.2 mincore answers "all resident" for a file that the caller neither owns nor may
//! write (`can_do_mincore`, mm/mincore.c), and since 6.12 cachestat answers EPERM for such a file.
//! [`shows_residency`] applies the kernel's rule beforehand; the functions here return `None` instead of a lie.
//!
//! **File systems.** tmpfs and ramfs keep their only copy in these pages, so all that was written is
//! resident (tmpfs pages that were swapped out are not). Files on hugetlbfs and DAX have no page cache:
//! see [`backing`].

mod page_map;

use std::fs::{File, Metadata};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;

pub use page_map::{PageMap, PageRun};

use crate::page::{page_size, pages_of};
use crate::{Error, Result};

/// Pages of a file by their state, as cachestat(2) counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStat {
    /// In the cache, including pages whose read is in flight.
    pub cached: u64,
    /// Changed and not yet being written.
    pub dirty: u64,
    /// Marked as being written to the store right now.
    pub writeback: u64,
    /// Have been in the cache and left a shadow entry (not an upper bound: shadows are reclaimed).
    pub evicted: u64,
    /// Evicted so recently that reading them again would count as a refault.
    pub recently_evicted: u64,
}

/// What keeps a file's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// A file system with a page cache over some store.
    PageCache,
    /// tmpfs, ramfs (or a memfd): the pages are the file; they cannot be evicted.
    Memory,
    /// hugetlbfs: huge pages reserved by the administrator; mincore does not see them.
    HugePages,
    /// Direct access: the store is memory itself, nothing is cached.
    Dax,
}

/// The kernel's cachestat structures (include/uapi/linux/mman.h).
#[repr(C)]
struct RawRange {
    offset: u64,
    len: u64,
}

#[repr(C)]
#[derive(Default)]
struct RawStat {
    cache: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// cachestat's number, the same on every architecture (added after the tables were unified).
const SYS_CACHESTAT: libc::c_long = 451;

/// Counts the cached pages that intersect `offset..offset+len` (bytes; `len` 0 means to the end).
///
/// `Ok(None)` when the kernel refuses to tell (EPERM: neither owned nor writable), cannot (ENOSYS
/// before 6.5), the file has no page cache in this sense (EOPNOTSUPP: hugetlbfs), or another file's pages are its
/// own (overlayfs).
pub fn cachestat(file: &File, offset: u64, len: u64) -> Result<Option<CacheStat>> {
    cachestat_fd(file.as_raw_fd(), offset, len)
}

/// [`cachestat`] for a descriptor that the caller keeps open, named in errors by its number.
pub(crate) fn cachestat_fd(fd: i32, offset: u64, len: u64) -> Result<Option<CacheStat>> {
    match ask_cachestat(fd, offset, len) {
        Ok(stat) if stat.cached == 0 && is_stacked(fd) => Ok(None),
        Ok(stat) => Ok(Some(stat)),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::EOPNOTSUPP)) => Ok(None),
        Err(e) => Err(Error::io("ask cachestat of", format!("descriptor {fd}"), e)),
    }
}

/// Whether the file lies on overlayfs: its pages are those of a file of another layer, which cachestat does not ask
/// (it looks at the overlay's own inode, which has none: 0 pages of a file of which mincore tells 168). A mapping is of
/// the other layer's file, so mincore tells the truth.
fn is_stacked(fd: i32) -> bool {
    // SAFETY: callers keep the descriptor open.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    rustix::fs::fstatfs(fd).is_ok_and(|stat| stat.f_type == libc::OVERLAYFS_SUPER_MAGIC)
}

/// The call itself, with the kernel's refusal as it is.
pub(crate) fn ask_cachestat(fd: i32, offset: u64, len: u64) -> std::io::Result<CacheStat> {
    let range = RawRange { offset, len };
    let mut raw = RawStat::default();
    // SAFETY: both pointers are to live structures of the layout the kernel documents; flags is 0.
    let rc = unsafe { libc::syscall(SYS_CACHESTAT, fd, &raw const range, &raw mut raw, 0 as libc::c_uint) };
    if rc != 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(CacheStat {
        cached: raw.cache,
        dirty: raw.dirty,
        writeback: raw.writeback,
        evicted: raw.evicted,
        recently_evicted: raw.recently_evicted,
    })
}

/// Whether the running kernel has cachestat (6.5+). Asked with a bad descriptor, which a kernel with
/// the call answers with EBADF.
pub fn has_cachestat() -> bool {
    ask_cachestat(-1, 0, 0).is_err_and(|e| e.raw_os_error() == Some(libc::EBADF))
}

/// Whether mincore will tell the truth about this file to this process: it owns the file, or has
/// `CAP_FOWNER` over it, or may write it (`can_do_mincore`: `inode_owner_or_capable` or
/// `file_permission(MAY_WRITE)`).
///
/// Stricter than the kernel where the mount is read-only for us; then the answer is "not told".
pub fn shows_residency(file: &File, meta: &Metadata) -> bool {
    // SAFETY: geteuid has no preconditions.
    let euid = unsafe { libc::geteuid() };
    euid == meta.uid() || (cap_fowner() && owner_is_mapped(meta.uid())) || may_write(file)
}

/// `CAP_FOWNER` in the effective set of this thread.
fn cap_fowner() -> bool {
    const CAP_FOWNER: u32 = 3;
    const VERSION_3: u32 = 0x2008_0522;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Default, Clone, Copy)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut data = [Data::default(); 2];
    // SAFETY: version 3 writes two Data structures, which `data` has.
    let rc = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) };
    rc == 0 && data[0].effective & (1 << CAP_FOWNER) != 0
}

/// In a user namespace a capability does not reach files whose owner has no number there; such owners
/// appear as the overflow uid 65534.
fn owner_is_mapped(uid: u32) -> bool {
    const OVERFLOW_UID: u32 = 65534;
    if uid != OVERFLOW_UID {
        return true;
    }
    // The initial namespace maps all 2^32-1 numbers, also 65534 itself ("nobody").
    std::fs::read_to_string("/proc/self/uid_map")
        .is_ok_and(|m| m.split_ascii_whitespace().eq(["0", "0", "4294967295"]))
}

/// Whether the effective user could open the file for writing.
fn may_write(file: &File) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    accessat(CWD, crate::open::held(file), Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// What keeps the pages of `file`.
pub fn backing(file: &File) -> Result<Backing> {
    const RAMFS_MAGIC: i64 = 0x8584_58f6;
    let fd = file.as_raw_fd();
    // SAFETY: statfs is plain data for which zeroes are valid; the kernel fills it.
    let mut fs: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: `fs` is a live, writable statfs.
    if unsafe { libc::fstatfs(fd, &raw mut fs) } != 0 {
        return Err(Error::last_os("ask the file system of", format!("descriptor {fd}")));
    }
    #[allow(clippy::unnecessary_cast)] // the type of f_type differs between architectures
    match fs.f_type as i64 {
        libc::TMPFS_MAGIC | RAMFS_MAGIC => return Ok(Backing::Memory),
        libc::HUGETLBFS_MAGIC => return Ok(Backing::HugePages),
        _ => {}
    }
    // SAFETY: statx is plain data for which zeroes are valid.
    let mut stx: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the path is an empty C string (AT_EMPTY_PATH means the descriptor itself).
    let rc = unsafe { libc::statx(fd, c"".as_ptr(), libc::AT_EMPTY_PATH, 0, &raw mut stx) };
    #[allow(clippy::cast_sign_loss)]
    let dax = rc == 0 && stx.stx_attributes & libc::STATX_ATTR_DAX as u64 != 0;
    Ok(if dax { Backing::Dax } else { Backing::PageCache })
}

impl PageMap {
    /// The pages of `file` that are ready in the cache, by mincore; `meta.len()` bounds the range.
    ///
    /// `Ok(None)` when the kernel would not tell the truth (see the module's head) or the file is on
    /// hugetlbfs. Touches no page. A file that shrinks meanwhile shows its lost pages as absent.
    pub fn of(file: &File, meta: &Metadata) -> Result<Option<Self>> {
        if !shows_residency(file, meta) {
            return Ok(None);
        }
        let pages = pages_of(meta.len());
        Self::of_parts(file, pages, &parts(file, pages)?)
    }

    /// What mincore answers, true or not; `Ok(None)` when the file cannot be mapped.
    pub(crate) fn as_answered(file: &File, meta: &Metadata) -> Result<Option<Self>> {
        let pages = pages_of(meta.len());
        Self::of_parts(file, pages, &[PageRun { first: 0, pages }])
    }

    fn of_parts(file: &File, pages: u64, parts: &[PageRun]) -> Result<Option<Self>> {
        let mut map = Self::new(pages);
        // A window bounds the address space and the vector (1 GiB: 262,144 bytes of vector).
        let window = (1 << 30) / page_size();
        let longest = parts.iter().map(|p| p.pages).max().unwrap_or(0);
        let mut vector = vec![0_u8; longest.min(window) as usize];
        for part in parts {
            let mut first = part.first;
            while first < part.end() {
                let pages = window.min(part.end() - first);
                let Some(answers) = vector.get_mut(..pages as usize) else { break };
                if !mincore_window(file, first, answers)? {
                    return Ok(None);
                }
                map.set_from_vector(first, answers);
                first += pages;
            }
        }
        Ok(Some(map))
    }
}

/// The parts of a file in which pages are cached, by halves: mincore asks for each page of a range, 64 s for a sparse
/// file of 8 TiB, while cachestat walks over what is cached only. The whole file where cachestat does not answer.
fn parts(file: &File, pages: u64) -> Result<Vec<PageRun>> {
    /// Below this (2 MiB) mincore costs no more than another question.
    const SMALL: u64 = 512;
    let mut found: Vec<PageRun> = Vec::new();
    let mut open = vec![PageRun { first: 0, pages }];
    while let Some(part) = open.pop() {
        if part.pages > SMALL
            && let Some(stat) = cachestat(file, part.first * page_size(), part.pages * page_size())?
            && stat.cached < part.pages / 4
        {
            if stat.cached > 0 {
                let half = part.pages / 2;
                open.push(PageRun { first: part.first + half, pages: part.pages - half });
                open.push(PageRun { first: part.first, pages: half });
            }
            continue;
        }
        match found.last_mut().filter(|last| last.end() == part.first) {
            Some(last) => last.pages += part.pages,
            None => found.push(part),
        }
    }
    Ok(found)
}

/// Asks mincore for `vector.len()` pages from page `first`; false when the file cannot be mapped
/// (no mmap on its file system).
fn mincore_window(file: &File, first: u64, vector: &mut [u8]) -> Result<bool> {
    let fd = file.as_raw_fd();
    let subject = || format!("descriptor {fd}");
    let len = vector.len() * page_size() as usize;
    let Ok(offset) = libc::off_t::try_from(first * page_size()) else { return Ok(false) };
    // SAFETY: a new mapping at an address of the kernel's choice. PROT_NONE: nothing can read it, so
    // neither a truncated file (SIGBUS) nor a page fault (which would change what is measured) is possible.
    let addr =
        unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, libc::MAP_SHARED, fd, offset) };
    if addr == libc::MAP_FAILED {
        return match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::ENODEV) => Ok(false),
            _ => Err(Error::last_os("map", subject())),
        };
    }
    // SAFETY: addr..addr+len is the mapping just made; the vector has one byte per page of it.
    let rc = unsafe { libc::mincore(addr, len, vector.as_mut_ptr()) };
    let failed = (rc != 0).then(|| Error::last_os("ask mincore of", subject()));
    // SAFETY: unmaps exactly the mapping made above, to which no reference exists.
    unsafe { libc::munmap(addr, len) };
    failed.map_or(Ok(true), Err)
}

/// Pages of `file` in the cache: by cachestat where it answers, else by mincore; `None` is unknown.
pub fn cached_pages(file: &File, meta: &Metadata) -> Result<Option<u64>> {
    if let Some(stat) = cachestat(file, 0, 0)? {
        return Ok(Some(stat.cached));
    }
    Ok(PageMap::of(file, meta)?.map(|m| m.resident()))
}

#[cfg(test)]
mod tests;
