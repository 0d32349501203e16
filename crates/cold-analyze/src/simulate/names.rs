//! Which blocks of a file system looking a name up read.
//!
//! Whoever looks it up first reads them, one after the other: a helper that opens files before the program does, and may
//! not read the device itself, waits for each.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use cold_model::path_text;
use cold_model::recording::{FillCause, Lookup, Recording};
use cold_sim::engine::Block;
use cold_sim::op::FileId;

use super::Recorded;
use super::accesses::metadata_runs;
use crate::usage::Window;

/// Blocks in the order in which they were read, by the name, both as it was asked for and as the file is called that it
/// led to. Blocks that an earlier lookup had brought are that one's.
pub type BlocksOfNames = BTreeMap<PathBuf, Vec<Block>>;

impl Recorded {
    /// What looking names up read up to ready in the recording of this start.
    pub fn blocks_of_names(&self, recording: &Recording) -> BlocksOfNames {
        let ids: HashMap<u32, FileId> =
            (0..).map(FileId).zip(&self.names).map(|(id, file)| (*file, id)).collect();
        let mut lookups: HashMap<u32, Vec<&Lookup>> = HashMap::new();
        for l in recording.lookups.iter().flatten() {
            lookups.entry(l.tid).or_default().push(l);
        }
        let window = Window::of(recording);
        let read = recording.fills.iter().flatten();
        let read = read.filter(|f| f.in_tree && f.cause == FillCause::Metadata && window.holds(f.at));
        let mut found = BlocksOfNames::new();
        for run in metadata_runs(read) {
            // A thread is in one call at a time.
            let of = lookups
                .get(&run.tid)
                .and_then(|of| of.iter().find(|l| (l.at.0..=l.ended.0).contains(&run.at)));
            let (Some(lookup), Some(file)) = (of, ids.get(&run.file)) else { continue };
            let asked = lookup.place().map(|place| path_text::decode(&place));
            let led = lookup.file.and_then(|file| recording.files.get(file as usize)?.place());
            let block = Block { file: *file, first: run.first, pages: run.pages };
            for name in asked.into_iter().chain(led).collect::<BTreeSet<_>>() {
                found.entry(name).or_default().push(block);
            }
        }
        found
    }
}
