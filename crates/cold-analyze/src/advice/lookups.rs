//! Looking in many wrong places.

use cold_model::Nanos;
use cold_model::figures::count;

use super::Facts;
use crate::model::{Suggestion, SuggestionId};

/// Fewer misses, or a smaller part of all lookups, are normal.
const LEAST: u64 = 100;
const PART: f64 = 0.2;
/// Searches that the advice names: those with most misses.
const NAMED: usize = 3;

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let (lookups, misses) = (*f.headline.lookups.value()?, *f.headline.misses.value()?);
    // Only searches that a list of directories steers can be shortened.
    let known: Vec<_> = f.misses.iter().filter(|g| g.search.is_some()).collect();
    let saved: u64 = known.iter().map(|g| g.misses).sum();
    if saved < LEAST || (misses as f64) < PART * lookups as f64 {
        return None;
    }
    let time: Nanos = known.iter().map(|g| g.time).sum();
    let stall: Nanos = known.iter().map(|g| g.stall).sum();
    let mut searches: Vec<(&str, u64)> = Vec::new();
    for g in &known {
        let name = g.search.as_deref().unwrap_or_default();
        match searches.iter_mut().find(|(n, _)| *n == name) {
            Some((_, n)) => *n += g.misses,
            None => searches.push((name, g.misses)),
        }
    }
    searches.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let named: Vec<_> = searches.iter().take(NAMED).map(|(name, n)| format!("{name} ({n})")).collect();
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::TooManyLookups,
        what: format!("Shorten or reorder the search paths, most hits first: {}.", named.join(", ")),
        why: format!(
            "{} of {} lookups found nothing; {} belong to a search path.",
            count(misses),
            count(lookups),
            count(saved)
        ),
        saves_bytes: None,
        saves_requests: None,
        saves_time: Some(time).filter(|t| t.0 > 0),
        estimate: format!(
            "the time of these lookups, of which {stall} waited for storage; an upper bound: tracing slows \
             system calls, and some lookups will stay"
        ),
        files: Vec::new(),
    })
}

/// From so many failures on a family of directories is told.
const FAMILY: u64 = 20;
/// Families that the advice names: those with most misses.
const FAMILIES: usize = 3;

/// The same names in one directory after the other, by a rule of the program's own.
pub(super) fn families(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let searches = crate::story::searches(f.misses);
    let families: Vec<_> =
        searches.iter().filter(|s| s.family && s.misses >= FAMILY).take(FAMILIES).collect();
    if families.is_empty() {
        return None;
    }
    let time: Nanos = families.iter().map(|s| s.time).sum();
    let stall: Nanos = families.iter().map(|s| s.stall).sum();
    let named = families.iter().map(|s| {
        format!("{} ({} in {} directories)", s.name.unwrap_or_default(), s.misses, s.directories.len())
    });
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::LookupsByPattern,
        what: "Look for these files in fewer directories, or list the directory above once.".to_string(),
        why: format!("Failed lookups by pattern: {}.", named.collect::<Vec<_>>().join(", ")),
        saves_bytes: None,
        saves_requests: None,
        saves_time: Some(time).filter(|t| t.0 > 0),
        estimate: format!(
            "the time of these lookups, of which {stall} waited for storage; an upper bound: tracing slows system calls"
        ),
        files: Vec::new(),
    })
}
