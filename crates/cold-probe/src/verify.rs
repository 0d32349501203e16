//! Which policy this kernel's page cache follows: the same operations done on files and by each policy, and what is
//! cached and mapped compared after every one. Looks with mincore, cachestat and the own page table, which touch
//! nothing.

mod ground;
mod player;

use std::sync::atomic::{AtomicBool, Ordering};

use cold_model::pages::Runs;
use cold_sim::Policy;
use cold_sim::verify::{Difference, Follower, Seen, SeriesOutcome};

use crate::{Error, Result};

pub use ground::Ground;
pub use player::Player;

/// Tries of a case that other processes disturb.
const TRIES: u32 = 5;

/// How much is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyEffort {
    /// Series of operations, each with an empty cache to begin with.
    pub cases: u64,
    /// Operations of a series.
    pub operations: u64,
    /// Chooses the operations.
    pub seed: u64,
    /// Which series tell of parts of mappings.
    pub parts: Parts,
}

/// Series with advice on parts of mappings ([`Workload::by_parts`](cold_sim::verify::Workload::by_parts)). What they do
/// otherwise is not the same either, so one kind does not stand for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// No series has any.
    Never,
    /// Every second one.
    ByTurns,
    /// Every series has some.
    Always,
}

impl Parts {
    fn in_series(self, case: u64) -> bool {
        match self {
            Self::Never => false,
            Self::ByTurns => case % 2 == 1,
            Self::Always => true,
        }
    }
}

/// Who looks on.
pub struct Watch<'a> {
    /// Set from outside to end the comparison after the operation that is being done.
    pub interrupt: &'a AtomicBool,
    /// Called before each series, with how many are behind it.
    pub begins: &'a mut dyn FnMut(u64),
}

/// How far the kernel did what a policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Followed {
    /// The policy that was compared with the kernel.
    pub policy: Policy,
    /// Operations that were compared: of each series those up to the first difference.
    pub operations: u64,
    /// Touches after which other pages were mapped than expected, by the time at which pages came alone.
    pub timing: u64,
    /// First differences, one for each series that has one.
    pub differences: Vec<Difference>,
}

/// What the comparison of this kernel with the model's policies found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Each policy, in the order given.
    pub followed: Vec<Followed>,
    /// Series that were given up: each try was disturbed, or went otherwise than the one before.
    pub void: u64,
    /// It was interrupted: the rest is what was compared by then.
    pub interrupted: bool,
}

impl Verified {
    /// The policies that the kernel follows: compared, and never different. Several where what they differ in did
    /// not come up.
    pub fn follows(&self) -> Vec<Policy> {
        let followed = self.followed.iter().filter(|f| f.operations > 0 && f.differences.is_empty());
        followed.map(|f| f.policy).collect()
    }

    /// Operations that were compared with the policy that was followed longest; 0: nothing was compared.
    pub fn compared(&self) -> u64 {
        self.followed.iter().map(|f| f.operations).max().unwrap_or(0)
    }

    /// Policies by the number of series in which they differ, the least first; among equals that which was compared
    /// longest.
    pub fn nearest_first(&self) -> Vec<&Followed> {
        let mut all: Vec<&Followed> = self.followed.iter().collect();
        all.sort_by_key(|f| (f.differences.len(), std::cmp::Reverse(f.operations)));
        all
    }
}

/// Does the operations and compares with each policy.
///
/// # Errors
/// A file that cannot be read or looked at, and [`Error::Reset`]. An interrupt is none.
pub fn verify(
    ground: &Ground,
    policies: &[Policy],
    effort: VerifyEffort,
    watch: Watch<'_>,
) -> Result<Verified> {
    let Watch { interrupt, begins } = watch;
    let followed =
        |policy: &Policy| Followed { policy: *policy, operations: 0, timing: 0, differences: Vec::new() };
    let mut all = Verified { followed: policies.iter().map(followed).collect(), void: 0, interrupted: false };
    for case in 0..effort.cases {
        begins(case);
        let outcomes = match settled(|| one_case(ground, policies, effort, case, interrupt)) {
            Ok(Some(outcomes)) => outcomes,
            Ok(None) => {
                all.void += 1;
                continue;
            }
            Err(Error::Interrupted) => {
                all.interrupted = true;
                break;
            }
            Err(e) => return Err(e),
        };
        for (sum, outcome) in all.followed.iter_mut().zip(outcomes) {
            sum.operations += outcome.operations;
            sum.timing += outcome.timing;
            sum.differences.extend(outcome.difference);
        }
    }
    ground.is_unchanged()?;
    Ok(all)
}

/// The outcome of a series: where a policy differs, one that came twice. A page may be evicted between the read and
/// the look at it, which no single look can tell from a page that was not read.
fn settled(
    mut one: impl FnMut() -> Result<Option<Vec<SeriesOutcome>>>,
) -> Result<Option<Vec<SeriesOutcome>>> {
    let mut last: Option<Vec<SeriesOutcome>> = None;
    for _ in 0..TRIES {
        let Some(outcomes) = one()? else { continue };
        let same = |before: &Vec<SeriesOutcome>| {
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
    ground: &Ground,
    policies: &[Policy],
    effort: VerifyEffort,
    case: u64,
    interrupt: &AtomicBool,
) -> Result<Option<Vec<SeriesOutcome>>> {
    for subject in &ground.subjects {
        subject.make_cold()?;
    }
    let mut player = Player::new(ground);
    let mut followers: Vec<_> = policies
        .iter()
        .map(|p| (Follower::new(*p, ground.paging, &ground.files(*p)), SeriesOutcome::default()))
        .collect();
    let mut before = vec![Runs::default(); ground.subjects.len()];
    let workload = ground.workload(effort.seed, case);
    let workload = if effort.parts.in_series(case) { workload.by_parts() } else { workload };
    for (at, op) in (0..effort.operations).zip(workload) {
        if interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        player.play(&op)?;
        for (follower, _) in followers.iter_mut().filter(|(_, outcome)| outcome.difference.is_none()) {
            follower.step(&op);
        }
        let Some(file) = player.file_of(&op) else { continue };
        let mapped =
            player.map_of(&op).map(|map| player.mapped(map).map(|pages| (map, pages))).transpose()?;
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
