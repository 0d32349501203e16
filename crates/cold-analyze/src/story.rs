//! What several reports say in the same words: why a start was slow, who searched in vain, short names.

use std::collections::BTreeMap;

use cold_model::figures::percent_of as percent;
use cold_model::recording::{LookupKind, StallCause};
use cold_model::{Bytes, Nanos};

use crate::model::{Analysis, FileUse, MissGroup};

/// Files named as the costliest.
const NAMED: usize = 3;
/// Failed lookups are told from one in so many on.
const MISSED: u64 = 20;

/// Failed lookups of one search, over all its directories.
#[derive(Debug, Clone, PartialEq)]
pub struct Search<'a> {
    /// What searched; `None`: not recognised.
    pub name: Option<&'a str>,
    /// Failed lookups.
    pub misses: u64,
    /// Time spent in them.
    pub time: Nanos,
    /// Of it, waited for storage.
    pub stall: Nanos,
    /// Per directory, most first.
    pub directories: Vec<&'a MissGroup>,
}

/// The groups by what searched, most misses first; what is not recognised is last.
pub fn searches(groups: &[MissGroup]) -> Vec<Search<'_>> {
    let mut out: BTreeMap<Option<&str>, Search<'_>> = BTreeMap::new();
    for group in groups {
        let name = group.search.as_deref();
        let search = out.entry(name).or_insert_with(|| Search {
            name,
            misses: 0,
            time: Nanos(0),
            stall: Nanos(0),
            directories: Vec::new(),
        });
        search.misses += group.misses;
        search.time += group.time;
        search.stall += group.stall;
        search.directories.push(group);
    }
    let mut out: Vec<_> = out.into_values().collect();
    out.sort_by_key(|s| (s.name.is_none(), std::cmp::Reverse((s.misses, s.time))));
    out
}

/// What follows the number of lookups of a family of calls: `12 open`, `2 create, rename or remove`.
pub const fn calls(kind: LookupKind) -> &'static str {
    match kind {
        LookupKind::Change => "create, rename or remove",
        LookupKind::Other => "by other calls",
        kind => kind.word(),
    }
}

/// A name that tells files apart at a glance: the last component, with the directory before it where the
/// name alone says little (`json/__init__.cpython-311.pyc`, `browser/omni.ja`).
pub fn short_name(path: &str) -> String {
    let Some((directory, name)) = path.trim_end_matches('/').rsplit_once('/') else { return path.to_owned() };
    if path.contains(" on /dev/") {
        return path.to_owned();
    }
    let package = directory.strip_suffix("/__pycache__").unwrap_or(directory);
    let parent = package.rsplit('/').next().unwrap_or(package);
    // Programs and libraries are known by their names; other files by where they are, too.
    if name.contains(".so") || matches!(parent, "" | "bin" | "sbin" | "etc") {
        return name.to_owned();
    }
    format!("{parent}/{name}")
}

/// What [`story`] is about.
pub fn story_title(a: &Analysis) -> &'static str {
    if a.headline.recorded.is_none() { "Why it took this long" } else { "What it waited for and read" }
}

/// Why the start took so long, in a few sentences, the most important first; empty where nothing is known.
pub fn story(a: &Analysis) -> Vec<String> {
    let h = &a.headline;
    let mut out = Vec::new();
    if let Some(waited) = h.waited.value() {
        out.push(waiting(a, *waited));
        out.extend(costliest(a));
    }
    if let (Some(read), Some(unused), Some(requests)) = (h.read.value(), h.unused.value(), h.requests.value())
        && read.0 > 0
    {
        let most = a.files.iter().max_by_key(|f| f.unused).filter(|f| f.unused.0 > 0);
        let most =
            most.map_or(String::new(), |f| format!(", most of {} ({})", short_name(&f.path), f.unused));
        out.push(format!(
            "It read {read} in {requests} requests; {unused} of that ({}) it did not need{most}.",
            percent(unused.0, read.0)
        ));
    }
    if let (Some(misses), Some(lookups)) = (h.misses.value(), h.lookups.value())
        && *misses * MISSED >= *lookups
        && !a.misses.is_empty()
    {
        let most = searches(&a.misses).into_iter().find(|s| s.name.is_some());
        let most = most.map_or(String::new(), |s| {
            let several = if s.directories.len() == 1 { "directory" } else { "directories" };
            format!(
                "; most by {} ({} in {} {several})",
                s.name.unwrap_or_default(),
                s.misses,
                s.directories.len()
            )
        });
        let time = a.misses.iter().fold(Nanos(0), |sum, m| sum + m.time);
        out.push(format!("{misses} of {lookups} lookups found nothing and took {time}{most}."));
    }
    out
}

fn waiting(a: &Analysis, waited: Nanos) -> String {
    let h = &a.headline;
    let mut by_cause: BTreeMap<StallCause, Nanos> = BTreeMap::new();
    for (cause, time) in a.stacks.iter().flat_map(|s| &s.causes) {
        *by_cause.entry(*cause).or_default() += *time;
    }
    let all: u64 = by_cause.values().map(|t| t.0).sum();
    let mut causes: Vec<_> = by_cause.into_iter().filter(|(_, t)| t.0 * 100 >= all && t.0 > 0).collect();
    causes.sort_by_key(|(cause, t)| (std::cmp::Reverse(*t), *cause));
    let words: Vec<_> =
        causes.iter().map(|(c, t)| format!("{} {}", cause_words(*c), percent(t.0, all))).collect();
    let causes = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
    match h.ready.value() {
        Some(ready) if waited.0 * 5 < ready.0 => format!(
            "Of {ready} it waited {waited} for storage, only {}{causes}; the rest went elsewhere: the \
             program's own work, or waiting for a CPU.",
            percent(waited.0, ready.0)
        ),
        Some(ready) => {
            format!("Of {ready} it waited {waited} for storage, {}{causes}.", percent(waited.0, ready.0))
        }
        None => format!("It waited {waited} for storage{causes}."),
    }
}

/// Files by the time that was waited for them.
fn costliest(a: &Analysis) -> Option<String> {
    let all: Nanos = a.headline.waited_sum.value().copied()?;
    let mut files: Vec<&FileUse> = a.files.iter().filter(|f| f.stall.0 > 0).collect();
    files.sort_by_key(|f| std::cmp::Reverse(f.stall));
    let named = files.get(..files.len().min(NAMED)).unwrap_or_default();
    let sum: u64 = named.iter().map(|f| f.stall.0).sum();
    let names: Vec<_> = named.iter().map(|f| format!("{} {}", short_name(&f.path), f.stall)).collect();
    (!names.is_empty()).then(|| {
        let files = if files.len() == 1 { "file" } else { "files" };
        let of = if files == "file" {
            String::new()
        } else {
            format!(" of the {} {files} that it waited for", a.waited_files())
        };
        let files = if of.is_empty() { " file" } else { "" };
        format!(
            "{} of the waiting is for {}{files}{of}: {}.",
            percent(sum, all.0),
            names.len(),
            names.join(", ")
        )
    })
}

impl Analysis {
    /// Number of files that something waited for.
    pub fn waited_files(&self) -> usize {
        self.files.iter().filter(|f| f.stall.0 > 0).count()
    }

    /// Sections that were needed, read or waited for, the costliest first.
    pub fn sections_by_cost(&self) -> Vec<&crate::model::SectionUse> {
        let none = Bytes(0);
        let mut used: Vec<_> =
            self.sections.iter().filter(|s| s.needed > none || s.read > none || s.stall > Nanos(0)).collect();
        used.sort_by_key(|s| (std::cmp::Reverse((s.stall, s.read, s.needed)), s.file));
        used
    }
}

/// A cause of waiting as a noun.
fn cause_words(cause: StallCause) -> &'static str {
    match cause {
        StallCause::Fault => "page faults",
        StallCause::Read => "reads",
        StallCause::Lookup => "lookups",
        StallCause::Exec => "exec",
        StallCause::Write => "writes",
        StallCause::OtherStorage => "other storage",
        StallCause::Journal => "the file system's journal",
        StallCause::Lock => "locks",
        StallCause::Other => "what is not known",
    }
}

#[cfg(test)]
mod tests;
