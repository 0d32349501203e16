//! What several reports say in the same words: why a start was slow, who searched in vain, short names.

use std::collections::BTreeMap;

use cold_model::figures::{count, percent_of as percent, plural};
use cold_model::recording::{LookupKind, StallCause};
use cold_model::{Bytes, Nanos, path_text};

use crate::model::{Analysis, FileUse, InFront, MissGroup, PackageUse};

/// Files named as the costliest.
const NAMED: usize = 3;
/// Packages named; of the others the number is told.
const PACKAGES: usize = 5;
/// What took less than one in so many of the start is not told.
const FELT: u64 = 50;
/// Failed lookups are told from one in so many on.
const MISSED: u64 = 20;

/// Failed lookups of one search, over all its directories.
#[derive(Debug, Clone, PartialEq)]
pub struct Search<'a> {
    /// What searched, or the pattern of the directories; `None`: not recognised.
    pub name: Option<&'a str>,
    /// The name is a pattern of directories.
    pub family: bool,
    /// Lookups that found nothing, summed over `directories`.
    pub misses: u64,
    /// Time spent in them.
    pub time: Nanos,
    /// Of it, waited for storage.
    pub stall: Nanos,
    /// Per directory, most first.
    pub directories: Vec<&'a MissGroup>,
}

impl Search<'_> {
    /// The failed lookups by the family of their calls.
    pub fn kinds(&self) -> BTreeMap<LookupKind, u64> {
        let mut kinds = BTreeMap::new();
        for (kind, n) in self.directories.iter().flat_map(|d| &d.kinds) {
            *kinds.entry(*kind).or_default() += n;
        }
        kinds
    }

    /// Names that were looked for, at most `most`, each once.
    pub fn examples(&self, most: usize) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.directories.iter().flat_map(|d| &d.examples) {
            if names.len() < most && !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }
}

/// The groups by what searched, most misses first; what is not recognised is last.
pub fn searches(groups: &[MissGroup]) -> Vec<Search<'_>> {
    let mut out: BTreeMap<Option<&str>, Search<'_>> = BTreeMap::new();
    for group in groups {
        let name = group.searched();
        let search = out.entry(name).or_insert_with(|| Search {
            name,
            family: group.search.is_none() && name.is_some(),
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
const fn calls(kind: LookupKind) -> &'static str {
    match kind {
        LookupKind::Change => "create, rename or remove",
        LookupKind::Other => "by other calls",
        kind => kind.word(),
    }
}

/// Lookups by the family of their calls, in words: `12 open; 2 create, rename or remove`.
pub fn calls_in_words(kinds: &BTreeMap<LookupKind, u64>) -> String {
    let counted = kinds.iter().filter(|(_, n)| **n > 0);
    counted.map(|(kind, n)| format!("{} {}", count(*n), calls(*kind))).collect::<Vec<_>>().join("; ")
}

/// A name that tells files apart at a glance: the last component, with the directory before it where the
/// name alone says little (`json/__init__.cpython-311.pyc`, `browser/omni.ja`).
pub fn short_name(path: &str) -> String {
    let Some((directory, name)) = path.trim_end_matches('/').rsplit_once('/') else { return path.to_owned() };
    if path.contains(" on /dev/") {
        return path.to_owned();
    }
    let package = directory.strip_suffix("/__pycache__").unwrap_or(directory);
    let parent = path_text::base(package);
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

/// What a sentence of the [`story`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// How long was waited for storage, and for which files.
    Waiting,
    /// What else took time on the way to ready.
    Elapsed,
    /// What was read, and what of it in vain.
    Read,
    /// Lookups that found nothing, and who made them.
    Lookups,
}

/// One sentence of the [`story`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// What it is about.
    pub topic: Topic,
    /// The sentence in English, its full stop included.
    pub text: String,
}

/// Why the start took so long, in a few sentences, the most important first; empty where nothing is known.
pub fn story(a: &Analysis) -> Vec<Reason> {
    let h = &a.headline;
    let mut out = Vec::new();
    let mut say = |topic, text| out.push(Reason { topic, text });
    if let Some(waited) = h.waited.value() {
        say(Topic::Waiting, waiting(a, *waited));
        if let Some(text) = costliest(a) {
            say(Topic::Waiting, text);
        }
    }
    for text in elapsed(a) {
        say(Topic::Elapsed, text);
    }
    if let (Some(read), Some(unused), Some(requests)) = (h.read.value(), h.unused.value(), h.requests.value())
        && read.0 > 0
    {
        let most = a.files.iter().max_by_key(|f| f.unused).filter(|f| f.unused.0 > 0);
        let most =
            most.map_or(String::new(), |f| format!(", most of {} ({})", short_name(&f.path), f.unused));
        let text = format!(
            "It read {read} in {}; {unused} of that ({}) it did not need{most}.",
            plural(*requests, "request"),
            percent(unused.0, read.0)
        );
        say(Topic::Read, text);
    }
    if let (Some(misses), Some(lookups)) = (h.misses.value(), h.lookups.value())
        && *misses * MISSED >= *lookups
        && !a.misses.is_empty()
    {
        let most = searches(&a.misses).into_iter().find(|s| s.name.is_some());
        let most = most.map_or(String::new(), |s| {
            let by = if s.family { "in" } else { "by" };
            format!(
                "; most {by} {} ({} in {})",
                s.name.unwrap_or_default(),
                count(s.misses),
                plural(s.directories.len() as u64, "directory")
            )
        });
        let time = a.misses.iter().fold(Nanos(0), |sum, m| sum + m.time);
        say(
            Topic::Lookups,
            format!("{} of {} lookups found nothing and took {time}{most}.", count(*misses), count(*lookups)),
        );
    }
    out
}

/// What took a noticeable part of the start, other than waiting, the longest first.
fn elapsed(a: &Analysis) -> Vec<String> {
    let ready = a.headline.ready.value().map_or(Nanos(0), |r| *r);
    let felt = |t: &Nanos| t.0 > 0 && t.0.saturating_mul(FELT) >= ready.0;
    let mut out: Vec<(Nanos, String)> = Vec::new();
    out.extend(a.in_front.iter().map(|before| (before.time, in_front(before))));
    for read in a.whole_reads.iter().take(NAMED) {
        let path = a.files.iter().find(|f| f.file == read.file).map_or("?", |f| f.path.as_str());
        let (elapsed, waited) = (read.elapsed, read.waited.min(read.elapsed));
        let text = format!(
            "{elapsed} went to reading {} from end to end ({} of {}); {waited} of it waited for storage, the rest is \
             copying and what the program did between two reads.",
            short_name(path),
            read.bytes,
            read.size
        );
        out.push((elapsed, text));
    }
    let languages: std::collections::BTreeSet<_> = a.packages.iter().map(|p| p.language).collect();
    for language in languages {
        let of_it: Vec<&PackageUse> = a.packages.iter().filter(|p| p.language == language).collect();
        let time = of_it.iter().fold(Nanos(0), |sum, p| sum + p.elapsed);
        out.push((time, packages(&of_it, time)));
    }
    out.retain(|(time, _)| felt(time));
    out.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
    out.into_iter().map(|(_, text)| text).collect()
}

fn in_front(before: &InFront) -> String {
    let more = match before.processes {
        0 => String::new(),
        n => format!(" and {}", plural(n, "other process")),
    };
    format!(
        "{} went to what ran in front of {}: {}{more}.",
        before.time,
        short_name(&before.program),
        before.programs.join(", ")
    )
}

fn packages(all: &[&PackageUse], time: Nanos) -> String {
    let named = all
        .iter()
        .take(PACKAGES)
        .map(|p| format!("{} {} ({})", p.shown(), p.elapsed, plural(p.files, "file")));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match all.len().saturating_sub(PACKAGES) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let language = all.first().map_or(String::new(), |p| p.language.to_string());
    format!("{time} went to loading {language} packages: {named}{more}.")
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
    let of = match files.len() {
        0 => return None,
        all if all == named.len() => plural(all as u64, "file"),
        all => format!("{} of the {} files that it waited for", named.len(), count(all as u64)),
    };
    Some(format!("{} of the waiting is for {of}: {}.", percent(sum, all.0), names.join(", ")))
}

impl Analysis {
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
