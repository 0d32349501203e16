//! Which of the things that observed starts did became longer with their number.

use std::collections::BTreeMap;

use cold_model::recording::StackIdx;
use serde::Serialize;

use crate::evidence::{Evidence, Spent};
use crate::growth::{Growth, ValueKind, judge_points};

/// Kinds of things whose amount grows with the number of starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A run of lookups of one template with consecutive integers.
    NameScan,
    /// A directory that is listed holds more.
    DirectoryList,
    /// A file is read from its beginning, and further.
    FileRead,
    /// More lookups fail in one directory: a search path.
    SearchPath,
    /// More lookups in one directory, of names that make no consecutive run (a galloping search).
    Lookups,
}

/// Something that grew.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// What kind of thing.
    pub what: What,
    /// Template, directory or file.
    pub name: String,
    /// The directory in which it happens: what `--confirm` empties.
    pub directory: String,
    /// How the amount (names, bytes, lookups) grows with the start's index.
    pub growth: Growth,
    /// Index and amount of every observed start.
    pub points: Vec<(u64, u64)>,
    /// Amount at the last observed start.
    pub present: f64,
    /// Wall time of it in the last observed start, nanoseconds; 0 when not told.
    pub ns: u64,
    /// That, as a share of the time of that start; none when not told.
    pub share: Option<f64>,
    /// The stack of one of its calls, in the recording of the last observed starts.
    #[serde(skip)]
    pub stack: Option<StackIdx>,
    /// That stack in words, outermost frame first; empty when none was recorded.
    pub code: Vec<String>,
}

/// Observed starts: the index among all starts, and the evidence.
pub type Observed = (u64, Evidence);

/// Lookups per miss up to which the misses are the point.
const MOSTLY: f64 = 1.25;

/// Everything that grew, what costs most first. `starts` is the number of all starts.
pub fn causes(observed: &[Observed], starts: usize) -> Vec<Cause> {
    let Some((_, last)) = observed.last() else { return Vec::new() };
    let mut found = Vec::new();
    for (CauseSubject { what, name, directory }, points) in series(observed) {
        let xy: Vec<(f64, f64)> = points.iter().map(|(i, s)| (*i as f64, s.amount as f64)).collect();
        let (Some(growth), Some((_, now))) = (judge_points(&xy, starts, ValueKind::Exact), points.last())
        else {
            continue;
        };
        if !growth.grows() {
            continue;
        }
        let share = (last.wall_ns > 0 && now.ns > 0).then(|| now.ns as f64 / last.wall_ns as f64);
        found.push(Cause {
            what,
            name,
            directory,
            growth,
            points: points.iter().map(|(i, s)| (*i, s.amount)).collect(),
            present: now.amount as f64,
            ns: now.ns,
            share,
            stack: now.stack,
            code: Vec::new(),
        });
    }
    // A scan is also a growing number of lookups, and of misses or hits: the most telling kind stays.
    let more_telling = |c: &Cause| {
        found.iter().filter(|o| o.directory == c.directory).any(|o| match (c.what, o.what) {
            (What::SearchPath | What::Lookups, What::NameScan | What::DirectoryList) => true,
            // Misses tell of a search path only where nearly all lookups are misses.
            (What::SearchPath, What::Lookups) => o.present > MOSTLY * c.present,
            (What::Lookups, What::SearchPath) => c.present <= MOSTLY * o.present,
            _ => false,
        })
    };
    let less: Vec<bool> = found.iter().map(more_telling).collect();
    let mut less = less.into_iter();
    found.retain(|_| !less.next().unwrap_or(false));
    found.sort_by(|a, b| b.ns.cmp(&a.ns).then(a.what.cmp(&b.what)).then(a.name.cmp(&b.name)));
    found
}

/// What grows, by name and directory.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CauseSubject {
    what: What,
    name: String,
    directory: String,
}

/// One amount per observed start and thing; a start that did not do it counts 0.
fn series(observed: &[Observed]) -> BTreeMap<CauseSubject, Vec<(u64, Spent)>> {
    let mut all: BTreeMap<CauseSubject, BTreeMap<u64, Spent>> = BTreeMap::new();
    for (index, e) in observed {
        let mut add = |what, name: String, directory: String, s: Spent| {
            let at =
                all.entry(CauseSubject { what, name, directory }).or_default().entry(*index).or_default();
            at.amount += s.amount;
            at.ns += s.ns;
            at.stack = s.stack.or(at.stack);
        };
        for s in &e.scans {
            let spent = Spent { amount: s.length(), ns: s.ns, stack: s.stack };
            add(What::NameScan, s.template(), s.directory.clone(), spent);
        }
        for (dir, s) in &e.listed {
            add(What::DirectoryList, dir.clone(), dir.clone(), *s);
        }
        for (path, s) in &e.read_from_start {
            let dir = path.rsplit_once('/').map_or("/", |(d, _)| if d.is_empty() { "/" } else { d });
            add(What::FileRead, path.clone(), dir.to_owned(), *s);
        }
        for (dir, s) in &e.missed_in {
            add(What::SearchPath, dir.clone(), dir.clone(), *s);
        }
        for (dir, s) in &e.looked_up_in {
            add(What::Lookups, dir.clone(), dir.clone(), *s);
        }
    }
    let indices: Vec<u64> = observed.iter().map(|(i, _)| *i).collect();
    all.into_iter()
        .map(|(key, seen)| {
            let points = indices.iter().map(|i| (*i, seen.get(i).copied().unwrap_or_default())).collect();
            (key, points)
        })
        .collect()
}

#[cfg(test)]
mod tests;
