//! What a start uses that the one it is compared with did not: the reason of a gate on counts, by name.

use std::collections::HashMap;

use cold_gate::{New, News};
use cold_model::bench::Command;

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
