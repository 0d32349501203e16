//! When a start of many threads needs its pages at the latest.
//!
//! A page that comes later than the time to ready less what is still to come behind it ([`cold_sim::tails`]) makes
//! ready later, whatever the other threads do meanwhile.

use std::collections::HashMap;
use std::path::PathBuf;

use cold_analyze::simulate::{Recorded, WaitsKnown};
use cold_model::recording::Recording;
use cold_plan::plan::PlanFile;
use cold_sim::tails::PageTail;

/// Of one recorded start, without any wait for storage: how far it has come at the latest when it needs which page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latest {
    /// By path: size of the file, and its needs in order.
    files: HashMap<PathBuf, (u64, Vec<Need>)>,
}

/// Bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Need {
    first: u64,
    end: u64,
    /// Nanoseconds from the beginning.
    at_ns: u64,
}

impl Latest {
    /// Of a recording that knows who waited for whom.
    pub fn of(recording: &Recording) -> Option<Self> {
        let start = Recorded::of(recording).ok().filter(|start| start.waits_known == WaitsKnown::All)?;
        let tails = start.tails();
        let mut files = HashMap::new();
        for (id, pages) in tails.by_page() {
            let row = start.names.get(id.0 as usize).and_then(|name| recording.files.get(*name as usize));
            let Some((path, size)) = row.and_then(|row| row.place().zip(row.size)) else { continue };
            let need = |p: PageTail| Need {
                first: p.first.saturating_mul(start.page_bytes),
                end: p.end.saturating_mul(start.page_bytes),
                at_ns: tails.whole_ns.saturating_sub(p.tail_ns),
            };
            files.insert(path, (size, pages.into_iter().map(need).collect()));
        }
        Some(Self { files })
    }

    /// Tells `found` the pieces of these bytes of a file, each with its time where that is known.
    pub(super) fn split(
        &self,
        file: &PlanFile,
        (first, end): (u64, u64),
        mut found: impl FnMut((u64, u64), Option<u64>),
    ) {
        let known = self.files.get(&file.path).filter(|(size, _)| *size == file.identity.size);
        let needs = known.map_or(&[][..], |(_, needs)| needs);
        let mut at = first;
        let from = needs.partition_point(|need| need.end <= first);
        for need in needs.iter().skip(from).take_while(|need| need.first < end) {
            let (begins, ends) = (need.first.max(at), need.end.min(end));
            found((at, begins), None);
            found((begins, ends), Some(need.at_ns));
            at = at.max(ends);
        }
        found((at, end), None);
    }
}
