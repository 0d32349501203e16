//! What would help, one rule per file. A rule says nothing where the recording holds no evidence for it.

mod hints;
mod in_front;
mod libraries;
mod lookups;
mod metadata;
mod order;
mod pack;
mod packages;
mod prefetch;
mod read_around;
mod relocations;
mod whole_reads;

use std::cmp::Reverse;

use cold_model::recording::manifest::Tier;
use cold_model::recording::{FileIdx, StallCause};
use cold_model::{Bytes, Nanos};

use crate::context::Context;
use crate::cost::DeviceCost;
use crate::model::{
    FileUse, FirstEntries, Headline, InFront, MissGroup, PackageUse, Suggestion, SuggestionId, WholeRead,
};
use crate::waits::{Wait, union};

/// Files named in a suggestion.
const FILES: usize = 10;
/// Less than this saved is no advice.
const LEAST_TIME: Nanos = Nanos(1_000_000);
/// A start that waited less than this part of its time has nothing to gain from storage.
const FINE_PART: f64 = 0.05;

/// What the analysis found, for the rules to look at.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) headline: &'a Headline,
    pub(crate) files: &'a [FileUse],
    pub(crate) hardly_needed: &'a [usize],
    pub(crate) misses: &'a [MissGroup],
    pub(crate) in_front: Option<&'a InFront>,
    pub(crate) whole_reads: &'a [WholeRead],
    pub(crate) packages: &'a [PackageUse],
    pub(crate) first_entries: &'a [FirstEntries],
}

/// What the rules look at.
struct Facts<'a, 'r> {
    cx: &'a Context<'r>,
    found: Found<'a>,
    cost: Option<DeviceCost>,
}

impl<'a> std::ops::Deref for Facts<'a, '_> {
    type Target = Found<'a>;
    fn deref(&self) -> &Found<'a> {
        &self.found
    }
}

impl Facts<'_, '_> {
    /// Time in which at least one task waited for what the predicate accepts.
    fn waited(&self, wanted: impl Fn(&Wait<'_>) -> bool) -> Nanos {
        union(self.cx.waits.iter().filter(|w| wanted(w)).map(|w| (w.from, w.to)))
    }
    /// The device's largest request.
    fn max_request(&self) -> u64 {
        crate::cost::bounds(self.cx.recording).bytes
    }
    /// Requests for these many bytes in one piece.
    fn pieces(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.max_request())
    }
}

/// The wait is for the contents of a file.
fn for_data(w: &Wait<'_>) -> bool {
    matches!(w.stall.cause, StallCause::Fault | StallCause::Read | StallCause::Exec)
}

/// Whether the wait is for contents that go through the page cache: nothing else can be read ahead.
fn for_cached_data(cx: &Context<'_>, w: &Wait<'_>) -> bool {
    let direct = w.file.and_then(|file| cx.direct.get(file as usize));
    let past_it =
        direct.is_some_and(|runs| w.stall.page.map_or(!runs.is_empty(), |page| runs.contains(page)));
    for_data(w) && !past_it
}

/// The first few files.
fn few(files: impl IntoIterator<Item = FileIdx>) -> Vec<FileIdx> {
    files.into_iter().take(FILES).collect()
}

pub(crate) fn suggestions(cx: &Context<'_>, found: Found<'_>) -> Vec<Suggestion> {
    if cx.recording.manifest.tier == Tier::Imported {
        // The rules speak of Linux' settings and tools, and of what was needed, which is not told.
        return Vec::new();
    }
    let cost = DeviceCost::of(cx.recording);
    let facts = Facts { cx, found, cost };
    let rules: [fn(&Facts<'_, '_>) -> Option<Suggestion>; 14] = [
        in_front::rule,
        whole_reads::rule,
        packages::rule,
        prefetch::rule,
        read_around::rule,
        hints::random,
        hints::whole,
        order::rule,
        relocations::rule,
        libraries::rule,
        lookups::rule,
        lookups::families,
        metadata::rule,
        pack::rule,
    ];
    let mut out: Vec<Suggestion> = rules.iter().filter_map(|rule| rule(&facts)).collect();
    out.sort_by_key(|s| Reverse((s.saves_time, s.saves_bytes, s.saves_requests)));
    if out.is_empty() {
        out.extend(fine(&facts));
    }
    out
}

/// Nothing to do, said with figures.
fn fine(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let (waited, ready) = (*f.headline.waited.value()?, *f.headline.ready.value()?);
    (waited.0 as f64 <= FINE_PART * ready.0 as f64).then(|| Suggestion {
        read_ahead: None,
        id: SuggestionId::AlreadyFine,
        what: "Leave storage alone: this start does not wait for it.".to_string(),
        why: format!("It waited {waited} for storage in {ready}."),
        saves_bytes: None,
        saves_requests: None,
        saves_time: Some(waited),
        estimate: "all of the time waited, which nothing can exceed".to_string(),
        files: Vec::new(),
    })
}

/// `Some` if at least a millisecond and two hundredths of the wait are saved.
fn worth(f: &Facts<'_, '_>, saved: Nanos) -> Option<Nanos> {
    let waited = f.headline.waited.value().copied().unwrap_or_default();
    // A model may say more than there is: nothing saves more than was waited.
    let saved = saved.min(waited);
    (saved >= LEAST_TIME && saved.0 >= waited.0 / 50).then_some(saved)
}

/// Elapsed time that somebody would feel: a millisecond, and two hundredths of the start.
fn felt(f: &Facts<'_, '_>, elapsed: Nanos) -> Option<Nanos> {
    let start = f.cx.window.since_start(f.cx.window.until);
    (elapsed >= LEAST_TIME && elapsed.0 >= start.0 / 50).then_some(elapsed)
}

/// Sum of a figure of files.
fn total(files: &[&FileUse], figure: fn(&FileUse) -> Bytes) -> Bytes {
    files.iter().map(|f| figure(f)).sum()
}

#[cfg(test)]
mod tests;
