//! Failed lookups, grouped by the directory that was searched and by what searched there.

mod family;
mod search;

use std::collections::{BTreeMap, HashMap};

use cold_model::Nanos;
use cold_model::recording::Lookup;

use crate::context::{Context, is_miss};
use crate::model::MissGroup;

/// How the empty name is shown.
const EMPTY_NAME: &str = "\"\"";
/// Names shown per group.
const EXAMPLES: usize = 5;

/// Groups, most misses first.
pub(crate) fn misses(cx: &Context<'_>) -> Vec<MissGroup> {
    let mut stall: HashMap<u32, Nanos> = HashMap::new();
    for w in &cx.waits {
        if let Some(lookup) = w.stall.lookup {
            *stall.entry(lookup).or_insert(Nanos(0)) += w.length();
        }
    }
    let searches = search::Searches::of(cx);
    let mut groups: BTreeMap<(String, Option<String>), MissGroup> = BTreeMap::new();
    let missed = cx.lookups().filter(|(_, l)| is_miss(l));
    let missed: Vec<_> = missed.map(|(i, l)| (i, l, l.shown_place())).collect();
    for (i, l, place) in &missed {
        let (directory, name) = split(place.as_deref());
        let search = l.path.as_deref().and_then(|path| searches.recognise(l, path, directory));
        let group = groups.entry((directory.to_string(), search.clone())).or_insert_with(|| MissGroup {
            directory: directory.to_string(),
            search,
            family: None,
            misses: 0,
            time: Nanos(0),
            stall: Nanos(0),
            kinds: BTreeMap::new(),
            examples: Vec::new(),
        });
        group.misses += 1;
        group.time += l.ended.saturating_sub(l.at);
        group.stall += stall.get(&(*i as u32)).copied().unwrap_or_default();
        *group.kinds.entry(l.kind).or_default() += 1;
        if group.examples.len() < EXAMPLES && !group.examples.iter().any(|e| e == name) {
            group.examples.push(name.to_string());
        }
    }
    let mut out: Vec<_> = groups.into_values().collect();
    let mut families = family::Families::default();
    let unrecognised = out.iter().filter(|g| g.search.is_none()).map(|g| g.directory.as_str());
    let unrecognised: std::collections::HashSet<&str> = unrecognised.collect();
    for (_, _, place) in &missed {
        let (directory, name) = split(place.as_deref());
        if unrecognised.contains(directory) {
            families.add(directory, name);
        }
    }
    for group in out.iter_mut().filter(|g| g.search.is_none()) {
        group.family = families.of(&group.directory);
    }
    out.sort_by(|a, b| {
        (b.misses, b.time).cmp(&(a.misses, a.time)).then_with(|| a.directory.cmp(&b.directory))
    });
    out
}

/// Directory and name of where a lookup looked; the directory is empty where the path could not be read, and where the program
/// asked for the empty name, which lies in none.
pub(crate) fn split(place: Option<&str>) -> (&str, &str) {
    let Some(asked) = place else { return ("", "?") };
    let path = asked.trim_end_matches('/');
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some((directory, name)) => (directory, name),
        None if asked.is_empty() => ("", EMPTY_NAME),
        None if path.is_empty() => ("/", "/"),
        None => (".", path),
    }
}

/// The directory of a lookup, as the recorder sees it.
pub(crate) fn directory(l: &Lookup) -> String {
    split(l.shown_place().as_deref()).0.to_owned()
}

#[cfg(test)]
mod tests;
