//! What a language loads before the program is ready.

use cold_model::figures::plural;

use super::{Facts, felt};
use crate::model::{Suggestion, SuggestionId};

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    // Nobody leaves out the language's own library.
    let most = f.packages.iter().find(|p| p.name.is_some())?;
    let saved = felt(f, most.elapsed)?;
    let name = most.name.as_deref().unwrap_or_default();
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::LoadLater,
        what: format!(
            "Load {name} later, or not at all, if nothing of it is used before the program is ready."
        ),
        why: format!(
            "{name}: {} used, {} read, {} waited for storage, {} below it.",
            plural(most.files, "file"),
            most.read,
            most.waited,
            plural(most.misses, "failed lookup"),
        ),
        saves_bytes: None,
        saves_requests: None,
        saves_time: Some(saved),
        estimate: format!(
            "the time from each look at files of {name} to the next look at something else; what a package does after \
             it loaded another counts for the other, and what others load of it stays"
        ),
        files: Vec::new(),
    })
}
