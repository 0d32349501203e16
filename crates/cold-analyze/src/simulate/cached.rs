//! What was cached before a start.

use std::collections::{BTreeMap, HashMap};

use cold_model::pages::Runs;
use cold_model::recording::{FileIdx, Recording};

use super::by_file;
use cold_sim::op::FileId;

/// Cached bytes farther than this from every page that is needed stay out: of a data file of many GiB they would be most of
/// the work. No window of up to this many bytes reaches them; a policy that reads whole files does, and reads them.
const REACH: u64 = 16 << 20;

/// File, first page, pages: what the recorder found cached before the start, and what was touched and nothing brought in,
/// which was there or was brought by others. What the start itself brought in was not there when it needed it.
pub(super) fn of(
    recording: &Recording,
    ids: &HashMap<FileIdx, FileId>,
    needed: &BTreeMap<FileId, Runs>,
) -> Vec<(FileId, u64, u64)> {
    let rows = recording.residency.iter().flatten();
    let found = by_file(rows.filter_map(|c| Some((*ids.get(&c.file)?, c.first_page, u64::from(c.pages)))));
    let own = recording.fills.as_ref().map(|fills| {
        let own = fills.iter().filter(|f| f.in_tree);
        by_file(own.filter_map(|f| Some((*ids.get(&f.file)?, f.first_page, u64::from(f.pages)))))
    });
    let none = Runs::default();
    let reach = REACH / recording.page_bytes();
    let of_file = |(file, needed): (&FileId, &Runs)| {
        let near = needed.runs().iter().map(|r| r.start.saturating_sub(reach)..r.end.saturating_add(reach));
        let found = found.get(file).unwrap_or(&none).and(&Runs::of(near.collect()));
        let there = match &own {
            Some(own) => found.or(needed).minus(own.get(file).unwrap_or(&none)),
            None => found,
        };
        there.runs().iter().map(|r| (*file, r.start, r.end - r.start)).collect::<Vec<_>>()
    };
    needed.iter().flat_map(of_file).collect()
}
