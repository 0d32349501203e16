//! One file's pages: asked for, arrived, needed.

use std::collections::{HashMap, HashSet};

use cold_analyze::{Usage, Window};
use cold_model::pages::{LiveRuns, Range, Runs};
use cold_model::recording::{FileIdx, FillCause, Recording, RequestIdx, TouchKind};
use cold_model::{Bytes, Nanos};

use super::Amounts;

/// Pages that a readahead call brought.
struct Asked {
    pages: Range,
    /// When the last of them had come; `None`: not seen.
    arrived: Option<Nanos>,
}

/// The recording by file.
pub(super) struct Facts {
    asked: HashMap<FileIdx, Vec<Asked>>,
    /// Pages that were filled on demand by the tree.
    demanded: HashMap<FileIdx, Vec<Range>>,
    /// First exact touches until ready.
    touched: HashMap<FileIdx, Vec<(Nanos, Range)>>,
    /// Requests that carried pages asked for.
    requests: HashSet<RequestIdx>,
    /// Bytes of a page.
    page: u64,
}

impl Facts {
    pub(super) fn of(recording: &Recording) -> Self {
        let window = Window::of(recording);
        let askers: HashSet<u32> = recording
            .fills
            .iter()
            .flatten()
            .filter(|f| f.cause == FillCause::Advice)
            .map(|f| f.tid)
            .collect();
        let mut out = Self {
            asked: HashMap::new(),
            demanded: HashMap::new(),
            touched: HashMap::new(),
            requests: HashSet::new(),
            page: recording.page_bytes(),
        };
        let carried = Carried::of(recording);
        for f in recording.fills.iter().flatten() {
            let pages = f.first_page..f.first_page.saturating_add(u64::from(f.pages));
            match f.cause {
                FillCause::Write => {}
                // Blocks of metadata that an asker asked for are metadata all the same.
                FillCause::Advice | FillCause::Metadata if askers.contains(&f.tid) => {
                    let arrived = carried.arrival(f.file, &pages, f.at, &mut out.requests);
                    out.asked.entry(f.file).or_default().push(Asked { pages, arrived });
                }
                _ if f.in_tree => out.demanded.entry(f.file).or_default().push(pages),
                _ => {}
            }
        }
        for list in out.asked.values_mut() {
            list.sort_by_key(|a| a.pages.start);
        }
        let mut seen: HashMap<FileIdx, LiveRuns> = HashMap::new();
        for t in recording.touches.iter().flatten() {
            // A read's time is its end; whether it had to wait is known from its stall.
            if t.kind == TouchKind::Fault && window.holds(t.at) {
                let pages = t.first_page..t.first_page.saturating_add(u64::from(t.pages));
                let seen = seen.entry(t.file).or_default();
                let new = seen.holes(&pages);
                out.touched.entry(t.file).or_default().extend(new.into_iter().map(|r| (t.at, r)));
                seen.insert(&pages);
            }
        }
        out
    }

    pub(super) fn amounts(
        &self,
        file: FileIdx,
        planned: &Runs,
        usage: &Usage,
        waits: &[(Nanos, u64, Nanos)],
        metadata: bool,
    ) -> Amounts {
        let bytes = |pages| super::bytes(pages, self.page);
        let asked = self.asked.get(&file).map_or(&[][..], Vec::as_slice);
        let brought = Runs::of(asked.iter().map(|a| a.pages.clone()).collect()).and(planned);
        if metadata {
            let (planned, prefetched) = (bytes(planned.pages()), bytes(brought.pages()));
            return Amounts { planned, prefetched, ..Amounts::default() };
        }
        let demanded = Runs::of(self.demanded.get(&file).cloned().unwrap_or_default());
        // Needed before anybody had asked for it: the demand brought it.
        let before = demanded.and(planned).minus(&brought).and(&usage.exact);
        let mut on_the_way = self.on_the_way(file, asked);
        on_the_way.extend(waits.iter().filter(|w| brought.contains(w.1)).map(|w| w.1..w.1 + 1));
        let in_flight = Runs::of(on_the_way).and(&brought);
        let late = before.or(&in_flight);
        let missing = usage.exact.and(&demanded).minus(planned);
        let wait = |set: &Runs| waits.iter().filter(|w| set.contains(w.1)).map(|w| w.2).sum();
        let used = brought.and(&usage.needed);
        Amounts {
            planned: bytes(planned.pages()),
            prefetched: bytes(brought.pages()),
            used: bytes(used.pages()),
            unused: bytes(brought.minus(&used).pages()),
            late: bytes(late.pages()),
            in_flight: bytes(in_flight.pages()),
            late_wait: wait(&late),
            missing: bytes(missing.pages()),
            missing_wait: wait(&missing),
        }
    }

    /// Pages that were faulted on before they had arrived.
    fn on_the_way(&self, file: FileIdx, asked: &[Asked]) -> Vec<Range> {
        let mut out = Vec::new();
        for (at, pages) in self.touched.get(&file).into_iter().flatten() {
            let from = asked.partition_point(|a| a.pages.end <= pages.start);
            for a in asked[from..].iter().take_while(|a| a.pages.start < pages.end) {
                if a.arrived.is_some_and(|t| t > *at) {
                    out.push(a.pages.start.max(pages.start)..a.pages.end.min(pages.end));
                }
            }
        }
        out
    }

    /// Requests of the askers and their bytes.
    pub(super) fn requests(&self, recording: &Recording) -> Option<(u32, Bytes)> {
        let reads = recording.device_reads.as_ref()?;
        recording.transfers.as_ref()?;
        let all = self.requests.iter().filter_map(|&i| reads.get(i as usize));
        Some((self.requests.len() as u32, all.map(|r| Bytes(r.bytes.into())).sum()))
    }
}

/// Pages that a request carried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CarriedRun {
    first: u64,
    /// One past the last page.
    end: u64,
    request: RequestIdx,
}

/// The runs of one file, by first page.
#[derive(Default)]
struct CarriedRuns {
    runs: Vec<CarriedRun>,
    /// Pages of the longest.
    longest: u64,
}

/// Which request carried which pages.
struct Carried<'a> {
    recording: &'a Recording,
    of: HashMap<FileIdx, CarriedRuns>,
}

impl<'a> Carried<'a> {
    fn of(recording: &'a Recording) -> Self {
        let mut of: HashMap<FileIdx, CarriedRuns> = HashMap::new();
        for t in recording.transfers.iter().flatten() {
            if let Some(file) = t.file {
                let carried = of.entry(file).or_default();
                let (first, pages) = (t.first_page, u64::from(t.pages));
                carried.runs.push(CarriedRun { first, end: first.saturating_add(pages), request: t.request });
                carried.longest = carried.longest.max(pages);
            }
        }
        for carried in of.values_mut() {
            carried.runs.sort_unstable();
        }
        Self { recording, of }
    }

    /// When pages that were added to the cache at `at` had come, by the requests that carried them.
    fn arrival(
        &self,
        file: FileIdx,
        pages: &Range,
        at: Nanos,
        used: &mut HashSet<RequestIdx>,
    ) -> Option<Nanos> {
        let CarriedRuns { runs, longest } = self.of.get(&file)?;
        let from = runs.partition_point(|c| c.first.saturating_add(*longest) <= pages.start);
        let mut arrived = None;
        for run in runs[from..].iter().take_while(|c| c.first < pages.end) {
            let read = self.recording.device_reads.as_ref().and_then(|r| r.get(run.request as usize));
            if let Some(read) = read.filter(|r| run.end > pages.start && r.completed.is_none_or(|c| c >= at))
            {
                used.insert(run.request);
                arrived = arrived.max(Some(read.completed.unwrap_or(Nanos(u64::MAX))));
            }
        }
        arrived
    }
}
