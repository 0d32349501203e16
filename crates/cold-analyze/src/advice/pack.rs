//! Many small files.

use std::collections::HashMap;

use cold_model::{Bytes, Nanos, path_text};

use super::{Facts, few, total, worth};
use crate::model::{FileUse, Reached, Suggestion, SuggestionId};

/// A small file.
const SMALL: u64 = 64 << 10;
/// Fewer of them are no pattern.
const LEAST: usize = 50;
/// Fewer of one kind are not what a program can pack: a configuration file, a locale.
const KIND: usize = 20;
/// Part of all requests that they must make up.
const PART: f64 = 0.3;

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let all = *f.headline.requests.value()?;
    let small =
        |x: &&FileUse| x.reached == Reached::Read && x.requests > 0 && x.size.is_some_and(|s| s.0 <= SMALL);
    let files = of_a_kind(f.files.iter().filter(small).collect());
    let requests: u64 = files.iter().map(|x| x.requests).sum();
    if files.len() < LEAST || (requests as f64) < PART * all as f64 {
        return None;
    }
    let bytes = total(&files, |x| x.needed);
    let stall: Nanos = files.iter().map(|x| x.stall).sum();
    let saved = worth(f, stall.saturating_sub(f.cost?.streamed(Bytes(bytes.0))))?;
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::PackSmallFiles,
        what: "Put these small files into one (zip for Python, a bundle for JavaScript, a jar, an archive)."
            .to_string(),
        why: format!(
            "{} files of at most {} took {requests} of {all} requests for {bytes}.",
            files.len(),
            Bytes(SMALL)
        ),
        saves_bytes: None,
        saves_requests: Some(requests.saturating_sub(f.pieces(bytes.0))),
        saves_time: Some(saved),
        estimate: "their stall time less their needed bytes in one stream at the bandwidth that the devices \
                   reached in this start; the lookups that packing saves come on top"
            .to_string(),
        files: few(files.iter().map(|x| x.file)),
    })
}

/// Those whose kind, by the end of their names, is frequent.
fn of_a_kind(files: Vec<&FileUse>) -> Vec<&FileUse> {
    let kind = |x: &FileUse| {
        let name = path_text::base(&x.path);
        name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, end)| end.to_owned())
    };
    let mut kinds: HashMap<String, usize> = HashMap::new();
    for kind in files.iter().filter_map(|x| kind(x)) {
        *kinds.entry(kind).or_default() += 1;
    }
    let frequent = |x: &&FileUse| kind(x).and_then(|k| kinds.get(&k)).is_some_and(|n| *n >= KIND);
    files.into_iter().filter(frequent).collect()
}
