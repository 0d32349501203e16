//! `/proc/PID/pagemap` (Documentation/admin-guide/mm/pagemap.rst): which pages a mapping really holds.

use std::os::unix::fs::FileExt;

use cold_model::Shown as _;

use super::{MapEntry, ProcFs};
use crate::page::page_size;
use crate::residency::PageRun;
use crate::{Error, Result};

/// The page is in memory.
const PRESENT: u64 = 1 << 63;
/// It is in the swap.
const SWAPPED: u64 = 1 << 62;
/// It is a page of the file (or shared anonymous memory), not a private copy.
const FILE: u64 = 1 << 61;

impl ProcFs {
    /// The pages of the mapped file that the page tables of `pid` hold through `map`, as runs of the
    /// file; private copies are left out. Same permission as for `maps`; no capability needed.
    pub fn file_pages_of_mapping(&self, pid: i32, map: &MapEntry) -> Result<Vec<PageRun>> {
        self.pages_of_mapping(pid, map, |entry| entry & (PRESENT | FILE) == PRESENT | FILE)
    }

    /// The pages of the mapped file of which `pid` has a private copy through `map`, because it wrote to them, as runs
    /// of the file; also those that are swapped out. Same permission as for `maps`.
    pub fn copied_pages_of_mapping(&self, pid: i32, map: &MapEntry) -> Result<Vec<PageRun>> {
        self.pages_of_mapping(pid, map, |entry| entry & (PRESENT | SWAPPED) != 0 && entry & FILE == 0)
    }

    fn pages_of_mapping(
        &self,
        pid: i32,
        map: &MapEntry,
        wanted: impl Fn(u64) -> bool,
    ) -> Result<Vec<PageRun>> {
        let path = self.path(format!("{pid}/pagemap"));
        let subject = || path.shown().to_string();
        let file = std::fs::File::open(&path).map_err(|e| Error::io("open", subject(), e))?;
        let page = page_size();
        let (mut at, end) = (map.start / page, map.end / page);
        let mut runs: Vec<PageRun> = Vec::new();
        let mut buffer = vec![0_u8; 8 * (end - at).min(8192) as usize];
        while at < end {
            let want = buffer.len().min(8 * (end - at) as usize);
            let Some(part) = buffer.get_mut(..want) else { break };
            let got = file.read_at(part, at * 8).map_err(|e| Error::io("read", subject(), e))?;
            if got < 8 {
                break;
            }
            for (i, entry) in part.chunks_exact(8).take(got / 8).enumerate() {
                let entry = u64::from_ne_bytes(entry.try_into().unwrap_or_default());
                if !wanted(entry) {
                    continue;
                }
                let first = map.offset / page + at + i as u64 - map.start / page;
                match runs.last_mut() {
                    Some(run) if run.end() == first => run.pages += 1,
                    _ => runs.push(PageRun { first, pages: 1 }),
                }
            }
            at += (got / 8) as u64;
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::fake;
    use super::*;

    /// A mapping of `pages` pages of a file from its page `offset` on, at page 10 of the address space.
    fn map(offset: u64, pages: u64) -> MapEntry {
        let page = page_size();
        let (start, end) = (10 * page, (10 + pages) * page);
        let line = format!("{start:x}-{end:x} r--p {:x} fe:00 1 /x", offset * page);
        super::super::parse_maps(line).remove(0)
    }

    /// A page table with these entries of that mapping, counted from its first page.
    fn table(entries: &[(u64, u64)]) -> (tempfile::TempDir, ProcFs) {
        let (dir, proc) = fake(&[("7/pagemap", "")]);
        let file = std::fs::File::options().write(true).open(dir.path().join("7/pagemap")).unwrap();
        for (at, entry) in entries {
            file.write_all_at(&entry.to_ne_bytes(), (10 + at) * 8).unwrap();
        }
        (dir, proc)
    }

    fn runs(found: &[(u64, u64)]) -> Vec<PageRun> {
        found.iter().map(|(first, pages)| PageRun { first: *first, pages: *pages }).collect()
    }

    #[test]
    fn only_pages_of_the_file_that_are_present_count() {
        let both = PRESENT | FILE;
        // With the number of a frame, and a bit that is none of ours.
        let (_dir, proc) = table(&[(0, both), (1, both | 5 | 1 << 55), (2, PRESENT), (3, FILE), (5, both)]);
        assert_eq!(proc.file_pages_of_mapping(7, &map(0, 6)).unwrap(), runs(&[(0, 2), (5, 1)]));
        assert_eq!(proc.copied_pages_of_mapping(7, &map(0, 6)).unwrap(), runs(&[(2, 1)]));
        assert_eq!(proc.file_pages_of_mapping(7, &map(100, 6)).unwrap(), runs(&[(100, 2), (105, 1)]));
        assert_eq!(proc.file_pages_of_mapping(7, &map(0, 1)).unwrap(), runs(&[(0, 1)]), "not beyond it");
        assert_eq!(proc.file_pages_of_mapping(7, &map(0, 0)).unwrap(), []);
    }

    #[test]
    fn a_run_goes_on_from_one_piece_of_the_table_to_the_next() {
        let both = PRESENT | FILE;
        let (_dir, proc) = table(&[(8191, both), (8192, both), (16_384, both), (19_999, both)]);
        let expected = runs(&[(8191, 2), (16_384, 1), (19_999, 1)]);
        assert_eq!(proc.file_pages_of_mapping(7, &map(0, 20_000)).unwrap(), expected);
    }

    #[test]
    fn a_table_that_ends_early_tells_what_it_holds() {
        let (dir, proc) = table(&[(0, PRESENT | FILE), (1, PRESENT | FILE)]);
        let file = std::fs::File::options().write(true).open(dir.path().join("7/pagemap")).unwrap();
        // Half of an entry is none.
        file.set_len(11 * 8 + 4).unwrap();
        assert_eq!(proc.file_pages_of_mapping(7, &map(0, 20_000)).unwrap(), runs(&[(0, 1)]));
        let error = proc.file_pages_of_mapping(8, &map(0, 1)).unwrap_err().to_string();
        assert!(error.contains("8/pagemap: No such file"), "{error}");
    }

    #[test]
    fn a_private_copy_is_no_page_of_the_file() {
        let page = page_size();
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        file.write_all_at(&vec![7; 8 * page as usize], 0).unwrap();
        // SAFETY: nobody else knows the file.
        let mut mapped = unsafe { memmap2::MmapOptions::new().map_copy(&file) }.unwrap();
        if let Err(e) = mapped.advise(memmap2::Advice::PopulateRead) {
            eprintln!("SKIPPED (needs Linux 5.14): {e}");
            return;
        }
        let (proc, own) = (ProcFs::default(), i32::try_from(std::process::id()).unwrap());
        let of_it = |mapped: &[u8]| {
            let maps = proc.maps(own).unwrap();
            let entry = maps.iter().find(|m| m.start == mapped.as_ptr() as u64).unwrap();
            proc.file_pages_of_mapping(own, entry).unwrap()
        };
        assert_eq!(of_it(&mapped), runs(&[(0, 8)]));
        mapped[3 * page as usize] = 1;
        assert_eq!(of_it(&mapped), runs(&[(0, 3), (4, 4)]));
        let maps = proc.maps(own).unwrap();
        let entry = maps.iter().find(|m| m.start == mapped.as_ptr() as u64).unwrap();
        assert_eq!(proc.copied_pages_of_mapping(own, entry).unwrap(), runs(&[(3, 1)]));
    }
}
