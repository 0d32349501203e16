//! What a page fault maps beside the page that was touched.
//!
//! Fault-around maps cached neighbours within a window (`fault_around_bytes`); some kernels also map all of
//! a large folio, whatever the window (files since Linux 6.18, tmpfs earlier). Which one this is shows in
//! the page tables after one touch.

use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::page::{page_size, pages_of};
use crate::procfs::{MapEntry, ProcFs};
use crate::residency::{PageMap, PageRun};
use crate::{Error, Result};

/// Pages of a file that are tried.
const TRIES: usize = 4;
/// Largest file that is tried, in bytes: the page tables of a mapping are read whole.
const LARGEST: u64 = 256 << 20;
/// Bits of `/proc/kpageflags`: the page is part of a folio of several pages.
const COMPOUND: u64 = 1 << 15 | 1 << 16;

/// Whether a fault on `file` maps pages farther away than `window` bytes (the kernel's fault-around window),
/// because it maps whole folios. Touches pages that are cached already and no others.
///
/// `None`: nothing was learnt, because the pages tried lie in folios no larger than the window, or nothing
/// is cached, or this kernel cannot be asked (before 5.14). That it does not can only be told where the
/// window is one page, and to root.
pub fn maps_whole_folios(file: &File, meta: &Metadata, window: u64) -> Result<Option<bool>> {
    if meta.len() > LARGEST {
        return Ok(None);
    }
    let Some(cached) = PageMap::of(file, meta)? else { return Ok(None) };
    let around = (window / page_size()).max(1);
    let mut learnt = None;
    for run in cached.runs().filter(|run| run.pages > around).take(TRIES) {
        let at = run.first + run.pages / 2;
        match touch(file, meta.len(), at)? {
            Touched { mapped, .. } if mapped.iter().any(|m| reaches(m, at, around)) => return Ok(Some(true)),
            Touched { large: Some(true), .. } if around == 1 => learnt = Some(false),
            Touched { .. } => {}
        }
    }
    Ok(learnt)
}

/// A run of mapped pages holds one at least `around` pages away from the one that was touched.
fn reaches(run: &PageRun, touched: u64, around: u64) -> bool {
    run.first + around <= touched || run.end() > touched + around
}

struct Touched {
    /// Pages of the file that are mapped after one was touched.
    mapped: Vec<PageRun>,
    /// Whether its folio has several pages; `None`: the kernel does not tell.
    large: Option<bool>,
}

/// Maps the file, touches one page, and looks at the page tables.
fn touch(file: &File, bytes: u64, page: u64) -> Result<Touched> {
    let fd = file.as_raw_fd();
    let subject = || format!("descriptor {fd}");
    let len = (pages_of(bytes) * page_size()) as usize;
    // SAFETY: a new mapping at an address of the kernel's choice, which is never dereferenced here: the
    // page is touched by madvise, which answers with an error where a load would end in SIGBUS.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, fd, 0) };
    if at == libc::MAP_FAILED {
        return Err(Error::last_os("map", subject()));
    }
    let start = at as u64;
    let touched = start + page * page_size();
    // SAFETY: both ranges lie within the mapping just made. RANDOM: nothing is read ahead if the page went
    // away meanwhile.
    let rc = unsafe {
        libc::madvise(at, len, libc::MADV_RANDOM);
        libc::madvise(touched as *mut libc::c_void, page_size() as usize, libc::MADV_POPULATE_READ)
    };
    let map = MapEntry {
        start,
        end: start + len as u64,
        perms: *b"r--s",
        offset: 0,
        dev: (0, 0),
        inode: 0,
        path: None,
        deleted: false,
    };
    let proc = ProcFs::default();
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    // Where populating is refused nothing is mapped, so nothing is learnt.
    let mapped = if rc == 0 { proc.file_pages_of_mapping(own, &map) } else { Ok(Vec::new()) };
    let large = if rc == 0 { in_large_folio(&proc, touched / page_size()) } else { None };
    // SAFETY: unmaps exactly the mapping made above, to which no reference exists.
    unsafe { libc::munmap(at, len) };
    Ok(Touched { mapped: mapped?, large })
}

/// Whether the page at this page number of our address space belongs to a folio of several pages.
fn in_large_folio(proc: &ProcFs, page: u64) -> Option<bool> {
    const FRAME: u64 = (1 << 55) - 1;
    let entry = |path: &str, index: u64| {
        let mut bytes = [0; 8];
        let file = File::open(proc.path(path)).ok()?;
        file.read_exact_at(&mut bytes, index * 8).ok()?;
        Some(u64::from_ne_bytes(bytes))
    };
    // 0 for everybody but root.
    let frame = entry("self/pagemap", page).map(|e| e & FRAME).filter(|frame| *frame != 0)?;
    Some(entry("kpageflags", frame)? & COMPOUND != 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(piece: usize) -> (File, Metadata) {
        // Not /tmp, which is tmpfs on many machines.
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        let bytes = vec![7; piece];
        (0..(4 << 20) / piece).for_each(|_| file.write_all(&bytes).expect("written"));
        let meta = file.metadata().expect("stat");
        (file, meta)
    }

    #[test]
    fn only_large_folios_are_mapped_beyond_the_window() {
        let window = 64 << 10;
        // A piece of one page makes a folio of one page.
        let (small, meta) = file(4096);
        assert_ne!(maps_whole_folios(&small, &meta, window).expect("asked"), Some(true));
        let (large, meta) = file(4 << 20);
        let answer = maps_whole_folios(&large, &meta, window).expect("asked");
        let release = ProcFs::default().sysctl("kernel.osrelease").expect("readable");
        let mut numbers = release.split('.').map_while(|n| n.parse::<u32>().ok());
        match numbers.next().zip(numbers.next()) {
            // Where its file system has no large folios, nothing can be learnt.
            Some(version) if version >= (6, 18) => assert_ne!(answer, Some(false)),
            _ => assert_eq!(answer, None, "files of a disk since 6.18 only"),
        }
        // With a window wider than the file nothing is beyond it.
        assert_eq!(maps_whole_folios(&large, &meta, 8 << 20).expect("asked"), None);
    }

    #[test]
    fn pages_beyond_the_window_on_both_sides() {
        let run = |first, pages| PageRun { first, pages };
        assert!(!reaches(&run(10, 1), 10, 1));
        assert!(reaches(&run(9, 2), 10, 1) && reaches(&run(10, 2), 10, 1));
        assert!(!reaches(&run(0, 16), 8, 16) && reaches(&run(0, 30), 8, 16));
    }
}
