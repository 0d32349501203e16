//! Hints for single files: random access, or all of it at once.

use cold_model::figures::plural;
use cold_model::{Bytes, Nanos};

use super::{Facts, few, total, worth};
use crate::model::{FileUse, Reached, Suggestion, SuggestionId};

/// Files of which less was read are not worth a hint.
const LEAST: u64 = 256 << 10;
/// Unused part from which access is called random.
const UNUSED: f64 = 0.5;
/// Needed part of a file from which it may as well be read whole.
const WHOLE: f64 = 0.8;
/// Requests from which reading it whole saves some.
const REQUESTS: u64 = 8;

/// Exact reads pay where most of what was read around is not used, as far as single requests are cheap.
pub(super) fn random(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let cost = f.cost?;
    f.headline.unused.value()?;
    let after = |x: &FileUse| {
        let pages = f.cx.usage.get(x.file as usize).map_or(0, |u| u.needed.and(&u.read).pages());
        cost.one_by_one(pages, f.cx.bytes(pages))
    };
    let gains = |x: &&FileUse| {
        x.read.0 >= LEAST && x.unused.0 as f64 >= UNUSED * x.read.0 as f64 && after(x) < x.stall
    };
    let files: Vec<&FileUse> = f.files.iter().filter(|x| uses_data(x)).filter(gains).collect();
    let saved = files.iter().map(|x| x.stall.saturating_sub(after(x))).sum::<Nanos>();
    let saved = worth(f, saved)?;
    let (read, unused) = (total(&files, |x| x.read), total(&files, |x| x.unused));
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::AdviseRandom,
        what: "Tell the kernel that these files are read at random (madvise MADV_RANDOM on the mapping, \
               posix_fadvise POSIX_FADV_RANDOM on the descriptor that reads)."
            .to_string(),
        why: format!("{unused} of the {read} read of {} was not needed.", plural(files.len() as u64, "file")),
        saves_bytes: Some(unused),
        saves_requests: None,
        saves_time: Some(saved),
        estimate:
            "their stall time less one request of one page, at this start's cost per request, for each \
                   needed page that was read; more requests, fewer bytes"
                .to_string(),
        files: few(files.iter().map(|x| x.file)),
    })
}

/// A file that is needed nearly whole is better asked for at once.
pub(super) fn whole(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let cost = f.cost?;
    f.headline.needed.value()?;
    let nearly = |x: &&FileUse| {
        let size = x.size.unwrap_or_default().0;
        size >= LEAST && x.needed.0 as f64 >= WHOLE * size as f64 && x.requests >= REQUESTS
    };
    let after = |x: &FileUse| cost.streamed(Bytes(x.size.unwrap_or_default().0.min(x.read.0)));
    let pieces = |x: &FileUse| f.pieces(x.read.0);
    let files: Vec<&FileUse> = f
        .files
        .iter()
        .filter(|x| uses_data(x))
        .filter(nearly)
        .filter(|x| after(x) < x.stall && pieces(x) < x.requests)
        .collect();
    let saved = worth(f, files.iter().map(|x| x.stall.saturating_sub(after(x))).sum::<Nanos>())?;
    let requests: u64 = files.iter().map(|x| x.requests.saturating_sub(pieces(x))).sum();
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::AdviseWhole,
        what: "Ask for these files whole when they are opened (readahead in pieces of the device's largest \
               request; one call reads no more than that)."
            .to_string(),
        why: format!(
            "{} of them was needed, nearly all, in {} requests.",
            total(&files, |x| x.needed),
            files.iter().map(|x| x.requests).sum::<u64>()
        ),
        saves_bytes: None,
        saves_requests: Some(requests),
        saves_time: Some(saved),
        estimate: "their stall time less their bytes at the bandwidth that the devices reached in this start"
            .to_string(),
        files: few(files.iter().map(|x| x.file)),
    })
}

fn uses_data(x: &FileUse) -> bool {
    matches!(x.reached, Reached::Executed | Reached::Mapped | Reached::Read)
}
