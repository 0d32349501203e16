//! Which pages of the traced files' data processes have written to: those of which they have a copy in the end.

use std::collections::BTreeMap;

use cold_model::order::{TracedFile, Written};
use cold_model::pages::Runs;

use crate::Result;
use crate::procfs::ProcFs;

/// Pages of files, by the file's number.
#[derive(Debug, Default)]
pub(super) struct Copies(BTreeMap<u32, Runs>);

impl Copies {
    /// Looks at the private mappings of `files` in a process that is stopped. Executable ones have copies of ours.
    pub(super) fn look(&mut self, tid: i32, files: &[TracedFile]) -> Result<()> {
        let proc = ProcFs::default();
        for entry in proc.maps(tid)? {
            let ([_, _, b'-', b'p'], Some(path)) = (entry.perms, &entry.path) else { continue };
            let file = files.iter().rposition(|f| f.path == *path).and_then(|n| u32::try_from(n).ok());
            let Some(file) = file.filter(|_| entry.inode != 0) else { continue };
            let copied = proc.copied_pages_of_mapping(tid, &entry)?;
            let runs = self.0.entry(file).or_default();
            for run in &copied {
                runs.insert(&(run.first..run.end()));
            }
        }
        Ok(())
    }

    /// What was found, by file.
    pub(super) fn told(self) -> Vec<Written> {
        let runs = |runs: &Runs| runs.runs().iter().map(|r| (r.start, r.end - r.start)).collect();
        let files = self.0.into_iter().filter(|(_, found)| !found.is_empty());
        files.map(|(file, found)| Written { file, pages: runs(&found) }).collect()
    }
}
