//! What one observed start did that could lengthen with the number of starts.

mod scans;

pub use scans::{End, NameScan};

use std::collections::{BTreeMap, HashMap};

use cold_model::recording::{FileKind, LookupKind, Recording, TouchKind};

/// Counts of one start. Times are the wall time of the calls concerned, nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// Path resolutions.
    pub lookups: u64,
    /// Failed ones.
    pub misses: u64,
    /// Pages faulted in, mapped around or read, where the tier tells.
    pub touched_pages: Option<u64>,
    /// Runs of lookups over numbered names.
    pub scans: Vec<NameScan>,
    /// Per directory that was listed: bytes of entries, and time.
    pub listed: BTreeMap<String, Spent>,
    /// Per regular file that was read from its first to its last page: its bytes.
    pub read_in_full: BTreeMap<String, Spent>,
    /// Per directory: lookups of names in it.
    pub looked_up_in: BTreeMap<String, Spent>,
    /// Per directory: failed lookups of names in it.
    pub missed_in: BTreeMap<String, Spent>,
    /// All lookups' time.
    pub lookup_ns: u64,
}

/// How much, and how long it took (0: not told).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Bytes, or lookups.
    pub amount: u64,
    /// Wall time of the calls, nanoseconds.
    pub ns: u64,
    /// The last of the calls in the table of lookups, for the stack that did it.
    pub lookup: Option<usize>,
}

/// The evidence of each start in a recording of several: one per child of `spawner`, in order of creation.
pub fn per_start(recording: &Recording, spawner: u32) -> Vec<Evidence> {
    let mut of_start: HashMap<u32, usize> = HashMap::new();
    let mut starts = 0;
    for p in &recording.processes {
        if of_start.contains_key(&p.pid) {
            continue; // an exec: the same process
        }
        if p.parent == spawner && p.pid != spawner {
            of_start.insert(p.pid, starts);
            starts += 1;
        } else if let Some(start) = of_start.get(&p.parent).copied() {
            of_start.insert(p.pid, start);
        }
    }
    (0..starts).map(|i| of(recording, |pid| of_start.get(&pid) == Some(&i))).collect()
}

/// The evidence of the processes for which `own` holds.
pub fn of(recording: &Recording, own: impl Fn(u32) -> bool) -> Evidence {
    let mut e = Evidence { scans: scans::find(recording, &own), ..Evidence::default() };
    for (index, l) in recording.lookups.iter().flatten().enumerate().filter(|(_, l)| own(l.pid)) {
        let ns = l.ended.saturating_sub(l.at).0;
        if l.kind == LookupKind::List {
            if let (Some(path), Ok(bytes)) = (&l.path, u64::try_from(l.result)) {
                add(&mut e.listed, path, bytes, ns, Some(index));
            }
            continue;
        }
        e.lookups += 1;
        e.lookup_ns += ns;
        let missed = l.result < 0 && -l.result != i64::from(libc_errno::EEXIST);
        e.misses += u64::from(missed);
        if let Some((dir, _)) = l.path.as_deref().and_then(scans::split) {
            add(&mut e.looked_up_in, dir, 1, ns, Some(index));
            if missed {
                add(&mut e.missed_in, dir, 1, ns, Some(index));
            }
        }
    }
    read_in_full(recording, &own, &mut e);
    e
}

/// Error numbers as a recording stores them: those of the machine it was made on, the same on every
/// architecture that is supported.
pub(crate) mod libc_errno {
    pub(crate) const ENOENT: i32 = 2;
    pub(crate) const EEXIST: i32 = 17;
}

fn add(map: &mut BTreeMap<String, Spent>, key: &str, amount: u64, ns: u64, lookup: Option<usize>) {
    let spent = map.entry(key.to_owned()).or_default();
    spent.amount += amount;
    spent.ns += ns;
    spent.lookup = lookup.or(spent.lookup);
}

fn read_in_full(recording: &Recording, own: &impl Fn(u32) -> bool, e: &mut Evidence) {
    let Some(touches) = &recording.touches else { return };
    e.touched_pages = Some(touches.iter().filter(|t| own(t.pid)).map(|t| u64::from(t.pages)).sum());
    let mut pages: BTreeMap<u32, std::collections::BTreeSet<u64>> = BTreeMap::new();
    let page_bytes = u64::from(recording.manifest.page_bytes.max(1));
    for t in touches.iter().filter(|t| t.kind == TouchKind::Read && own(t.pid)) {
        let Some(file) = recording.files.get(t.file as usize) else { continue };
        let Some(size) = file.size.filter(|s| *s > 0 && file.kind == FileKind::Regular) else { continue };
        let end = size.div_ceil(page_bytes).min(t.first_page.saturating_add(u64::from(t.pages)));
        pages.entry(t.file).or_default().extend(t.first_page..end);
    }
    for (index, read) in pages {
        let Some(file) = recording.files.get(index as usize) else { continue };
        if let (Some(path), Some(size)) = (&file.path, file.size)
            && read.len() as u64 == size.div_ceil(page_bytes)
        {
            add(&mut e.read_in_full, path, size, 0, None);
        }
    }
}

#[cfg(test)]
mod tests;
