//! `/proc/PID/pagemap` (Documentation/admin-guide/mm/pagemap.rst): which pages a mapping really holds.

use std::os::unix::fs::FileExt;

use cold_model::Shown as _;

use super::{MapEntry, ProcFs};
use crate::page::page_size;
use crate::residency::PageRun;
use crate::{Error, Result};

/// The page is in memory.
const PRESENT: u64 = 1 << 63;
/// It is a page of the file (or shared anonymous memory), not a private copy.
const FILE: u64 = 1 << 61;

impl ProcFs {
    /// The pages of the mapped file that the page tables of `pid` hold through `map`, as runs of the
    /// file; private copies are left out. Same permission as for `maps`; no capability needed.
    pub fn file_pages_of_mapping(&self, pid: i32, map: &MapEntry) -> Result<Vec<PageRun>> {
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
                if entry & (PRESENT | FILE) != PRESENT | FILE {
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
