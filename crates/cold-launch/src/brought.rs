//! Pages that were read before anybody wanted them, one by one, to give back what nobody came for.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::PathBuf;

use cold_model::pages::{Range, Runs};
use cold_plan::format::View;
use cold_plan::plan::{FileKind, Op, Step};
use cold_sys::evict::advise_dontneed_run;
use cold_sys::page::page_size;
use cold_sys::residency::{PageRun, cachestat};

use crate::engine::Tally;
use crate::files::Files;

/// What completing a plan did.
#[derive(Debug, Clone, Default)]
pub struct Completed {
    /// As of any reading.
    pub tally: Tally,
    /// What it read into memory.
    pub brought: Brought,
}

/// Pages of a plan's files that were absent before they were asked for.
#[derive(Debug, Clone, Default)]
pub struct Brought {
    /// By the plan's number of the file.
    files: BTreeMap<u32, Runs>,
}

impl Brought {
    /// Of a file whose pages these runs are.
    pub(crate) fn add(&mut self, file: u32, runs: &[Range]) {
        let pages = self.files.entry(file).or_default();
        for run in runs {
            pages.insert(run);
        }
    }

    /// The pages of another reading of the same plan as well.
    pub fn unite(&mut self, other: Self) {
        for (file, pages) in other.files {
            self.add(file, pages.runs());
        }
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.files.values().all(Runs::is_empty)
    }

    /// Drops those that are cached still, no process maps, and nobody wants. Returns how many bytes went.
    ///
    /// Of files that are as the plan has them only. The kernel leaves a large folio that is only partly among them.
    pub(crate) fn give_back(&self, view: View<'_>, files: &Files<'_>, wanted: &Wanted) -> u64 {
        let mut dropped = 0;
        for (index, pages) in &self.files {
            let Some(planned) = view.file(*index).filter(|f| f.kind() == FileKind::Regular) else { continue };
            let Some(file) = files.get(*index) else { continue };
            let unwanted = wanted.files.get(planned.path()).map_or_else(|| pages.clone(), |w| pages.minus(w));
            dropped += unwanted.runs().iter().map(|run| drop_run(&file, run)).sum::<u64>();
        }
        dropped * page_size()
    }
}

/// Pages of files by their paths: what starts since then may have used.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    files: HashMap<PathBuf, Runs>,
}

impl Wanted {
    /// All that a plan reads.
    pub(crate) fn add(&mut self, view: View<'_>) {
        for step in view.steps().filter(|step| step.op == Op::Read) {
            if let Some(file) = view.file(step.file) {
                self.files.entry(file.path().to_owned()).or_default().insert(&pages_of(step));
            }
        }
    }
}

/// Pages that the step touches.
fn pages_of(step: Step) -> Range {
    let page = page_size();
    step.offset / page..step.offset.saturating_add(u64::from(step.bytes)).div_ceil(page)
}

/// How many pages went.
fn drop_run(file: &File, run: &Range) -> u64 {
    let page = page_size();
    let run = PageRun { first: run.start, pages: run.end - run.start };
    let cached = || Some(cachestat(file, run.first * page, run.pages * page).ok()??.cached);
    match cached() {
        Some(before) if before > 0 && advise_dontneed_run(file, run).is_ok() => {
            before.saturating_sub(cached().unwrap_or(before))
        }
        _ => 0,
    }
}
