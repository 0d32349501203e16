//! Why pages stayed: the arithmetic is pure, the evidence comes from `/proc/PID/pagemap`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use cold_model::FileId;
use cold_sys::page::page_size;
use cold_sys::procfs::ProcFs;
use cold_sys::residency::{Backing, CacheStat, PageMap, backing, cachestat};

use super::{Left, Reason};
use crate::Result;
use crate::holders::{Detail, EACCES, EPERM, FileHolders, Wanted, find};

/// What is known about a file that stayed.
pub(crate) struct Evidence<'a> {
    pub(crate) backing: Backing,
    pub(crate) stat: Option<CacheStat>,
    pub(crate) resident: PageMap,
    pub(crate) holders: &'a FileHolders,
    /// Per process, the pages of the file that it maps; a process without entry could not be read.
    pub(crate) mapped: BTreeMap<i32, PageMap>,
    pub(crate) uninspected: u64,
    pub(crate) pages: u64,
}

/// Adds to every file the reasons for its pages.
pub(crate) fn explain(proc: &ProcFs, sys: &Path, left: Vec<Left>) -> Result<Vec<(Left, Vec<Reason>)>> {
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let named = left.iter().map(|l| (l.path.as_path(), l.id));
    let found = find(proc, sys, named, Detail::Mappings)?;
    let mut mapped = mapped_pages(proc, &left, &found.by_file);
    let nobody = FileHolders::default();
    left.into_iter()
        .map(|l| {
            let evidence = Evidence {
                backing: backing(&l.file)?,
                stat: cachestat(&l.file, 0, 0)?,
                resident: match &l.only {
                    Some(only) => only.clone(),
                    None => PageMap::of(&l.file, &l.meta)?.unwrap_or_default(),
                },
                holders: found.by_file.get(&l.id).unwrap_or(&nobody),
                mapped: mapped.remove(&l.id).unwrap_or_default(),
                uninspected: found.uninspected,
                pages: l.pages,
            };
            let reasons = reasons(&evidence);
            Ok((l, reasons))
        })
        .collect()
}

/// Per file and process the pages that its page tables hold. A process that has ended meanwhile holds
/// none; one that may not be read has no entry.
fn mapped_pages(
    proc: &ProcFs,
    left: &[Left],
    held: &HashMap<FileId, FileHolders>,
) -> HashMap<FileId, BTreeMap<i32, PageMap>> {
    let wanted = Wanted::new(left.iter().map(|l| (l.path.as_path(), l.id)));
    let sizes: HashMap<FileId, u64> =
        left.iter().map(|l| (l.id, cold_sys::page::pages_of(l.meta.len()))).collect();
    let mut all: HashMap<FileId, BTreeMap<i32, PageMap>> = HashMap::new();
    let mut pids = BTreeSet::new();
    for (id, holders) in held {
        for holder in holders.processes.iter().filter(|h| h.mapped > 0) {
            let size = sizes.get(id).copied().unwrap_or(0);
            all.entry(*id).or_default().insert(holder.pid, PageMap::new(size));
            pids.insert(holder.pid);
        }
    }
    for pid in pids {
        let read = read_process(proc, pid, &wanted, &mut all);
        if read.is_err_and(|e| matches!(e.errno(), Some(EACCES | EPERM))) {
            for processes in all.values_mut() {
                processes.remove(&pid);
            }
        }
    }
    all
}

/// Adds the pages that `pid` maps of the wanted files.
fn read_process(
    proc: &ProcFs,
    pid: i32,
    wanted: &Wanted,
    all: &mut HashMap<FileId, BTreeMap<i32, PageMap>>,
) -> cold_sys::Result<()> {
    for map in proc.maps(pid)? {
        let Some(id) = wanted.of_mapping(proc, pid, &map) else { continue };
        let Some(pages) = all.get_mut(&id).and_then(|p| p.get_mut(&pid)) else { continue };
        for run in proc.file_pages_of_mapping(pid, &map)? {
            pages.insert(run);
        }
    }
    Ok(())
}

/// The reasons for `evidence.pages`, the largest share first; never empty.
pub(crate) fn reasons(evidence: &Evidence<'_>) -> Vec<Reason> {
    if matches!(evidence.backing, Backing::Memory | Backing::HugePages) {
        return vec![Reason::InMemory];
    }
    let mut sized: Vec<(u64, Reason)> = Vec::new();
    let mut union = PageMap::new(evidence.resident.pages());
    for holder in evidence.holders.processes.iter().filter(|h| h.mapped > 0) {
        let map = evidence.mapped.get(&holder.pid).map(|m| m.and(&evidence.resident));
        // A mapping without a page in its page tables holds nothing in the cache.
        if map.as_ref().is_some_and(|m| m.resident() == 0) {
            continue;
        }
        let pages = map.as_ref().map(PageMap::resident);
        if let Some(map) = &map {
            union.unite(map);
        }
        let (pid, name, locked) = (holder.pid, holder.name.clone(), holder.locked);
        sized.push((pages.unwrap_or(u64::MAX), Reason::Mapped { pid, name, pages, locked }));
    }
    let rest = evidence.resident.minus(&union);
    let neighbours = beside(&rest, &union);
    if neighbours > 0 {
        sized.push((neighbours, Reason::LargeFolio { pages: neighbours }));
    }
    let stat = evidence.stat.unwrap_or_default();
    if stat.dirty > 0 {
        sized.push((stat.dirty, Reason::Dirty { pages: stat.dirty }));
    }
    if stat.writeback > 0 {
        sized.push((stat.writeback, Reason::Writeback { pages: stat.writeback }));
    }
    for holder in &evidence.holders.system {
        sized.push((0, holder.clone().into()));
    }
    let unread_mapper = sized.iter().any(|s| s.0 == u64::MAX);
    let explained = union.resident() + neighbours + stat.dirty + stat.writeback;
    let busy = evidence.pages.saturating_sub(explained);
    if (busy > 0 && !unread_mapper) || sized.is_empty() {
        let pages = busy.max(u64::from(sized.is_empty()));
        sized.push((pages, Reason::Busy { pages, uninspected: evidence.uninspected }));
    }
    // Who holds most first; of whom it is not known, after those of whom it is; what has no share, last.
    let rank = |share: u64| match share {
        u64::MAX => 1,
        0 => 2,
        _ => 0,
    };
    sized.sort_by_key(|s| (rank(s.0), std::cmp::Reverse(s.0)));
    sized.into_iter().map(|s| s.1).collect()
}

/// How many pages of `rest` lie in one possible large folio with a page of `mapped`: folios are
/// naturally aligned, at most 2 MiB (the largest order of the page cache with 4 KiB pages), and all
/// their pages are present, so the way from one to the other must not have a gap.
fn beside(rest: &PageMap, mapped: &PageMap) -> u64 {
    let folio = ((2 << 20) / page_size()).max(1);
    let mut present = rest.clone();
    present.unite(mapped);
    let mut count = 0;
    for run in present.runs() {
        let mut block = run.first;
        while block < run.end() {
            let end = (block / folio * folio + folio).min(run.end());
            let has_mapped = (block..end).any(|p| mapped.contains(p));
            if has_mapped {
                count += (block..end).filter(|p| rest.contains(*p)).count() as u64;
            }
            block = end;
        }
    }
    count
}
