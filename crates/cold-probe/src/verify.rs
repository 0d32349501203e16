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
    /// First differences, one for each series that has one.
    pub differences: Vec<Difference>,
}

/// The outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// Each policy, in the order given.
    pub followed: Vec<Followed>,
    /// Series that were given up because pages went away during each try.
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
    let followed = |policy: &Policy| Followed { policy: *policy, operations: 0, differences: Vec::new() };
    let mut all = Verified { followed: policies.iter().map(followed).collect(), void: 0 };
    for case in 0..effort.cases {
        let mut outcome = None;
        for _ in 0..TRIES {
            outcome = one_case(subjects, files, machine, policies, effort, case)?;
            if outcome.is_some() {
                break;
            }
        }
        let Some(outcomes) = outcome else {
            all.void += 1;
            continue;
        };
        for (sum, (operations, difference)) in all.followed.iter_mut().zip(outcomes) {
            sum.operations += operations;
            sum.differences.extend(difference);
        }
    }
    Ok(all)
}

type Outcome = (u64, Option<Difference>);

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
        policies.iter().map(|p| (Follower::new(*p, machine, files), (0, None::<Difference>))).collect();
    let mut seen = vec![Runs::default(); subjects.len()];
    let workload = Workload::new(effort.seed, case, machine.page_bytes, files);
    for (at, op) in (0..effort.operations).zip(workload) {
        player.play(&op)?;
        for (follower, _) in &mut followers {
            follower.step(&op);
        }
        let Some(file) = player.file_of(&op) else { continue };
        let cached = player.cached(file)?;
        let Some(before) = seen.get_mut(file.0 as usize) else { continue };
        let gone = !before.minus(&cached).is_empty();
        if gone && !matches!(op, Op::DontNeed { .. }) {
            return Ok(None);
        }
        before.clone_from(&cached);
        let mapped = player.map_of(&op).map(|map| player.mapped(map).map(|pages| (map, pages))).transpose()?;
        for (follower, (followed, first)) in followers.iter_mut().filter(|(_, (_, first))| first.is_none()) {
            let differs = |what, kernel: &Runs, policy: &Runs| Difference {
                case,
                at,
                op,
                what,
                only_kernel: kernel.minus(policy),
                only_policy: policy.minus(kernel),
            };
            let expected = follower.cached(file);
            if cached != expected {
                *first = Some(differs(What::Cached(file), &cached, &expected));
            } else if let Some((map, pages)) = &mapped {
                let expected = follower.mapped(*map);
                if *pages != expected {
                    *first = Some(differs(What::Mapped(*map), pages, &expected));
                }
            }
            *followed += 1;
        }
        if followers.iter().all(|(_, (_, first))| first.is_some()) {
            break;
        }
    }
    Ok(Some(followers.into_iter().map(|(_, outcome)| outcome).collect()))
}
