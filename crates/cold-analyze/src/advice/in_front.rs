//! Scripts and shims that run before the program does.

use super::{Facts, felt};
use crate::model::{Suggestion, SuggestionId};

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    // Nothing but what ran in front takes a program to another root.
    let before = f.in_front.filter(|before| !before.other_root)?;
    let saved = felt(f, before.time)?;
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::StartDirectly,
        what: format!("Start {} directly.", before.program),
        why: format!(
            "It began {} after {}; {} of that waited for storage.",
            before.time,
            before.programs.first().map_or("the command", String::as_str),
            before.waited
        ),
        saves_bytes: None,
        saves_requests: None,
        saves_time: Some(saved),
        estimate:
            "the time from the first of them to the program; what they set in its environment must be set \
                   in another way"
                .to_string(),
        files: Vec::new(),
    })
}
