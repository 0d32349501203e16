//! What a page fault maps beside the page that was touched.
//!
//! Fault-around maps cached neighbours within a window (`fault_around_bytes`); some kernels also map all of
//! a large folio, whatever the window (files since Linux 6.18, tmpfs earlier). Which one this is shows in
//! the page tables after one touch.

use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::page::{page_size, pages_of};
use crate::procfs::{MapEntry, ProcFs};
use crate::residency::{PageMap, PageRun};
use crate::{Error, Result};
use cold_model::Dev;

/// Pages of a file that are tried.
const TRIES: usize = 4;
/// Largest file that is tried, in bytes: the page tables of a mapping are read whole.
const LARGEST: u64 = 256 << 20;
/// Bits of `/proc/kpageflags`: the first page of a folio of several, and the others.
const HEAD: u64 = 1 << 15;
const TAIL: u64 = 1 << 16;
const COMPOUND: u64 = HEAD | TAIL;

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

/// Maps part of the file, never to be dereferenced: pages are touched by madvise, which answers with an error where
/// a load would end in SIGBUS. Nothing is read ahead of them, should they have gone away meanwhile.
fn mapped(file: &File, offset: u64, bytes: u64) -> Result<MmapRaw> {
    let map = MmapOptions::new().offset(offset).len(bytes as usize).map_raw_read_only(file);
    let map = map.map_err(|e| Error::io("map", format!("descriptor {}", file.as_raw_fd()), e))?;
    let _ = map.advise(Advice::Random);
    Ok(map)
}

/// Maps the file, touches one page, and looks at the page tables.
fn touch(file: &File, bytes: u64, page: u64) -> Result<Touched> {
    let map = mapped(file, 0, pages_of(bytes) * page_size())?;
    let (start, touched) = (map.as_ptr() as u64, page * page_size());
    if map.advise_range(Advice::PopulateRead, touched as usize, page_size() as usize).is_err() {
        // Nothing is mapped, so nothing is learnt.
        return Ok(Touched { mapped: Vec::new(), large: None });
    }
    let entry = MapEntry {
        start,
        end: start + map.len() as u64,
        perms: *b"r--s",
        offset: 0,
        dev: Dev::default(),
        inode: 0,
        path: None,
        deleted: false,
    };
    let proc = ProcFs::default();
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let large = in_large_folio(&proc, (start + touched) / page_size());
    Ok(Touched { mapped: proc.file_pages_of_mapping(own, &entry)?, large })
}

/// `/proc/kpageflags`, for page numbers of our address space.
struct Flags {
    own: File,
    all: File,
    /// The last block that was read: its first frame, a word each.
    block: (u64, Vec<u64>),
}

impl Flags {
    /// Frames that are looked at together: as many as a page table has entries of eight bytes, so that the largest
    /// folio lies in one block, because folios begin at multiples of their size.
    fn block() -> u64 {
        page_size() / 8
    }

    fn open(proc: &ProcFs) -> Option<Self> {
        let open = |path: &str| File::open(proc.path(path)).ok();
        Some(Self { own: open("self/pagemap")?, all: open("kpageflags")?, block: (0, Vec::new()) })
    }

    /// The frame of a page of ours; `None` for everybody but root, and where nothing is mapped.
    fn frame(&self, page: u64) -> Option<u64> {
        const FRAME: u64 = (1 << 55) - 1;
        let mut bytes = [0; 8];
        self.own.read_exact_at(&mut bytes, page * 8).ok()?;
        Some(u64::from_ne_bytes(bytes) & FRAME).filter(|frame| *frame != 0)
    }

    fn of(&mut self, frame: u64) -> Option<u64> {
        let first = frame - frame % Self::block();
        if self.block.0 != first || self.block.1.is_empty() {
            let mut bytes = vec![0; 8 * Self::block() as usize];
            let n = self.all.read_at(&mut bytes, first * 8).ok()?;
            let words = bytes.get(..n)?.chunks_exact(8);
            self.block =
                (first, words.map(|w| u64::from_ne_bytes(w.try_into().unwrap_or_default())).collect());
        }
        self.block.1.get((frame - first) as usize).copied()
    }

    fn has(&mut self, frame: u64, bits: u64) -> bool {
        self.of(frame).is_some_and(|flags| flags & bits != 0)
    }

    /// Pages of the folio before this frame's, and all of its pages.
    fn folio(&mut self, frame: u64) -> Option<(u64, u64)> {
        if self.of(frame)? & COMPOUND == 0 {
            return Some((0, 1));
        }
        let mut head = frame;
        while self.has(head, TAIL) && head > 0 {
            head -= 1;
        }
        let mut end = head + 1;
        while self.has(end, TAIL) {
            end += 1;
        }
        Some((frame - head, end - head))
    }
}

/// Whether the page at this page number of our address space belongs to a folio of several pages.
fn in_large_folio(proc: &ProcFs, page: u64) -> Option<bool> {
    let mut flags = Flags::open(proc)?;
    let frame = flags.frame(page)?;
    Some(flags.of(frame)? & COMPOUND != 0)
}

/// The folios that hold these pages of a file (sorted), as sorted runs of pages; pages that are not cached are in
/// none. Reads nothing from the disk: only what is cached is touched, in a mapping of our own.
///
/// `None` to everybody but root (`/proc/kpageflags`), where the kernel does not tell what is cached, and before
/// Linux 5.14.
pub fn folios(file: &File, meta: &Metadata, pages: &[u64]) -> Result<Option<Vec<PageRun>>> {
    let proc = ProcFs::default();
    let Some(mut flags) = Flags::open(&proc) else { return Ok(None) };
    let Some(cached) = PageMap::of(file, meta)? else { return Ok(None) };
    let mut folios: Vec<PageRun> = Vec::new();
    let mut refused = false;
    let mut pages = pages.iter().copied().peekable();
    for run in cached.runs() {
        while let Some(page) = pages.next_if(|page| *page < run.end()) {
            if page < run.first || folios.last().is_some_and(|folio| page < folio.end()) {
                continue;
            }
            match looked_up(file, page, &mut flags)? {
                Some((before, pages)) => folios.push(PageRun { first: page.saturating_sub(before), pages }),
                None => refused = true,
            }
        }
    }
    // A single page may have gone meanwhile.
    Ok((!refused || !folios.is_empty()).then_some(folios))
}

/// Of a cached page: the pages of its folio before it, and all of them. `None`: gone meanwhile, or not told.
fn looked_up(file: &File, page: u64, flags: &mut Flags) -> Result<Option<(u64, u64)>> {
    let map = mapped(file, page * page_size(), page_size())?;
    if map.advise(Advice::PopulateRead).is_err() {
        return Ok(None);
    }
    Ok(flags.frame(map.as_ptr() as u64 / page_size()).and_then(|frame| flags.folio(frame)))
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
        if cold_model::kernel::faults_map_whole_folios(&release) {
            // Where its file system has no large folios, nothing can be learnt.
            assert_ne!(answer, Some(false));
        } else {
            assert_eq!(answer, None, "files of a disk since 6.18 only");
        }
        // With a window wider than the file nothing is beyond it.
        assert_eq!(maps_whole_folios(&large, &meta, 8 << 20).expect("asked"), None);
    }

    #[test]
    fn folios_of_cached_pages_are_told_to_root() {
        let (small, meta) = file(4096);
        let told = folios(&small, &meta, &[0, 1, 7, 1023]).expect("asked");
        let (large, large_meta) = file(4 << 20);
        let of_large = folios(&large, &large_meta, &[5, 600, 1 << 40]).expect("asked");
        if !crate::caps::is_root() {
            assert_eq!((told, of_large), (None, None), "frames are shown to root only");
            return;
        }
        let singles = [0, 1, 7, 1023].map(|first| PageRun { first, pages: 1 });
        // Where a write of one page makes a larger folio, it begins at a multiple of its size.
        for (folio, single) in told.expect("told").iter().zip(singles) {
            assert!(folio.first <= single.first && single.first < folio.end());
            assert!(folio.pages.is_power_of_two() && folio.first.is_multiple_of(folio.pages));
        }
        for (folio, page) in of_large.expect("told").iter().zip([5, 600]) {
            assert!(folio.first <= page && page < folio.end() && folio.pages.is_power_of_two());
        }
    }

    #[test]
    fn pages_beyond_the_window_on_both_sides() {
        let run = |first, pages| PageRun { first, pages };
        assert!(!reaches(&run(10, 1), 10, 1));
        assert!(reaches(&run(9, 2), 10, 1) && reaches(&run(10, 2), 10, 1));
        assert!(!reaches(&run(0, 16), 8, 16) && reaches(&run(0, 30), 8, 16));
    }
}
