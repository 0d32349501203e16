//! Many small files.

use cold_model::{Bytes, Nanos};

use super::{Facts, few, total, worth};
use crate::model::{FileUse, Reached, Suggestion};

/// A small file.
const SMALL: u64 = 64 << 10;
/// Fewer of them are no pattern.
const LEAST: usize = 50;
/// Part of all requests that they must make up.
const PART: f64 = 0.3;

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let all = *f.headline.requests.value()?;
    let small =
        |x: &&FileUse| x.reached == Reached::Read && x.requests > 0 && x.size.is_some_and(|s| s.0 <= SMALL);
    let files: Vec<&FileUse> = f.files.iter().filter(small).collect();
    let requests: u64 = files.iter().map(|x| x.requests).sum();
    if files.len() < LEAST || (requests as f64) < PART * all as f64 {
        return None;
    }
    let bytes = total(&files, |x| x.needed);
    let stall: Nanos = files.iter().map(|x| x.stall).sum();
    let saved = worth(f, stall.saturating_sub(f.cost?.streamed(Bytes(bytes.0))))?;
    Some(Suggestion {
        id: "pack_small_files".to_string(),
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
