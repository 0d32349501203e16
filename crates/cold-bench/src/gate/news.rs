//! What a start uses that the one it is compared with did not: the reason of a gate on counts, by name.

use std::collections::HashMap;
use std::path::PathBuf;

use cold_model::bench::Command;
use cold_model::path_text;
use serde::Serialize;

/// Names that are kept; the rest is counted.
const MOST: usize = 20;

/// What is new.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum News {
    /// Files, by their sizes in bytes.
    Files(New),
    /// Failed lookups by directory, by their number; those of the directories that both reports name.
    Misses(New),
}

/// New things, the largest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct New {
    /// How many there are.
    pub count: u64,
    /// Their amounts, summed.
    pub amount: u64,
    /// The largest of them.
    pub largest: Vec<(PathText, u64)>,
}

/// A path, as text in JSON where it is UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathText(#[serde(with = "path_text")] pub PathBuf);

impl New {
    fn of(mut all: Vec<(PathBuf, u64)>) -> Option<Self> {
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        (!all.is_empty()).then(|| Self {
            count: all.len() as u64,
            amount: all.iter().map(|(_, n)| n).sum(),
            largest: all.into_iter().take(MOST).map(|(path, n)| (PathText(path), n)).collect(),
        })
    }
}

pub(super) fn files(own: &Command, reference: &Command) -> Option<News> {
    let before: HashMap<_, _> = reference.file_names.as_ref()?.iter().map(|f| (&f.path, f.bytes)).collect();
    let new = own.file_names.as_ref()?.iter().filter(|f| !before.contains_key(&f.path));
    New::of(new.map(|f| (f.path.clone(), f.bytes.0)).collect()).map(News::Files)
}

pub(super) fn misses(own: &Command, reference: &Command) -> Option<News> {
    let before: HashMap<_, _> = reference.missed_in.as_ref()?.iter().map(|m| (&m.dir, m.count)).collect();
    let more = own.missed_in.as_ref()?.iter().filter_map(|m| {
        let more = m.count.saturating_sub(before.get(&m.dir).copied().unwrap_or(0));
        (more > 0).then(|| (m.dir.clone(), more))
    });
    New::of(more.collect()).map(News::Misses)
}
