//! Large files that are read from end to end before the program is ready.

use cold_model::Nanos;
use cold_model::figures::percent_of;

use super::{Facts, felt, few};
use crate::model::{Suggestion, SuggestionId};
use crate::story::short_name;

pub(super) fn rule(f: &Facts<'_, '_>) -> Option<Suggestion> {
    let reads = f.whole_reads;
    let elapsed = reads.iter().map(|r| r.elapsed).fold(Nanos(0), |sum, t| sum + t);
    // Several threads may read several files at once: together not longer than the start.
    let saved = felt(f, elapsed.min(f.cx.window.since_start(f.cx.window.until)))?;
    let most = reads.first()?;
    let bytes: u64 = reads.iter().map(|r| r.bytes.0).sum();
    let share = f.headline.read.value().filter(|read| read.0 > 0);
    let share = share.map_or(String::new(), |read| {
        let of_them: u64 =
            reads.iter().filter_map(|r| f.files.iter().find(|x| x.file == r.file)).map(|x| x.read.0).sum();
        format!(", {} of all that the start read from the disk", percent_of(of_them, read.0))
    });
    Some(Suggestion {
        read_ahead: None,
        id: SuggestionId::ReadLess,
        what: "Do not read these files whole before the program is ready: map them and touch what is used, or read \
               them later."
            .to_string(),
        why: format!(
            "They are {}{share}; most is {} ({}).",
            cold_model::Bytes(bytes),
            short_name(&f.cx.path(most.file)),
            most.bytes
        ),
        saves_bytes: None,
        saves_requests: None,
        saves_time: Some(saved),
        estimate: "the time from the open of each file to its last read, other files apart, if nothing of it is read \
                   before ready; the kernel's copying and the program's work between two reads are part of it"
            .to_string(),
        files: few(reads.iter().map(|r| r.file)),
    })
}
