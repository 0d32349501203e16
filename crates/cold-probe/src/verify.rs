//! Which policy this kernel's page cache follows: the same operations done on files and by each policy, and what is
//! cached and mapped compared after every one. Looks with mincore, cachestat and the own page table, which touch
//! nothing.

mod player;

use std::os::unix::fs::MetadataExt;

use cold_journal::Journal;
use cold_model::Dev;
use cold_model::pages::Runs;
use cold_sim::verify::{Difference, Follower, Outcome, Seen, Workload};
use cold_sim::{Machine, Policy, SimFile};
use cold_sys::page::page_size;
use cold_sys::sysfs::SysFs;

use crate::subject::{ProbeTarget, Subject};
use crate::{Error, Result};

pub use player::Player;

/// Tries of a case that other processes disturb.
const TRIES: u32 = 5;

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Series of operations, each with an empty cache to begin with.
    pub cases: u64,
    /// Operations of a series.
    pub operations: u64,
    /// Chooses the operations.
    pub seed: u64,
}

/// How far the kernel did what a policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The policy.
    pub policy: Policy,
    /// Operations that were compared: of each series those up to the first difference.
    pub operations: u64,
    /// Touches after which pages that were read for them were not mapped yet, because they came later than the page
    /// that was touched.
    pub late: u64,
    /// First differences, one for each series that has one.
    pub differences: Vec<Difference>,
}

/// The outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Each policy, in the order given.
    pub followed: Vec<Followed>,
    /// Series that were given up: each try was disturbed, or went otherwise than the one before.
    pub void: u64,
}

/// Makes files of these sizes in a directory, and says what a model has to know of them.
pub fn subjects_and_files(
    target: &ProbeTarget,
    bytes: &[u64],
    large_folios: bool,
    journal: &Journal,
) -> Result<(Vec<Subject>, Vec<SimFile>)> {
    let path = target.path();
    let subjects =
        bytes.iter().map(|n| Subject::create(target, *n, journal)).collect::<Result<Vec<_>>>()?;
    let meta = path.metadata().map_err(Error::io("stat", path))?;
    let device = SysFs::default().block_device(Dev::of_number(meta.dev()))?;
    let kib = device.and_then(|d| d.read_ahead_kb.zip(d.max_sectors_kb));
    let Some((window, request)) = kib else {
        let why = "it lies on no block device whose read-ahead is known: choose a directory on a disk";
        return Err(Error::Subject { path: path.to_owned(), why: why.to_owned() });
    };
    let pages = |kib: u64| kib.saturating_mul(1024) / page_size();
    let about = |n: &u64| SimFile {
        bytes: *n,
        window_pages: pages(window),
        io_pages: pages(request),
        large_folios,
    };
    Ok((subjects, bytes.iter().map(about).collect()))
}

/// Does the operations on `subjects` (described by `files`, in the same order) and compares with each policy.
pub fn verify(
    subjects: &[Subject],
    files: &[SimFile],
    machine: Machine,
    policies: &[Policy],
    effort: Effort,
) -> Result<Verified> {
    let followed = |policy: &Policy| Followed { policy: *policy, operations: 0, late: 0, differences: Vec::new() };
    let mut all = Verified { followed: policies.iter().map(followed).collect(), void: 0 };
    for case in 0..effort.cases {
        let Some(outcomes) = settled(|| one_case(subjects, files, machine, policies, effort, case))? else {
            all.void += 1;
            continue;
        };
        for (sum, outcome) in all.followed.iter_mut().zip(outcomes) {
            sum.operations += outcome.operations;
            sum.late += outcome.late;
            sum.differences.extend(outcome.difference);
        }
    }
    Ok(all)
}

/// The outcome of a series: where a policy differs, one that came twice. A page may be evicted between the read and
/// the look at it, which no single look can tell from a page that was not read.
fn settled(mut one: impl FnMut() -> Result<Option<Vec<Outcome>>>) -> Result<Option<Vec<Outcome>>> {
    let mut last: Option<Vec<Outcome>> = None;
    for _ in 0..TRIES {
        let Some(outcomes) = one()? else { continue };
        let same = |before: &Vec<Outcome>| {
            outcomes.iter().zip(before).all(|(now, before)| now.difference == before.difference)
        };
        if outcomes.iter().all(|o| o.difference.is_none()) || last.as_ref().is_some_and(same) {
            return Ok(Some(outcomes));
        }
        last = Some(outcomes);
    }
    Ok(None)
}

/// One series; `None` where pages went away that nobody of us dropped.
fn one_case(
    subjects: &[Subject],
    files: &[SimFile],
    machine: Machine,
    policies: &[Policy],
    effort: Effort,
    case: u64,
) -> Result<Option<Vec<Outcome>>> {
    for subject in subjects {
        subject.make_cold()?;
    }
    let mut player = Player::new(subjects);
    let mut followers: Vec<_> =
        policies.iter().map(|p| (Follower::new(*p, machine, files), Outcome::default())).collect();
    let mut before = vec![Runs::default(); subjects.len()];
    let workload = Workload::new(effort.seed, case, machine.page_bytes, files);
    for (at, op) in (0..effort.operations).zip(workload) {
        player.play(&op)?;
        for (follower, _) in &mut followers {
            follower.step(&op);
        }
        let Some(file) = player.file_of(&op) else { continue };
        let mapped = player.map_of(&op).map(|map| player.mapped(map).map(|pages| (map, pages))).transpose()?;
        let seen = Seen { case, at, op, file, cached: player.cached(file)?, mapped };
        let Some(before) = before.get_mut(file.0 as usize) else { continue };
        if seen.disturbed(before) {
            return Ok(None);
        }
        for (follower, outcome) in &mut followers {
            seen.judge(follower, outcome);
        }
        *before = seen.cached;
        if followers.iter().all(|(_, outcome)| outcome.difference.is_some()) {
            break;
        }
    }
    Ok(Some(followers.into_iter().map(|(_, outcome)| outcome).collect()))
}
