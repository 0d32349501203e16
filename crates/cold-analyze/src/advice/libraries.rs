//! Libraries that are loaded and hardly used.

use super::{Facts, few, total};
use crate::model::{FileUse, Suggestion};

/// Fewer of them are no pattern.
const LEAST: usize = 5;

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let files: Vec<&FileUse> = f.hardly_needed.iter().filter_map(|&i| f.files.get(i)).collect();
    if files.len() < LEAST {
        return None;
    }
    let (read, needed) = (total(&files, |x| x.read), total(&files, |x| x.needed));
    let requests: u64 = files.iter().map(|x| x.requests).sum();
    Some(Suggestion {
        read_ahead: None,
        id: "fewer_libraries".to_string(),
        what: "Load these libraries only when they are used (dlopen, -Wl,--as-needed), or not at all."
            .to_string(),
        why: format!("Of {} libraries only {needed} was needed, but {read} read.", files.len()),
        saves_bytes: Some(read),
        saves_requests: Some(requests).filter(|n| *n > 0),
        saves_time: Some(files.iter().map(|x| x.stall).sum()).filter(|t: &cold_model::Nanos| t.0 > 0),
        estimate:
            "everything read of them and the stalls charged to them, if none is loaded; their lookups come \
                   on top"
                .to_string(),
        files: few(files.iter().map(|x| x.file)),
    })
}
