//! Read what is needed before it is needed, in one stream.

use cold_model::Bytes;

use super::{Facts, few, for_cached_data, worth};
use crate::model::{Suggestion, SuggestionId};

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let cost = f.cost?;
    f.headline.needed.value()?;
    let (mut bytes, mut requests) = (0u64, 0u64);
    for u in &f.cx.usage {
        let wanted = u.needed.and(&u.read);
        bytes += f.cx.bytes(wanted.pages()).0;
        requests += wanted.runs().iter().map(|r| f.pieces(f.cx.bytes(r.end - r.start).0)).sum::<u64>();
    }
    let waited = f.waited(|w| for_cached_data(f.cx, w));
    let stream = cost.streamed(Bytes(bytes));
    let saved = worth(f, waited.saturating_sub(stream))?;
    // Metadata requests stay: a plan of pages does not replace them.
    let data_requests: u64 = f.files.iter().filter(|x| x.needed.0 > 0).map(|x| x.requests).sum();
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::PrefetchPlan,
        what: "Read the needed pages ahead of the program, in order of first need.".to_string(),
        why: format!(
            "It waited {waited} for the contents of files; the {} it needed of them take {stream} in one \
             stream.",
            Bytes(bytes)
        ),
        saves_bytes: f.headline.unused.value().copied().filter(|b| b.0 > 0),
        saves_requests: Some(data_requests.saturating_sub(requests)).filter(|n| *n > 0),
        saves_time: Some(saved),
        estimate: format!(
            "time waited for contents less {} at the {}/s that the devices reached in this start, plus one \
             request's latency; an upper bound: it assumes that reading overlaps the program's work and that \
             the next start needs the same pages; waits for metadata stay",
            Bytes(bytes),
            Bytes(cost.bandwidth as u64)
        ),
        files: few(f.files.iter().filter(|x| x.stall.0 > 0 && x.needed.0 > 0).map(|x| x.file)),
    })
}
