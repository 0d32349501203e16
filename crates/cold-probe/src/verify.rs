//! Which policy this kernel's page cache follows: the same operations done on files and by each policy, and what is
//! cached and mapped compared after every one. Looks with mincore, cachestat and the own page table, which touch
//! nothing.

mod player;

use cold_model::pages::Runs;
use cold_sim::op::{FileId, MapId, Op};
use cold_sim::verify::{Follower, Workload};
use cold_sim::{Machine, Policy, SimFile};

use crate::Result;
use crate::subject::Subject;

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

/// The first operation of a series after which the kernel had other pages than the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The series.
    pub case: u64,
    /// The operation, counted from 0.
    pub at: u64,
    /// What it was.
    pub op: Op,
    /// The file or the mapping that differs.
    pub what: What,
    /// Pages of the kernel that the policy does not have.
    pub only_kernel: Runs,
    /// Pages of the policy that the kernel does not have.
    pub only_policy: Runs,
}

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Cached pages of a file.
    Cached(FileId),
    /// Mapped pages of a mapping.
    Mapped(MapId),
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

/// How one series went for a policy.
#[derive(Debug, Default)]
struct Outcome {
    operations: u64,
    late: u64,
    difference: Option<Difference>,
}

/// What the kernel has after an operation.
struct Seen {
    case: u64,
    at: u64,
    op: Op,
    file: FileId,
    cached: Runs,
    mapped: Option<(MapId, Runs)>,
}

impl Seen {
    fn differs(&self, what: What, kernel: &Runs, policy: &Runs) -> Difference {
        Difference {
            case: self.case,
            at: self.at,
            op: self.op,
            what,
            only_kernel: kernel.minus(policy),
            only_policy: policy.minus(kernel),
        }
    }

    /// Compares with a policy that did the same.
    fn judge(&self, follower: &mut Follower, outcome: &mut Outcome) {
        outcome.operations += 1;
        let expected = follower.cached(self.file);
        if self.cached != expected {
            outcome.difference = Some(self.differs(What::Cached(self.file), &self.cached, &expected));
            return;
        }
        let Some((map, pages)) = &self.mapped else { return };
        let expected = follower.mapped(*map);
        if *pages == expected {
            return;
        }
        let (more, less) = (pages.minus(&expected), expected.minus(pages));
        if more.is_empty() && follower.came_late(&self.op, *map, &less) {
            outcome.late += 1;
        } else {
            outcome.difference = Some(self.differs(What::Mapped(*map), pages, &expected));
        }
    }

    /// Pages are gone that the operation did not drop.
    fn disturbed(&self, before: &Runs) -> bool {
        let gone = before.minus(&self.cached);
        match self.op {
            Op::DontNeed { first, pages, .. } => {
                !gone.minus(&Runs::one(first..first.saturating_add(pages))).is_empty()
            }
            _ => !gone.is_empty(),
        }
    }
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
        for (follower, outcome) in followers.iter_mut().filter(|(_, o)| o.difference.is_none()) {
            seen.judge(follower, outcome);
        }
        *before = seen.cached;
        if followers.iter().all(|(_, outcome)| outcome.difference.is_some()) {
            break;
        }
    }
    Ok(Some(followers.into_iter().map(|(_, outcome)| outcome).collect()))
}
