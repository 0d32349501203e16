//! What a plan would bring: a recorded start simulated without the plan and with a helper that follows it, by the rules
//! of a launch (docs/concepts/replay.md), before any disk is touched.
//!
//! Whether a launch would follow the plan is not asked: not its standing, nor whether its pages are cached. What the
//! launch takes before its helper exists, the simulation adds. Names cost computing, and the blocks of the file system that
//! looking them up read when the start was recorded: whoever looks a name up first reads them, unless the plan has steps for
//! these blocks.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cold_analyze::Usage;
use cold_analyze::simulate::{BlocksOfNames, NotSimulated, OPENS, Recorded};
use cold_model::Bytes;
use cold_model::pages::Runs;
use cold_model::recording::{self, Recording};
use cold_plan::identity::build_id_of;
use cold_plan::plan::{FileKind, Gate, Op, PAGE, PlanFile, Step};
use cold_plan::{Match, Plan};
use cold_sim::engine::{self, Block, Blocks, PlanStep, Replay, helpers_open};
use cold_sim::op::FileId;

/// CPU time of looking up or opening a name whose directory and inode are in cached blocks: means of 10.0 to 12.7 µs
/// in 3 rounds of 6000 names, after dentries and inodes were dropped (Linux 6.18, ext4).
const LOOK_UP_NS: u64 = 11_000;
/// The same of opening and listing a directory: 47 to 55 µs, 844 directories.
const LIST_NS: u64 = 50_000;
/// Lookups for which the launcher makes one more thread (cold-launch/src/engine.rs).
const LOOKUPS_PER_THREAD: usize = 8;
/// Threads and bytes of a call that it takes from a plan at most (cold-launch/src/prepare.rs).
const MOST_THREADS: u8 = 32;
const CHUNK: std::ops::RangeInclusive<u64> = 4096..=64 << 20;

/// A plan as the helper of a simulated start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The plan's reads as the simulator takes them ([`cold_analyze::simulate::Helper::Plan`]).
    pub replay: Replay,
    /// Bytes of its steps that are not simulated: of files that have changed between recording and plan (a launch
    /// leaves them out, too), and of blocks of a file system behind all that the recorded start read.
    pub left_out: Bytes,
    /// Bytes of its steps in files that the recorded start did not touch. They are read, from a place that nobody
    /// knows ([`Recorded::add`]).
    pub untouched: Bytes,
}

/// A recorded start that needs all that it may have needed: where it was not exact also what the kernel mapped around
/// faults. Of files that an exact start taught `plan`, only those of these pages that the plan says are needed: the
/// others are known not to be, and without this a plan would seem to leave out what every start reads (node on this
/// machine's disk was foretold 1.02 of its time without a plan, and measured at 0.556). `usage`: what
/// [`cold_analyze::replay`] says of the recording; it is asked for where it is needed.
pub fn at_most(
    recording: &Recording,
    plan: Option<&Plan>,
    usage: impl FnOnce() -> Vec<Usage>,
) -> Result<Recorded, NotSimulated> {
    if recording.manifest.exact_need {
        return Recorded::of(recording);
    }
    let mut usage = usage();
    let plan = plan.filter(|_| recording.page_bytes() == PAGE);
    for (file, needed) in plan.map(exact_files).unwrap_or_default() {
        for (row, usage) in recording.files.iter().zip(&mut usage) {
            if row.place().is_some_and(|place| place == file.path) && is_same(file, row) {
                usage.needed = usage.exact.or(&usage.upper.and(&needed));
            }
        }
    }
    Recorded::at_most(recording, &usage)
}

/// The plan's files of which exact starts told all that is needed, and these pages.
fn exact_files(plan: &Plan) -> Vec<(&PlanFile, Runs)> {
    let mut pages = vec![Vec::new(); plan.files.len()];
    for range in &plan.ranges {
        if let Some(of) = pages.get_mut(range.file as usize) {
            of.push(range.first_page..range.first_page.saturating_add(u64::from(range.pages)));
        }
    }
    let files = plan.files.iter().zip(pages).filter(|(file, _)| file.exact);
    files.map(|(file, pages)| (file, Runs::of(pages))).collect()
}

/// The plan's steps as a helper's. `start` is that of the recording, and gets the files of the plan that it lacks.
pub fn asked(plan: &Plan, recording: &Recording, start: &mut Recorded) -> Asked {
    let found = Found::of(recording, start);
    let places: Vec<Place> = plan.files.iter().map(|f| found.place(f)).collect();
    let (blocks, of_files) = blocks(plan, &start.blocks_of_names(recording));
    let (mut left_out, mut untouched) = (0_u64, 0_u64);
    let mut steps = Vec::with_capacity(plan.steps.len());
    for step in &plan.steps {
        let critical = step.critical;
        let needs = of_files.get(step.file as usize).copied().unwrap_or_default();
        let (Some(file), Some(place)) = (plan.files.get(step.file as usize), places.get(step.file as usize))
        else {
            continue;
        };
        if step.op != Op::Read {
            let ns = if step.op == Op::List { LIST_NS } else { LOOK_UP_NS };
            steps.push(PlanStep::LookUp { ns, blocks: needs, critical });
            continue;
        }
        let id = match *place {
            Place::In(id) => id,
            Place::Elsewhere(dev) => {
                untouched = untouched.saturating_add(u64::from(step.bytes));
                start.add(recording, &file.path, dev, file.identity.size)
            }
            Place::Nowhere => {
                left_out = left_out.saturating_add(u64::from(step.bytes));
                continue;
            }
        };
        let (first, pages) = pages(step, start, id);
        let read = pages.saturating_mul(start.page_bytes);
        left_out = left_out.saturating_add(u64::from(step.bytes).saturating_sub(read));
        if pages > 0 {
            let open = helpers_open(id);
            steps.push(PlanStep::Read { file: id, open, first, pages, blocks: needs, critical });
        }
    }
    let replay = Replay { blocks, ..helper(plan, steps, start.page_bytes) };
    Asked { replay, left_out: Bytes(left_out), untouched: Bytes(untouched) }
}

/// The blocks that looking the plan's files up takes, and which of them each file's are.
fn blocks(plan: &Plan, names: &BlocksOfNames) -> (Vec<Block>, Vec<Blocks>) {
    let mut all = Vec::new();
    let of_files = plan.files.iter().map(|file| {
        let own = names.get(&file.path).map_or(&[][..], Vec::as_slice);
        let from = all.len() as u32;
        all.extend_from_slice(own);
        Blocks { from, count: own.len() as u32 }
    });
    let of_files = of_files.collect();
    (all, of_files)
}

/// First page and pages of a step, in pages of the recording, up to the end of the file.
fn pages(step: &Step, start: &Recorded, id: FileId) -> (u64, u64) {
    let end = step.offset.saturating_add(u64::from(step.bytes)).div_ceil(start.page_bytes);
    let first = step.offset / start.page_bytes;
    (first, end.min(start.layout.pages(id)).saturating_sub(first))
}

/// Threads, chunks and bounds as the launcher takes them from a plan.
fn helper(plan: &Plan, steps: Vec<PlanStep>, page_bytes: u64) -> Replay {
    let threads = usize::from(plan.knobs.threads.clamp(1, MOST_THREADS));
    let lookups = steps.iter().filter(|s| matches!(s, PlanStep::LookUp { .. })).count();
    // Where the blocks for them are read ahead, lookups are computing, and one thread does them.
    let most = if plan.count(FileKind::BlockDevice) > 0 { 1 } else { threads };
    let chunk = u64::from(plan.knobs.chunk_bytes).clamp(*CHUNK.start(), *CHUNK.end());
    Replay {
        steps,
        blocks: Vec::new(),
        threads,
        lookup_threads: (lookups / LOOKUPS_PER_THREAD).min(most),
        chunk_pages: (chunk / page_bytes).max(1),
        in_flight_pages: u64::from(plan.knobs.in_flight_bytes).div_ceil(page_bytes),
        gate: match plan.knobs.gate {
            Gate::None => engine::Gate::None,
            Gate::Issued => engine::Gate::Issued,
            Gate::Arrived => engine::Gate::Arrived,
        },
        opens: OPENS,
    }
}

/// Where a plan's file is in the simulation.
#[derive(Clone, Copy)]
enum Place {
    In(FileId),
    /// The start did not touch it; its device, as the recording or the plan knows it.
    Elsewhere(cold_model::Dev),
    Nowhere,
}

/// The recording's files by path.
struct Found<'a> {
    rows: HashMap<PathBuf, Vec<(&'a recording::File, Option<FileId>)>>,
}

impl<'a> Found<'a> {
    fn of(recording: &'a Recording, start: &Recorded) -> Self {
        let ids: HashMap<u32, FileId> =
            start.names.iter().enumerate().map(|(n, file)| (*file, FileId(n as u32))).collect();
        let mut rows: HashMap<PathBuf, Vec<_>> = HashMap::new();
        for (index, row) in recording.files.iter().enumerate() {
            if let Some(path) = row.place() {
                rows.entry(path).or_default().push((row, ids.get(&(index as u32)).copied()));
            }
        }
        Self { rows }
    }

    fn rows(&self, path: &Path) -> &[(&'a recording::File, Option<FileId>)] {
        self.rows.get(path).map_or(&[], Vec::as_slice)
    }

    fn place(&self, file: &PlanFile) -> Place {
        let rows = self.rows(&file.path);
        match file.kind {
            FileKind::BlockDevice => rows
                .iter()
                .find(|(row, id)| row.kind == recording::FileKind::BlockDevice && id.is_some())
                .and_then(|(_, id)| *id)
                .map_or(Place::Nowhere, Place::In),
            _ if rows.is_empty() => Place::Elsewhere(file.identity.dev),
            _ => match rows.iter().find(|(row, _)| is_same(file, row)) {
                Some((_, Some(id))) => Place::In(*id),
                Some((row, None)) => Place::Elsewhere(row.dev),
                None => Place::Nowhere,
            },
        }
    }
}

/// Whether a launcher would take the recorded file for the plan's. What the recording does not know is no difference.
fn is_same(file: &PlanFile, row: &recording::File) -> bool {
    let identity = &file.identity;
    let (size, mtime_ns) = (row.size.unwrap_or(identity.size), row.mtime_ns.unwrap_or(identity.mtime_ns));
    match identity.matches_stat(row.inode, size, mtime_ns) {
        Match::Same => true,
        Match::Touched => row.build_id.as_deref().and_then(build_id_of) == Some(identity.build_id),
        Match::Changed => false,
    }
}

#[cfg(test)]
mod tests;
