//! Libraries that are loaded and hardly used.

use std::collections::BTreeSet;

use cold_model::figures::plural;
use cold_model::recording::FileIdx;

use super::{Facts, felt, few, total};
use crate::model::{FileUse, Suggestion, SuggestionId};
use crate::story::short_name;

/// Fewer of them are no pattern: they are told where the time that they take is felt.
const LEAST: usize = 5;
/// Libraries named in the text.
const NAMED: usize = 3;

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let files: Vec<&FileUse> = f.hardly_needed.iter().filter_map(|&i| f.files.get(i)).collect();
    let rows: BTreeSet<FileIdx> = files.iter().map(|x| x.file).collect();
    // Threads may wait for several at once: that time is there once.
    let waited = f.waited(|w| w.file.is_some_and(|file| rows.contains(&file)));
    if files.is_empty() || (files.len() < LEAST && felt(f, waited).is_none()) {
        return None;
    }
    let (read, needed) = (total(&files, |x| x.read), total(&files, |x| x.needed));
    let requests: u64 = files.iter().map(|x| x.requests).sum();
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::FewerLibraries,
        what: "Load these libraries only when they are used (dlopen, -Wl,--as-needed), or not at all."
            .to_string(),
        why: format!(
            "Of {} only {needed} was needed before ready, but {read} read: {}.",
            plural(files.len() as u64, "library"),
            named(&files)
        ),
        saves_bytes: Some(read),
        saves_requests: Some(requests).filter(|n| *n > 0),
        saves_time: Some(waited).filter(|t| t.0 > 0),
        estimate:
            "everything read of them and the time in which anybody waited for them, if none is loaded; their lookups come \
                   on top"
                .to_string(),
        files: few(files.iter().map(|x| x.file)),
    })
}

/// The first few, each with what else is known: whether any of its code ran.
fn named(files: &[&FileUse]) -> String {
    let one = |x: &&FileUse| {
        let why = x.hardly_needed.as_deref().unwrap_or_default();
        format!("{} ({why})", short_name(&x.path))
    };
    let named: Vec<String> = files.iter().take(NAMED).map(one).collect();
    let more = files.len().saturating_sub(NAMED);
    if more == 0 { named.join("; ") } else { format!("{}; and {more} more", named.join("; ")) }
}
