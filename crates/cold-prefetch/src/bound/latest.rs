//! What of a start of many threads is still to come behind its pages.
//!
//! A page that comes at `a` puts ready at `a` and what is still to come behind it ([`cold_sim::tails`]), whatever the other
//! threads do meanwhile.
//!
//! A cold start with exact needs knows each page, but computes longer than a warm one (`java`: 330 ms and 217, with some
//! thousand faults that wait), and nobody knows where. So the difference is taken from what is still to come behind each
//! page. A warm start computes what it does, but of the pages that a fault maps around itself it does not know when they
//! are needed. Both together know more: a page has at least behind it what the warm start has behind any page that the
//! same thread needs first, and later. That each page is needed first by the same thread, and in the same order, is taken
//! for granted.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use cold_analyze::simulate::{Recorded, WaitsKnown, read_as_cold};
use cold_model::recording::Recording;
use cold_plan::plan::PlanFile;
use cold_sim::op::FileId;
use cold_sim::tails::{Need, PageTail, Tails};

/// Of recorded starts, without any wait for storage: what is still to come behind which page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latest {
    /// Any of them may know more of a page.
    starts: Vec<Start>,
}

/// What one start tells.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Start {
    /// From its beginning to ready, nanoseconds.
    whole_ns: u64,
    /// By path: size of the file, and its needs in order.
    files: HashMap<PathBuf, (u64, Vec<Behind>)>,
}

/// Bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Behind {
    first: u64,
    end: u64,
    /// Nanoseconds from having them to ready.
    tail_ns: u64,
}

impl Latest {
    /// Of a recording that knows who waited for whom. `warm`: a warm start of the same command, which is heard where the
    /// recording has exact needs.
    pub fn of(recording: &Recording, warm: Option<&Recording>) -> Option<Self> {
        let (start, tails) = heard(recording)?;
        let mut starts = vec![Start::of(recording, &start, &tails)];
        let tells = |warm: &&Recording| {
            recording.manifest.exact_need
                && warm.manifest.command == recording.manifest.command
                && warm.manifest.page_bytes == recording.manifest.page_bytes
                && !read_as_cold(warm)
        };
        let warm = warm.filter(tells).and_then(|warm| {
            let (start, tails) = heard(warm)?;
            Some(Start::of(warm, &start, &tails))
        });
        if let Some(warm) = warm {
            starts.push(Start::of(recording, &start, &warm.behind(recording, &start, &tails)));
        }
        Some(Self { starts })
    }

    /// Whether the warm start was heard.
    pub fn hears_warm(&self) -> bool {
        self.starts.len() > 1
    }

    /// Tells `found` the pieces of these bytes of a file, each with what is still to come behind it of a start that computes
    /// `computing` nanoseconds in all; none where that is not known. A piece may be told more than once.
    pub(super) fn split(
        &self,
        file: &PlanFile,
        bytes: (u64, u64),
        computing: u64,
        mut found: impl FnMut((u64, u64), Option<u64>),
    ) {
        for start in &self.starts {
            // What it computed more may all have been behind this page.
            let more = start.whole_ns.saturating_sub(computing);
            start.split(file, bytes, |piece, tail| found(piece, tail.map(|tail| tail.saturating_sub(more))));
        }
    }
}

fn heard(recording: &Recording) -> Option<(Recorded, Tails)> {
    let start = Recorded::of(recording).ok().filter(|start| start.waits_known == WaitsKnown::All)?;
    let tails = start.tails();
    Some((start, tails))
}

/// Where a file of a start lies, and its size.
fn place(recording: &Recording, start: &Recorded, id: FileId) -> Option<(PathBuf, u64)> {
    let row = recording.files.get(*start.names.get(id.0 as usize)? as usize)?;
    row.place().zip(row.size)
}

impl Start {
    fn of(recording: &Recording, start: &Recorded, tails: &Tails) -> Self {
        let mut files = HashMap::new();
        for (id, pages) in tails.by_page() {
            let Some((path, size)) = place(recording, start, id) else { continue };
            let behind = |p: PageTail| Behind {
                first: p.first.saturating_mul(start.page_bytes),
                end: p.end.saturating_mul(start.page_bytes),
                tail_ns: p.tail_ns,
            };
            files.insert(path, (size, pages.into_iter().map(behind).collect()));
        }
        Self { whole_ns: tails.whole_ns, files }
    }

    /// This start's tails for the needs of another one: behind each the greatest that this start has behind a page that
    /// the same task needs first, there or later.
    fn behind(&self, recording: &Recording, other: &Recorded, needs: &Tails) -> Tails {
        let first_needs = needs.by_page();
        let known: BTreeMap<FileId, &[Behind]> = first_needs
            .keys()
            .filter_map(|id| {
                let (path, size) = place(recording, other, *id)?;
                let (same, behind) = self.files.get(&path)?;
                (*same == size).then_some((*id, behind.as_slice()))
            })
            .collect();
        let mut tasks: HashMap<usize, u64> = HashMap::new();
        let mut out = Tails { whole_ns: self.whole_ns, ..Tails::default() };
        for need in &needs.needs {
            let known = known.get(&need.file).copied().unwrap_or_default();
            let firsts = first_needs.get(&need.file).map_or(&[][..], Vec::as_slice);
            let told = greatest(known, firsts, need, other.page_bytes).max(tasks.get(&need.task).copied());
            if let Some(tail_ns) = told {
                tasks.insert(need.task, tail_ns);
                out.needs.push(Need { tail_ns, ..*need });
            }
        }
        out
    }

    fn split(
        &self,
        file: &PlanFile,
        (first, end): (u64, u64),
        mut found: impl FnMut((u64, u64), Option<u64>),
    ) {
        let known = self.files.get(&file.path).filter(|(size, _)| *size == file.identity.size);
        let mut at = first;
        for need in within(known.map_or(&[][..], |(_, needs)| needs), first, end) {
            let (begins, ends) = (need.first.max(at), need.end.min(end));
            found((at, begins), None);
            found((begins, ends), Some(need.tail_ns));
            at = at.max(ends);
        }
        found((at, end), None);
    }
}

/// Those that have some of these bytes.
fn within(behind: &[Behind], first: u64, end: u64) -> impl Iterator<Item = &Behind> {
    let from = behind.partition_point(|b| b.end <= first);
    behind.iter().skip(from).take_while(move |b| b.first < end)
}

/// The greatest known tail of the pages that are needed first by this need: those that have no greater tail elsewhere.
fn greatest(known: &[Behind], firsts: &[PageTail], need: &Need, page_bytes: u64) -> Option<u64> {
    let from = firsts.partition_point(|p| p.end <= need.first);
    let here = firsts.iter().skip(from).take_while(|p| p.first < need.end);
    here.filter(|p| p.tail_ns == need.tail_ns)
        .flat_map(|p| {
            let (first, end) = (p.first.max(need.first), p.end.min(need.end));
            within(known, first.saturating_mul(page_bytes), end.saturating_mul(page_bytes))
        })
        .map(|b| b.tail_ns)
        .max()
}
