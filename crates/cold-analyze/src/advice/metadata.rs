//! A start that waits for directories and inodes rather than contents.

use cold_model::recording::StallCause;

use super::{Facts, worth};
use crate::model::{Suggestion, SuggestionId};
use crate::waits::{by_cause, sum};

/// Part of all waits from which metadata is what matters.
const PART: f64 = 0.4;

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let metadata = by_cause(&f.cx.waits).get(&StallCause::Lookup).copied().unwrap_or_default();
    let all = sum(f.cx.waits.iter());
    if (metadata.0 as f64) < PART * all.0 as f64 {
        return None;
    }
    worth(f, metadata)?;
    let requests = f.cx.requests().filter(|(_, r)| r.metadata).count();
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::MetadataBound,
        what:
            "Warm directories and inodes before the contents: a plan of lookups and of the file system's own \
               blocks, from several threads."
                .to_string(),
        why: format!(
            "{metadata} of {all} waited was for directories and inodes ({requests} requests flagged as \
             metadata); reading contents ahead does not shorten that."
        ),
        saves_bytes: None,
        saves_requests: None,
        saves_time: None,
        estimate: "no time is promised: how many of these reads depend on each other is not in the recording"
            .to_string(),
        files: Vec::new(),
    })
}
