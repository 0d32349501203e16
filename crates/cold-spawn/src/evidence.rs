//! What one observed start did that could lengthen with the number of starts.

mod scans;
mod starts;

pub use scans::{End, NameScan};
pub use starts::{Calls, ProcessCalls, Seen, Stages, per_start};

use std::collections::BTreeMap;

use cold_model::recording::{FileKind, LookupKind, Recording, StackIdx, TouchKind};

/// Counts of one start. Times are the wall time of the calls concerned, nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Evidence {
    /// System calls that resolve a path; listing a directory is not counted.
    pub lookups: u64,
    /// Those that failed, but not because the name was there already (`EEXIST`).
    pub misses: u64,
    /// Pages faulted in, mapped around or read, where the tier tells.
    pub touched_pages: Option<u64>,
    /// Runs of lookups over numbered names.
    pub scans: Vec<NameScan>,
    /// Per directory that was listed: bytes of entries, and time.
    pub listed: BTreeMap<String, Spent>,
    /// Per regular file: bytes read from its beginning on without a gap, to the page.
    pub read_from_start: BTreeMap<String, Spent>,
    /// Per directory: lookups of names in it.
    pub looked_up_in: BTreeMap<String, Spent>,
    /// Per directory: failed lookups of names in it.
    pub missed_in: BTreeMap<String, Spent>,
    /// All lookups' time.
    pub lookup_ns: u64,
    /// System calls that returned, by name.
    pub calls: BTreeMap<String, Calls>,
    /// From the call that creates the process until it was waited for; 0: not timed.
    pub wall_ns: u64,
    /// The same time by what happened in it; `None` where no exec was seen.
    pub stages: Option<Stages>,
}

/// How much, and how long it took (0: not told).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Bytes, or lookups.
    pub amount: u64,
    /// Wall time of the calls, nanoseconds.
    pub ns: u64,
    /// The stack of the last of the calls that has one.
    pub stack: Option<StackIdx>,
}

/// The evidence of the processes for which `own` holds.
pub fn of(recording: &Recording, own: impl Fn(u32) -> bool) -> Evidence {
    let mut e = Evidence { scans: scans::find(recording, &own), ..Evidence::default() };
    for l in recording.lookups.iter().flatten().filter(|l| own(l.pid)) {
        let ns = l.ended.saturating_sub(l.at).0;
        if l.kind == LookupKind::List {
            if let (Some(path), Ok(bytes)) = (&l.path, u64::try_from(l.result)) {
                add(&mut e.listed, path, bytes, ns, l.stack);
            }
            continue;
        }
        e.lookups += 1;
        e.lookup_ns += ns;
        let missed = l.result < 0 && -l.result != i64::from(libc_errno::EEXIST);
        e.misses += u64::from(missed);
        if let Some((dir, _)) = l.path.as_deref().and_then(scans::split) {
            add(&mut e.looked_up_in, dir, 1, ns, l.stack);
            if missed {
                add(&mut e.missed_in, dir, 1, ns, l.stack);
            }
        }
    }
    read_from_start(recording, &own, &mut e);
    e
}

/// Error numbers as a recording stores them: those of the machine it was made on, the same on every
/// architecture that is supported.
pub(crate) mod libc_errno {
    pub(crate) const ENOENT: i32 = 2;
    pub(crate) const EEXIST: i32 = 17;
}

fn add(map: &mut BTreeMap<String, Spent>, key: &str, amount: u64, ns: u64, stack: Option<StackIdx>) {
    let spent = map.entry(key.to_owned()).or_default();
    spent.amount += amount;
    spent.ns += ns;
    spent.stack = stack.or(spent.stack);
}

fn read_from_start(recording: &Recording, own: &impl Fn(u32) -> bool, e: &mut Evidence) {
    let Some(touches) = &recording.touches else { return };
    e.touched_pages = Some(touches.iter().filter(|t| own(t.pid)).map(|t| u64::from(t.pages)).sum());
    let mut pages: BTreeMap<u32, std::collections::BTreeSet<u64>> = BTreeMap::new();
    let page_bytes = recording.page_bytes();
    for t in touches.iter().filter(|t| t.kind == TouchKind::Read && own(t.pid)) {
        let Some(file) = recording.files.get(t.file as usize) else { continue };
        let Some(size) = file.size.filter(|s| *s > 0 && file.kind == FileKind::Regular) else { continue };
        let end = size.div_ceil(page_bytes).min(t.first_page.saturating_add(u64::from(t.pages)));
        pages.entry(t.file).or_default().extend(t.first_page..end);
    }
    for (index, read) in pages {
        let Some(file) = recording.files.get(index as usize) else { continue };
        // Its end at that time is not known: a later start of the same recording may have appended to it.
        let first = read.iter().zip(0..).take_while(|(page, n)| **page == *n).count() as u64;
        if let (Some(path), Some(size), true) = (&file.path, file.size, first > 0) {
            // The reads have no stacks, but who opens a file reads it.
            let opens = recording.lookups.iter().flatten().rev();
            let mut opens = opens.filter(|l| own(l.pid) && l.path.as_ref() == Some(path));
            let stack = opens.find_map(|l| l.stack);
            add(&mut e.read_from_start, path, size.min(first * page_bytes), 0, stack);
        }
    }
}

#[cfg(test)]
mod tests;
